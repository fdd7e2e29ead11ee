"""One conversation while it has work: its lease, its lane of turns, its commits.

One turn at a time, in order of arrival. Everything that a person does enters as an inbox row
(`intake`); every change leaves as one fenced commit; what people see follows from the commits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.transcript import settled
from agent_core.errors import Cancelled, Drained, LeaseLost, Parked, Suspend
from agent_core.journal import Answered, Finished, Stopped
from agent_core.messages import Message
from agent_core.orchestration.brief import Result
from agent_core.orchestration.drive import drive
from agent_core.scope import Scope, Turn
from gateway.errors import Fenced, StoreFailed, Unreadable, Unstorable
from gateway.history.undo import Past, begin_again, take_back
from gateway.jobs import running as runs
from gateway.jobs.present import JobFold
from gateway.jobs.work.scripts import Scripted
from gateway.memory.recall import recalled, remembered
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    Conversation,
    FormSubmitted,
    QuestionDue,
    QuestionExpired,
    sender_of,
)
from gateway.plans import again as plans
from gateway.present import Fold
from gateway.sessions.commits import Commits, encode_json
from gateway.sessions.company import Circumstances, Company
from gateway.sessions.decisions import Decisions
from gateway.sessions.intake import Intake
from gateway.sessions.reading import Asked
from gateway.sessions.services import Services
from gateway.sessions.slots import Place
from gateway.sessions.turns import OpenTurn, began, note_rows, read_brief
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

    def __init__(
        self, services: Services, conversation: Conversation, opened: Opened, failures: int = 0
    ) -> None:
        """`failures`: sessions of this process that ended here in a row without progress."""
        super().__init__(services, conversation, opened)
        self.decisions = Decisions(self)
        self._opened = opened
        self._failures = failures
        self._intake = Intake(self)
        self._place = Place(services.slots, self._event.set)

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
            except Exception as error:  # noqa: BLE001  # the border: a bug of the sender itself
                log.exception("sender_failed", extra={"conversation": self.conversation.id})
                self.services.count("senders_failed")
                self.end(Drained(), f"the sender failed: {error}")
            finally:
                sender.set()
                self._event.set()

        self.services.spawn(send, f"outbox:{self.conversation.id}")
        self.services.spawn(self._watch_lease, f"lease:{self.conversation.id}")
        try:
            await self._serve()
        except (Unreadable, Unstorable) as error:
            self.end(Drained(), str(error))
            raise  # it will not pass: the host counts it
        except (StoreFailed, Fenced) as error:
            self.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
        except Exception as error:
            self.end(Drained(), f"{type(error).__name__}: {error}")
            raise
        finally:
            self._place.leave()
            self.tenure.end()
            self.outbox.stop()
            if sending:
                await sender.wait()
            if isinstance(self.ended, Drained):
                await self._give_back()

    async def _watch_lease(self) -> None:
        if not await self.tenure.watch():
            self.end(LeaseLost(), "not renewed in time")

    async def _serve(self) -> None:
        self.outbox.load(self._opened.views)
        self._set_aside_damaged()
        await self._absorb(self._opened.inbox)
        self.seen = max(self.seen, self._opened.last)
        await self._give_up_refused()
        await self._after_crash()
        await self._restore_unsaved()
        while self.ended is None:
            if self.woken:
                self.woken = False
                arrivals = await self.services.store.arrivals(self.lease.conversation, self.seen)
                await self._absorb(arrivals)
            elif self._wants_turn() and not self._place.is_given():
                self._event.clear()
                if not self._place.is_given():
                    await self._event.wait()
            elif (open_turn := await self._next_turn()) is not None:
                await self._run_turn(open_turn)
                self._place.leave()
            elif (wait := self._intake.settles_in()) > 0:
                self._event.clear()
                await self._wait_until(ambient.monotonic() + wait)
            elif not self.queue and await self._let_go():
                return

    def on_undeliverable(self, turn: str) -> None:
        runs.pause_undeliverable(self.services, turn)

    def _wants_turn(self) -> bool:
        """A turn is to be run or begun."""
        running = any(turn.status == "running" for turn in self.turns.values())
        wants = running or (bool(self.queue) and not self._intake.settles_in())
        if not wants:
            self._place.leave()
        return wants

    # ---- what is set aside -----------------------------------------------------------------

    def _set_aside_damaged(self) -> None:
        """Rows that this version cannot read become dead letters; all else goes on."""
        damaged = self._opened.damaged
        if not damaged:
            return
        self.services.count("rows_unreadable", len(damaged))
        for letter in damaged:
            text = say("unreadable", self.language, what=letter.kind, id=letter.id)
            self.announce(letter, text)

    async def _give_up_refused(self) -> None:
        """What the store will never take ends here, and is told."""
        refused = self.services.refused.pop(self.conversation.id, None)
        if refused is None:
            return
        self.services.unsaved.pop(self.conversation.id, None)
        if refused.turn in self.turns and refused.again:
            self._bury_unread(self.turns[refused.turn], refused.why)
            return
        if refused.turn in self.turns:
            self.given_up.add(refused.turn)
            open_turn = await self.open_turn(refused.turn)
            text = say("unstorable", open_turn.row.language)
            self._bury(open_turn, "error", text, refused.why)
            return
        for row in [row for row in self.queue if row.seq in refused.rows]:
            self.queue.remove(row)
            self._give_up_message(row, say("unstorable", self.language), refused.why)

    def _give_up_message(self, row: InboxRow, text: str, why: str) -> None:
        """A message that cannot be worked on becomes a dead letter; its person is told."""
        _, *edits = self._intake.with_edits(row.seq)
        letter = self.give_up_row(row, why)
        along = Changes(done=tuple(edits), letters=(letter,))
        self.notice(row.seq, text, "error", state="kept", along=along)

    async def _restore_unsaved(self) -> None:
        """Commit first what the last session made here and could not commit."""
        if self.ended is not None:
            return  # the next session does it
        unsaved = self.services.unsaved.pop(self.conversation.id, None)
        if unsaved is None or not unsaved.records:
            return
        if unsaved.stored:
            if unsaved.turn.id not in self.turns:
                return
            open_turn = await self.open_turn(unsaved.turn.id)
            if len(open_turn.journal.records) != unsaved.count:
                return
        else:
            rows = [row for row in self.queue if row.seq in unsaved.turn.inbox]
            edited = any(self._intake.is_edited(row.seq) for row in rows)
            if edited or len(rows) != len(unsaved.turn.inbox):
                return
            for row in rows:
                self.queue.remove(row)
            turn, brief = unsaved.turn, read_brief(unsaved.records)
            open_turn = OpenTurn(turn, brief, self.fold(turn), (), self._write)
            open_turn.done = unsaved.done
            self.turns[turn.id] = turn
            self.loaded[turn.id] = open_turn
        self.services.count("records_restored", len(unsaved.records))
        try:
            await open_turn.journal.barrier(*unsaved.records)
        except StoreFailed:
            self.services.unsaved.setdefault(self.conversation.id, unsaved)
            raise

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
            except (Unreadable, Unstorable) as error:
                self._fail_row(row, str(error))
            except (StoreFailed, Fenced):
                raise
            except Exception as error:  # noqa: BLE001  # the border: the other rows go on
                log.exception("row_failed", extra={"seq": row.seq})
                self._fail_row(row, f"{type(error).__name__}: {error}")
            self.seen = max(self.seen, row.seq)

    def _fail_row(self, row: InboxRow, why: str) -> None:
        """A row that could not be worked on becomes a dead letter. Who did it is told."""
        self.services.count("rows_failed")
        letter = self.give_up_row(row, why)
        aside = [letter]
        if isinstance(row.inbound, QuestionExpired | QuestionDue):
            question = self.questions.pop(row.inbound.question, None)
            if question is not None:  # or its time would come again and again
                payload = encode_json(question)
                aside.append(self.letter("question", question.id, why, payload, question.turn))
        if sender_of(row.inbound) is None:
            self.submit(Changes(letters=tuple(aside)))
            return
        text = say("row_failed", self.language, id=letter.id)
        along = Changes(letters=tuple(aside))
        self.notice(row.seq, text, "error", state="kept", along=along)

    async def _after_crash(self) -> None:
        """Count holders that ended without progress; give up on what ends them each time."""
        if not self._opened.crashed and not self._failures:
            return
        crashes = self.row.crashes + 1
        running = [turn for turn in self.turns.values() if turn.status == "running"]
        if running:
            resumed = replace(running[0], resumes=running[0].resumes + 1)
            self.turns[resumed.id] = resumed
            self.submit(Changes(turns=(resumed,)))
            if resumed.resumes >= self.services.give_up_after:
                text = say("dead", resumed.language, n=resumed.resumes)
                why = f"ended its process {resumed.resumes} times"
                self._bury(await self.open_turn(resumed.id), "dead", text, why)
        elif self.queue:
            self.row = replace(self.row, crashes=crashes)
            self.submit(Changes(row=self.row))
            if crashes >= self.services.give_up_after:
                text = say("dead", self.language, n=crashes)
                why = f"ended its process {crashes} times"
                self._give_up_message(self.queue.popleft(), text, why)
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
        for turn in list(self.turns.values()):
            if turn.status == "running":
                with suppress(Unreadable):
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
        try:
            records = await self.services.store.records(turn_id)
        except Unreadable as error:
            self._bury_unread(row, str(error))
            raise
        self.outbox.load(await self.services.store.outbox(self.lease.conversation, turn_id))
        open_turn = OpenTurn(row, read_brief(records), self.fold(row), records, self._write)
        open_turn.stored = True
        self.loaded[turn_id] = open_turn
        self.decisions.reopen(open_turn)
        return open_turn

    def fold(self, row: TurnRow) -> Fold:
        """An empty fold for a turn's views."""
        if row.firing is not None:
            who, language = row.sender_name, row.language
            return JobFold(turn=row.id, asker=who, language=language, firing=row.firing)
        own = self.adapter.abilities.own_messages
        return Fold(turn=row.id, asker=row.sender_name, language=row.language, said=not own)

    async def start(
        self,
        row: TurnRow,
        asked: Asked,
        done: tuple[int, ...],
        past: Past | None = None,
        rows: Sequence[InboxRow] = (),
    ) -> OpenTurn:
        """A new turn; it enters the store with its first commit. `past`: the turn that it is in
        place of, which the same commit takes back; `asked` was fetched then. `rows`: what it
        begins with, kept for the case that it cannot end."""
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
        open_turn.journal.defer(began(brief))
        if rows:
            open_turn.journal.defer(note_rows(rows))
        if not shows or asked.fetched:
            await open_turn.journal.barrier()
        return open_turn

    async def _run_turn(self, open_turn: OpenTurn) -> None:
        """Run the turn to its end, its park or its stop, taking in what comes meanwhile."""
        open_turn.journal.rewind()
        turn = Turn(
            open_turn.id,
            open_turn.journal,
            Company(self, open_turn),
            open_turn.brief.max_turns,
            self.tenure.permit,
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
        except (StoreFailed, Fenced) as error:
            refused = isinstance(error, Unreadable | Unstorable)
            open_turn.outcome = turn.dead or (error if refused else Drained())
            if not refused:  # it passes: the turn goes on in the next session
                self.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
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
            self._bury(open_turn, "error", text, f"{type(outcome).__name__}: {outcome}")
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

    def _bury(
        self, open_turn: OpenTurn, reason: Literal["dead", "error"], text: str, why: str
    ) -> None:
        """End a turn that cannot go on: what began it becomes dead letters; the lane moves on."""
        row = open_turn.row
        self.services.count("turns_dead")
        log.error("turn_dead", extra={"turn": row.id, "resumes": row.resumes, "why": why})
        open_turn.letters = tuple(
            self.letter("message", str(one.seq), why, encode_json(one.inbound), row.id)
            for one in open_turn.began_with()
        )
        self.close_turn(open_turn, Stopped(key="stopped", reason=reason, text=text))

    def _bury_unread(self, row: TurnRow, why: str) -> None:
        """A turn whose journal cannot be read ends by its row alone, and is a dead letter."""
        self.services.count("turns_dead")
        log.error("turn_dead", extra={"turn": row.id, "why": why})
        self.turns.pop(row.id, None)
        self.loaded.pop(row.id, None)
        asked = [one for one in self.questions.values() if one.turn == row.id]
        for question in asked:
            del self.questions[question.id]
        letter = self.letter("turn", row.id, why, encode_json(row), row.id)
        text = say("unreadable", row.language or self.language, what="turn", id=letter.id)
        self.announce(letter, text)
        if asked:
            closed = (replace(question, status="cancelled") for question in asked)
            self.submit(Changes(questions=tuple(closed)))
        runs.ended(self, row, self._last)

    def drop(self, open_turn: OpenTurn) -> None:
        """The turn is over: nothing of it stays in memory but what is still to be sent."""
        self.turns.pop(open_turn.id, None)
        self.loaded.pop(open_turn.id, None)
        self.queue.extendleft(reversed(open_turn.steers))
        for question in [q for q in self.questions.values() if q.turn == open_turn.id]:
            del self.questions[question.id]
        self.outbox.forget(open_turn.id)
        runs.ended(self, open_turn.row, self._last)

    def take_steers(self, open_turn: OpenTurn) -> tuple[tuple[int, str], ...]:
        """What people said for the running turn since it was last asked."""
        return self._intake.take_steers(open_turn)
