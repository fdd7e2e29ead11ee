"""What a session holds of its conversation, and how changes leave: as fenced commits.

A change is queued in the very step in which it is decided; what people see follows when its
commit stands. A failed commit ends everything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import Drained, LeaseLost, Suspend
from agent_core.journal import Record, Replied, Steered
from gateway.delivery.holder import Key
from gateway.delivery.outbox import Outbox
from gateway.errors import Fenced, StoreFailed
from gateway.history.thread import History
from gateway.messages import Conversation
from gateway.ports import Changed, Growing
from gateway.sessions.decisions import Decisions
from gateway.sessions.services import Services
from gateway.sessions.turns import OpenTurn
from gateway.spending.tally import counted
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


class Commits:
    """One conversation's rows in memory and its commits. `Session` runs turns on top."""

    decisions: Decisions

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
        gate, pace = services.gate(conversation.platform), services.pace(conversation)
        self.outbox = Outbox(conversation, self.adapter, gate, pace, self)
        self.outbox.pause(self.row.quiet_until - ambient.now())
        self._event = asyncio.Event()
        self._releasing: asyncio.Future[bool] | None = None
        self._last: asyncio.Future[None] | None = None
        self._occupied = False
        self.along: tuple[OutboxRow, ...] = ()
        """Earlier views that the first commit of the next turn changes."""
        self.history = History(self)

    @property
    def releasing(self) -> bool:
        """A release is on its way."""
        return self._releasing is not None

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
        changes = self.history.take(changes)
        future = self._last = self.services.store.submit(self.lease, changes)
        future.add_done_callback(self._submitted)
        if nearest := min((row.due for row in changes.questions if row.due), default=0.0):
            # not before it stands: who looks then finds it
            future.add_done_callback(lambda stands: self.services.alarm(nearest))
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
        else:
            self.services.feed.publish(self.conversation.id, Changed())
        self._event.set()

    def _write(self, open_turn: OpenTurn, records: tuple[Record, ...]) -> Awaitable[None]:
        """One commit of a turn's records and all that follows from them."""
        names = dict.fromkeys(name for record in records for name in open_turn.fold.add(record))
        rows = tuple(self._view_row(open_turn, name) for name in names)
        if not open_turn.stored:
            rows, self.along = (*self.along, *rows), ()
        start, open_turn.count = open_turn.count, open_turn.count + len(records)
        done, spent = open_turn.done, None
        open_turn.done = ()
        for record in records:
            if isinstance(record, Replied) and record.reply.model:  # a model was asked
                spent = counted(self.row.spent, open_turn.id, record.reply.usage)
                self.row = replace(self.row, spent=spent)
            if isinstance(record, Steered):
                done += record.rows
            elif isinstance(record, Replied) and record.reply.finish == "tool_calls":
                open_turn.words = ""
                self.services.feed.publish(
                    self.conversation.id, Growing(turn=open_turn.id, text="")
                )
        row = open_turn.advance(records)
        if open_turn.closed:
            self.history.ended(open_turn)
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
            questions=self.decisions.questions_of(open_turn, records),
            row=self.row if rows or spent is not None else None,
            audit=self.decisions.audit_of(open_turn, records),
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

    async def redrawn(
        self, turn: str, name: str, change: Callable[[View], View]
    ) -> tuple[OutboxRow, ...]:
        """A view that is over, in its messages, as `change` makes it: the row to commit at once.
        () if it is not there, or stays as it is."""
        await self.written()
        self.outbox.load(await self.services.store.outbox(self.lease.conversation, turn))
        known = self.outbox.rows.get((turn, name))
        made: tuple[OutboxRow, ...] = ()
        view = change(known.view) if known is not None else None
        if known is not None and view is not None and view != known.view:
            made = (self.want(turn, name, view, known.version + 1, final=True),)
        self.outbox.forget(turn)
        return made

    async def written(self) -> None:
        """Until what was decided so far stands: what is read now holds it."""
        if self._last is not None:
            await asyncio.wait([self._last])

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
        if self.active is not None and not self.active.stored:
            # the turn must be in the store before a message of it is: a resume edits that one
            self.active.journal.put()
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

    def show(self, changes: Changes) -> None:
        """One commit whose views people see when it stands."""
        self._show_when_stands(self.submit(changes), changes.views)

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
        if self.active is not None or self.woken or self._occupied or self._releasing is not None:
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

    def limited(self, seconds: float) -> None:
        self.row = replace(self.row, quiet_until=ambient.now() + seconds)
        if self.ended is None:
            self.submit(Changes(row=self.row))

    def settled(self) -> None:
        self._event.set()

    def _release(self, changes: Changes) -> "asyncio.Future[bool]":
        dirty = self.outbox.take_dirty()
        changes = replace(changes, views=(*changes.views, *dirty))
        future = self.services.store.release(self.lease, self.seen, changes)
        future.add_done_callback(self._submitted)
        return future
