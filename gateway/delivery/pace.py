"""Rate budget of one chat: learned from the platform, unlimited until it refuses a call."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import TypeAlias

from agent_core import ambient
from gateway.delivery.native_messages import SentHere

MAX_IN_FLIGHT = 32
Spawning: TypeAlias = Callable[[Callable[[], Coroutine[object, object, None]], str], None]
"""Starts a named background task."""
Chat: TypeAlias = tuple[str, str, str, str]
"""Platform, account, workspace, channel."""
FEW = 512
"""Paces that are kept without a look at whether they still matter."""
FIRST_SIGN = 0.4
"""Seconds after which a turn without a view is shown as being worked at: people expect it within
1."""
MARKED_AHEAD = 3
"""Requests of a gate's queue whose marks are stored ahead: the one that sends and those behind
it."""
CROWD = 64
"""First sends that wait for their turn when one at a time is plainly too slow."""


class Pace:
    """One chat's budget, shared by everything that is sent there.

    New messages wait for nothing before the first 429; edits and drafts keep `interval`. After a
    429 nothing goes out for `retry_after`, and new messages keep a distance that doubles with each
    further 429 and halves with each success.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._blocked = 0.0
        self._distance = 0.0
        self._last_new = 0.0
        self._last_edit = -interval

    def new_due(self) -> float:
        """`ambient.monotonic()` at which the next new message may go out."""
        return max(self._blocked, self._last_new + self._distance if self._distance else 0.0)

    def edit_due(self) -> float:
        """The same for the next edit or draft."""
        return max(self._blocked, self._last_edit + max(self._interval, self._distance))

    def busy(self) -> bool:
        """True while its state still matters."""
        return bool(self._distance) or self.edit_due() > ambient.monotonic()

    def note_sent(self, *, new: bool) -> None:
        """A call went through."""
        now = ambient.monotonic()
        if new:
            self._last_new = now
            self._distance = self._distance / 2 if self._distance > 0.2 else 0.0
        else:
            self._last_edit = now

    def block(self, seconds: float) -> None:
        """The platform said 'not now', or cannot be reached."""
        self._blocked = max(self._blocked, ambient.monotonic() + seconds)

    def note_limit(self, retry_after: float) -> None:
        """The platform answered 429."""
        self.block(retry_after)
        self._distance = min(30.0, max(1.0, self._distance * 2))


class SignBudget:
    """Limits an account's signs of life (typing, eyes on a message). They are hints, and platforms
    count them among the calls that answers need: at most `a_second`, with a burst of as many; the
    rest is dropped."""

    def __init__(self, a_second: float = 20.0) -> None:
        self._a_second = self._left = a_second
        self._at = ambient.monotonic()

    def take(self) -> bool:
        """Return True, and count it, if another one may be sent now."""
        now = ambient.monotonic()
        self._left = min(self._a_second, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Paces:
    """The paces of an account's chats; one that has nothing to remember is dropped."""

    def __init__(self) -> None:
        self._known: dict[Chat, Pace] = {}
        self._most = FEW

    def get_pace(self, chat: Chat, interval: float) -> Pace:
        """The budget of `chat`, whoever writes there."""
        if chat not in self._known:
            if len(self._known) >= self._most:
                self._known = {name: pace for name, pace in self._known.items() if pace.busy()}
                self._most = max(FEW, 2 * len(self._known))
            self._known[chat] = Pace(interval)
        return self._known[chat]


class Ticket:
    """A place in the line before a gate."""

    __slots__ = ("impatient", "may_mark", "may_send", "until")

    def __init__(self, patience: float) -> None:
        loop = asyncio.get_running_loop()
        self.may_mark: asyncio.Future[None] = loop.create_future()
        self.may_send: asyncio.Future[None] = loop.create_future()
        self.until = loop.time() + patience
        self.impatient = False


class SendGate:
    """Limits an account's concurrent first sends.

    A first send cut off by a crash may arrive twice, since most platforms know no idempotency key.
    While the platform keeps up there is one at a time, which bounds the doubt to one message a
    crash. A request that has waited for `patience` seconds joins others, and so does every request
    once `CROWD` are waiting, until the queue is empty: at most `MAX_IN_FLIGHT` in all. The marks
    that must be stored before a send are written for the next in the queue while the first one
    sends.
    """

    def __init__(self, patience: float = 0.75) -> None:
        self._patience = patience
        self._line: dict[Ticket, None] = {}
        self._behind: dict[Ticket, None] = {}
        """Requests that may not send yet, the one that has waited longest first."""
        self._timer: asyncio.TimerHandle | None = None
        self._impatient = 0
        self._crowded = False
        self.sent = SentHere()

    def enter_now(self) -> Ticket | None:
        """A place from which to mark at once, None if others must be waited for."""
        if len(self._line) >= MARKED_AHEAD:
            return None
        return self._join()

    async def enter(self) -> Ticket:
        """A place from which to mark, in order of arrival."""
        ticket = self._join()
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
        del self._line[ticket]
        self._behind.pop(ticket, None)
        self._impatient -= ticket.impatient
        self._advance()

    def _join(self) -> Ticket:
        ticket = Ticket(self._patience)
        self._line[ticket] = self._behind[ticket] = None
        self._advance()
        return ticket

    def _advance(self) -> None:
        self._crowded = len(self._behind) > (0 if self._crowded else CROWD)
        for place, ticket in enumerate(islice(self._line, MARKED_AHEAD)):
            if not ticket.may_mark.done():
                ticket.may_mark.set_result(None)
            if place == 0 and not ticket.may_send.done():
                ticket.may_send.set_result(None)
                self._behind.pop(ticket, None)
        loop = asyncio.get_running_loop()
        while self._behind and self._impatient < MAX_IN_FLIGHT:
            longest = next(iter(self._behind))
            if not self._crowded and longest.until > loop.time():
                # one timer for all: one for each request would cost more than its send
                self._timer = self._timer or loop.call_at(longest.until, self._end_patience)
                break
            self._let_along(longest)

    def _end_patience(self) -> None:
        self._timer = None
        self._advance()

    def _let_along(self, ticket: Ticket) -> None:
        """Let it send beside others."""
        ticket.impatient = True
        self._impatient += 1
        self._behind.pop(ticket, None)
        for step in (ticket.may_mark, ticket.may_send):
            if not step.done():
                step.set_result(None)


class Delay:
    """Makes calls a fixed time after each was added, by one task while any is due: a task for each
    call would cost more than most other work for a message. No call may raise."""

    def __init__(self, spawn: Spawning, seconds: float) -> None:
        self._spawn, self._seconds = spawn, seconds
        self._due: deque[tuple[float, Callable[[], None]]] = deque()

    def add(self, call: Callable[[], None]) -> None:
        """Add a call."""
        idle = not self._due
        self._due.append((ambient.monotonic() + self._seconds, call))
        if idle:
            self._spawn(self._run, "delay")

    async def _run(self) -> None:
        while self._due:
            at, call = self._due[0]
            if (left := at - ambient.monotonic()) > 0:
                await ambient.wait(left)
                continue
            self._due.popleft()
            call()
