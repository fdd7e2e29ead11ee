"""The durable turn: ordinary async code whose effects go through a Scope over a journal.

After a crash, a restart or a park the same code runs again from the top: recorded effects return
their recorded results at once, and the code arrives where it was. Keys are paths of names
(`round-3/call_9f`), never counters shared by branches.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import (
    AgentError,
    BudgetExceeded,
    CallsExceeded,
    Cancelled,
    Cut,
    Diverged,
    ModelFailed,
    ModelFault,
    Suspend,
    TimedOut,
    ToolFailed,
)
from agent_core.events import AgentEvent, ReasoningAdded, TextRestarted, TokenAdded
from agent_core.inner_calls import close_calls, describe_calls
from agent_core.journal import (
    Amended,
    Answered,
    Emitted,
    Failed,
    Noted,
    Outcome,
    QuestionAsked,
    Record,
    Replied,
    Steered,
    ToolFinished,
    ToolStarted,
    call_digest,
)
from agent_core.messages import Repetition, ToolCall, ToolOutput, ToolResult, wrap_output
from agent_core.models.port import (
    Delta,
    ModelReply,
    OnDelta,
    TextDelta,
    ThinkingDelta,
    asker_permit,
)
from agent_core.plan_edit import PlanEdit
from agent_core.questions import Answer, Decision, Input, Question
from agent_core.text import clean, clean_json, clean_values, is_deep
from agent_core.turn import Gates
from agent_core.turn import Turn as Turn

T = TypeVar("T")
E = TypeVar("E", bound=AgentEvent)
ModelCall: TypeAlias = Callable[[OnDelta], Awaitable[ModelReply]]
ToolRun: TypeAlias = Callable[[str], Awaitable[str | ToolOutput]]

UNKNOWN = (
    "Outcome unknown: the gateway stopped while this call ran. It may or may not have taken "
    "effect. Check before you do it again."
)
TOO_DEEP = '"(left out: nested too deeply)"'
SKIPPED = "Skipped by a person. If it was running, its outcome is unknown."
NO_ORDER: Mapping[str, Iterable[str]] = {}


class CallHolder(Protocol):
    """Holds what calls started while their turn waits for a person, as long as this process
    lives."""

    def holds(self, token: str) -> bool:
        """Return True if what the call of this token started still exists and can be continued."""

    def drop(self, token: str) -> None:
        """End it."""


class Scope:
    """The world as turn code reaches it. See the module's docstring."""

    def __init__(self, turn: Turn, path: str = "") -> None:
        self._turn = turn
        self._path = path

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return self._turn.id

    @property
    def is_stopped(self) -> bool:
        """A person ended the turn."""
        return isinstance(self._turn.dead, Cancelled)

    @property
    def is_new(self) -> bool:
        """True if no tool was called yet, also before a restart."""
        return not any(isinstance(one, ToolStarted) for one in self._turn.journal.records)

    def list_finished(self, since: float) -> tuple[ToolCall, ...]:
        """The calls of tools that have ended after `since`, by the calendar."""
        ended = {
            one.call_id
            for one in self._turn.journal.records
            if isinstance(one, ToolFinished) and one.at > since and one.outcome != "denied"
        }
        started = (one for one in self._turn.journal.records if isinstance(one, ToolStarted))
        return tuple(one.call for one in started if one.call.id in ended)

    def has_read(self, counts: Callable[[str, str], bool]) -> bool:
        """Return True if a tool has returned a result in this turn that `counts`, by the tool's
        name and the result's seal."""
        records = self._turn.journal.records
        found = (one for one in records if isinstance(one, ToolFinished))
        return any(counts(one.name, one.seal) for one in found)

    def list_told(self) -> tuple[str, ...]:
        """Return people's messages and answers since the turn began, answers with questions; of a
        server's questions, which have a lead, only what people wrote."""
        told: list[str] = []
        asked: dict[str, Question] = {}
        for one in self._turn.journal.records:
            if isinstance(one, QuestionAsked):
                asked[one.key] = one.question
            elif isinstance(one, Steered):
                told += one.texts
            elif isinstance(one, Answered) and one.answer.allowed:
                match asked.get(one.asked):
                    case Decision(lead=(_, *_)):
                        continue
                    case Decision(text=put) | Input(lead=(), text=put):
                        told.append(f"{put}\n{one.answer.text}")
                    case _:
                        told.append(one.answer.text)
        return tuple(told)

    def child(self, name: str) -> "Scope":
        """A scope of its own for a step, a skill, a round."""
        return Scope(self._turn, f"{self._path}{name}/")

    async def once(
        self, name: str, make: Callable[[], Awaitable[T] | T], kind: type[T] | None = None
    ) -> T:
        """Return the value of `make`, computed once in the life of the turn.

        For time, randomness and reads; an effect is a tool. The value goes through JSON, so the
        first run and a replay see the same types (`kind` says which).
        """
        key = self._claim(name)
        record = self._turn.journal.find(key, Noted)
        if record is None:
            made = make()
            value = await made if inspect.isawaitable(made) else made
            self._turn.check()
            record = Noted(key=key, value=msgspec.Raw(_encode(value)))
            self._turn.journal.defer(record)
        if kind is None:
            return cast(T, msgspec.json.decode(record.value))
        return msgspec.json.decode(record.value, type=kind)

    async def nth(self, name: str) -> int:
        """Count the calls named `name` in this turn so far, over all branches."""
        known = self._turn.journal.count(Noted, f"nth-{name}")
        return await self.once(f"nth-{name}", lambda: known + 1, kind=int)

    def emit(self, event: AgentEvent, name: str = "") -> None:
        """Record an event that people may see; on replay it exists already."""
        key = self._claim(f"event:{name or type(event).__name__}")
        if self._turn.journal.find(key, Emitted) is None:
            self._turn.journal.defer(Emitted(key=key, event=clean_values(event)))

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
        ends: Callable[[ModelReply], bool] | None = None,
        apart: bool = False,
    ) -> ModelReply:
        """Return a model's answer; retries and fallback happen inside `call`, in one record.

        `ends` tells whether the answer ends the turn at once: then it is written with the final
        commit, since nothing depends on it before. `apart`: it is made although the turn's calls
        are used up.
        """
        key = self._claim(name)
        journal = self._turn.journal
        known = journal.find(key, cast(type[Replied | Failed], Replied | Failed))
        if isinstance(known, Replied):
            return known.reply
        if known is not None:
            raise restore_failure(known)
        try:
            reply = await self._ask_model(key, call, limit, apart)
        except (ModelFailed, BudgetExceeded, Cut, TimeoutError) as error:
            self._turn.check()
            failed = _make_failed(key, error, limit)
            await journal.barrier(failed)
            raise restore_failure(failed) from error
        self._turn.check()
        self._turn.calls += 1
        reply = replace(_clean_reply(reply), nth=self._turn.calls)
        replied = Replied(key=key, reply=reply)
        if ends is not None and ends(reply):
            journal.defer(replied)
            return reply
        await journal.barrier(replied)
        self._turn.check()
        return reply

    async def _ask_model(
        self, key: str, call: ModelCall, limit: float | None, apart: bool
    ) -> ModelReply:
        turn = self._turn
        if turn.most and turn.calls >= turn.most and not apart:
            raise CallsExceeded(f"The turn's {turn.most} model calls are used.")
        await turn.permit()
        before = asker_permit.set(turn.permit)
        try:
            if turn.is_cut(key):
                raise TimeoutError
            asked = _fail_if_cancelled_inside(call(self._stream), ModelFailed)
            return await turn.run_limited(key, asked, limit)
        except TimeoutError:
            if turn.is_cut(key):
                raise Cut("A person skipped this.") from None
            raise
        finally:
            asker_permit.reset(before)

    async def tool(
        self,
        call: ToolCall,
        repetition: Repetition,
        run: ToolRun,
        limit: float | None = 30.0,
        holder: CallHolder | None = None,
    ) -> ToolResult:
        """Run a tool call at most as often as its class allows. `run` gets the call's token.
        `holder`: the call makes calls below its key, and goes on after a park if it is held."""
        key = self._claim(call.id)
        journal, digest = self._turn.journal, call_digest(call)
        known = journal.find(key, ToolFinished)
        started = journal.find(f"{key}#start", ToolStarted)
        for record in (known, started):
            if record is not None and record.digest != digest:
                raise Diverged(f"{key!r} holds another call")
        if known is not None:
            return _result(known)
        token = started.token if started is not None else f"{self._turn.id}/{key}"
        held = started is not None and holder is not None and holder.holds(token)
        if started is not None and repetition == "effect" and not held:
            inner = describe_calls(journal.records, f"{key}/")
            made = ToolOutput(text=f"{UNKNOWN}\n{inner}".rstrip())
            return await self._finish(key, call, made, "unknown")
        if started is None and repetition != "pure":
            await journal.barrier(
                ToolStarted(key=f"{key}#start", call=call, digest=digest, token=token)
            )
            self._turn.check()
        await self._turn.permit()
        outcome: Outcome = "ok"
        try:
            if self._turn.is_cut(key):
                raise TimeoutError
            running = _fail_if_cancelled_inside(run(token), ToolFailed)
            gave = await self._turn.run_limited(key, running, limit)
            made = wrap_output(gave)
        except ToolFailed as error:
            made, outcome = ToolOutput(text=str(error)), "failed"
        except TimeoutError:
            made, outcome = ToolOutput(text=_describe_timeout(limit)), "timed_out"
            if self._turn.is_cut(key):
                made, outcome = ToolOutput(text=SKIPPED), "cancelled"
            if holder is not None:
                holder.drop(token)
        return await self._finish(key, call, made, outcome)

    def has_begun(self, call: ToolCall) -> bool:
        """The call of this scope was begun, or is done, by the records."""
        key, journal = self._path + call.id, self._turn.journal
        started = journal.find(f"{key}#start", ToolStarted)
        return started is not None or journal.find(key, ToolFinished) is not None

    def settle(
        self, call: ToolCall, content: str | ToolOutput, outcome: Outcome = "failed"
    ) -> ToolResult:
        """Give a call a result without running anything (denied, unknown tool, bad arguments)."""
        key = self._claim(call.id)
        record = self._turn.journal.find(key, ToolFinished)
        if record is None:
            record = _make_finished(key, call, wrap_output(content), outcome)
            self._turn.journal.defer(record)
        return _result(record)

    async def ask(self, question: Question, name: str = "ask") -> Answer:
        """A person's answer. Waits in memory while other branches work; when all wait, the
        turn parks and this call never returns in this run."""
        key = self._claim(name)
        journal = self._turn.journal
        if (answer := journal.find(f"{key}#answer", Answered)) is not None:
            return answer.answer
        if journal.find(key, QuestionAsked) is None:
            await journal.barrier(
                QuestionAsked(
                    key=key,
                    id=ambient.secret_id(),
                    question=clean_values(question),
                    at=ambient.now(),
                )
            )
            self._turn.check()
            if (answer := journal.find(f"{key}#answer", Answered)) is not None:
                return answer.answer
        return await self._turn.wait(key)

    async def steer(self, name: str = "steer") -> tuple[str, ...]:
        """Return people's messages since the last call of this kind; 'nothing' is recorded too."""
        key = self._claim(name)
        journal = self._turn.journal
        known = journal.find(key, Steered)
        if known is not None:
            return known.texts
        taken = self._turn.host.take_steers()
        record = Steered(
            key=key,
            rows=tuple(row for row, _ in taken),
            texts=tuple(clean(text) for _, text in taken),
        )
        if taken:
            await journal.barrier(record)
            self._turn.check()
        else:
            journal.defer(record)
        return record.texts

    def latest(self, kind: type[E]) -> E | None:
        """The newest event of the kind. Live: record it."""
        records = reversed(self._turn.journal.records)
        told = (one.event for one in records if isinstance(one, Emitted))
        return next((event for event in told if isinstance(event, kind)), None)

    def was_amended(self, known: int) -> bool:
        """Return True if people edited the plan since their first `known` edits. Live: record
        it."""
        return sum(isinstance(one, Amended) for one in self._turn.journal.records) > known

    async def amendments(self, name: str) -> tuple[PlanEdit, ...]:
        """Return all edits of the plan that people made until now, in order."""
        records = self._turn.journal.records
        edits = tuple(record.edit for record in records if isinstance(record, Amended))
        return edits[: await self.once(name, lambda: len(edits), kind=int)]

    async def parallel(
        self,
        branches: Mapping[str, Callable[["Scope"], Awaitable[T]]],
        after: Mapping[str, Iterable[str]] = NO_ORDER,
    ) -> dict[str, T]:
        """Run all branches in parallel, wait for all, and raise the first failure in declared
        order. The only fork. A branch begins when those it comes `after` have ended well."""
        self._turn.check()
        results: dict[str, T] = {}
        if len(branches) <= 1:
            for name, branch in branches.items():
                results[name] = await branch(self.child(name))
            return results
        failures: dict[str, BaseException] = {}
        left, gates = len(branches), Gates(self._turn, branches, after)

        async def run(name: str, branch: Callable[[Scope], Awaitable[T]]) -> None:
            nonlocal left
            task = asyncio.current_task()
            self._turn.tasks.add(task)
            try:
                await gates.wait(name)
                self._turn.check()
                if results.keys() >= set(after.get(name, ())):
                    results[name] = await branch(self.child(name))
            except (Suspend, Exception) as error:  # noqa: BLE001  # raised again below, in order
                failures[name] = error
            finally:
                self._turn.tasks.discard(task)
                gates.end_branch(name)
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
                self._turn.host.live(TokenAdded(text=clean(delta.text)))
            case ThinkingDelta():
                self._turn.host.live(ReasoningAdded(text=clean(delta.text)))
            case _:
                self._turn.host.live(TextRestarted())

    async def _finish(
        self, key: str, call: ToolCall, made: ToolOutput, outcome: Outcome
    ) -> ToolResult:
        self._turn.check()
        record, journal = _make_finished(key, call, made, outcome), self._turn.journal
        open_calls: tuple[Record, ...] = ()
        if outcome in ("unknown", "cancelled"):  # others have waited for their inner calls
            open_calls = close_calls(journal.records, f"{key}/", UNKNOWN, ambient.now())
        await journal.barrier(*open_calls, record)
        self._turn.check()
        return _result(record)


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # names of disks and servers may not be valid text
        return msgspec.json.encode(clean_values(value))


def _clean_reply(reply: ModelReply) -> ModelReply:
    """Clean the answer for its record: people are shown, and approve, exactly what runs."""
    parts = tuple(
        replace(part, arguments=_clean_arguments(part.arguments))
        if isinstance(part, ToolCall)
        else part
        for part in reply.parts
    )
    return clean_values(replace(reply, parts=parts))


def _clean_arguments(arguments: str) -> str:
    """Clean arguments for their record. Too deep ones become a text, which fits no tool and says
    why."""
    return TOO_DEEP if is_deep(arguments) else clean_json(arguments)


def _make_finished(key: str, call: ToolCall, made: ToolOutput, outcome: Outcome) -> ToolFinished:
    made = clean_values(made)
    return ToolFinished(
        key=key,
        call_id=call.id,
        name=call.name,
        digest=call_digest(call),
        content=made.text,
        outcome=outcome,
        files=made.files,
        caption=made.caption,
        changed=made.changed,
        pictures=made.pictures,
        command=made.command,
        browsed=made.browsed,
        shown=made.shown,
        seal=made.seal,
        link=made.link,
        at=ambient.now(),
    )


def _result(record: ToolFinished) -> ToolResult:
    return ToolResult(
        call_id=record.call_id,
        name=record.name,
        content=record.content,
        error=record.outcome != "ok",
        pictures=record.pictures,
        denied=record.outcome == "denied",
        command=record.command,
        seal=record.seal,
    )


def _describe_timeout(limit: float | None) -> str:
    return "Timed out." if limit is None else f"Timed out after {limit:g} s."


async def _fail_if_cancelled_inside(work: Awaitable[T], failed: type[AgentError]) -> T:
    """Await `work`; raise `failed` if it ends cancelled although nobody cancelled this task."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        text = "It was cancelled from inside its own library; it may have taken effect."
        raise failed(text) from error


def _make_failed(key: str, error: Exception, limit: float | None) -> Failed:
    match error:
        case ModelFailed():
            return Failed(
                key=key,
                error="model",
                text=clean(str(error)),
                fault=error.fault,
                phrases=clean_values(error.phrases),
                window=error.window,
            )
        case CallsExceeded():
            return Failed(key=key, error="calls", text=clean(str(error)))
        case BudgetExceeded():
            return Failed(key=key, error="budget", text=clean(str(error)))
        case Cut():
            return Failed(key=key, error="cut", text=clean(str(error)))
        case _:
            return Failed(key=key, error="timeout", text=f"the model took over {limit:g} s")


def restore_failure(record: Failed) -> AgentError:
    """The failure that was recorded."""
    match record.error:
        case "model":
            fault = cast(ModelFault, record.fault)
            return ModelFailed(record.phrases or record.text, fault, window=record.window)
        case "budget":
            return BudgetExceeded(record.text)
        case "timeout":
            return TimedOut(record.text)
        case "calls":
            return CallsExceeded(record.text)
        case "cut":
            return Cut(record.text)
