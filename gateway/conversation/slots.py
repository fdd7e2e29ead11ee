"""Limits the turns that run at once in this process; after an outage they begin a few at a time."""

from collections.abc import Callable

DEFAULT_TURNS = 100


class Slot:
    """A place among the running turns, or in the line before it."""

    __slots__ = ("given", "on_given")

    def __init__(self, on_given: Callable[[], None]) -> None:
        self.given = False
        self.on_given = on_given


class Slots:
    """Slots for running turns, granted in the order of requests."""

    def __init__(self, most: int = DEFAULT_TURNS) -> None:
        self._most = most
        self._running = 0
        self._line: dict[Slot, None] = {}

    @property
    def running(self) -> int:
        """Places that are taken."""
        return self._running

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a slot."""
        return len(self._line)

    def ask(self, on_given: Callable[[], None]) -> Slot:
        """Request a slot; `on_given` is called if it is granted later."""
        slot = Slot(on_given)
        self._line[slot] = None
        self._give()
        return slot

    def leave(self, slot: Slot) -> None:
        """Give the place back, or leave the line."""
        if slot.given:
            self._running -= 1
        else:
            self._line.pop(slot, None)
        self._give()

    def _give(self) -> None:
        while self._line and self._running < self._most:
            slot = next(iter(self._line))
            del self._line[slot]
            slot.given = True
            self._running += 1
            slot.on_given()


class TurnSlot:
    """One session's slot: requested when a turn is to run, released when none is."""

    def __init__(self, slots: Slots, on_given: Callable[[], None]) -> None:
        self._slots, self._on_given = slots, on_given
        self._slot: Slot | None = None

    def is_given(self) -> bool:
        """Return True if a turn may run now; otherwise `on_given` is called when it may."""
        if self._slot is None:
            self._slot = self._slots.ask(self._on_given)
        return self._slot.given

    def leave(self) -> None:
        """Release the slot for the next request."""
        if self._slot is not None:
            slot, self._slot = self._slot, None
            self._slots.leave(slot)
