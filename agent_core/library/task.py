"""One turn of an agent used as a library, over its journal, and its result."""

import asyncio
import logging
from typing import Literal

import msgspec
from msgspec.structs import replace

from agent_core.context.record_events import events_of, question_text
from agent_core.errors import Parked
from agent_core.events import AgentEvent
from agent_core.journal import Answered, Began, Finished, Journal, QuestionAsked, Record
from agent_core.journal_file import FileJournal
from agent_core.library.callbacks import ModelAsked
from agent_core.library.records import TaskRecord, find_failure, read_ending, usage_of
from agent_core.library.result import AgentResult
from agent_core.library.setup import Setup
from agent_core.messages import Message, ToolCall
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.brief import TurnResult as Ending
from agent_core.orchestration.drive import drive
from agent_core.orchestration.orchestrator import work
from agent_core.scope import Scope, Turn

log = logging.getLogger("turnkeeper.agent")


class Task:
    """One turn of an agent, over its journal."""

    def __init__(self, setup: Setup, task_id: str, history: tuple[Message, ...]) -> None:
        self.id = task_id
        self.events: asyncio.Queue[AgentEvent | ModelAsked | None] = asyncio.Queue()
        self._setup = setup
        self._history = history
        self._file = FileJournal(setup.journal) if setup.journal is not None else None

    async def work(self) -> AgentResult:
        """Run the turn to its end; its events go to `events`, None after the last."""
        try:
            records = self._file.load(self.id) if self._file is not None else ()
            journal = Journal(records, self._write)
            brief = self._brief(journal)
            self._setup.begin(usage_of(records).cost or 0.0)
            ending = read_ending(records) or await self._run_until_end(journal, brief)
            usage = usage_of(journal.records)
            return AgentResult(
                final_response=ending.text,
                messages=ending.seen or (*self._history, *ending.messages),
                usage=usage,
                task_id=self.id,
                finish_reason=ending.finish,
                cost=usage.cost,
                error=find_failure(journal.records) if ending.finish == "error" else None,
            )
        finally:
            self.events.put_nowait(None)

    def _brief(self, journal: Journal) -> Brief:
        """Return the task's brief, from the journal if this is not its first run."""
        for record in journal.records:
            if isinstance(record, Began):
                begun = msgspec.json.decode(record.value, type=TaskRecord)
                self._history = begun.history
                assert begun.brief is not None
                return begun.brief
        brief = self._setup.brief
        start = TaskRecord(brief=brief, history=self._history)
        journal.defer(Began(key="began", value=msgspec.Raw(msgspec.json.encode(start))))
        return brief

    async def _run_until_end(self, journal: Journal, brief: Brief) -> Ending:
        asked = self._setup.hands.complete

        async def complete(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
            self.events.put_nowait(ModelAsked())
            return await asked(name, request, on_delta)

        hands = replace(
            self._setup.hands,
            complete=complete,
            live=self.live,
            toolbox=self._setup.hands.toolbox.show_more(brief.more),
        )

        async def code(scope: Scope, past: tuple[Message, ...]) -> Ending:
            if self._setup.call is not None:
                return await _make_call(scope, brief, hands, self._setup.call)
            return await work(scope, brief, hands, self._history, past)

        while True:
            journal.rewind()
            try:
                ending = await drive(Turn(self.id, journal, self, brief.max_turns), code)
            except Parked:
                await self._ask(journal)
                continue
            await journal.barrier(Finished(key="finished", text=ending.text, finish=ending.finish))
            await self._keep_messages(journal, ending)
            return ending

    async def _keep_messages(self, journal: Journal, ending: Ending) -> None:
        start = TaskRecord(brief=None, history=ending.messages)
        body = msgspec.Raw(msgspec.json.encode(start))
        await journal.barrier(Began(key="ended", value=body))

    async def _ask(self, journal: Journal) -> None:
        """Have the waiting questions answered, then go on from the journal."""
        for record in list(journal.records):
            if not isinstance(record, QuestionAsked):
                continue
            if journal.find(f"{record.key}#answer", Answered) is not None:
                continue
            log.info("asked", extra={"question": question_text(record.question)})
            answer = await self._setup.answer(record.question)
            await journal.barrier(
                Answered(key=f"{record.key}#answer", asked=record.key, answer=answer)
            )

    def live(self, event: AgentEvent) -> None:
        """Forward an event that is not recorded."""
        self.events.put_nowait(event)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        """Return nothing: nobody steers a library call."""
        return ()

    async def _write(self, records: tuple[Record, ...]) -> None:
        if self._file is not None:
            await self._file.append(self.id, records)
        for record in records:
            for event in events_of(record):
                self.events.put_nowait(event)


async def _make_call(scope: Scope, brief: Brief, hands: Hands, call: ToolCall) -> Ending:
    """Run one call like a model's: judged, asked about, journaled."""
    (result,) = await act(scope.child("call"), brief, hands, (call,))
    made = Message(role="assistant", parts=(call,))
    answered = Message(role="tool", parts=(result,))
    finish: Literal["stop", "error"] = "error" if result.error else "stop"
    return Ending(text=result.content, messages=(made, answered), finish=finish)
