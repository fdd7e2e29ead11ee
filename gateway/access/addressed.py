"""Messages of groups that come in parts, of which only one bears the mention."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_core import ambient
from gateway.messages import Inbound, MessageReceived

LONG_PART = 4_000
"""Characters from which on a message may be a part of a longer paste."""
PART_SECONDS, ALBUM_SECONDS = 1.0, 30.0
"""Within which the next part of a paste, another one of an album comes."""
MAX_KNOWN = 1024


class Addressed:
    """Which messages of groups are parts of one that was addressed to the agent: platforms cut
    albums and long pastes into several, and only one of them bears the mention."""

    def __init__(self) -> None:
        self._albums: dict[tuple[str, str, str], float] = {}
        self._cut: dict[tuple[str, str], tuple[float, float]] = {}
        """By place and person: when a part came that another one follows, and its own time."""

    def with_parts(self, inbounds: Sequence[Inbound]) -> list[Inbound]:
        """`inbounds`, in which further parts of addressed messages are addressed too, whichever
        of the parts that come together bears the mention."""
        now = ambient.monotonic()
        for inbound in inbounds:
            if isinstance(inbound, MessageReceived) and inbound.addressed and inbound.album:
                self._albums[_album(inbound)] = now
        marked = [self._mark(inbound, now) for inbound in inbounds]
        while len(self._albums) > MAX_KNOWN:
            del self._albums[next(iter(self._albums))]
        while len(self._cut) > MAX_KNOWN:
            del self._cut[next(iter(self._cut))]
        return marked

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
        if written and message.at:  # what comes late, all at once, was not written at once
            return 0.0 <= message.at - written <= PART_SECONDS + 1.0  # platforms count in seconds
        return now - came <= PART_SECONDS


def _album(message: MessageReceived) -> tuple[str, str, str]:
    return message.conversation.id, message.sender.key, message.album
