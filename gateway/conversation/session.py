"""One conversation while it has work: its lease, its queue of turns, the commits of turns.

One turn at a time, in order of arrival. Everything that a person does enters as an inbox row
(`intake`); every change leaves as one fenced commit; what people see follows from the commits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.transcript import settle_messages
from agent_core.errors import Cancelled, Drained, LeaseLost, Parked, Suspend
from agent_core.journal import Answered, Finished, Stopped
from agent_core.messages import Message
from agent_core.models.port import asker_permit
from agent_core.orchestration.brief import TurnResult
from agent_core.orchestration.drive import drive
from agent_core.scope import Scope, Turn
from gateway.conversation.dead_letters import (
    end_as_dead_letter,
    end_unread_turn,
    give_up_message,
    set_aside_damaged,
    take_row,
)
from gateway.conversation.inbox.inherited import inherit_settings
from gateway.conversation.inbox.intake import Intake
from gateway.conversation.inbox.lost_chat import report_lost_chat
from gateway.conversation.inbox.reading import TurnInput
from gateway.conversation.inbox.signs import show_work
from gateway.conversation.question_rows import reopen_questions
from gateway.conversation.services import Services
from gateway.conversation.slots import TurnSlot
from gateway.conversation.state import ConversationState
from gateway.conversation.thread import ConversationHistory
from gateway.conversation.turn_commits import TurnCommits
from gateway.conversation.turn_context import SessionTurnHost, TurnContext
from gateway.conversation.turns import OpenTurn, name_retry, note_brief, read_brief
from gateway.delivery.fold import ViewFold
from gateway.errors import Fenced, StoreFailed, Unreadable, Unstorable
from gateway.feature import Change, Context, Features, FiredTurns
from gateway.messages import Conversation, Sender
from gateway.store.rows import (
    AcquiredConversation,
    Changes,
    InboxRow,
    OutboxRow,
    TurnRow,
)
from gateway.texts import say

log = logging.getLogger("turnkeeper.session")


class Session:
    """Runs one conversation under its lease until nothing is left to do."""

    def __init__(
        self,
        services: Services,
        features: Features,
        conversation: Conversation,
        opened: AcquiredConversation,
        failures: int = 0,
    ) -> None:
        """`failures`: sessions of this process that ended here in a row without progress."""
        self.services = services
        self.state = ConversationState(
            services, conversation, opened, self._note_undeliverable, self._note_closed
        )
        self.history = ConversationHistory(self.state)
        self._write = TurnCommits(self.state, self.history).write
        self.context = Context(
            state=self.state, turns=self, services=services, commands=features.commands
        )
        self._opened = opened
        self._failures = failures
        self._features = features
        self._intake = Intake(self.context, features)
        self._place = TurnSlot(services.slots, self.state.changed.set, self.state.find_asker)

    # ---- life ----------------------------------------------------------------------------

    def find_asker(self) -> str:
        """Return the sender's key of the turn that runs or is next, "" if there is none."""
        return self.state.find_asker()

    def is_moving(self, since: float) -> bool:
        """Return True if it runs a turn, is to run one, or has sent something since then."""
        state = self.state
        sent = self.services.pace(state.conversation).has_sent(since)
        return self._has_running_turn() or bool(state.queue) or state.occupied or sent

    async def run(self) -> None:
        """Work until the conversation is released, lost or drained."""
        asker_permit.set(self.state.permit_call)
        sender = asyncio.Event()
        sending = False

        async def send() -> None:
            nonlocal sending
            sending = True
            try:
                await self.state.outbox.run()
            except Exception as error:  # noqa: BLE001  # boundary: a bug of the sender itself
                log.exception("sender_failed", extra={"conversation": self.state.conversation.id})
                self.services.count("senders_failed")
                self.state.end(Drained(), f"the sender failed: {error}")
            finally:
                sender.set()
                self.state.changed.set()

        self.services.spawn(send, f"outbox:{self.state.conversation.id}")
        self.services.spawn(self.state.watch_lease, f"lease:{self.state.conversation.id}")
        try:
            await self._serve()
        except (Unreadable, Unstorable) as error:
            self.state.end(Drained(), str(error))
            raise  # a lasting failure: the host counts it
        except (StoreFailed, Fenced) as error:
            self.state.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
        except Exception as error:
            self.state.end(Drained(), f"{type(error).__name__}: {error}")
            raise
        finally:
            self._place.leave()
            self.state.lease_timer.end()
            self._intake.reading.close()
            self.state.outbox.stop()
            if sending:
                await sender.wait()
            if self.state.ended is not None:
                await self._give_back()

    async def _serve(self) -> None:
        self.state.outbox.load(self._opened.views)
        set_aside_damaged(self.state, self._opened.damaged)
        if self.state.conversation.thread:
            await inherit_settings(self.state, self._opened.inbox)
        await self._absorb(self._opened.inbox)
        self.state.seen = max(self.state.seen, self._opened.last)
        await self._give_up_refused()
        await self._after_crash()
        await self._restore_unsaved()
        while self.state.ended is None:
            if self.state.woken:
                await self._take_arrivals()
            elif self._wants_turn() and not self._place.is_given():
                self.state.changed.clear()
                if not self._place.is_given():
                    await self.state.changed.wait()
            elif (open_turn := await self._next_turn()) is not None:
                await self._run_turn(open_turn)
                self._place.leave()
            elif (wait := self._intake.settles_in()) > 0:
                self.state.changed.clear()
                await self.state.wait_change(ambient.monotonic() + wait)
            elif self.state.queue and self._intake.reading.is_fetching():
                await self.state.wait_news()
            elif not (self.state.queue or self._wants_turn()) and await self._let_go():
                self.history.keep()
                return

    def _note_undeliverable(self, row: OutboxRow, why: str) -> None:
        if self._features.fired is not None:
            self._features.fired.give_up_report(self.context, row, why)

    async def _note_closed(self, why: str) -> None:
        await report_lost_chat(self.context, why)

    def _has_running_turn(self) -> bool:
        return any(turn.status == "running" for turn in self.state.turns.values())

    def _wants_turn(self) -> bool:
        """A turn is to be run or begun."""
        wants = self._has_running_turn() or (
            bool(self.state.queue) and not self._intake.settles_in()
        )
        if not wants:
            self._place.leave()
        return wants

    # ---- what is set aside -----------------------------------------------------------------

    async def _give_up_refused(self) -> None:
        """End what the store can never take, and tell its people."""
        refused = self.services.refused.pop(self.state.conversation.id, None)
        if refused is None:
            return
        self.services.unsaved.pop(self.state.conversation.id, None)
        if refused.turn in self.state.turns and refused.again:
            self._end_unread_turn(self.state.turns[refused.turn], refused.why)
            return
        if refused.turn in self.state.turns:
            self.state.given_up.add(refused.turn)
            open_turn = await self.open(refused.turn)
            text = say("unstorable", open_turn.row.language)
            end_as_dead_letter(self.context, open_turn, "error", text, refused.why)
            return
        for row in [row for row in self.state.queue if row.seq in refused.rows]:
            self.state.queue.remove(row)
            give_up_message(
                self.state,
                row,
                self._intake.with_edits(row.seq),
                "unstorable",
                refused.why,
            )

    async def _restore_unsaved(self) -> None:
        """Commit the changes that the last session in this process could not commit."""
        if self.state.ended is not None:
            return  # left to the next session
        unsaved = self.services.unsaved.pop(self.state.conversation.id, None)
        if unsaved is None or not unsaved.records:
            return
        if unsaved.stored:
            if unsaved.turn.id not in self.state.turns:
                return
            open_turn = await self.open(unsaved.turn.id)
            if len(open_turn.journal.records) != unsaved.count:
                return
        else:
            rows = [row for row in self.state.queue if row.seq in unsaved.turn.inbox]
            edited = any(self._intake.is_edited(row.seq) for row in rows)
            if edited or len(rows) != len(unsaved.turn.inbox):
                return
            for row in rows:
                self.state.queue.remove(row)
            turn, brief = unsaved.turn, read_brief(unsaved.records)
            open_turn = OpenTurn(turn, brief, self.fold(turn), (), self._write)
            open_turn.done = unsaved.done
            self.state.turns[turn.id] = turn
            self.state.loaded[turn.id] = open_turn
        self.services.count("records_restored", len(unsaved.records))
        try:
            await open_turn.journal.barrier(*unsaved.records)
        except StoreFailed:
            self.services.unsaved.setdefault(self.state.conversation.id, unsaved)
            raise

    async def _take_arrivals(self) -> None:
        """Apply the inbox rows that arrived since the last look."""
        self.state.woken = False  # reset first, so that later arrivals set it again
        conversation = self.state.lease.conversation
        await self._absorb(await self.services.store.arrivals(conversation, self.state.seen))

    async def _absorb(self, rows: Iterable[InboxRow]) -> None:
        """Handle inbox rows in order; `seen` moves on once a row is handled or left queued."""
        self.state.occupied = True
        try:
            late, self.state.late = self.state.late, []
            for row in late:
                await take_row(self.state, row, self._intake.take)
            await self._absorb_each(rows)
        finally:
            self.state.occupied = False

    async def _absorb_each(self, rows: Iterable[InboxRow]) -> None:
        for row in rows:
            if row.seq <= self.state.seen or self.state.ended is not None:
                continue
            await take_row(self.state, row, self._intake.take)
            self.state.seen = max(self.state.seen, row.seq)

    async def _after_crash(self) -> None:
        """Count holders that ended without progress, and give up on work that ends them each
        time."""
        if not self._opened.crashed and not self._failures:
            return
        crashes = self.state.row.crashes + 1
        running = [turn for turn in self.state.turns.values() if turn.status == "running"]
        if running:
            resumed = replace(running[0], resumes=running[0].resumes + 1)
            self.state.turns[resumed.id] = resumed
            self.state.submit(Changes(turns=(resumed,)))
            if resumed.resumes >= self.services.give_up_after:
                text = say("dead", resumed.language, n=resumed.resumes)
                why = f"ended its process {resumed.resumes} times"
                end_as_dead_letter(self.context, await self.open(resumed.id), "dead", text, why)
        elif self.state.queue:
            self.state.row = replace(self.state.row, crashes=crashes)
            self.state.submit(Changes(row=self.state.row))
            if crashes >= self.services.give_up_after:
                why = f"ended its process {crashes} times"
                row = self.state.queue.popleft()
                rows = self._intake.with_edits(row.seq)
                give_up_message(self.state, row, rows, "dead", why, n=crashes)
                self.state.row = replace(self.state.row, crashes=0)

    async def _let_go(self) -> bool:
        """Release once everything is delivered; False if something came in."""
        while not self.state.woken and self.state.ended is None:
            own = self.state.release_under_way is None
            if own and self.state.outbox.idle:
                self.state.release_under_way = self.state.release(Changes())
            if self.state.release_under_way is None:
                self.state.changed.clear()
                await self.state.changed.wait()
                continue
            releasing, self.state.release_under_way = self.state.release_under_way, None
            if await releasing:
                return True
            if own and not self.state.woken:
                await self._on_refused()
            self.state.woken = True
        if self.state.release_under_way is not None:
            releasing, self.state.release_under_way = self.state.release_under_way, None
            return await releasing
        return False

    async def _on_refused(self) -> None:
        """The store sees work: a row just came in, or memory and store differ."""
        newer = await self.services.store.arrivals(self.state.lease.conversation, self.state.seen)
        if not newer:
            log.error("release_refused", extra={"conversation": self.state.conversation.id})
            self.state.end(Drained(), "the store holds work that this session does not know")

    async def _give_back(self) -> None:
        try:
            await self.services.store.give_back(self.state.lease)
        except StoreFailed as error:
            log.error("not_given_back", extra={"why": str(error)})

    # ---- the lane ------------------------------------------------------------------------

    async def _next_turn(self) -> OpenTurn | None:
        """The turn to run now: one that was answered or cut off, else the next message's."""
        for turn in list(self.state.turns.values()):
            if turn.status == "running":
                with suppress(Unreadable):
                    return await self.open(turn.id)
        self.state.occupied = True  # the message being handled is no longer in the queue
        try:
            first = self.state.queue.put_next_first()
            handler = self._features.begins.get(type(first.inbound)) if first else None
            if first is None or handler is None:
                return await self._intake.begin()
            return await handler.begin(self.context, first, first.inbound)
        finally:
            self.state.occupied = False

    async def open(self, turn_id: str) -> OpenTurn:
        """The turn with its records and views, from memory or from the store."""
        known = self.state.loaded.get(turn_id)
        if known is not None:
            return known
        await self.state.flush()
        row = self.state.turns[turn_id]
        try:
            records = await self.services.store.records(turn_id)
        except Unreadable as error:
            self._end_unread_turn(row, str(error))
            raise
        await self.state.load_views(turn_id)
        open_turn = OpenTurn(row, read_brief(records), self.fold(row), records, self._write)
        open_turn.stored = True
        self.state.loaded[turn_id] = open_turn
        reopen_questions(self.state, open_turn)
        return open_turn

    def fold(self, row: TurnRow) -> ViewFold:
        """An empty fold for a turn's views."""
        if (fired := self._find_fired(row)) is not None:
            return fired.fold(row, self._features.events)
        own = self.state.adapter.abilities.own_messages
        return ViewFold(
            turn=row.id,
            private=self.state.conversation.private,
            asker=row.sender_name,
            language=row.language,
            said=not own,
            events=self._features.events,
        )

    async def start(
        self,
        row: TurnRow,
        asked: TurnInput,
        done: tuple[int, ...],
        *,
        rows: Sequence[InboxRow] = (),
        prepare: Callable[[], None] | None = None,
    ) -> OpenTurn:
        """Make a new turn; it enters the store with its first commit."""
        await self.history.rows()
        self.state.along += await self.state.retire_offer()
        additions = [await read(self.context, row) for read in self._features.on_begin]
        if prepare is not None:
            prepare()
        row = replace(row, history=self.state.row.shows)
        settings = self.state.row.settings.apply_terms(row.firing)
        brief = self.services.agent.brief(self.state.conversation, settings, asked.text)
        shows = self.state.adapter.abilities.own_messages
        brief = asked.fill(brief, shows)
        brief = name_retry(brief, asked.retry, row.language)
        seen = await self.history.rows()
        for add in filter(None, additions):
            brief = add(brief, seen, asked)
        open_turn = OpenTurn(row, brief, self.fold(row), (), self._write)
        open_turn.done = done
        self.state.turns[row.id] = row
        self.state.loaded[row.id] = open_turn
        open_turn.journal.defer(note_brief(brief))
        open_turn.note_rows(rows, asked.rows)
        if not shows or asked.fetched:
            await open_turn.journal.barrier()
        return open_turn

    async def _run_turn(self, open_turn: OpenTurn) -> None:
        """Run the turn until it ends, parks or is stopped, applying new inbox rows meanwhile."""
        open_turn.journal.rewind()
        turn = Turn(
            open_turn.id,
            open_turn.journal,
            SessionTurnHost(self.state, open_turn, self._intake.take_steers),
            open_turn.brief.max_turns,
            self.state.lease_timer.permit,
        )
        open_turn.turn, open_turn.outcome, open_turn.words = turn, None, ""
        history = await self.history.read_start(open_turn)
        if self.state.ended is not None:
            return  # the turn was not active, so it was not notified
        self.state.active = open_turn
        show_work(self.state, open_turn)
        self.services.spawn(partial(self._drive, open_turn, turn, history), f"turn:{open_turn.id}")
        patience: float | None = None
        while open_turn.outcome is None:
            self.state.changed.clear()
            if self.state.woken and self.state.ended is None:
                await self._take_arrivals()
                continue
            if turn.dead is not None and not isinstance(turn.dead, Parked):
                patience = patience or ambient.monotonic() + self.services.cancel_patience
                if not await self.state.wait_change(patience):
                    log.error("turn_abandoned", extra={"turn": open_turn.id})
                    break
            else:
                await self.state.changed.wait()
        self.state.active = None
        await self._settle(open_turn, turn)

    async def _drive(self, open_turn: OpenTurn, turn: Turn, history: tuple[Message, ...]) -> None:
        """Run the turn's code as a task. The first reason for suspending decides, never the
        exception that comes out."""
        open_turn.task = asyncio.current_task()
        agent = self.services.agent
        hands = agent.hands(TurnContext(self.state, open_turn))
        fired = self._find_fired(open_turn.row)

        async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
            if fired is not None:
                return await fired.code(agent, open_turn, hands)(scope, history, past)
            return await agent.code(scope, open_turn.brief, hands, history, past)

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
            if not refused:  # temporary: the turn continues in the next session
                self.state.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
        except Exception as error:
            passes = self.services.shortages.should_retry(open_turn.id, error)
            open_turn.outcome = turn.dead or (Drained() if passes else error)
            if passes:  # like a commit that the store refuses for now
                self.state.end(Drained(), repr(error))
            elif turn.dead is None:
                log.exception("turn_failed", extra={"turn": open_turn.id})
        finally:
            self.state.changed.set()

    def _finish(self, open_turn: OpenTurn, result: TurnResult) -> Awaitable[None]:
        """Queue the final commit without awaiting anything: a stop that comes now is too late."""
        open_turn.ending = settle_messages(result.messages)
        open_turn.seen = settle_messages(result.seen)
        record = Finished(key="finished", text=result.text, finish=result.finish)
        return open_turn.journal.barrier(record)

    async def _settle(self, open_turn: OpenTurn, turn: Turn) -> None:
        """Settle the turn after its task ended or was abandoned."""
        outcome = open_turn.outcome
        if self.state.ended is not None:
            return
        if isinstance(outcome, Parked) and not open_turn.closed:
            self._park(open_turn, turn)
            await self._limit_parked()
        elif isinstance(outcome, Exception) and not open_turn.closed:
            text = say("bug", open_turn.row.language, id=open_turn.id)
            end_as_dead_letter(
                self.context, open_turn, "error", text, f"{type(outcome).__name__}: {outcome}"
            )
            self.services.count("turns_failed")
        if open_turn.closed or open_turn.give_back_rows(self.state.queue):
            self.drop(open_turn)

    def _park(self, open_turn: OpenTurn, turn: Turn) -> None:
        """Give the lane back, unless an answer came in the very moment of parking."""
        journal = open_turn.journal
        if any(journal.find(f"{key}#answer", Answered) for key in turn.waiting):
            self.state.turns[open_turn.id] = open_turn.row
            return
        self.state.loaded.pop(open_turn.id, None)
        self.state.queue.extendleft(reversed(self._intake.take_changes(open_turn)))
        open_turn.row = replace(open_turn.row, status="parked")
        self.state.turns[open_turn.id] = open_turn.row
        self.state.submit(Changes(turns=(open_turn.row,)))
        self.state.outbox.forget(open_turn.id)

    async def _limit_parked(self) -> None:
        """Too many turns wait for people here: the oldest ones end, and say so."""
        most, turns = self.services.most_parked, self.state.turns.values()
        parked = sorted((t for t in turns if t.status == "parked"), key=lambda turn: turn.begun)
        self.state.occupied = True
        try:
            for row in parked[: max(0, len(parked) - most)]:
                end = Stopped(
                    key="stopped", reason="stop", text=say("too_many", row.language, n=most)
                )
                self.close(await self.open(row.id), end)
        finally:
            self.state.occupied = False

    def close(self, open_turn: OpenTurn, record: Stopped, done: tuple[int, ...] = ()) -> None:
        """End the turn from outside with one commit: its views and questions are closed, its
        facts join the transcript. `done`: inbox rows that this answers."""
        if not record.partial and open_turn.words:
            record = replace(record, partial=open_turn.words)
        open_turn.done += done
        open_turn.ending = open_turn.messages_when_stopped()
        if open_turn.turn is not None:
            open_turn.turn.suspend(Cancelled())
        open_turn.journal.put(record)
        if open_turn.task is not None and self.state.active is open_turn:
            open_turn.task.cancel()
        self.state.outbox.hush()
        if self.state.active is not open_turn:
            self.drop(open_turn)

    def _note_end(self, row: TurnRow) -> None:
        """Notify the agent and the features of the turn's end."""
        self.services.agent.end_turn(row.id)
        for hook in self._features.on_end:
            hook(self.context, row)

    def _find_fired(self, row: TurnRow) -> FiredTurns | None:
        """Return the handler of the turn if a due time began it."""
        return self._features.fired if row.firing is not None else None

    def _end_unread_turn(self, row: TurnRow, why: str) -> None:
        end_unread_turn(self.state, row, why)
        self._note_end(row)

    def drop(self, open_turn: OpenTurn) -> None:
        """Release the finished turn from memory, except for what is still to be sent."""
        self.state.turns.pop(open_turn.id, None)
        self.state.loaded.pop(open_turn.id, None)
        if open_turn.changes:  # too late for this turn: treated as edits of answered messages
            self.state.late += open_turn.changes
            self.state.woken = True
            self.state.changed.set()
        for question in [q for q in self.state.questions.values() if q.turn == open_turn.id]:
            del self.state.questions[question.id]
        self.state.outbox.forget(open_turn.id)
        self._note_end(open_turn.row)

    # ---- what features ask of the turns --------------------------------------------------

    async def begin_next(self, change: Change | None = None) -> OpenTurn | None:
        """Begin a turn with the message that has waited longest."""
        return await self._intake.begin(change)

    async def may_stop(self, sender: Sender) -> bool:
        """Return True if the sender may end the running and waiting work."""
        return await self._intake.may_stop(sender)

    async def stop(self, sender: Sender, reason: str, done: tuple[int, ...]) -> bool:
        """End the running turn; False if none runs."""
        return await self._intake.stop(sender, reason, done)

    async def stop_parked(self, sender: Sender) -> int:
        """End all parked turns; how many."""
        return await self._intake.stop_parked(sender)

    async def stop_waiting_scripts(self, sender: Sender) -> int:
        """End the parked turns whose scripts wait in this process; return how many."""
        return await self._intake.stop_waiting_scripts(sender)
