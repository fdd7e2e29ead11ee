"""When something may go out: the rate budget of a chat, learned from the platform and unlimited
until it refuses a call, and the rests of views that fail."""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TypeAlias

from agent_core import ambient
from gateway.delivery.holder import Key

Spawning: TypeAlias = Callable[[Callable[[], Coroutine[object, object, None]], str], None]
"""Starts a named background task."""
Chat: TypeAlias = tuple[str, str, str, str]
"""Platform, account, workspace, channel."""
FEW = 512
"""Paces that are kept without a look at whether they still matter."""
FIRST_SIGN = 0.4
"""Seconds after which a turn without a view is shown as being worked at: people expect it within
1."""
FIRST_REST = 0.5
"""Seconds until a view is tried again after its first failure."""
MAX_UNSENT = 86_400.0
"""Seconds that an unreachable platform is tried for one view."""


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

    def has_sent(self, since: float) -> bool:
        """Return True if a call went through at `since` or later."""
        return max(self._last_new, self._last_edit) >= since

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


class ViewTroubles:
    """Failures of each view since it was delivered last."""

    def __init__(self) -> None:
        self._failures: dict[Key, int] = {}
        self._since: dict[Key, float] = {}
        self._rests: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        """Forget all: it was delivered, or given up."""
        for known in (self._failures, self._since, self._rests):
            known.pop(key, None)

    def note(self, key: Key, most: int) -> bool:
        """Count a failure without a reason to hope; True at the last one."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return failures >= most

    def note_untaken(self, key: Key) -> bool:
        """Note that the platform does not take the view now. Return True once that has been so for
        MAX_UNSENT seconds since the first time."""
        now = ambient.monotonic()
        return now - self._since.setdefault(key, now) > MAX_UNSENT

    def rest(self, key: Key, longest: float) -> None:
        """Let this view alone wait, for at most `longest` seconds: its message has trouble, not the
        platform."""
        seconds = FIRST_REST * 2 ** (self._failures.get(key, 1) - 1)
        self._rests[key] = ambient.monotonic() + min(longest, seconds)

    def due(self, key: Key) -> float:
        """`ambient.monotonic()` from which the view may be tried."""
        return self._rests.get(key, 0.0)

    def is_resting(self, key: Key) -> bool:
        """Return True while this view alone waits."""
        return self.due(key) > ambient.monotonic()
