"""The gate of an account's first sends: few at once, chats in turn. Those whose platform answers
wait for none whose platform does not."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Generic, Literal, TypeAlias, TypeVar

from gateway.delivery.native_messages import SentHere
from gateway.messages import Conversation

T = TypeVar("T")
Speed: TypeAlias = Literal["quick", "new", "left", "slow"]
"""How long the last first send into a chat took. new: there was none; left: nor was there, and an
earlier session left something unsent."""
LINED: tuple[Speed, ...] = ("quick", "new", "left")
"""Speeds of the sends that go one after the other while the platform keeps up."""
MAX_IN_FLIGHT = 32
MAX_SLOW, KEPT_FOR_QUICK = 24, 4
"""Sends into chats that are slow, or may be, among these; and places beside them for quick chats,
if they have none."""
SLOW = 3.0
"""Seconds after which a send no longer holds up others, and its chat counts as slow."""
MAX_CHATS = 4_096
"""Chats whose speed is remembered."""
MARKED_AHEAD = 3
"""Requests of a gate's line whose marks are stored ahead: the one that sends and those behind
it."""
CROWD = 64
"""First sends that wait for their turn when one at a time is plainly too slow."""


class Ticket:
    """A place before a gate."""

    __slots__ = ("began", "chat", "may_mark", "may_send", "speed", "until")

    def __init__(self, chat: str, speed: Speed, patience: float) -> None:
        loop = asyncio.get_running_loop()
        self.chat, self.speed = chat, speed
        self.may_mark: asyncio.Future[None] = loop.create_future()
        self.may_send: asyncio.Future[None] = loop.create_future()
        self.until = loop.time() + patience
        self.began = 0.0
        """The loop's time at which it was let through, 0 before that."""

    def call(self) -> None:
        """Let it mark."""
        if not self.may_mark.done():
            self.may_mark.set_result(None)

    def let_through(self, now: float) -> None:
        """Let it send."""
        self.call()
        if not self.may_send.done():
            self.may_send.set_result(None)
        self.began = self.began or now


class FairLines(Generic[T]):
    """Lines of many keys, such as people or chats, that are served in turn, each in its order of
    arrival. Iteration gives the keys, the next one first."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[T, None]] = {}
        self._keys: dict[T, str] = {}
        """Of all who wait, in order of arrival."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def add(self, key: str, one: T) -> None:
        """Add `one` at the end of the key's line."""
        self._lines.setdefault(key, {})[one] = None
        self._keys[one] = key

    def remove(self, one: T) -> bool:
        """Take it out; False if it is not here. The rest of its line goes behind the others."""
        if one not in self._keys:
            return False
        key = self._keys.pop(one)
        line = self._lines.pop(key)
        del line[one]
        if line:
            self._lines[key] = line
        return True

    def take(self, key: str) -> T:
        """Take out the first of the key's line. KeyError if nobody waits there."""
        one = next(iter(self._lines[key]))
        self.remove(one)
        return one

    def find_oldest(self) -> T | None:
        """Return who has waited longest, None if nobody waits."""
        return next(iter(self._keys), None)


class SendGate:
    """Limits an account's concurrent first sends.

    A first send cut off by a crash may arrive twice, since most platforms know no idempotency key.
    While the platform keeps up there is one at a time, which bounds the doubt to one message a
    crash. A request that has waited for `patience` seconds joins others, and so does every request
    once `CROWD` are waiting, until the queue is empty. The marks that must be stored before a send
    are written for the next in the line while the first one sends.

    A send that hangs does not hold up the line for longer than `SLOW` seconds, and those into chats
    where the last one was slow are made beside it, so that chats where nothing arrives take neither
    the line nor all places.
    """

    def __init__(self, patience: float = 0.75) -> None:
        self._patience = patience
        self._waiting: dict[Speed, FairLines[Ticket]] = {
            "quick": FairLines(),
            "new": FairLines(),
            "left": FairLines(),
            "slow": FairLines(),
        }
        """Tickets that were not called yet, in lines of their chats, by speed; the speed that was
        served last is last."""
        self._line: dict[Ticket, None] = {}
        """Called one after the other; the first one sends."""
        self._beside: dict[Ticket, None] = {}
        self._called: Counter[Speed] = Counter()
        self._slow: OrderedDict[str, bool] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._crowded = False
        self.sent = SentHere()

    def enter_now(self, chat: str = "", *, left: bool = False) -> Ticket | None:
        """A place from which to mark at once, None if others must be waited for."""
        ticket = self._join(chat, left)
        if not ticket.may_mark.done():
            self.leave(ticket)
            return None
        return ticket

    async def enter(self, chat: str = "", *, left: bool = False) -> Ticket:
        """A place from which to mark, in turn. `chat`: where it will be sent; `left`: an earlier
        session left something unsent there."""
        ticket = self._join(chat, left)
        try:
            await ticket.may_mark
        except asyncio.CancelledError:
            self.leave(ticket)
            raise
        return ticket

    async def wait_turn(self, ticket: Ticket) -> None:
        """Wait until it may send."""
        await ticket.may_send

    def leave(self, ticket: Ticket) -> None:
        """Let the next request send."""
        if not self._waiting[ticket.speed].remove(ticket):
            self._called[ticket.speed] -= 1
            self._line.pop(ticket, None)
            self._beside.pop(ticket, None)
        if ticket.began and ticket.chat:
            self._slow[ticket.chat] = asyncio.get_running_loop().time() - ticket.began > SLOW
            self._slow.move_to_end(ticket.chat)
            if len(self._slow) > MAX_CHATS:
                self._slow.popitem(last=False)
        self._advance()

    def _join(self, chat: str, left: bool) -> Ticket:
        known = self._slow.get(chat)
        speed: Speed = "slow" if known else "quick"
        if known is None:
            speed = "left" if left else "new"
        ticket = Ticket(chat, speed, self._patience)
        self._waiting[speed].add(chat, ticket)
        self._advance()
        return ticket

    def _has_place(self, speed: Speed) -> bool:
        if self._called.total() < MAX_IN_FLIGHT:
            return (
                speed in ("quick", "new") or self._called["slow"] + self._called["left"] < MAX_SLOW
            )
        return speed == "quick" and self._called["quick"] < KEPT_FOR_QUICK

    def _call_next(self, speeds: tuple[Speed, ...]) -> Ticket | None:
        """Call the next ticket of one of these speeds, None if nobody waits who may be called."""
        for speed in [one for one in self._waiting if one in speeds and self._has_place(one)]:
            lines = self._waiting[speed]
            if (chat := next(iter(lines), None)) is not None:
                ticket = lines.take(chat)
                self._waiting[speed] = self._waiting.pop(speed)
                self._called[speed] += 1
                ticket.call()
                return ticket
        return None

    def _advance(self) -> None:
        now = asyncio.get_running_loop().time()
        self._fill_line(now)
        waiting = len(self._line) - 1 + sum(len(self._waiting[one]) for one in LINED)
        self._crowded = waiting > (0 if self._crowded else CROWD)
        while (ticket := self._find_impatient(now)) is not None:
            while ticket is not None:
                self._let_beside(ticket, now)
                ticket = self._find_impatient(now)
            self._fill_line(now)
        while (ticket := self._call_next(("slow",))) is not None:
            self._let_beside(ticket, now)

    def _fill_line(self, now: float) -> None:
        while len(self._line) < MARKED_AHEAD:
            if (ticket := self._call_next(LINED)) is None:
                break
            self._line[ticket] = None
        self._let_first(now)

    def _let_first(self, now: float) -> Ticket | None:
        """Let the first one of the line send, and return it."""
        first = next(iter(self._line), None)
        if first is not None:
            first.let_through(now)
        return first

    def _find_impatient(self, now: float) -> Ticket | None:
        """Return the ticket to be let through beside the line now, or the first of the line if it
        hangs; without one, look again when the next patience ends."""
        first, behind = self._let_first(now), next(islice(self._line, 1, None), None)
        if first is None or (behind is None and not self._has_waiting()):
            return None
        if self._crowded or (behind is not None and behind.until <= now):
            return behind or self._call_next(LINED)
        ends = [first.began + SLOW]
        ends += [behind.until] if behind is not None else []
        for speed in LINED:
            oldest = self._waiting[speed].find_oldest() if self._has_place(speed) else None
            if oldest is not None and oldest.until <= now:
                return self._call_next((speed,))
            ends += [oldest.until] if oldest is not None else []
        if ends[0] <= now:
            return first
        # one timer for all: one for each request would cost more than its send
        loop = asyncio.get_running_loop()
        self._timer = self._timer or loop.call_at(min(ends), self._end_patience)
        return None

    def _has_waiting(self) -> bool:
        return any(len(self._waiting[one]) and self._has_place(one) for one in LINED)

    def _end_patience(self) -> None:
        self._timer = None
        self._advance()

    def _let_beside(self, ticket: Ticket, now: float) -> None:
        """Let it send beside others."""
        self._line.pop(ticket, None)
        self._beside[ticket] = None
        ticket.let_through(now)


class ChatGate:
    """The gate as one conversation sees it. `left`: an earlier session left something unsent."""

    def __init__(self, gate: SendGate, where: Conversation) -> None:
        self._gate = gate
        self._chat = f"{where.account} {where.workspace} {where.channel}"
        self.left = False

    def enter_now(self) -> Ticket | None:
        """A place from which to mark at once, None if others must be waited for."""
        return self._gate.enter_now(self._chat, left=self.left)

    async def enter(self) -> Ticket:
        """A place from which to mark, in turn."""
        return await self._gate.enter(self._chat, left=self.left)

    async def wait_turn(self, ticket: Ticket) -> None:
        """Wait until it may send."""
        await self._gate.wait_turn(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Let the next request send."""
        self._gate.leave(ticket)
