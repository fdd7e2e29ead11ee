"""What a session holds of its conversation, and how changes leave: as fenced commits.

A change is queued in the very step in which it is decided; what people see follows when its
commit stands. A failed commit ends everything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import Drained, LeaseLost, Suspend
from agent_core.journal import Record, Replied, Steered
from gateway.delivery.holder import Cause, Key
from gateway.delivery.outbox import Outbox
from gateway.errors import Fenced, StoreFailed, Unstorable
from gateway.history.thread import History
from gateway.messages import Conversation
from gateway.ports import Changed, Growing
from gateway.sessions.decisions import Decisions
from gateway.sessions.services import Services
from gateway.sessions.tenure import Tenure
from gateway.sessions.turns import OpenTurn
from gateway.sessions.unsaved import Refused, Unsaved
from gateway.spending.tally import counted
from gateway.store.letters import LONGEST_REASON, letter_id
from gateway.store.rows import (
    AuditRow,
    Changes,
    ConversationRow,
    ConversationSettings,
    InboxRow,
    Letter,
    LetterKind,
    Opened,
    OutboxRow,
    QuestionRow,
    RecordRow,
    TurnRow,
    shown,
)
from gateway.texts import say
from gateway.views import Notice, Reply, Report, Tone, View

log = logging.getLogger("turnkeeper.session")

encode_json = msgspec.json.Encoder().encode
NoticeState = Literal["done", "kept"]
NO_CHANGES = Changes()


class Commits:
    """One conversation's rows in memory and its commits. `Session` runs turns on top."""

    decisions: Decisions

    def on_undeliverable(self, turn: str) -> None:
        """The report of a job's run is refused by its chat."""

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
        self.tenure = Tenure(opened.began, services.ttl, self._renew)
        self.adapter = services.adapters[conversation.platform]
        gate, pace = services.gate(conversation.platform), services.pace(conversation)
        self.outbox = Outbox(conversation, self.adapter, gate, pace, self)
        self.outbox.pause(min(self.row.quiet_until - ambient.now(), self.row.quiet_for))
        self._event = asyncio.Event()
        self._releasing: asyncio.Future[bool] | None = None
        self._last: asyncio.Future[None] | None = None
        self._occupied = False
        self.given_up: set[str] = set()
        """Turns that this session ended because a commit of theirs was refused."""
        self.along: tuple[OutboxRow, ...] = ()
        """Earlier views that the first commit of the next turn changes."""
        self.history = History(self)

    @property
    def releasing(self) -> bool:
        """A release is on its way."""
        return self._releasing is not None

    async def _renew(self) -> bool:
        return bool(await self.services.store.renew([self.lease], self.services.ttl))

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
        self.tenure.end()
        self.outbox.stop()
        self.outbox.abort()
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
        future.add_done_callback(partial(self._submitted, changes))
        if nearest := min((row.due for row in changes.questions if row.due), default=0.0):
            # not before it stands: who looks then finds it
            future.add_done_callback(lambda stands: self.services.alarm(nearest))
        return future

    def _submitted(
        self, changes: Changes, future: "asyncio.Future[None] | asyncio.Future[bool]"
    ) -> None:
        if future.cancelled():
            return
        match future.exception():
            case None:
                self.services.feed.publish(self.conversation.id, Changed())
            case Fenced() as error:
                self.end(LeaseLost(), str(error))
            case Unstorable() as error:
                self.services.count("commits_refused")
                self._note_refused(changes, str(error))
                self.end(Drained(), str(error))
            case error:
                self.services.count("commits_failed")
                self.end(Drained(), str(error))
        self._event.set()

    def _note_refused(self, changes: Changes, why: str) -> None:
        """Later commits of the lease fail because of this one: the first one counts."""
        turn = next((record.turn for record in changes.records), "")
        rows = tuple(changes.done)
        if self.ended is None and (turn or rows):
            refused = Refused(turn=turn, rows=rows, why=why, again=turn in self.given_up)
            self.services.refused[self.conversation.id] = refused

    def _keep_unsaved(
        self, unsaved: Unsaved, records: tuple[Record, ...], future: "asyncio.Future[None]"
    ) -> None:
        """A commit of a turn failed for now: what it held is committed by the next session."""
        error = None if future.cancelled() else future.exception()
        if error is None or isinstance(error, Fenced | Unstorable):
            return
        if self.conversation.id in self.services.refused:
            return
        known = self.services.unsaved.setdefault(self.conversation.id, unsaved)
        if known.turn.id == unsaved.turn.id:
            known.add(records)

    def _write(self, open_turn: OpenTurn, records: tuple[Record, ...]) -> Awaitable[None]:
        """One commit of a turn's records and all that follows from them."""
        names = dict.fromkeys(name for record in records for name in open_turn.fold.add(record))
        rows = tuple(self._view_row(open_turn, name) for name in names)
        if not open_turn.stored:
            rows, self.along = (*self.along, *rows), ()
        start, open_turn.count = open_turn.count, open_turn.count + len(records)
        done, spent = open_turn.done, None
        unsaved = Unsaved(
            turn=open_turn.row, stored=open_turn.stored, count=start, done=done, records=[]
        )
        open_turn.done = ()
        letters, open_turn.letters = open_turn.letters, ()
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
            letters=letters,
            views=rows,
            questions=self.decisions.questions_of(open_turn, records),
            row=self.row if rows or spent is not None else None,
            audit=self.decisions.audit_of(open_turn, records),
        )
        future = self.submit(changes)
        future.add_done_callback(partial(self._keep_unsaved, unsaved, records))
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
        along: Changes = NO_CHANGES,
    ) -> None:  # fmt: skip
        """A word of the gateway's own about inbox row `seq`. `state`: what becomes of the row;
        `along`: what the same commit changes besides."""
        name = "receipt" if state == "kept" else "notice"
        done = (*along.done, seq) if state == "done" else along.done
        self._say((f"row-{seq}", name), Notice(text=text, tone=tone), replace(along, done=done))

    def announce(self, letter: Letter, text: str, tone: Tone = "error") -> None:
        """Set something aside and say so, in one commit."""
        key = (f"aside-{letter.id}", "notice")
        self._say(key, Notice(text=text, tone=tone), Changes(letters=(letter,)))

    def _say(self, key: Key, notice: Notice, along: Changes) -> None:
        row = self.want(*key, notice, 1, final=True)
        self.show(replace(along, views=(*along.views, row), row=self.row))

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
        return self.ended is None and self.tenure.deadline - ambient.monotonic() > seconds

    def count(self, name: str) -> None:
        self.services.count(name)

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None:
        self.services.count(f"views_{cause}")
        if self.ended is not None or isinstance(row.view, Notice):
            return
        if cause == "refused" and not row.natives and isinstance(row.view, Report):
            self.on_undeliverable(row.turn)
        letter = self.letter("view", f"{row.turn} {row.name}", why, encode_json(row), row.turn)
        if cause == "doubt":
            self.announce(letter, say("view_in_doubt", self.language), "warning")
        elif not row.natives:
            self.announce(letter, say("view_failed", self.language, why=why))
        else:  # an older state of it stands in the chat
            self.submit(Changes(letters=(letter,)))

    def letter(
        self, kind: LetterKind, name: str, why: str, payload: bytes, turn: str = ""
    ) -> Letter:
        """A dead letter of this conversation."""
        return Letter(
            id=letter_id(kind, name),
            kind=kind,
            conversation=self.lease.conversation,
            name=name,
            at=ambient.now(),
            why=why[:LONGEST_REASON],
            payload=payload,
            turn=turn,
        )

    def give_up_row(self, row: InboxRow, why: str) -> Letter:
        """The dead letter of an inbox row."""
        self.services.count("rows_dead")
        log.error("row_dead", extra={"conversation": self.conversation.id, "seq": row.seq})
        return self.letter("message", str(row.seq), why, encode_json(row.inbound))

    def limited(self, seconds: float) -> None:
        # a clock that jumps must not make the pause any longer than the platform asked for
        self.row = replace(self.row, quiet_until=ambient.now() + seconds, quiet_for=seconds)
        if self.ended is None:
            self.submit(Changes(row=self.row))

    def settled(self) -> None:
        self._event.set()

    def _release(self, changes: Changes) -> "asyncio.Future[bool]":
        dirty = self.outbox.take_dirty()
        changes = replace(changes, views=(*changes.views, *dirty))
        future = self.services.store.release(self.lease, self.seen, changes)
        future.add_done_callback(partial(self._submitted, changes))
        return future
