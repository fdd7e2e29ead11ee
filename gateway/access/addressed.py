"""Group messages in several parts, of which only one has the mention: albums, long pastes, and what
is forwarded with a comment."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from gateway.messages import Conversation, Inbound, MessageReceived, is_forwarded

LONG_PART = 4_000
"""Minimum characters of a message that may be a part of a longer paste."""
PART_SECONDS, ALBUM_SECONDS = 1.0, 30.0
"""Seconds within which the next part of a paste, or of an album, arrives."""
MAX_KNOWN = 1024
MAX_HELD, MAX_HELD_PARTS = 32, 10
"""Albums and pastes of which no part was addressed yet, and parts of each, that are kept."""


class HeldParts(Struct, frozen=True, kw_only=True):
    """Parts of an album or a paste, or what was forwarded, that no mention came with, for as long
    as one may follow."""

    came: float
    parts: tuple[MessageReceived, ...]


class LastAddressed(Struct, frozen=True, kw_only=True):
    """The last message of a person to the agent in a place: when it arrived and was written, and
    its conversation. `cut`: it may be the beginning of a paste."""

    came: float
    written: float
    where: Conversation
    cut: bool


class Addressed:
    """Finds the parts of messages addressed to the agent in groups: platforms split albums and long
    pastes, and send what is forwarded apart from its comment. Only one part, perhaps the last, has
    the mention."""

    def __init__(self) -> None:
        self._albums: dict[tuple[str, str, str], float] = {}
        self._last: dict[tuple[str, str], LastAddressed] = {}
        """By place and person."""
        self._held: dict[tuple[str, ...], HeldParts] = {}

    def with_parts(self, inbounds: Sequence[Inbound]) -> list[Inbound]:
        """Return `inbounds` with the other parts of addressed messages marked as addressed; earlier
        parts without the mention are put in front."""
        now = ambient.monotonic()
        for inbound in inbounds:
            if isinstance(inbound, MessageReceived) and inbound.addressed and inbound.album:
                self._albums[_album(inbound)] = now
        marked: list[Inbound] = []
        for inbound in inbounds:
            if earlier := self._take_held(inbound, now):
                known = {one.event for one in earlier}
                marked = [one for one in marked if _event(one) not in known]
            marked += (*earlier, self._mark(inbound, now))
        while len(self._albums) > MAX_KNOWN:
            del self._albums[next(iter(self._albums))]
        while len(self._last) > MAX_KNOWN:
            del self._last[next(iter(self._last))]
        return marked

    def _take_held(self, inbound: Inbound, now: float) -> list[MessageReceived]:
        """The parts before `inbound` that it addresses; else it is held, if another may."""
        if not isinstance(inbound, MessageReceived) or inbound.conversation.private:
            return []
        whose = _album(inbound) if inbound.album else _line(inbound)
        held = self._held.pop(whose, None)
        if held is not None and not _is_next(held, inbound, now):
            held = None
        parts = held.parts if held is not None else ()
        if inbound.addressed:
            where = inbound.conversation  # a mention may open a thread
            return [replace(one, addressed=True, conversation=where) for one in parts]
        if inbound.album or len(inbound.text) >= LONG_PART or is_forwarded(inbound):
            self._held[whose] = HeldParts(came=now, parts=(*parts, inbound)[-MAX_HELD_PARTS:])
        for name in [one for one, had in self._held.items() if now - had.came > ALBUM_SECONDS]:
            del self._held[name]
        while len(self._held) > MAX_HELD:
            del self._held[next(iter(self._held))]
        return []

    def _mark(self, inbound: Inbound, now: float) -> Inbound:
        if not isinstance(inbound, MessageReceived) or inbound.conversation.private:
            return inbound
        whose = _line(inbound)
        last = self._last.pop(whose, None)
        if not inbound.addressed and self._continues(inbound, last, now):
            where = last.where if last is not None and not inbound.album else inbound.conversation
            inbound = replace(inbound, addressed=True, conversation=where)
        if inbound.addressed:
            cut = len(inbound.text) >= LONG_PART
            self._last[whose] = LastAddressed(
                came=now, written=inbound.at, where=inbound.conversation, cut=cut
            )
        return inbound

    def _continues(self, message: MessageReceived, last: LastAddressed | None, now: float) -> bool:
        if message.album:
            return now - self._albums.get(_album(message), -ALBUM_SECONDS) < ALBUM_SECONDS
        if last is None or not (last.cut or is_forwarded(message)):
            return False
        return _is_soon(message, now, last.came, last.written)


def _line(message: MessageReceived) -> tuple[str, str]:
    """Return the place and the person. A thread that the message opens is no place yet."""
    where = message.conversation
    opens = where.thread and where.thread == message.message
    return (replace(where, thread="") if opens else where).id, message.sender.key


def _album(message: MessageReceived) -> tuple[str, str, str]:
    return message.conversation.id, message.sender.key, message.album


def _event(inbound: Inbound) -> str:
    return inbound.event if isinstance(inbound, MessageReceived) else ""


def _is_next(held: HeldParts, message: MessageReceived, now: float) -> bool:
    if message.album:
        return now - held.came < ALBUM_SECONDS
    return _is_soon(message, now, held.came, held.parts[-1].at)


def _is_soon(message: MessageReceived, now: float, came: float, written: float) -> bool:
    """Return True if it follows directly on a part that arrived at `came` and was `written`
    then."""
    if written and message.at:  # late deliveries arrive together, but were not written so
        return 0.0 <= message.at - written <= PART_SECONDS + 1.0  # platforms count in seconds
    return now - came <= PART_SECONDS
