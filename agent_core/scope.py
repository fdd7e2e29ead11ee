"""The durable turn: ordinary async code whose effects go through a Scope over a journal.

After a crash, a restart or a park the same code runs again from the top: recorded effects
return at once what they returned, and the code arrives where it was. Keys are paths of names
(`round-3/call_9f`), never counters that branches share.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias, TypeVar, cast

import msgspec

from agent_core import ambient
from agent_core.errors import (
    AgentError,
    BudgetExceeded,
    Diverged,
    Misuse,
    ModelFailed,
    ModelFault,
    Parked,
    Suspend,
    TimedOut,
    ToolFailed,
)
from agent_core.events import AgentEvent, ReasoningAdded, TextRestarted, TokenAdded
from agent_core.journal import (
    Answered,
    Asked,
    Emitted,
    Failed,
    Journal,
    Noted,
    Outcome,
    Replied,
    Steered,
    ToolFinished,
    ToolStarted,
    call_digest,
)
from agent_core.messages import Output, ToolCall, ToolResult
from agent_core.models.port import Delta, OnDelta, Reply, TextDelta, ThinkingDelta
from agent_core.questions import Answer, Question
from agent_core.tools.contract import Repetition

T = TypeVar("T")
ModelCall: TypeAlias = Callable[[OnDelta], Awaitable[Reply]]
ToolRun: TypeAlias = Callable[[str], Awaitable[str | Output]]

UNKNOWN = (
    "Outcome unknown: the gateway stopped while this call ran. It may or may not have taken "
    "effect. Check before you do it again."
)


class Company(Protocol):
    """Who runs the turn: sees live events and hands over what people said meanwhile."""

    def live(self, event: AgentEvent) -> None:
        """An event that is not recorded."""

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        """(inbox row, text) of messages that came in for the running turn; each is handed
        over once."""


class Turn:
    """One run of a turn in memory: its journal, its branches and why it stopped.

    The *first* suspend reason decides; once it is set, every scope call of every branch
    raises it.
    """

    def __init__(self, turn_id: str, journal: Journal, company: Company) -> None:
        self.id = turn_id
        self.journal = journal
        self.company = company
        self.dead: Suspend | None = None
        self.branches = 1
        self.tasks: set[asyncio.Task[object] | None] = set()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def suspend(self, reason: Suspend) -> None:
        """Close the turn for `reason`, unless it is closed already."""
        if self.dead is not None:
            return
        self.dead = reason
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(reason)

    def answered(self, asked: str, answer: Answer) -> None:
        """Let the branch that waits under `asked` go on, if one does."""
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

    @property
    def waiting(self) -> tuple[str, ...]:
        """Keys of the questions that branches wait under."""
        return tuple(self._waiting)

    def rest(self) -> None:
        """One branch fewer works."""
        self.branches -= 1
        if self.branches == 0:
            self.suspend(Parked())

    def check(self) -> None:
        """Raise why the turn is closed, if it is; refuse callers that the turn did not start."""
        if self.dead is not None:
            raise self.dead
        task = asyncio.current_task()
        if task not in self.tasks:
            raise Misuse("a scope was called from a task that it did not start: use scope.parallel")


class Scope:
    """Where turn code meets the world. See the module's docstring."""

    def __init__(self, turn: Turn, path: str = "") -> None:
        self._turn = turn
        self._path = path

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return self._turn.id

    def child(self, name: str) -> "Scope":
        """A scope of its own for a step, a skill, a round."""
        return Scope(self._turn, f"{self._path}{name}/")

    async def once(
        self, name: str, make: Callable[[], Awaitable[T] | T], kind: type[T] | None = None
    ) -> T:
        """The value of `make`, computed once in the life of the turn.

        For time, randomness and reads; an effect is a tool. The value goes through JSON, so
        the first run and a replay see the same types (`kind` says which).
        """
        key = self._claim(name)
        record = self._turn.journal.find(key, Noted)
        if record is None:
            made = make()
            value = await made if inspect.isawaitable(made) else made
            self._turn.check()
            record = Noted(key=key, value=msgspec.Raw(msgspec.json.encode(value)))
            self._turn.journal.defer(record)
        if kind is None:
            return cast(T, msgspec.json.decode(record.value))
        return msgspec.json.decode(record.value, type=kind)

    def emit(self, event: AgentEvent, name: str = "") -> None:
        """Record an event that people may see; on replay it is there already."""
        key = self._claim(f"event:{name or type(event).__name__}")
        if self._turn.journal.find(key, Emitted) is None:
            self._turn.journal.defer(Emitted(key=key, event=event))

    async def show(self) -> None:
        """Commit the events so far: people see them now, not with the next effect."""
        self._turn.check()
        await self._turn.journal.barrier()
        self._turn.check()

    async def model(
        self,
        call: ModelCall,
        name: str = "model",
        limit: float | None = None,
        ends: Callable[[Reply], bool] | None = None,
    ) -> Reply:
        """A model's answer; retries and fallback happen inside `call`, in one record.

        `ends` says of an answer that the turn ends with it at once: such a one rides on the
        final commit, since nobody depends on it before.
        """
        key = self._claim(name)
        journal = self._turn.journal
        known = journal.find(key, cast(type[Replied | Failed], Replied | Failed))
        if isinstance(known, Replied):
            return known.reply
        if known is not None:
            raise _failure(known)
        try:
            async with ambient.limit(limit):
                reply = await _unless_own(call(self._stream), ModelFailed)
        except ModelFailed as error:
            failed = Failed(key=key, error="model", text=str(error), fault=error.fault)
        except BudgetExceeded as error:
            failed = Failed(key=key, error="budget", text=str(error))
        except TimeoutError:
            failed = Failed(key=key, error="timeout", text=f"the model took over {limit:g} s")
        else:
            self._turn.check()
            replied = Replied(key=key, reply=reply)
            if ends is not None and ends(reply):
                journal.defer(replied)
                return reply
            await journal.barrier(replied)
            self._turn.check()
            return reply
        self._turn.check()
        await journal.barrier(failed)
        raise _failure(failed)

    async def tool(
        self, call: ToolCall, repetition: Repetition, run: ToolRun, limit: float = 30.0
    ) -> ToolResult:
        """Run a tool call at most as often as its class allows. `run` gets the call's token."""
        key = self._claim(call.id)
        journal, digest = self._turn.journal, call_digest(call)
        known = journal.find(key, ToolFinished)
        started = journal.find(f"{key}#start", ToolStarted)
        for record in (known, started):
            if record is not None and record.digest != digest:
                raise Diverged(f"{key!r} holds another call")
        if known is not None:
            return _result(known)
        if started is not None and repetition == "effect":
            return await self._finish(key, call, Output(text=UNKNOWN), "unknown")
        token = started.token if started is not None else f"{self._turn.id}/{key}"
        if started is None and repetition != "pure":
            await journal.barrier(
                ToolStarted(key=f"{key}#start", call=call, digest=digest, token=token)
            )
            self._turn.check()
        outcome: Outcome = "ok"
        try:
            async with ambient.limit(limit):
                gave = await _unless_own(run(token), ToolFailed)
                made = gave if isinstance(gave, Output) else Output(text=gave)
        except ToolFailed as error:
            made, outcome = Output(text=str(error)), "failed"
        except TimeoutError:
            made, outcome = Output(text=f"Timed out after {limit:g} s."), "timed_out"
        return await self._finish(key, call, made, outcome)

    def settle(self, call: ToolCall, content: str, outcome: Outcome = "failed") -> ToolResult:
        """Give a call a result without running anything (denied, unknown tool, bad arguments)."""
        key = self._claim(call.id)
        record = self._turn.journal.find(key, ToolFinished)
        if record is None:
            record = _finished(key, call, Output(text=content), outcome)
            self._turn.journal.defer(record)
        return _result(record)

    async def ask(self, question: Question, name: str = "ask") -> Answer:
        """A person's answer. Waits in memory while other branches work; when all wait, the
        turn parks and this call never returns in this run."""
        key = self._claim(name)
        journal = self._turn.journal
        if (answer := journal.find(f"{key}#answer", Answered)) is not None:
            return answer.answer
        if journal.find(key, Asked) is None:
            await journal.barrier(
                Asked(key=key, id=ambient.secret_id(), question=question, at=ambient.now())
            )
            self._turn.check()
            if (answer := journal.find(f"{key}#answer", Answered)) is not None:
                return answer.answer
        return await self._turn.wait(key)

    async def steer(self, name: str = "steer") -> tuple[str, ...]:
        """What people said since the last call of this kind; 'nothing' is recorded too."""
        key = self._claim(name)
        journal = self._turn.journal
        known = journal.find(key, Steered)
        if known is not None:
            return known.texts
        taken = self._turn.company.take_steers()
        record = Steered(
            key=key, rows=tuple(row for row, _ in taken), texts=tuple(text for _, text in taken)
        )
        if taken:
            await journal.barrier(record)
            self._turn.check()
        else:
            journal.defer(record)
        return record.texts

    async def parallel(
        self, branches: Mapping[str, Callable[["Scope"], Awaitable[T]]]
    ) -> dict[str, T]:
        """The only fork: runs all branches, waits for all, raises the first failure in
        declared order."""
        self._turn.check()
        results: dict[str, T] = {}
        if len(branches) <= 1:
            for name, branch in branches.items():
                results[name] = await branch(self.child(name))
            return results
        failures: dict[str, BaseException] = {}
        left = len(branches)
        self._turn.branches += left - 1

        async def run(name: str, branch: Callable[[Scope], Awaitable[T]]) -> None:
            nonlocal left
            task = asyncio.current_task()
            self._turn.tasks.add(task)
            try:
                results[name] = await branch(self.child(name))
            except (Suspend, Exception) as error:  # noqa: BLE001  # raised again below, in order
                failures[name] = error
            finally:
                self._turn.tasks.discard(task)
                left -= 1
                if left:
                    self._turn.rest()

        async with asyncio.TaskGroup() as group:
            for name, branch in branches.items():
                group.create_task(run(name, branch), name=f"{self._turn.id}:{self._path}{name}")
        if self._turn.dead is not None:
            raise self._turn.dead
        for name in branches:
            if name in failures:
                raise failures[name]
        return {name: results[name] for name in branches}

    def _claim(self, name: str) -> str:
        self._turn.check()
        key = self._path + name
        self._turn.journal.claim(key)
        return key

    def _stream(self, delta: Delta) -> None:
        if self._turn.dead is not None:
            return
        match delta:
            case TextDelta():
                self._turn.company.live(TokenAdded(text=delta.text))
            case ThinkingDelta():
                self._turn.company.live(ReasoningAdded(text=delta.text))
            case _:
                self._turn.company.live(TextRestarted())

    async def _finish(self, key: str, call: ToolCall, made: Output, outcome: Outcome) -> ToolResult:
        self._turn.check()
        record = _finished(key, call, made, outcome)
        await self._turn.journal.barrier(record)
        self._turn.check()
        return _result(record)


def _finished(key: str, call: ToolCall, made: Output, outcome: Outcome) -> ToolFinished:
    return ToolFinished(
        key=key,
        call_id=call.id,
        name=call.name,
        digest=call_digest(call),
        content=made.text,
        outcome=outcome,
        files=made.files,
        caption=made.caption,
    )


def _result(record: ToolFinished) -> ToolResult:
    return ToolResult(
        call_id=record.call_id,
        name=record.name,
        content=record.content,
        error=record.outcome != "ok",
    )


async def _unless_own(work: Awaitable[T], failed: type[AgentError]) -> T:
    """`work`; `failed` where it ends cancelled though nobody cancelled this task."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        text = "It was cancelled from inside its own library; it may have taken effect."
        raise failed(text) from error


def _failure(record: Failed) -> Exception:
    match record.error:
        case "model":
            return ModelFailed(record.text, cast(ModelFault, record.fault))
        case "budget":
            return BudgetExceeded(record.text)
        case "timeout":
            return TimedOut(record.text)
