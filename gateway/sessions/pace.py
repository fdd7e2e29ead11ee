"""How fast one chat may be written to: learned from the platform, free until it says no."""

import asyncio
from collections import deque

from agent_core import ambient

MOST_IN_FLIGHT = 32


class Pace:
    """One chat's budget, shared by everything that is sent there.

    New messages wait for nothing before the first 429; edits and drafts keep `interval`. After
    a 429 nothing goes out for `retry_after`, and new messages keep a distance that doubles with
    each further one and halves with each success.
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

    def sent(self, *, new: bool) -> None:
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

    def limited(self, retry_after: float) -> None:
        """The platform answered 429."""
        self.block(retry_after)
        self._distance = min(30.0, max(1.0, self._distance * 2))


class Gate:
    """How many first sends of one account are under way at once.

    A first send cut off by a crash may stand there twice, since most platforms know no send key.
    So as long as the platform keeps up there is one at a time, which bounds the doubt to one
    message a crash; who has waited for `patience` seconds goes along with others.
    """

    def __init__(self, patience: float = 0.75) -> None:
        self._patience = patience
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def enter_now(self) -> bool:
        """Enter if nobody is inside or waits."""
        if self._inside or self._waiting:
            return False
        self._inside += 1
        return True

    async def enter(self) -> None:
        """Enter, in order of arrival."""
        if self.enter_now():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        while not turn.done():
            try:
                async with ambient.limit(self._patience):
                    await asyncio.shield(turn)
            except TimeoutError:
                if not turn.done() and self._inside < MOST_IN_FLIGHT:
                    self._waiting.remove(turn)
                    self._inside += 1
                    return

    def leave(self) -> None:
        """Let the next one in."""
        self._inside -= 1
        while self._waiting and not self._inside:
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
