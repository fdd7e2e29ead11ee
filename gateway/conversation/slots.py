"""Limits the turns that run at once in this process; after an outage they begin a few at a time.
People get places in turn: nobody waits for all that one person asked for before."""

from collections.abc import Callable

from gateway.delivery.send_gate import FairLines

DEFAULT_TURNS = 100
MAX_SHARE = 9
"""Places that a person may hold for each one that is free: at most nine tenths of all, so that long
turns of one person leave some for others."""


class Slot:
    """A place among the running turns, or in the line before it."""

    __slots__ = ("given", "on_given", "who")

    def __init__(self, who: str, on_given: Callable[[], None]) -> None:
        self.who = who
        self.given = False
        self.on_given = on_given


class Slots:
    """Slots for running turns. The next one goes to the person with the fewest, among equals to the
    one who has waited longest since the last; a person's own requests keep their order."""

    def __init__(self, most: int = DEFAULT_TURNS) -> None:
        self._most = most
        self._running = 0
        self._held: dict[str, int] = {}
        """Slots of each person who has some."""
        self._waiting = FairLines[Slot]()
        """Requests, in lines of the people who wait."""

    @property
    def running(self) -> int:
        """Places that are taken."""
        return self._running

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a slot."""
        return len(self._waiting)

    def ask(self, on_given: Callable[[], None], who: str = "") -> Slot:
        """Request a slot; `on_given` is called if it is granted later. `who`: the person for whom
        it is; what nobody asked for, such as runs of jobs, counts as one person's."""
        slot = Slot(who, on_given)
        self._waiting.add(who, slot)
        self._give()
        return slot

    def leave(self, slot: Slot) -> None:
        """Give the place back, or leave the line."""
        if slot.given:
            self._running -= 1
            self._held[slot.who] -= 1
            if not self._held[slot.who]:
                del self._held[slot.who]
        else:
            self._waiting.remove(slot)
        self._give()

    def _give(self) -> None:
        while (who := self._find_next()) is not None:
            slot = self._waiting.take(who)
            slot.given = True
            self._running += 1
            self._held[who] = self._held.get(who, 0) + 1
            slot.on_given()

    def _find_next(self) -> str | None:
        """Return the person who gets the next slot, None if nobody does now. The search is short:
        there are at most as many people with slots as slots, and the first without one gets it."""
        free = self._most - self._running
        best: str | None = None
        fewest = MAX_SHARE * free
        for who in self._waiting:
            held = self._held.get(who, 0)
            if held < fewest:
                best, fewest = who, held
            if not held:
                break
        return best


class TurnSlot:
    """One session's slot: requested when a turn is to run, released when none is."""

    def __init__(
        self, slots: Slots, on_given: Callable[[], None], find_asker: Callable[[], str]
    ) -> None:
        """`find_asker`: names the person whose turn it will be, "" for nobody."""
        self._slots, self._on_given, self._find_asker = slots, on_given, find_asker
        self._slot: Slot | None = None

    def is_given(self) -> bool:
        """Return True if a turn may run now; otherwise `on_given` is called when it may."""
        if self._slot is None:
            self._slot = self._slots.ask(self._on_given, self._find_asker())
        return self._slot.given

    def leave(self) -> None:
        """Release the slot for the next request."""
        if self._slot is not None:
            slot, self._slot = self._slot, None
            self._slots.leave(slot)
