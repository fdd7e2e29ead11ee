"""Brings one conversation's views to its platform: in order, paced, always to their final state.
The outbox is desired state: a row per view with what is wanted and what is there. An overtaken edit
merges by overwrite. The sender is asked to stop, never cancelled."""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import is_shortage
from gateway.delivery.holder import Cause, Holder, Key
from gateway.delivery.native_messages import (
    FirstSends,
    find_upload_time,
    hand_over,
    keep_marks,
    place,
    spend,
)
from gateway.delivery.pace import Pace, ViewTroubles
from gateway.delivery.send_gate import ChatGate, SendGate, Ticket
from gateway.errors import (
    Ambiguous,
    ChatClosed,
    DeliveryError,
    Fenced,
    FileNotTaken,
    Gone,
    RateLimited,
    Rejected,
    StoreFailed,
    Unsent,
)
from gateway.messages import Conversation, digest
from gateway.ports import Adapter, Probing, Removing
from gateway.store.rows import Changes, Native, OutboxRow
from gateway.texts import Key as Text
from gateway.texts import say
from gateway.views import Activity, Media, Notice, ReplyView, ReportView, SaidView, asks_people

log = logging.getLogger("turnkeeper.outbox")

T = TypeVar("T")
SEND_LIMIT = 15.0
"""Time limit of one call to a platform, in seconds; less than the rest of a lease."""
MIN_BACKOFF, MAX_BACKOFF = 0.5, 30.0  # seconds, doubled each time
MAX_COPIES = 2  # copies of a message in a chat without a crash; each crash may add one
MAX_FAILURES = 3  # unexpected failures of one view until it is set aside
MAX_OWN_FAILURES = 8  # unanswered edits, or untaken files, of one view; over 90 seconds
MAX_ANEW = 2  # how often a message deleted from the chat is sent again
NO_NATIVE = ""
"""The id of a message that cannot be edited: it is unknown whether it arrived, or it is gone.
Without a digest it must be sent anew."""


class Outbox:
    """The rows of one conversation that are wanted, and the task that sends them."""

    def __init__(
        self,
        conversation: Conversation,
        adapter: Adapter,
        gate: SendGate,
        pace: Pace,
        holder: Holder,
    ) -> None:
        self._conversation = conversation
        self._adapter = adapter
        self._gate = ChatGate(gate, conversation)
        self._holder = holder
        self._pace = pace
        self.first = FirstSends(conversation, adapter, gate.sent, holder)
        self.rows: dict[Key, OutboxRow] = {}
        self.watched: list[dict[Key, OutboxRow]] = []  # of readers, which receive dropped events
        self._stands: dict[Key, int] = {}
        self._growing: tuple[Key, str, float] | None = None
        self._grown = ""
        self._held: tuple[Key, Ticket] | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._sending = False
        self._backoff = MIN_BACKOFF
        self._troubles = ViewTroubles()
        self._ungrowing: Key | None = None
        """A reply whose live text the platform refused: only its final state is still to be
        sent."""
        self._call_limit: asyncio.Timeout | None = None
        self._over: set[str] = set()
        self.dirty: set[Key] = set()

    # ---- what the session says -----------------------------------------------------------

    def load(self, rows: Iterable[OutboxRow]) -> None:
        """Rows as the store has them. A first send found under way is in doubt."""
        for row in rows:
            key = (row.turn, row.name)
            self._over.discard(row.turn)  # for a resumed turn: edits to its messages continue
            if key in self.rows:
                continue
            row = self.first.resume(row) if row.sending >= 0 else row
            self.rows[key] = self.first.label(row)
            self._stands[key] = row.version
        self._gate.left = self._gate.left or self.remaining
        self._wake.set()

    def want(self, row: OutboxRow) -> OutboxRow:
        """Want `row` from now on. Return the row to commit, with the platform's state."""
        key = (row.turn, row.name)
        old = self.rows.get(key)
        row = self.first.label(row) if old is None else keep_marks(row, old)
        if self._adapter.abilities.reads_views:
            row = replace(row, sent=row.version)
        elif self._try_gate(key, row):
            row = replace(row, sending=0)
        if self._growing is not None and self._growing[0] == key and row.final:
            self._growing = None  # otherwise it would be sent with a mark that is not committed yet
        self.rows[key] = row
        return row

    def pause(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._pace.block(seconds)

    def stands(self, rows: Iterable[OutboxRow]) -> None:
        """Allow sending these rows: their commit is stored."""
        for row in rows:
            key = (row.turn, row.name)
            self._stands[key] = max(row.version, self._stands.get(key, 0))
        self._wake.set()

    def grow(self, key: Key, text: str) -> None:
        """The live text of a reply under way."""
        known = self._growing if self._growing and self._growing[0] == key else None
        self._growing = (key, text, ambient.monotonic() if known is None else known[2])
        if known is None:  # most answers are complete before partial text is due
            interval = self._adapter.abilities.edit_interval
            asyncio.get_running_loop().call_later(interval, self._wake.set)
        elif known[1] == self._grown:  # the sender has shown everything and sleeps
            self._wake.set()

    def end_words(self, key: Key) -> OutboxRow | None:
        """End the live words that a call came with: its tool lines show them from now on. Return
        the row to commit, if a message of these words must be removed."""
        self.hush()
        if (gone := spend(self.rows, key)) is not None:
            self.rows[key] = gone
            self._wake.set()
        return gone

    def hush(self) -> None:
        """Stop showing live text."""
        self._growing, self._grown = None, ""

    def forget(self, turn: str) -> None:
        """The turn has ended: its rows are dropped once they are delivered."""
        self._over.add(turn)
        self._drop_delivered(turn)

    def _drop_delivered(self, turn: str) -> None:
        if turn not in self._over:
            return
        for key in [key for key in self.rows if key[0] == turn]:
            if not self._is_behind(key) and key not in self.dirty and not self._holds(key):
                for dropped in self.watched:
                    dropped[key] = self.rows[key]
                del self.rows[key]
                self._stands.pop(key, None)

    @property
    def remaining(self) -> bool:
        """A view is wanted that the platform does not have."""
        return any(map(self._is_behind, self.rows))

    @property
    def idle(self) -> bool:
        """True if nothing is being sent or waits to be."""
        return not self._sending and not self.remaining

    def stop(self) -> None:
        """Send nothing more; the call under way is finished."""
        self._stopping = True
        self._wake.set()

    def abort(self) -> None:
        """Abort a running upload that would outlast a lost lease."""
        if self._call_limit is not None:
            self._call_limit.reschedule(asyncio.get_running_loop().time())

    def take_dirty(self) -> tuple[OutboxRow, ...]:
        """Return rows whose marks have not been queued yet."""
        rows = tuple(self.rows[key] for key in self.dirty)
        self.dirty.clear()
        for turn in {row.turn for row in rows}:
            self._drop_delivered(turn)
        return rows

    # ---- the sender ----------------------------------------------------------------------

    async def run(self) -> None:
        """Send until `stop`."""
        while not self._stopping:
            self._wake.clear()
            due, step = self._next()
            if step is None:
                self._holder.note_delivery()
                if not self._wake.is_set():
                    await self._wake.wait()
                continue
            delay = due - ambient.monotonic()
            if delay > 0:
                await self._pause(delay)
                continue
            self._sending = True
            try:
                await step()
            finally:
                self._sending = False
        self._let_go()

    def _next(self) -> tuple[float, Callable[[], Awaitable[None]] | None]:
        best: tuple[float, Callable[[], Awaitable[None]] | None] = (float("inf"), None)
        waiting = sorted(filter(self._is_unsent, self.rows), key=partial(place, self.rows))
        new_seen = False
        for key in waiting:
            new = len(self.rows[key].natives) == 0
            if new and new_seen:
                continue
            new_seen = new_seen or (new and not self._troubles.is_resting(key))
            due = self._pace.new_due() if new else self._pace.edit_due()
            due = max(due, self._troubles.due(key))
            if due < best[0]:
                best = (due, partial(self._attempt, self._deliver, key))
        for key, row in self.rows.items():
            due = max(self._pace.edit_due(), self._troubles.due(key))
            if row.spent and due < best[0]:
                best = (due, partial(self._attempt, self._remove_spent, key))
        if self._growing is not None and self._grows():
            key, _, since = self._growing
            due = max(self._pace.edit_due(), since + self._adapter.abilities.edit_interval)
            if due < best[0]:
                best = (due, partial(self._attempt, self._show_growth, key))
        return best

    def _grows(self) -> bool:
        """True if there is live text to show: not above a new message that is wanted, even before
        its commit."""
        growing = self._growing
        if growing is None or growing[1] == self._grown or growing[0] == self._ungrowing:
            return False
        return all(row.natives or row.sent >= row.version for row in self.rows.values())

    def holds(self, turn: str) -> bool:
        """Return True if there are views of the turn."""
        return any(key[0] == turn for key in self.rows)

    def has_shown(self, turn: str) -> bool:
        """People see something of the turn."""
        growing = self._growing is not None and bool(self._grown) and self._growing[0][0] == turn
        return growing or any(key[0] == turn and row.natives for key, row in self.rows.items())

    async def _attempt(self, deliver: Callable[[Key], Awaitable[None]], key: Key) -> None:
        """Run one step of the sender. A failure concerns its view alone."""
        try:
            await deliver(key)
            self._backoff = MIN_BACKOFF
            self._troubles.forget(key)
        except RateLimited as error:
            self._pace.note_limit(error.retry_after)
            self._holder.note_limit(error.retry_after)
            self._holder.count("deliveries_limited")
            log.warning("rate_limited", extra={"retry_after": error.retry_after})
            self._note_untaken(key, str(error))
        except (Unsent, Ambiguous) as error:
            if not self._troubles.is_resting(key):
                self._back_off()
            self._holder.count("deliveries_retried")
            log.warning("not_delivered", extra={"view": key[1], "why": str(error)})
            self._note_untaken(key, str(error))
        except (StoreFailed, Fenced):
            self._stopping = True
        except Exception as error:  # noqa: BLE001  # boundary: the other views go on
            log.exception("view_failed", extra={"turn": key[0], "view": key[1]})
            self._back_off()
            if is_shortage(error):
                self._note_untaken(key, str(error))
            elif self._troubles.note(key, MAX_FAILURES):
                self._set_aside(key, "failed", f"{type(error).__name__}: {error}"[:200])

    def _back_off(self) -> None:
        self._pace.block(self._backoff)
        self._backoff = min(MAX_BACKOFF, self._backoff * 2)

    def _note_untaken(self, key: Key, why: str) -> None:
        """Note that the platform does not take a view; set it aside after a very long time."""
        if self._troubles.note_untaken(key):
            self._set_aside(key, "unsent", why)

    def _note_own_failure(self, key: Key, error: Exception) -> bool:
        """Count a failure of this view alone; True: try again. Meanwhile the other views go on."""
        own = isinstance(error, Ambiguous | FileNotTaken)
        if not own or self._troubles.note(key, MAX_OWN_FAILURES):
            return False
        self._troubles.rest(key, MAX_BACKOFF)
        return True

    def _set_aside(self, key: Key, cause: Cause, why: str) -> None:
        """Give up this version of the view, and keep it for the operator."""
        self._troubles.forget(key)
        row = self.rows.get(key)
        if row is None or row.sent >= row.version:
            self._ungrowing = key  # its final state will be sent separately
            return
        log.error("view_set_aside", extra={"turn": key[0], "view": key[1], "why": why})
        self._hold(key, sent=row.version, sending=-1)
        self._holder.set_aside(row, cause, why)
        self._drop_delivered(key[0])

    async def _take_preview(self, key: Key) -> None:
        """Make the growing message that of the tool lines; the answer comes below as a new
        message."""
        if changed := hand_over(self.rows, key):
            self.rows |= changed
            self.dirty -= changed.keys()
            await self._holder.keep(Changes(views=tuple(changed.values())))

    async def _remove_spent(self, key: Key) -> None:
        """Take a message of spent words out of the chat, or its words out of the message."""
        native, adapter = self.rows[key].spent[0].id, self._adapter
        try:
            if isinstance(adapter, Removing):
                await self._call(partial(adapter.remove, self._conversation, native))
            else:
                above = self._render_above()[0]
                await self._call(partial(adapter.edit, self._conversation, native, above))
        except (Rejected, Ambiguous) as error:
            if self._note_own_failure(key, error):
                raise
            log.info("words_not_removed", extra={"turn": key[0], "why": str(error)})
        self._pace.note_sent(new=False)
        self.rows[key] = replace(self.rows[key], spent=self.rows[key].spent[1:])
        self.dirty.add(key)

    def _render_above(self) -> tuple[bytes, ...]:
        notice = Notice(text=say("above", self._holder.language))
        return self._adapter.render(notice, self._conversation)

    async def _deliver(self, key: Key) -> None:
        if isinstance(self.rows[key].view, Activity):
            await self._take_preview(key)
        row = self.rows[key]
        version, view = row.version, row.view
        if row.doubtful and not isinstance(view, SaidView):
            doubt: Text = "lost_note" if row.lost else "twice_note"
            view = replace(view, doubt=say(doubt, row.language or self._holder.language))
        payloads = self._adapter.render(view, self._conversation)
        payloads += self._render_left_over(key, len(payloads))
        try:
            for index, payload in enumerate(payloads):
                last = index + 1 == len(payloads)
                await self._part(key, index, payload, version if last else row.sent)
        except Rejected as error:
            log.error("rejected", extra={"turn": key[0], "view": key[1], "why": str(error)})
            if isinstance(error, ChatClosed):
                await self._holder.note_closed(str(error))
            self._set_aside(key, "refused", str(error))
            return
        finally:
            self._release_gate(key)
        self._hold(key, sent=version, sending=-1)
        self._drop_delivered(key[0])

    def _render_left_over(self, key: Key, count: int) -> tuple[bytes, ...]:
        """Render messages that the view no longer needs: no old text, and above all no buttons."""
        surplus = len(self.rows[key].natives) - count
        if surplus <= 0:
            return ()
        return self._render_above()[:1] * surplus

    async def _part(self, key: Key, index: int, payload: bytes, sent: int) -> None:
        mark = digest(payload)
        natives = self.rows[key].natives
        if index < len(natives):
            native = natives[index]
            if native.digest == mark or (native.id == NO_NATIVE and native.digest):
                return
            if native.id != NO_NATIVE and await self._try_edit(key, index, payload):
                return
        await self._check_reach(key)
        await self._mark_sending(key, index)
        row = self.rows[key]
        send = partial(self.first.send, row, index, payload)
        try:
            made = await self._call(send, SEND_LIMIT + find_upload_time(row.view))
        except (RateLimited, Unsent, Rejected) as error:
            self._update(key, sending=-1)
            if isinstance(error, FileNotTaken) and not self._note_own_failure(key, error):
                raise Rejected(str(error)) from error
            raise
        except Ambiguous as error:
            if await self._note_doubt(key, index, mark):
                raise
            self._holder.set_aside(row, "doubt", str(error))
            return
        self._pace.note_sent(new=True)
        self._set_native(key, index, Native(id=made, digest=mark))
        await self._update(key, sending=-1, sent=sent, copies=0)

    async def _try_edit(self, key: Key, index: int, payload: bytes) -> bool:
        """Edit a message. Return False if it must be sent anew, because it is gone or too old to
        edit."""
        mark, native = digest(payload), self.rows[key].natives[index]
        try:
            await self._call(partial(self._adapter.edit, self._conversation, native.id, payload))
        except Gone as error:
            why: DeliveryError = error
        except (Rejected, Ambiguous) as error:
            if self._note_own_failure(key, error):
                raise
            if not (self.rows[key].final and self._may_send_anew(key)):
                raise error if isinstance(error, Rejected) else Rejected(str(error)) from error
            why = error
        else:
            self._pace.note_sent(new=False)
            self._set_native(key, index, Native(id=native.id, digest=mark))
            return True
        log.info("edit_given_up", extra={"turn": key[0], "view": key[1], "why": str(why)})
        anew = self._may_send_anew(key)
        grows = not self.rows[key].final and isinstance(self.rows[key].view, ReplyView)
        if anew or grows:  # with another name: the platform may still remember the deleted message
            self.rows[key] = replace(self.rows[key], anew=self.rows[key].anew + 1)
        # a progress message that somebody deleted is not sent again
        self._set_native(key, index, Native(id=NO_NATIVE, digest="" if anew or grows else mark))
        if grows:
            raise why  # no more live text; the complete answer is sent as a new message
        return not anew

    def _may_send_anew(self, key: Key) -> bool:
        """True for views that people asked for or must answer, False for progress."""
        row = self.rows[key]
        answer = row.final and isinstance(row.view, ReplyView | ReportView | Media)
        return (answer or asks_people(row.view)) and row.anew < MAX_ANEW

    async def _note_doubt(self, key: Key, index: int, mark: str) -> bool:
        """Count a copy that may be in the chat. Return False if no further one is allowed."""
        row = self.rows[key]
        if self.first.is_known(row):  # the repeated send finds it: there is no further copy
            self._update(key, sending=-1, copies=max(1, row.copies))
            return True
        copies = row.copies + 1
        more = copies < MAX_COPIES + row.crashes
        if not more:
            self._set_native(key, index, Native(id=NO_NATIVE, digest=mark))
        doubt = {"doubtful": True, "lost": True} if more else {}
        await self._update(key, sending=-1, copies=copies if more else 0, **doubt)
        return more

    async def _check_reach(self, key: Key) -> None:
        """Check the connection before a further copy: in an outage it would waste the last one."""
        row, adapter = self.rows[key], self._adapter
        if not row.copies or not isinstance(adapter, Probing) or self.first.is_known(row):
            return
        try:
            await self._call(adapter.probe)
        except (Ambiguous, Rejected) as error:
            raise Unsent(f"the platform does not answer: {error}") from error

    async def _mark_sending(self, key: Key, index: int) -> None:
        """Store the mark before the call: found after a crash, it means 'perhaps sent'."""
        if self._held is None or self._held[0] != key:
            self._held = (key, await self._gate.enter())
        if self.rows[key].sending != index:
            row = self.rows[key] = replace(self.rows[key], sending=index)
            await self._holder.keep(Changes(views=(row,)))
        await self._gate.wait_turn(self._held[1])

    async def _show_growth(self, key: Key) -> None:
        """Show the live text. A refusal ends the growing, never the conversation."""
        if self._growing is None:
            return
        text = self._growing[1]
        try:
            await self._grow_once(key, text)
        except (RateLimited, Unsent, StoreFailed, Fenced):
            raise
        except Exception as error:  # noqa: BLE001  # boundary: the answer itself is still to come
            if isinstance(error, ChatClosed):
                await self._holder.note_closed(str(error))
            log.warning("growth_given_up", extra={"turn": key[0], "why": str(error)})
            self._ungrowing = key
        self._grown = text

    async def _grow_once(self, key: Key, text: str) -> None:
        abilities = self._adapter.abilities
        if abilities.drafts and self._conversation.private:
            number = zlib.crc32(key[0].encode()) or 1
            try:
                await self._call(partial(self._adapter.draft, self._conversation, number, text))
            finally:
                self._pace.note_sent(new=False)  # a slow call must not shorten the interval
        elif abilities.edits:
            view = ReplyView(text=text, state="streaming", language=self._holder.language)
            if key not in self.rows:
                self.rows[key] = self.first.label(self._holder.preview(key))
            try:
                for index, payload in enumerate(self._adapter.render(view, self._conversation)):
                    await self._part(key, index, payload, 0)
            finally:
                self._release_gate(key)
                self._spend_late(key)

    def _spend_late(self, key: Key) -> None:
        """The call came while its words were sent."""
        over = self._growing is None and not self.rows[key].version
        if over and (gone := spend(self.rows, key)):
            self.rows[key] = gone
            self.dirty.add(key)

    # ---- marks ---------------------------------------------------------------------------

    def _is_behind(self, key: Key) -> bool:
        row = self.rows[key]
        return row.sent < row.version or bool(row.spent)

    def _is_unsent(self, key: Key) -> bool:
        """True if the row is wanted, committed, and not yet there."""
        row = self.rows[key]
        return row.sent < row.version <= self._stands.get(key, 0)

    def _set_native(self, key: Key, index: int, native: Native) -> None:
        natives = list(self.rows[key].natives)
        natives[index : index + 1] = [native]
        self.rows[key] = replace(self.rows[key], natives=tuple(natives))
        self.dirty.add(key)

    def _hold(self, key: Key, *, sent: int, sending: int) -> None:
        """Note the platform's state; of edits it is stored with the next commit."""
        row = self.rows[key]
        if row.sent != sent or row.sending != sending:
            self.rows[key] = replace(row, sent=sent, sending=sending)
            self.dirty.add(key)

    def _update(self, key: Key, **fields: object) -> Awaitable[object]:
        """Write the row's marks at once. The next first send waits for them: two that may have
        been sent would both be in doubt after a crash."""
        self.rows[key] = replace(self.rows[key], **fields)
        self.dirty.discard(key)
        return self._holder.keep(Changes(views=(self.rows[key],)))

    def _try_gate(self, key: Key, row: OutboxRow) -> bool:
        """Take the gate for a lone first send with the commit that wants it: one commit less."""
        alone = row.final and not row.natives and not any(map(self._is_unsent, self.rows))
        if not alone or self._sending or self._pace.new_due() > ambient.monotonic():
            return False
        if self._held is None and isinstance(row.view, ReplyView):
            self._held = (key, ticket) if (ticket := self._gate.enter_now()) else None
        return self._holds(key)

    def _holds(self, key: Key) -> bool:
        return self._held is not None and self._held[0] == key

    def _release_gate(self, key: Key) -> None:
        if self._holds(key):
            self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._gate.leave(held[1])

    async def _call(self, call: Callable[[], Awaitable[T]], limit: float = SEND_LIMIT) -> T:
        """The answer of a call to the platform; raises DeliveryError and nothing else."""
        if not self._holder.may_send(min(limit, SEND_LIMIT)):
            # like after a suspend: the lease is renewed, or lost
            raise Unsent("the lease does not last for another call")
        try:
            async with ambient.limit(limit) as timer:
                # an upload may outlast a lease, which is renewed meanwhile, or ends it
                self._call_limit = timer if limit > SEND_LIMIT else None
                return await call()
        except TimeoutError as error:
            raise Ambiguous("the platform did not answer in time") from error
        except (DeliveryError, StoreFailed, Fenced):
            raise
        except Exception as error:
            # boundary: the effects of a failed adapter call are unknown
            log.exception("adapter_call_failed")
            raise Ambiguous(f"{type(error).__name__}: {error}"[:200]) from error
        finally:
            self._call_limit = None

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with ambient.limit(seconds):
                await self._wake.wait()
