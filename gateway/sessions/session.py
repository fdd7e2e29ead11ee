"""One conversation while it has work: its lease, its lane of turns, its commits.

One turn at a time, in order of arrival. Everything that a person does enters as an inbox row
(`intake`); every change leaves as one fenced commit; what people see follows from the commits.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Iterable
from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.context.transcript import settled
from agent_core.errors import Cancelled, Drained, LeaseLost, Parked, Suspend
from agent_core.events import AgentEvent, OutputAdded, TextRestarted, TokenAdded
from agent_core.journal import Answered, Finished, Record, Replied, Steered, Stopped
from agent_core.messages import Message
from agent_core.orchestration.drive import drive
from agent_core.orchestration.executor import Result
from agent_core.scope import Scope, Turn
from gateway.errors import Fenced, StoreFailed
from gateway.messages import Conversation
from gateway.ports import Growing
from gateway.present import Fold
from gateway.sessions.intake import Intake
from gateway.sessions.outbox import Key, Outbox
from gateway.sessions.services import Services
from gateway.sessions.turns import OpenTurn, began, read_brief
from gateway.store.rows import (
    AuditRow,
    Changes,
    ConversationRow,
    ConversationSettings,
    InboxRow,
    Opened,
    OutboxRow,
    QuestionRow,
    RecordRow,
    TurnRow,
    shown,
)
from gateway.texts import say
from gateway.views import Notice, Reply, Tone, View

log = logging.getLogger("turnkeeper.session")

NoticeState = Literal["done", "dead", "kept"]
MOST_HISTORY = 240_000
"""Characters of transcript that a turn begins with; beyond it the older half is left behind."""


class Session:
    """Runs one conversation under its lease until nothing is left to do."""

    def __init__(self, services: Services, conversation: Conversation, opened: Opened) -> None:
        self.services = services
        self.conversation = conversation
        self.lease = opened.lease
        self.row: ConversationRow = opened.row
        self.queue: deque[InboxRow] = deque()
        self.turns: dict[str, TurnRow] = {turn.id: turn for turn in opened.turns}
        self.loaded: dict[str, OpenTurn] = {}
        self.questions: dict[str, QuestionRow] = {q.id: q for q in opened.questions}
        self.active: OpenTurn | None = None
        self.seen = 0
        self.language = ""
        self.ended: Suspend | None = None
        self.woken = False
        self.deadline = ambient.monotonic() + services.ttl
        self.adapter = services.adapters[conversation.platform]
        self.outbox = Outbox(conversation, self.adapter, services.gate(conversation.platform), self)
        self._opened = opened
        self._intake = Intake(self)
        self._event = asyncio.Event()
        self._releasing: asyncio.Future[bool] | None = None
        self._last: asyncio.Future[None] | None = None
        self._absorbing = False
        self._history: list[tuple[Message, ...]] | None = None

    # ---- life ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until the conversation is released, lost or drained."""
        sender = asyncio.Event()

        async def send() -> None:
            try:
                await self.outbox.run()
            finally:
                sender.set()
                self._event.set()

        self.services.spawn(send(), f"outbox:{self.conversation.id}")
        try:
            await self._serve()
        except (StoreFailed, Fenced) as error:
            self.end(LeaseLost() if isinstance(error, Fenced) else Drained(), str(error))
        finally:
            self.outbox.stop()
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
            elif await self._let_go():
                return

    async def _absorb(self, rows: Iterable[InboxRow]) -> None:
        """Handle inbox rows in order; `seen` moves on once a row is handled or left queued."""
        self._absorbing = True
        try:
            await self._absorb_each(rows)
        finally:
            self._absorbing = False

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
                poison = self.queue.popleft()
                self.notice(
                    poison.seq, say("dead", self.language, n=crashes), "error", state="dead"
                )
                self.row = replace(self.row, crashes=0)

    def wake(self) -> None:
        """Something may have come in."""
        self.woken = True
        self._event.set()

    def end(self, reason: Suspend, why: str = "") -> None:
        """Stop everything: nothing is written and nothing is sent from now on."""
        if self.ended is not None:
            return
        self.ended = reason
        log.warning(
            "session_ended",
            extra={
                "conversation": self.conversation.id,
                "reason": type(reason).__name__,
                "why": why,
            },
        )
        self.outbox.stop()
        if self.active is not None and self.active.turn is not None:
            self.active.turn.suspend(reason)
            if self.active.task is not None:
                self.active.task.cancel()
        self._event.set()

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

    def _release(self, changes: Changes) -> "asyncio.Future[bool]":
        dirty = self.outbox.take_dirty()
        changes = replace(changes, views=(*changes.views, *dirty))
        future = self.services.store.release(self.lease, self.seen, changes)
        future.add_done_callback(self._submitted)
        return future

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
        return await self._intake.begin()

    async def open_turn(self, turn_id: str) -> OpenTurn:
        """The turn with its records and views, from memory or from the store."""
        known = self.loaded.get(turn_id)
        if known is not None:
            return known
        if self._last is not None:
            await asyncio.wait([self._last])  # what is queued must be seen
        row = self.turns[turn_id]
        records = await self.services.store.records(turn_id)
        self.outbox.load(await self.services.store.outbox(turn_id))
        open_turn = OpenTurn(row, read_brief(records), self.fold(row), records, self._write)
        open_turn.stored = True
        self.loaded[turn_id] = open_turn
        return open_turn

    def fold(self, row: TurnRow) -> Fold:
        """An empty fold for a turn's views."""
        own = self.adapter.abilities.own_messages
        return Fold(asker=row.sender_name, language=row.language, said=not own)

    async def start(self, row: TurnRow, text: str, done: tuple[int, ...]) -> OpenTurn:
        """A new turn; it enters the store with its first commit."""
        await self.history()
        row = replace(row, history=(self.row.head, self.row.end))
        brief = self.services.agent.brief(self.conversation, self.row.settings, text)
        open_turn = OpenTurn(row, brief, self.fold(row), (), self._write)
        open_turn.done = done
        self.turns[row.id] = row
        self.loaded[row.id] = open_turn
        if self.adapter.abilities.own_messages:
            open_turn.journal.defer(began(brief))
        else:
            await open_turn.journal.barrier(began(brief))
        return open_turn

    async def _run_turn(self, open_turn: OpenTurn) -> None:
        """Run the turn to its end, its park or its stop, taking in what comes meanwhile."""
        open_turn.journal.rewind()
        turn = Turn(open_turn.id, open_turn.journal, _Company(self, open_turn))
        open_turn.turn, open_turn.outcome, open_turn.words = turn, None, ""
        history = await self._history_of(open_turn)
        self.active = open_turn
        self.services.spawn(self._drive(open_turn, turn, history), f"turn:{open_turn.id}")
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
        hands = self.services.agent.hands(_Circumstances(self, open_turn))

        async def code(scope: Scope, past: tuple[Message, ...]) -> Result:
            return await self.services.agent.code(scope, open_turn.brief, hands, history, past)

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
        record = Finished(key="finished", text=result.text, finish=result.finish)
        return open_turn.journal.put(record)

    async def _settle(self, open_turn: OpenTurn, turn: Turn) -> None:
        """After the turn's task has ended, or was abandoned."""
        outcome = open_turn.outcome
        if self.ended is not None:
            return
        if isinstance(outcome, Parked) and not open_turn.closed:
            self._park(open_turn, turn)
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
        open_turn.row = replace(open_turn.row, status="parked")
        self.turns[open_turn.id] = open_turn.row
        self.submit(Changes(turns=(open_turn.row,)))
        self.outbox.forget(open_turn.id)

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
        n = open_turn.row.resumes
        self.services.count("turns_dead")
        log.error("turn_dead", extra={"turn": open_turn.id, "resumes": n})
        text = say("dead", open_turn.row.language, n=n)
        self.close_turn(open_turn, Stopped(key="stopped", reason="dead", text=text))

    def drop(self, open_turn: OpenTurn) -> None:
        """The turn is over: nothing of it stays in memory but what is still to be sent."""
        self.turns.pop(open_turn.id, None)
        self.loaded.pop(open_turn.id, None)
        self.queue.extendleft(reversed(open_turn.steers))
        for question in [q for q in self.questions.values() if q.turn == open_turn.id]:
            del self.questions[question.id]
        self.outbox.forget(open_turn.id)

    # ---- history -------------------------------------------------------------------------

    async def history(self) -> list[tuple[Message, ...]]:
        """The transcript from `head` on, a tuple a turn; cut at a turn's border when too long."""
        if self._history is None:
            self._history = list(
                await self.services.store.transcript(
                    self.lease.conversation, self.row.head, self.row.end
                )
            )
        if len(self._history) > 40 and _size(self._history) > MOST_HISTORY:
            while _size(self._history) > MOST_HISTORY // 2 and len(self._history) > 1:
                del self._history[: max(1, len(self._history) // 8)]
            self.row = replace(self.row, head=self.row.end - len(self._history))
        return self._history

    async def _history_of(self, open_turn: OpenTurn) -> tuple[Message, ...]:
        start, end = open_turn.row.history
        if (start, end) == (self.row.head, self.row.end):
            rows: Iterable[tuple[Message, ...]] = await self.history()
        else:
            rows = await self.services.store.transcript(self.lease.conversation, start, end)
        return tuple(message for row in rows for message in row)

    def forget_history(self) -> None:
        """/new: the transcript begins anew; rules for this conversation end."""
        kept = tuple(rule for rule in self.row.settings.rules if rule.lasting)
        settings = replace(self.row.settings, rules=kept)
        self.row = replace(self.row, head=self.row.end, settings=settings)
        self._history = []

    # ---- commits -------------------------------------------------------------------------

    def submit(self, changes: Changes) -> "asyncio.Future[None]":
        """Queue one commit in this very step. A failed one ends the session."""
        if self.ended is not None:
            raise StoreFailed("the session has ended")
        dirty = self.outbox.take_dirty()
        if dirty:
            named = {(view.turn, view.name) for view in changes.views}
            more = tuple(row for row in dirty if (row.turn, row.name) not in named)
            changes = replace(changes, views=(*changes.views, *more))
        future = self._last = self.services.store.submit(self.lease, changes)
        future.add_done_callback(self._submitted)
        return future

    def _submitted(self, future: "asyncio.Future[None] | asyncio.Future[bool]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, Fenced):
            self.end(LeaseLost(), str(error))
        elif error is not None:
            self.services.count("commits_failed")
            self.end(Drained(), str(error))
        self._event.set()

    def _write(self, open_turn: OpenTurn, records: tuple[Record, ...]) -> Awaitable[None]:
        """One commit of a turn's records and all that follows from them."""
        names = dict.fromkeys(name for record in records for name in open_turn.fold.add(record))
        rows = tuple(self._view_row(open_turn, name) for name in names)
        start, open_turn.count = open_turn.count, open_turn.count + len(records)
        done = open_turn.done
        open_turn.done = ()
        for record in records:
            if isinstance(record, Steered):
                done += record.rows
            elif isinstance(record, Replied) and record.reply.finish == "tool_calls":
                open_turn.words = ""
        row = open_turn.advance(records)
        entry = open_turn.transcript_row(self.row.end) if open_turn.closed else None
        if entry is not None:
            self.row = replace(self.row, end=self.row.end + 1)
            if self._history is not None:
                self._history.append(entry.messages)
        if row is not None:
            self.turns[row.id] = row
        if self.row.crashes:
            self.row = replace(self.row, crashes=0)
        changes = Changes(
            turns=(row,) if row is not None else (),
            records=tuple(
                RecordRow(turn=open_turn.id, n=start + n, record=record)
                for n, record in enumerate(records)
            ),
            done=done,
            views=rows,
            questions=self._intake.questions_of(open_turn, records),
            transcript=(entry,) if entry is not None else (),
            row=self.row if rows or entry is not None else None,
            audit=self._intake.audit_of(open_turn, records),
        )
        future = self.submit(changes)
        self._show_when_stands(future, rows)
        return future

    def _view_row(self, open_turn: OpenTurn, name: str) -> OutboxRow:
        shape = open_turn.fold.shapes[name]
        return self.want(open_turn.id, name, shape.view, shape.version, final=shape.final)

    def want(self, turn: str, name: str, view: View, version: int, *, final: bool) -> OutboxRow:
        """A view as it shall be; the row to commit."""
        key: Key = (turn, name)
        new = key not in self.outbox.rows
        self.row = replace(
            self.row, rev=self.row.rev + 1, position=self.row.position + (1 if new else 0)
        )
        return self.outbox.want(
            OutboxRow(
                turn=turn,
                name=name,
                position=self.row.position,
                version=version,
                view=view,
                at=ambient.now(),
                final=final,
                rev=self.row.rev,
            )
        )

    def _show_when_stands(
        self, future: "asyncio.Future[None]", rows: tuple[OutboxRow, ...]
    ) -> None:
        def stands(done: "asyncio.Future[None]") -> None:
            if done.cancelled() or done.exception() is not None:
                return
            self.outbox.stands(rows)
            if self.services.feed.watched(self.conversation.id):
                for row in rows:
                    self.services.feed.publish(self.conversation.id, shown(row))

        if rows:
            future.add_done_callback(stands)

    def preview(self, key: Key) -> OutboxRow:
        self.row = replace(self.row, position=self.row.position + 1)
        return OutboxRow(
            turn=key[0],
            name=key[1],
            position=self.row.position,
            version=0,
            view=Reply(text="", state="streaming"),
            at=ambient.now(),
            rev=self.row.rev,
        )

    def notice(
        self, seq: int, text: str, tone: Tone = "info", *, state: NoticeState = "done",
        also: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        """A word of the gateway's own about inbox row `seq`. `state`: what becomes of the row;
        `also`: rows that are done with it."""
        name = "receipt" if state == "kept" else "notice"
        row = self.want(f"row-{seq}", name, Notice(text=text, tone=tone), 1, final=True)
        future = self.submit(
            Changes(
                done=(*also, seq) if state == "done" else also,
                dead=(seq,) if state == "dead" else (),
                views=(row,),
                row=self.row,
            )
        )
        self._show_when_stands(future, (row,))

    def configure(self, settings: ConversationSettings) -> None:
        """The conversation's settings from the next commit on."""
        self.row = replace(self.row, settings=settings)

    def audit(self, who: str, what: str, detail: str) -> AuditRow:
        """A line for the audit, as of now."""
        return AuditRow(at=ambient.now(), who=who, what=what, detail=detail)

    # ---- what the outbox asks of its holder ----------------------------------------------

    def keep(self, changes: Changes) -> Awaitable[object]:
        if self._quiet() and all(row.sending < 0 for row in changes.views):
            self._releasing = self._release(changes)
            self._event.set()
            return self._releasing
        return self.submit(changes)

    def _quiet(self) -> bool:
        """Nothing is left to do once this commit stands."""
        if self.active is not None or self.woken or self._absorbing or self._releasing is not None:
            return False
        running = any(turn.status == "running" for turn in self.turns.values())
        return not running and not self.queue and not self.outbox.remaining

    def may_send(self, seconds: float) -> bool:
        return self.ended is None and self.deadline - ambient.monotonic() > seconds

    def refused(self, key: Key, why: str) -> None:
        row = self.outbox.rows.get(key)
        self.services.count("views_refused")
        if row is not None and not isinstance(row.view, Notice) and self.ended is None:
            self.notice(
                self.seen, say("view_failed", self.language, why=why), "error", state="kept"
            )

    def settled(self) -> None:
        self._event.set()


class _Company:
    """The session as the turn's scope sees it."""

    def __init__(self, session: Session, open_turn: OpenTurn) -> None:
        self._session = session
        self._open = open_turn

    def live(self, event: AgentEvent) -> None:
        session, open_turn = self._session, self._open
        if isinstance(event, TokenAdded):
            open_turn.words += event.text
        elif isinstance(event, TextRestarted):
            open_turn.words = ""
        else:
            return
        key = (open_turn.id, "reply")
        if session.adapter.abilities.reads_views:
            growing = Growing(turn=open_turn.id, text=open_turn.words)
            session.services.feed.publish(session.conversation.id, growing)
        elif open_turn.words:
            session.outbox.grow(key, open_turn.words)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return self._session._intake.take_steers(self._open)


class _Circumstances:
    """The session as the policy sees it."""

    def __init__(self, session: Session, open_turn: OpenTurn) -> None:
        self._session = session
        self._open = open_turn
        self.conversation = session.conversation

    def settings(self) -> ConversationSettings:
        return self._session.row.settings

    def asker(self) -> tuple[str, str]:
        return self._open.row.sender, self._open.row.role

    def output(self, event: OutputAdded) -> None:
        return None


def _size(rows: list[tuple[Message, ...]]) -> int:
    return sum(
        len(getattr(part, "text", "") or getattr(part, "content", ""))
        for row in rows
        for message in row
        for part in message.parts
    )
