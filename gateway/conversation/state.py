"""A conversation's rows in memory, changed only by fenced commits.

A change is queued in the same step in which it is decided; people see its effects when its commit
is stored. A failed commit ends everything.
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
from agent_core.guardrails.redaction import NOTHING
from gateway.access.standing import drop_unheeded
from gateway.conversation.inbox.unshown import tell_unshown
from gateway.conversation.lease_timer import LeaseTimer
from gateway.conversation.outage import ForgottenWork, Unfinished
from gateway.conversation.services import Services
from gateway.conversation.turns import OpenTurn
from gateway.conversation.unsaved import RefusedCommit
from gateway.delivery.holder import Cause, Key
from gateway.delivery.native_messages import distrust_card
from gateway.delivery.outbox import Outbox
from gateway.delivery.retire import drop_buttons
from gateway.errors import DeliveryError, Fenced, StoreFailed, Unstorable
from gateway.messages import Conversation, JobFired, sender_of
from gateway.ports import Changed
from gateway.store.dead_letters import MAX_REASON, letter_id
from gateway.store.rows import (
    AcquiredConversation,
    AuditRow,
    Changes,
    ConversationRow,
    ConversationSettings,
    InboxRow,
    Letter,
    LetterKind,
    OutboxRow,
    QuestionRow,
    Spans,
    TranscriptRow,
    TurnRow,
    find_brought,
    show_row,
)
from gateway.texts import say
from gateway.views import (
    Activity,
    Card,
    Notice,
    ReplyView,
    ReportView,
    SaidView,
    Tone,
    View,
    rewrite_texts,
)

log = logging.getLogger("turnkeeper.session")

encode_json = msgspec.json.Encoder().encode
NoticeState = Literal["done", "kept"]
NO_CHANGES = Changes()
BEGUN = 6
"""Minimum letters of a truncated secret that reveal something."""


class WaitingRows(deque[InboxRow]):
    """Inbox rows that wait for a turn of their own, in order of arrival. People's rows and job runs
    alternate, so that a morning's jobs leave nobody without an answer."""

    _after_run = False

    @property
    def messages(self) -> int:
        """Return the number of rows that are not job runs."""
        return sum(not _is_run(row) for row in self)

    @property
    def last_message(self) -> InboxRow | None:
        """The newest row that is not a job run."""
        return next((row for row in reversed(self) if not _is_run(row)), None)

    def put_next_first(self) -> InboxRow | None:
        """Move the next row to the front and return it; None if the queue is empty. People's rows
        stay together: a run must not separate the parts of one message."""
        runs = [row for row in self if _is_run(row)]
        people = [row for row in self if not _is_run(row)]
        if runs and people:
            due = not self._after_run and runs[0].seq < people[0].seq
            lead = runs[:1] if due else []
            self.clear()
            self.extend((*lead, *people, *runs[len(lead) :]))
        first = self[0] if self else None
        self._after_run = first is not None and _is_run(first)
        return first


def _is_run(row: InboxRow) -> bool:
    return isinstance(row.inbound, JobFired)


class ConversationState:
    """One conversation's rows in memory and its commits; `Session` runs turns on top.
    `on_undeliverable` is called with the row of a report that the chat refuses, and the reason."""

    def __init__(
        self,
        services: Services,
        conversation: Conversation,
        opened: AcquiredConversation,
        on_undeliverable: Callable[[OutboxRow, str], None],
        on_closed: Callable[[str], Awaitable[None]],
    ) -> None:
        self.services = services
        self.conversation = conversation
        self.lease = opened.lease
        self.row: ConversationRow = drop_unheeded(opened.row, conversation.id)
        self.queue = WaitingRows()
        self._forgotten = ForgottenWork(opened) if opened.doubt else None
        self.turns: dict[str, TurnRow] = {turn.id: turn for turn in opened.turns}
        self.loaded: dict[str, OpenTurn] = {}
        self.questions: dict[str, QuestionRow] = {q.id: q for q in opened.questions}
        self.active: OpenTurn | None = None
        self.seen = 0
        self.language = ""
        self.ended: Suspend | None = None
        self.woken = False
        self.lease_timer = LeaseTimer(opened.began, services.ttl, self._renew)
        self.adapter = services.adapters[conversation.platform]
        gate, pace = services.gate(conversation.platform), services.pace(conversation)
        self.outbox = Outbox(conversation, self.adapter, gate, pace, self)
        self.outbox.pause(min(self.row.quiet_until - ambient.now(), self.row.quiet_for))
        self.changed = asyncio.Event()
        """Set when the session must look for something to do."""
        self.release_under_way: asyncio.Future[bool] | None = None
        self.last_commit: asyncio.Future[None] | None = None
        self.late: list[InboxRow] = []
        """Edits and deletions of messages whose turn ended before it was told of them."""
        self.occupied = False
        """True while a row is being handled that is in no queue."""
        self.given_up: set[str] = set()
        """Turns that this session ended because a commit of theirs was refused."""
        self.along: tuple[OutboxRow, ...] = ()
        """Earlier views that the first commit of the next turn changes."""
        self._on_undeliverable = on_undeliverable
        self._on_closed = on_closed
        self._staged: tuple[TranscriptRow, ...] = ()
        self._audited = opened.row.audited
        self._noted: tuple[AuditRow, ...] = ()

    @property
    def releasing(self) -> bool:
        """A release is on its way."""
        return self.release_under_way is not None

    async def _renew(self) -> bool:
        return bool(await self.services.store.renew([self.lease], self.services.ttl))

    async def watch_lease(self) -> None:
        """End the session once its lease could not be renewed in time."""
        if not await self.lease_timer.watch():
            self.end(LeaseLost(), "not renewed in time")

    async def permit_call(self) -> None:
        """Wait until a call outside of a turn may begin; StoreFailed if the session has ended."""
        await self.lease_timer.permit()
        if self.ended is not None:
            raise StoreFailed("the session has ended")

    def wake(self) -> None:
        """Tell the session that new rows may have arrived."""
        self.woken = True
        self.changed.set()

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
        self.lease_timer.end()
        self.outbox.stop()
        self.outbox.abort()
        if self.active is not None and self.active.turn is not None:
            self.active.turn.suspend(reason)
            if self.active.task is not None:
                self.active.task.cancel()
        self.changed.set()

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
        changes = self._sign_audit(self._take_staged(changes))
        future = self.last_commit = self.services.store.submit(self.lease, changes)
        future.add_done_callback(partial(self._on_submitted, changes))
        if nearest := min((row.due for row in changes.questions if row.due), default=0.0):
            # only after the commit: readers find it then
            future.add_done_callback(lambda stands: self.services.alarm(nearest))
        return future

    def _on_submitted(
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
        self.changed.set()

    def _note_refused(self, changes: Changes, why: str) -> None:
        """Later commits of the lease fail because of this one: the first one counts."""
        turn = next((record.turn for record in changes.records), "")
        rows = tuple(changes.done)
        if self.ended is None and (turn or rows):
            refused = RefusedCommit(turn=turn, rows=rows, why=why, again=turn in self.given_up)
            self.services.refused[self.conversation.id] = refused

    def want(self, turn: str, name: str, view: View, version: int, *, final: bool) -> OutboxRow:
        """A view as it shall be; the row to commit. No text in it has a secret."""
        key: Key = (turn, name)
        view = self._hide_secrets(view)
        known = self.outbox.rows.get(key)
        self.row = self.row.count_view(ambient.now(), new=known is None)
        if isinstance(view, Notice | Activity) and any(one.token for one in view.buttons):
            self.row = replace(self.row, offered=key)
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
                answers=known.answers if known is not None else self._find_asked(turn, view),
                language=self.turns[turn].language if turn in self.turns else self.language,
            )
        )

    def _hide_secrets(self, view: View) -> View:
        """Redact secrets in a view, also the beginning of one where a text is cut off. A person's
        own message stays as it is; answers and calls are redacted already, and are drawn often."""
        if not isinstance(view, SaidView | ReplyView | Activity):
            words = self.services.find_redactions()
        else:
            words = self.services.vault.words() if self.services.vault is not None else NOTHING

        def hide(text: str) -> str:
            shown, begun = words.part(text[:-1]) if text.endswith("…") else (words.hide(text), "")
            return shown if text[-1:] != "…" else f"{shown}{'' if len(begun) >= BEGUN else begun}…"

        return view if words.empty else rewrite_texts(view, hide)

    def _find_asked(self, turn: str, view: View) -> str:
        """Return the message that a new view replies to in a group: for the turn's first view, its
        answer, and its questions, as others may have spoken in between."""
        row = self.turns.get(turn)
        if row is None or self.conversation.private or not self.adapter.abilities.replies:
            return ""
        first = not self.outbox.holds(turn)
        return row.message if first or isinstance(view, Card | ReplyView) else ""

    async def load_views(self, turn: str) -> None:
        """Load the turn's missing views into the outbox, also those delivered during the read."""
        await self.flush()
        dropped: dict[Key, OutboxRow] = {}
        self.outbox.watched.append(dropped)
        try:
            rows = await self.services.store.outbox(self.lease.conversation, turn)
        finally:
            watched = self.outbox.watched
            self.outbox.watched = [one for one in watched if one is not dropped]
        self.outbox.load([dropped.get((row.turn, row.name), row) for row in rows])

    async def redraw(
        self, turn: str, name: str, change: Callable[[View], View]
    ) -> tuple[OutboxRow, ...]:
        """Change a finished turn's view in its messages by `change`: return the row to commit at
        once, () if it is not there or stays as it is."""
        await self.load_views(turn)
        known = self.outbox.rows.get((turn, name))
        made: tuple[OutboxRow, ...] = ()
        view = change(known.view) if known is not None else None
        if known is not None and view is not None and view != known.view:
            made = (self.want(turn, name, view, known.version + 1, final=True),)
        self.outbox.forget(turn)
        return made

    async def recheck_card(self, question: QuestionRow) -> tuple[OutboxRow, ...]:
        """Have it checked that the question's card still stands in the chat, and sent anew if not:
        return the row to commit at once. Telegram does not tell bots of deleted messages."""
        if self.adapter.abilities.reads_views:
            return ()
        await self.load_views(question.turn)
        made = distrust_card(self.outbox.rows, question.id)
        self.outbox.rows |= made
        if question.turn not in self.loaded:
            self.outbox.forget(question.turn)
        return tuple(made.values())

    async def retire_offer(self) -> tuple[OutboxRow, ...]:
        """Remove the buttons offered for the last turn: return the row to commit at once."""
        if self.row.offered is None:
            return ()
        made = await self.redraw(*self.row.offered, drop_buttons)
        self.row = replace(self.row, offered=None, edited=None)
        return made

    async def wait_change(self, deadline: float) -> bool:
        """Wait until something changed; False if that takes longer than until `deadline`."""
        try:
            async with ambient.limit(max(0.0, deadline - ambient.monotonic())):
                await self.changed.wait()
        except TimeoutError:
            return False
        return True

    async def wait_news(self) -> None:
        """Wait until something changes; not at all if something came in before, or this ended."""
        self.changed.clear()
        if not self.woken and self.ended is None:
            await self.changed.wait()

    async def flush(self) -> None:
        """Wait until all queued commits are stored, so that reads see them."""
        under_way = [one for one in (self.last_commit, self.release_under_way) if one is not None]
        if under_way:
            await asyncio.wait(under_way)

    def show_when_stands(self, future: "asyncio.Future[None]", rows: tuple[OutboxRow, ...]) -> None:
        def stands(done: "asyncio.Future[None]") -> None:
            if done.cancelled() or done.exception() is not None:
                return
            self.outbox.stands(rows)
            if self.services.feed.is_watched(self.conversation.id):
                for row in rows:
                    self.services.feed.publish(self.conversation.id, show_row(row))

        if rows:
            future.add_done_callback(stands)

    def find_origin(self, turn: str) -> str:
        """Return a name of the message that began the turn, `turn` itself if there is none."""
        row = self.turns.get(turn)  # a number that is forgotten may be assigned again
        return f"row {row.inbox[0]} {row.message}" if row is not None and row.inbox else turn

    def may_repeat(self, turn: str) -> bool:
        return self._forgotten is not None and self._forgotten.covers(turn, self.turns.get(turn))

    def preview(self, key: Key) -> OutboxRow:
        if self.active is not None and not self.active.stored:
            # the turn must be stored before its messages: a resume edits them
            self.active.journal.put()
        self.row = replace(self.row, position=self.row.position + 1)
        view = ReplyView(text="", state="streaming")
        return OutboxRow(
            turn=key[0],
            name=key[1],
            position=self.row.position,
            version=0,
            view=view,
            answers=self._find_asked(key[0], view),
            language=self.turns[key[0]].language if key[0] in self.turns else self.language,
            at=ambient.now(),
            rev=self.row.rev,
        )

    def notice(
        self,
        seq: int,
        text: str,
        tone: Tone = "info",
        *,
        state: NoticeState = "done",
        along: Changes = NO_CHANGES,
    ) -> None:
        """Reply to the inbox row `seq` as the gateway. `state`: the row's new state; `along`: other
        changes of the same commit."""
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
        """Commit changes, and show their views once they are stored."""
        self.show_when_stands(self.submit(changes), changes.views)

    def configure(self, settings: ConversationSettings) -> None:
        """The conversation's settings from the next commit on."""
        self.row = replace(self.row, settings=settings)

    def stage(self, entry: TranscriptRow, shows: Spans) -> None:
        """Add a row to the transcript and make the rows `shows` visible to the model, in the commit
        queued next."""
        self._staged = (*self._staged, entry)
        self.row = replace(self.row, end=entry.n + 1, shows=shows)

    def _take_staged(self, changes: Changes) -> Changes:
        if not self._staged:
            return changes
        staged, self._staged = self._staged, ()
        return replace(changes, transcript=staged, row=self.row)

    def note_audit(self, who: str, what: str, detail: str) -> None:
        """Add an audit line to the commit queued next."""
        self._noted = (*self._noted, self.audit(who, what, detail))

    def _sign_audit(self, changes: Changes) -> Changes:
        """Chain the audit lines to the last ones, and add the row with the chain's end. Called in
        the order of the commits."""
        lines, row = (*self._noted, *changes.audit), changes.row
        self._noted = ()
        if lines:
            lines, self._audited = self.services.signer.link(self._audited, lines)
            row = row or self.row
        if row is not None:
            row = replace(row, audited=self._audited)
        return replace(changes, audit=lines, row=row)

    def acknowledge(
        self, seq: int, press: str = "", word: str = "", audit: AuditRow | None = None
    ) -> None:
        """End the inbox row `seq`, and answer its press with a private word."""
        self.submit(Changes(done=(seq,), audit=(audit,) if audit else ()))
        self.tell(press, word)

    def tell(self, press: str, word: str) -> None:
        """Say a private word to who pressed, best effort."""
        if not press:
            return

        async def tell() -> None:
            try:
                await self.adapter.tell(self.conversation, press, word)
            except DeliveryError as error:
                log.info("not_told", extra={"why": str(error)})

        self.services.spawn(tell, "tell")

    def find_asker(self) -> str:
        """Return the sender's key of the running, cut off, or next turn; "" if there is none."""
        if self.active is not None:
            return self.active.row.sender
        cut_off = next((one for one in self.turns.values() if one.status == "running"), None)
        if cut_off is not None:
            return cut_off.sender
        senders = (sender_of(row.inbound) for row in self.queue)
        return next((sender.key for sender in senders if sender is not None), "")

    def open_questions(self) -> list[QuestionRow]:
        """The questions that wait for an answer, the oldest first: people number them so."""
        waiting = (one for one in self.questions.values() if one.status == "open")
        return sorted(waiting, key=lambda one: (one.asked, one.id))

    def audit(self, who: str, what: str, detail: str, most: int | None = None) -> AuditRow:
        """Make an audit line, as of now, with secrets redacted. `most`: maximum characters of its
        detail."""
        where, words = self.conversation.id, self.services.find_redactions()
        detail = words.hide(detail) if most is None else words.hide_start(detail, most)
        return AuditRow(at=ambient.now(), who=who, what=what, detail=detail[:most], where=where)

    # ---- what the outbox asks of its holder ----------------------------------------------

    def keep(self, changes: Changes) -> Awaitable[object]:
        if self._quiet() and all(row.sending < 0 for row in changes.views):
            self.release_under_way = self.release(changes)
            self.changed.set()
            return self.release_under_way
        return self.submit(changes)

    def _quiet(self) -> bool:
        """Return True if nothing is left to do after this commit."""
        if (
            self.active is not None
            or self.woken
            or self.late
            or self.occupied
            or self.release_under_way is not None
        ):
            return False
        running = any(turn.status == "running" for turn in self.turns.values())
        return not running and not self.queue and not self.outbox.remaining

    def note_unfinished(self) -> Unfinished:
        """Note what of people's is under way or waits here."""
        turns = any(turn.firing is None for turn in self.turns.values())
        return Unfinished(
            where=self.conversation,
            language=self.language,
            token=self.lease.token,
            waits=turns or self.queue.messages > 0,
        )

    def may_send(self, seconds: float) -> bool:
        return self.ended is None and self.lease_timer.deadline - ambient.monotonic() > seconds

    def count(self, name: str) -> None:
        self.services.count(name)

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None:
        self.services.count(f"views_{cause}")
        if self.ended is not None or isinstance(row.view, Notice):
            return
        if cause == "refused" and not row.natives and isinstance(row.view, ReportView):
            self._on_undeliverable(row, why)
        if not row.natives and (question := find_brought(row)):
            self.services.spawn(partial(tell_unshown, self.services, question, why), "unshown")
        letter = self.letter("view", f"{row.turn} {row.name}", why, encode_json(row), row.turn)
        if cause == "doubt":
            self.announce(letter, say("view_in_doubt", row.language or self.language), "warning")
        elif not row.natives:
            self.announce(letter, say("view_failed", row.language or self.language, why=why))
        else:  # the chat shows an older state of it
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
            why=self.services.find_redactions().hide(why)[:MAX_REASON],
            payload=payload,
            turn=turn,
        )

    def give_up_row(self, row: InboxRow, why: str) -> Letter:
        """The dead letter of an inbox row."""
        self.services.count("rows_dead")
        log.error("row_dead", extra={"conversation": self.conversation.id, "seq": row.seq})
        return self.letter("message", str(row.seq), why, encode_json(row.inbound))

    def note_limit(self, seconds: float) -> None:
        # a clock that jumps must not extend the pause beyond what the platform asked for
        self.row = replace(self.row, quiet_until=ambient.now() + seconds, quiet_for=seconds)
        if self.ended is None:
            self.submit(Changes(row=self.row))

    async def note_closed(self, why: str) -> None:
        """The agent may not write in this chat any more. StoreFailed."""
        if self.ended is None:
            await self._on_closed(why)

    def note_delivery(self) -> None:
        self.changed.set()

    def release(self, changes: Changes) -> "asyncio.Future[bool]":
        """Release the lease with these changes; False if new rows arrived."""
        dirty = self.outbox.take_dirty()
        changes = self._sign_audit(replace(changes, views=(*changes.views, *dirty)))
        future = self.services.store.release(self.lease, self.seen, changes)
        future.add_done_callback(partial(self._on_submitted, changes))
        return future
