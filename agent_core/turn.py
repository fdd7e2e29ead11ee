"""One run of a turn in memory: its journal, its branches, and the reason why it stopped."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Protocol, TypeVar

from agent_core import ambient
from agent_core.errors import Misuse, Parked, Suspend
from agent_core.events import AgentEvent
from agent_core.journal import Amended, Journal, Replied
from agent_core.models.port import Permit
from agent_core.questions import Answer

T = TypeVar("T")


class TurnHost(Protocol):
    """Runs the turn: receives live events and returns people's messages."""

    def live(self, event: AgentEvent) -> None:
        """Receive an event that is not recorded."""

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        """(inbox row, text) of messages that came in for the running turn; each is handed
        over once."""


class Gates:
    """Dependencies among branches: one begins when those it comes `after` have ended. A waiting
    branch counts as idle, so it keeps no turn from parking."""

    def __init__(self, turn: "Turn", names: Iterable[str], after: Mapping[str, Iterable[str]]):
        self._turn = turn
        self._before = {name: set(after.get(name, ())) for name in names}
        self._opened = {name: asyncio.Event() for name in self._before}
        turn.branches += self._open() - 1

    async def wait(self, name: str) -> None:
        """Wait until the branch `name` may begin."""
        await self._opened[name].wait()

    def end_branch(self, name: str) -> None:
        """End the branch `name`; those that waited for it count as working from now on."""
        for before in self._before.values():
            before.discard(name)
        self._turn.branches += self._open()

    def _open(self) -> int:
        free = [
            one for one in self._opened if not (self._before[one] or self._opened[one].is_set())
        ]
        for name in free:
            self._opened[name].set()
        return len(free)


class Turn:
    """One run of a turn in memory: its journal, its branches, and the reason why it stopped. The
    *first* reason for suspending decides; once it is set, every scope call of every branch raises
    it."""

    def __init__(
        self,
        turn_id: str,
        journal: Journal,
        host: TurnHost,
        most: int = 0,
        permit: Permit | None = None,
    ) -> None:
        """`permit`: waits until this process may begin a call, or has lost the right to."""
        self.id = turn_id
        self._permit = permit
        self.most = most
        """Model calls it may make, 0 = any number."""
        self.calls = sum(isinstance(record, Replied) for record in journal.records)
        self.journal = journal
        self.host = host
        self.dead: Suspend | None = None
        self.branches = 1
        self.tasks: set[asyncio.Task[object] | None] = set()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._cuts = {r.cut for r in journal.records if isinstance(r, Amended) and r.cut}
        self._limits: dict[str, asyncio.Timeout] = {}

    def suspend(self, reason: Suspend) -> None:
        """Close the turn for `reason`, unless it is closed already."""
        if self.dead is not None:
            return
        self.dead = reason
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(reason)

    def deliver_answer(self, asked: str, answer: Answer) -> None:
        """Resume the branch that waits under `asked`, if there is one."""
        future = self._waiting.get(asked)
        if future is not None and not future.done():
            self.branches += 1
            future.set_result(answer)

    async def wait(self, key: str) -> Answer:
        """Wait in memory for the answer; when all branches wait, the turn parks."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        self.rest()
        answer = await future
        del self._waiting[key]
        return answer

    def cut(self, branch: str) -> None:
        """End what runs in `branch` and let nothing new begin there: a person skipped it."""
        self._cuts.add(branch)
        for key, limit in self._limits.items():
            if self.is_cut(key):
                limit.reschedule(asyncio.get_running_loop().time())

    def is_cut(self, key: str) -> bool:
        """Return True if a person skipped the branch of `key`."""
        return any(f"/{branch}/" in f"/{key}" for branch in self._cuts)

    async def run_limited(self, key: str, work: Awaitable[T], seconds: float | None) -> T:
        """Run `work` within a time limit that `cut` may bring forward. Raises TimeoutError."""
        self._limits[key] = limit = ambient.limit(seconds)
        try:
            async with limit:
                return await work
        finally:
            del self._limits[key]

    @property
    def waiting(self) -> tuple[str, ...]:
        """Keys of the questions that branches wait under."""
        return tuple(self._waiting)

    def rest(self) -> None:
        """Count one working branch fewer."""
        self.branches -= 1
        if self.branches == 0:
            self.suspend(Parked())

    async def permit(self) -> None:
        """Wait until a call may begin; raises why the turn is closed, if it is."""
        if self._permit is not None:
            await self._permit()
        if self.dead is not None:
            raise self.dead

    def check(self) -> None:
        """Raise why the turn is closed, if it is; refuse callers that the turn did not start."""
        if self.dead is not None:
            raise self.dead
        task = asyncio.current_task()
        if task not in self.tasks:
            raise Misuse("a scope was called from a task that it did not start: use scope.parallel")
