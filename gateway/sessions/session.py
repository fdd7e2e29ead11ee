"""One conversation while it has work: its lease, its lane of turns, its commits.

One turn at a time, in order of arrival. Everything that a person does enters as an inbox row
(`intake`); every change leaves as one fenced commit; what people see follows from the commits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from functools import partial

from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.transcript import settled
from agent_core.errors import Cancelled, Drained, LeaseLost, Parked, Suspend
from agent_core.journal import Answered, Finished, Stopped
from agent_core.messages import Message
from agent_core.orchestration.brief import Result
from agent_core.orchestration.drive import drive
from agent_core.scope import Scope, Turn
from gateway.errors import Fenced, StoreFailed
from gateway.history.undo import Past, begin_again, take_back
from gateway.jobs import running as runs
from gateway.jobs.present import JobFold
from gateway.jobs.work.scripts import Scripted
from gateway.memory.recall import recalled, remembered
from gateway.messages import ButtonPressed, CommandGiven, Conversation, FormSubmitted
from gateway.plans import again as plans
from gateway.present import Fold
from gateway.sessions.commits import Commits
from gateway.sessions.company import Circumstances, Company
from gateway.sessions.decisions import Decisions
from gateway.sessions.intake import Intake
from gateway.sessions.reading import Asked
from gateway.sessions.services import Services
from gateway.sessions.turns import OpenTurn, began, read_brief
from gateway.store.rows import (
    Changes,
    InboxRow,
    Opened,
    TurnRow,
)
from gateway.texts import say

log = logging.getLogger("turnkeeper.session")


class Session(Commits):
    """Runs one conversation under its lease until nothing is left to do."""

    def __init__(self, services: Services, conversation: Conversation, opened: Opened) -> None:
        super().__init__(services, conversation, opened)
        self.decisions = Decisions(self)
        self._opened = opened
        self._intake = Intake(self)

    # ---- life ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until the conversation is released, lost or drained."""
        sender = asyncio.Event()
        sending = False

        async def send() -> None:
            nonlocal sending
            sending = True
            try:
                await self.outbox.run()
            finally:
                sender.set()
                self._event.set()

        self.services.spawn(send, f"outbox:{self.conversation.id}")
        try:
            await self._serve()
        except (StoreFailed, Fenced) as error:
            self.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
        finally:
            self.outbox.stop()
            if sending:
                await sender.wait()
            if isinstance(self.ended, Drained):
                await self._give_back()

    async def _serve(self) -> None:
        self.outbox.load(self._opened.views)
        await self._absorb(self._opened.inbox)
        self.seen = max(self.seen, self._opened.last)
        await self._after_crash()
        while self.ended is None:
            if self.woken:
                self.woken = False
                arrivals = await self.services.store.arrivals(self.lease.conversation, self.seen)
                await self._absorb(arrivals)
            elif (open_turn := await self._next_turn()) is not None:
                await self._run_turn(open_turn)
            elif (wait := self._intake.settles_in()) > 0:
                self._event.clear()
                await self._wait_until(ambient.monotonic() + wait)
            elif not self.queue and await self._let_go():
                return

    async def _absorb(self, rows: Iterable[InboxRow]) -> None:
        """Handle inbox rows in order; `seen` moves on once a row is handled or left queued."""
        self._occupied = True
        try:
            await self._absorb_each(rows)
        finally:
            self._occupied = False

    async def _absorb_each(self, rows: Iterable[InboxRow]) -> None:
        for row in rows:
            if row.seq <= self.seen or self.ended is not None:
                continue
            try:
                await self._intake.take(row)
            except (StoreFailed, Fenced):
                raise
            except Exception:
                log.exception("row_failed", extra={"seq": row.seq})
                self.services.count("rows_failed")
                self.submit(Changes(dead=(row.seq,)))
            self.seen = max(self.seen, row.seq)

    async def _after_crash(self) -> None:
        """Count holders that ended without progress; give up on what ends them each time."""
        if not self._opened.crashed:
            return
        crashes = self.row.crashes + 1
        running = [turn for turn in self.turns.values() if turn.status == "running"]
        if running:
            resumed = replace(running[0], resumes=running[0].resumes + 1)
            self.turns[resumed.id] = resumed
            self.submit(Changes(turns=(resumed,)))
            if resumed.resumes >= self.services.give_up_after:
                await self._bury(await self.open_turn(resumed.id))
        elif self.queue:
            self.row = replace(self.row, crashes=crashes)
            self.submit(Changes(row=self.row))
            if crashes >= self.services.give_up_after:
                poison, *edits = self._intake.with_edits(self.queue.popleft().seq)
                text = say("dead", self.language, n=crashes)
                self.notice(poison, text, "error", state="dead", also=tuple(edits))
                self.row = replace(self.row, crashes=0)

    async def _let_go(self) -> bool:
        """Release once everything is delivered; False if something came in."""
        while not self.woken and self.ended is None:
            own = self._releasing is None
            if own and self.outbox.idle:
                self._releasing = self._release(Changes())
            if self._releasing is None:
                self._event.clear()
                await self._event.wait()
                continue
            releasing, self._releasing = self._releasing, None
            if await releasing:
                return True
            if own and not self.woken:
                await self._refused()
            self.woken = True
        if self._releasing is not None:
            releasing, self._releasing = self._releasing, None
            return await releasing
        return False

    async def _refused(self) -> None:
        """The store sees work: a row just came in, or memory and store differ."""
        newer = await self.services.store.arrivals(self.lease.conversation, self.seen)
        if not newer:
            log.error("release_refused", extra={"conversation": self.conversation.id})
            self.end(Drained(), "the store holds work that this session does not know")

    async def _give_back(self) -> None:
        try:
            await self.services.store.give_back(self.lease)
        except StoreFailed as error:
            log.error("not_given_back", extra={"why": str(error)})

    # ---- the lane ------------------------------------------------------------------------

    async def _next_turn(self) -> OpenTurn | None:
        """The turn to run now: one that was answered or cut off, else the next message's."""
        for turn in self.turns.values():
            if turn.status == "running":
                return await self.open_turn(turn.id)
        self._occupied = True  # what is being made is not in the queue any more
        try:
            match self.queue[0].inbound if self.queue else None:
                case CommandGiven() as again:
                    return await begin_again(self, self.queue.popleft(), again)
                case ButtonPressed() | FormSubmitted() as press:
                    return await plans.begin(self, self._intake, press)
            return await self._intake.begin()
        finally:
            self._occupied = False

    async def open_turn(self, turn_id: str) -> OpenTurn:
        """The turn with its records and views, from memory or from the store."""
        known = self.loaded.get(turn_id)
        if known is not None:
            return known
        await self.written()
        row = self.turns[turn_id]
        records = await self.services.store.records(turn_id)
        self.outbox.load(await self.services.store.outbox(self.lease.conversation, turn_id))
        open_turn = OpenTurn(row, read_brief(records), self.fold(row), records, self._write)
        open_turn.stored = True
        self.loaded[turn_id] = open_turn
        return open_turn

    def fold(self, row: TurnRow) -> Fold:
        """An empty fold for a turn's views."""
        if row.firing is not None:
            who, language = row.sender_name, row.language
            return JobFold(turn=row.id, asker=who, language=language, firing=row.firing)
        own = self.adapter.abilities.own_messages
        return Fold(turn=row.id, asker=row.sender_name, language=row.language, said=not own)

    async def start(
        self, row: TurnRow, asked: Asked, done: tuple[int, ...], past: Past | None = None
    ) -> OpenTurn:
        """A new turn; it enters the store with its first commit. `past`: the turn that it is in
        place of, which the same commit takes back; `asked` was fetched then."""
        await self.history.rows()
        now = await remembered(self, row)
        if past is not None:
            self.along += await self.redrawn(past.turn.id, "plan", plans.superseded("plan_anew"))
            take_back(self, past)  # a commit before the turn's own would take back this much alone
        row = replace(row, history=self.row.shows)
        brief = self.services.agent.brief(self.conversation, self.row.settings, asked.text)
        shows = self.adapter.abilities.own_messages
        said = "" if shows else asked.said
        brief = replace(brief, said=said, pictures=asked.pictures)
        brief = recalled(brief, now, await self.history.rows(), asked)
        open_turn = OpenTurn(row, brief, self.fold(row), (), self._write)
        open_turn.done = done
        self.turns[row.id] = row
        self.loaded[row.id] = open_turn
        if shows and not asked.fetched:
            open_turn.journal.defer(began(brief))
        else:
            await open_turn.journal.barrier(began(brief))
        return open_turn

    async def _run_turn(self, open_turn: OpenTurn) -> None:
        """Run the turn to its end, its park or its stop, taking in what comes meanwhile."""
        open_turn.journal.rewind()
        turn = Turn(
            open_turn.id,
            open_turn.journal,
            Company(self, open_turn),
            open_turn.brief.max_turns,
        )
        open_turn.turn, open_turn.outcome, open_turn.words = turn, None, ""
        history = await self.history.of(open_turn)
        self.active = open_turn
        self.services.spawn(partial(self._drive, open_turn, turn, history), f"turn:{open_turn.id}")
        patience: float | None = None
        while open_turn.outcome is None:
            self._event.clear()
            if self.woken and self.ended is None:
                self.woken = False
                rows = await self.services.store.arrivals(self.lease.conversation, self.seen)
                await self._absorb(rows)
                continue
            if turn.dead is not None and not isinstance(turn.dead, Parked):
                patience = patience or ambient.monotonic() + self.services.cancel_patience
                if not await self._wait_until(patience):
                    log.error("turn_abandoned", extra={"turn": open_turn.id})
                    break
            else:
                await self._event.wait()
        self.active = None
        await self._settle(open_turn, turn)

    async def _wait_until(self, deadline: float) -> bool:
        try:
            async with ambient.limit(max(0.0, deadline - ambient.monotonic())):
                await self._event.wait()
        except TimeoutError:
            return False
        return True

    async def _drive(self, open_turn: OpenTurn, turn: Turn, history: tuple[Message, ...]) -> None:
        """The task that runs the turn's code. The first suspend reason decides, never the
        exception that comes out."""
        open_turn.task = asyncio.current_task()
        agent = self.services.agent
        hands = agent.hands(Circumstances(self, open_turn))
        job = Scripted(agent, open_turn, hands)

        async def code(scope: Scope, past: tuple[Message, ...]) -> Result:
            return await job.code(scope, history, past)

        try:
            result = await drive(turn, code)
            if turn.dead is None:
                await self._finish(open_turn, result)
            open_turn.outcome = turn.dead or result
        except (Suspend, asyncio.CancelledError) as error:
            reason = turn.dead or (error if isinstance(error, Suspend) else Drained())
            open_turn.outcome = reason
        except Exception as error:
            open_turn.outcome = turn.dead or error
            if turn.dead is None:
                log.exception("turn_failed", extra={"turn": open_turn.id})
        finally:
            self._event.set()

    def _finish(self, open_turn: OpenTurn, result: Result) -> Awaitable[None]:
        """Queue the final commit in this very step: a stop that comes now is late."""
        open_turn.ending = settled(result.messages)
        open_turn.seen = settled(result.seen)
        record = Finished(key="finished", text=result.text, finish=result.finish)
        return open_turn.journal.put(record)

    async def _settle(self, open_turn: OpenTurn, turn: Turn) -> None:
        """After the turn's task has ended, or was abandoned."""
        outcome = open_turn.outcome
        if self.ended is not None:
            return
        if isinstance(outcome, Parked) and not open_turn.closed:
            self._park(open_turn, turn)
            await self._limit_parked()
        elif isinstance(outcome, Exception) and not open_turn.closed:
            text = say("bug", open_turn.row.language, id=open_turn.id)
            self.close_turn(open_turn, Stopped(key="stopped", reason="error", text=text))
            self.services.count("turns_failed")
        if open_turn.closed:
            self.drop(open_turn)

    def _park(self, open_turn: OpenTurn, turn: Turn) -> None:
        """Give the lane back, unless an answer came in the very moment of parking."""
        journal = open_turn.journal
        if any(journal.find(f"{key}#answer", Answered) for key in turn.waiting):
            self.turns[open_turn.id] = open_turn.row
            return
        self.loaded.pop(open_turn.id, None)
        self.queue.extendleft(reversed(open_turn.steers))
        open_turn.row = replace(open_turn.row, status="parked")
        self.turns[open_turn.id] = open_turn.row
        self.submit(Changes(turns=(open_turn.row,)))
        self.outbox.forget(open_turn.id)

    async def _limit_parked(self) -> None:
        """Too many turns wait for people here: the oldest ones end, and say so."""
        most, turns = self.services.most_parked, self.turns.values()
        parked = sorted((t for t in turns if t.status == "parked"), key=lambda turn: turn.begun)
        self._occupied = True
        try:
            for row in parked[: max(0, len(parked) - most)]:
                end = Stopped(
                    key="stopped", reason="stop", text=say("too_many", row.language, n=most)
                )
                self.close_turn(await self.open_turn(row.id), end)
        finally:
            self._occupied = False

    def close_turn(self, open_turn: OpenTurn, record: Stopped, done: tuple[int, ...] = ()) -> None:
        """End the turn from outside with one commit: its views and questions are closed, its
        facts join the transcript. `done`: inbox rows that this answers."""
        if not record.partial and open_turn.words:
            record = replace(record, partial=open_turn.words)
        open_turn.done += done
        open_turn.ending = open_turn.stopped_messages()
        if open_turn.turn is not None:
            open_turn.turn.suspend(Cancelled())
        open_turn.journal.put(record)
        if open_turn.task is not None and self.active is open_turn:
            open_turn.task.cancel()
        self.outbox.hush()
        if self.active is not open_turn:
            self.drop(open_turn)

    async def _bury(self, open_turn: OpenTurn) -> None:
        """A turn that ends its process each time is a dead letter; the lane moves on."""
        row = open_turn.row
        self.services.count("turns_dead")
        log.error("turn_dead", extra={"turn": row.id, "resumes": row.resumes})
        text = say("dead", row.language, n=row.resumes)
        self.close_turn(open_turn, Stopped(key="stopped", reason="dead", text=text))

    def drop(self, open_turn: OpenTurn) -> None:
        """The turn is over: nothing of it stays in memory but what is still to be sent."""
        self.turns.pop(open_turn.id, None)
        self.loaded.pop(open_turn.id, None)
        self.queue.extendleft(reversed(open_turn.steers))
        for question in [q for q in self.questions.values() if q.turn == open_turn.id]:
            del self.questions[question.id]
        self.outbox.forget(open_turn.id)
        runs.ended(self, open_turn, self._last)

    def take_steers(self, open_turn: OpenTurn) -> tuple[tuple[int, str], ...]:
        """What people said for the running turn since it was last asked."""
        return self._intake.take_steers(open_turn)
