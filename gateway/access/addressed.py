"""Messages of groups that come in parts, of which only one bears the mention."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from gateway.messages import Inbound, MessageReceived

LONG_PART = 4_000
"""Characters from which on a message may be a part of a longer paste."""
PART_SECONDS, ALBUM_SECONDS = 1.0, 30.0
"""Within which the next part of a paste, another one of an album comes."""
MAX_KNOWN = 1024
MAX_HELD, MAX_HELD_PARTS = 32, 10
"""Albums and pastes of which no part was addressed yet, and parts of each, that are kept."""


class HeldParts(Struct, frozen=True, kw_only=True):
    """Parts of an album or a paste that no mention came with, for as long as one may follow."""

    came: float
    parts: tuple[MessageReceived, ...]


class Addressed:
    """Which messages of groups are parts of one that was addressed to the agent: platforms cut
    albums and long pastes into several, and only one of them bears the mention, be it the last."""

    def __init__(self) -> None:
        self._albums: dict[tuple[str, str, str], float] = {}
        self._cut: dict[tuple[str, str], tuple[float, float]] = {}
        """By place and person: when a part came that another one follows, and its own time."""
        self._held: dict[tuple[str, ...], HeldParts] = {}

    def with_parts(self, inbounds: Sequence[Inbound]) -> list[Inbound]:
        """`inbounds`, in which the other parts of addressed messages are addressed too; before a
        part with the mention stand those that came earlier without one."""
        now = ambient.monotonic()
        for inbound in inbounds:
            if isinstance(inbound, MessageReceived) and inbound.addressed and inbound.album:
                self._albums[_album(inbound)] = now
        marked: list[Inbound] = []
        for inbound in inbounds:
            earlier = self._take_held(inbound, now)
            known = {one.event for one in earlier}
            marked = [one for one in marked if _event(one) not in known]
            marked += (*earlier, self._mark(inbound, now))
        while len(self._albums) > MAX_KNOWN:
            del self._albums[next(iter(self._albums))]
        while len(self._cut) > MAX_KNOWN:
            del self._cut[next(iter(self._cut))]
        return marked

    def _take_held(self, inbound: Inbound, now: float) -> list[MessageReceived]:
        """The parts before `inbound` that it addresses; else it is held, if another may."""
        if not isinstance(inbound, MessageReceived) or inbound.conversation.private:
            return []
        whose = _album(inbound) if inbound.album else (inbound.conversation.id, inbound.sender.key)
        held = self._held.pop(whose, None)
        if held is not None and not _is_next(held, inbound, now):
            held = None
        parts = held.parts if held is not None else ()
        if inbound.addressed:
            return [replace(one, addressed=True) for one in parts]
        if inbound.album or len(inbound.text) >= LONG_PART:
            self._held[whose] = HeldParts(came=now, parts=(*parts, inbound)[-MAX_HELD_PARTS:])
        for name in [one for one, had in self._held.items() if now - had.came > ALBUM_SECONDS]:
            del self._held[name]
        while len(self._held) > MAX_HELD:
            del self._held[next(iter(self._held))]
        return []

    def _mark(self, inbound: Inbound, now: float) -> Inbound:
        if not isinstance(inbound, MessageReceived) or inbound.conversation.private:
            return inbound
        if not inbound.addressed and self._continues(inbound, now):
            inbound = replace(inbound, addressed=True)
        whose = (inbound.conversation.id, inbound.sender.key)
        if inbound.addressed and len(inbound.text) >= LONG_PART:
            self._cut[whose] = (now, inbound.at)
        else:
            self._cut.pop(whose, None)  # the paste is over
        return inbound

    def _continues(self, message: MessageReceived, now: float) -> bool:
        if message.album:
            return now - self._albums.get(_album(message), -ALBUM_SECONDS) < ALBUM_SECONDS
        came, written = self._cut.get(
            (message.conversation.id, message.sender.key), (-PART_SECONDS, 0.0)
        )
        return _is_soon(message, now, came, written)


def _album(message: MessageReceived) -> tuple[str, str, str]:
    return message.conversation.id, message.sender.key, message.album


def _event(inbound: Inbound) -> str:
    return inbound.event if isinstance(inbound, MessageReceived) else ""


def _is_next(held: HeldParts, message: MessageReceived, now: float) -> bool:
    if message.album:
        return now - held.came < ALBUM_SECONDS
    return _is_soon(message, now, held.came, held.parts[-1].at)


def _is_soon(message: MessageReceived, now: float, came: float, written: float) -> bool:
    """It follows at once on what `came` then and was `written` then."""
    if written and message.at:  # what comes late, all at once, was not written at once
        return 0.0 <= message.at - written <= PART_SECONDS + 1.0  # platforms count in seconds
    return now - came <= PART_SECONDS
