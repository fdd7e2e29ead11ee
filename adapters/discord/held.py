"""Events whose place Discord does not tell at present: they wait apart, so that the others go on.

What is known of a channel decides to which conversation its events belong. While a look-up fails,
all events of that channel wait, in order; after a while they are taken without it.
"""

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from adapters.discord.parse import Json, channel_of, guild_of
from gateway import clock

MAX_HELD, MAX_HELD_HERE = 2_000, 500
MAX_SIZE = 16 << 20
"""Events that wait at most, in all and of a channel, and their characters; with more, they are
taken as they are."""
HELD_FOR = 300.0
"""Seconds after which they are taken as they are."""


class Event(Struct, frozen=True):
    """An event with its number in a session, 0 for a message that was read back, and the characters
    in which it came."""

    number: int
    kind: str
    data: Json
    session: str = ""
    size: int = 0

    @property
    def place(self) -> str:
        """The channel, else the server, whose events keep their order."""
        return channel_of(self.data) or guild_of(self.data)


class HeldEvents:
    """Queues of events by their place."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Event]] = {}
        self._since: dict[str, float] = {}

    def holds(self, place: str) -> bool:
        """Return True if events of the `place` wait."""
        return place in self._queues

    def add(self, event: Event) -> None:
        """Queue an event behind those of its place."""
        self._since.setdefault(event.place, clock.monotonic())
        self._queues.setdefault(event.place, deque()).append(event)

    def list_places(self) -> Sequence[str]:
        """Return where events wait."""
        return tuple(self._queues)

    def list_events(self, place: str) -> Sequence[Event]:
        """Return what waits there, in order."""
        return tuple(self._queues.get(place, ()))

    def remove(self, place: str, count: int) -> None:
        """Remove the first events of a place, which are stored."""
        queue = self._queues[place]
        for _ in range(count):
            queue.popleft()
        if not queue:
            del self._queues[place], self._since[place]

    def may_wait(self, place: str) -> bool:
        """Return True while the events of a place may wait on."""
        held = [one for queue in self._queues.values() for one in queue]
        large = sum(one.size for one in held) > MAX_SIZE
        full = len(self._queues[place]) > MAX_HELD_HERE or len(held) > MAX_HELD or large
        return not full and clock.monotonic() - self._since[place] < HELD_FOR

    def find_last_stored(self, session: str, number: int) -> int:
        """Return the number of the last event of the `session` before which none waits here; all up
        to `number` are stored or wait here."""
        waiting = [
            one.number
            for queue in self._queues.values()
            for one in queue
            if one.number and one.session == session
        ]
        return min([number, *(first - 1 for first in waiting)])
