"""Brings one conversation's views to its platform: in order, paced, the final state always.

The outbox is desired state: a row per view with what is wanted and what is there. An overtaken
edit merges by overwrite. The sender is asked to stop, never cancelled.
"""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from agent_core import ambient
from gateway.delivery.holder import Holder, Key
from gateway.delivery.labels import labelled
from gateway.delivery.once import FirstSends
from gateway.delivery.pace import Gate, Pace, Ticket
from gateway.errors import Ambiguous, Fenced, RateLimited, Rejected, StoreFailed, Unsent
from gateway.messages import Conversation, digest
from gateway.ports import Adapter
from gateway.store.rows import Changes, Native, OutboxRow
from gateway.texts import Key as Text
from gateway.texts import say
from gateway.views import ApprovalCard, ChoiceCard, FormCard, Notice, Reply

log = logging.getLogger("turnkeeper.outbox")

T = TypeVar("T")
SEND_LIMIT = 15.0
"""Most seconds one call to a platform takes; less than what is left of a lease."""
LONGEST_BACKOFF = 30.0


class Outbox:
    """The rows of one conversation that are wanted, and the task that sends them."""

    def __init__(
        self, conversation: Conversation, adapter: Adapter, gate: Gate, pace: Pace, holder: Holder
    ) -> None:
        self._conversation = conversation
        self._adapter = adapter
        self._gate = gate
        self._holder = holder
        self._pace = pace
        self._first = FirstSends(conversation, adapter)
        self.rows: dict[Key, OutboxRow] = {}
        self._stands: dict[Key, int] = {}
        self._growing: tuple[Key, str, float] | None = None
        self._grown = ""
        self._held: tuple[Key, Ticket] | None = None
        self._wake = asyncio.Event()
        self._stopping = False
        self._sending = False
        self._backoff = 0.5
        self._over: set[str] = set()
        self.dirty: set[Key] = set()

    # ---- what the session says -----------------------------------------------------------

    def load(self, rows: Iterable[OutboxRow]) -> None:
        """Rows as the store has them. A first send found under way is in doubt."""
        for row in rows:
            key = (row.turn, row.name)
            self._over.discard(row.turn)  # a parked turn that goes on: its messages are edited on
            if key in self.rows:
                continue
            if row.sending >= 0:
                row = self._first.resumed(row)
            self.rows[key] = row
            self._stands[key] = row.version
        self._wake.set()

    def want(self, row: OutboxRow) -> OutboxRow:
        """`row` is wanted from now on; the row to commit, with what the platform has."""
        key = (row.turn, row.name)
        old = self.rows.get(key)
        if old is not None:
            row = replace(
                row,
                position=old.position,
                at=old.at,
                sent=old.sent,
                natives=old.natives,
                sending=old.sending,
                doubtful=old.doubtful,
                lost=old.lost,
            )
        if self._adapter.abilities.reads_views:
            row = replace(row, sent=row.version)
        elif self._takes_gate(key, row):
            row = replace(row, sending=0)
        if self._growing is not None and self._growing[0] == key and row.final:
            self._growing = None  # or it would be sent by a mark that does not stand yet
        self.rows[key] = row
        return row

    def pause(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._pace.block(seconds)

    def stands(self, rows: Iterable[OutboxRow]) -> None:
        """The commit of these rows stands: they may be sent."""
        for row in rows:
            key = (row.turn, row.name)
            self._stands[key] = max(row.version, self._stands.get(key, 0))
        self._wake.set()

    def grow(self, key: Key, text: str) -> None:
        """The live text of a reply under way."""
        known = self._growing if self._growing and self._growing[0] == key else None
        self._growing = (key, text, ambient.monotonic() if known is None else known[2])
        if known is None:  # most answers are whole before they are due to be shown growing
            interval = self._adapter.abilities.edit_interval
            asyncio.get_running_loop().call_later(interval, self._wake.set)
        elif known[1] == self._grown:  # the sender has shown all and sleeps
            self._wake.set()

    def hush(self) -> str:
        """No live text any more; what people saw of it."""
        self._growing, shown = None, self._grown
        self._grown = ""
        return shown

    def forget(self, turn: str) -> None:
        """The turn has ended: its rows are dropped once they are delivered."""
        self._over.add(turn)
        self._drop_delivered(turn)

    def _drop_delivered(self, turn: str) -> None:
        if turn not in self._over:
            return
        mine = [key for key in self.rows if key[0] == turn]
        for key in mine:
            if not self._behind(key) and key not in self.dirty and not self._holds(key):
                del self.rows[key]
                self._stands.pop(key, None)

    @property
    def remaining(self) -> bool:
        """A view is wanted that the platform does not have."""
        return any(map(self._behind, self.rows))

    @property
    def idle(self) -> bool:
        """Nothing is being sent and nothing waits to be."""
        return not self._sending and not self.remaining

    def stop(self) -> None:
        """Send nothing more; the call under way is finished."""
        self._stopping = True
        self._wake.set()

    def take_dirty(self) -> tuple[OutboxRow, ...]:
        """Rows whose marks have not been queued yet."""
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
                self._holder.settled()
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
        waiting = sorted(filter(self._unsent, self.rows), key=self._place)
        new_seen = False
        for key in waiting:
            new = len(self.rows[key].natives) == 0
            if new and new_seen:
                continue
            new_seen = new_seen or new
            due = self._pace.new_due() if new else self._pace.edit_due()
            if due < best[0]:
                best = (due, partial(self._attempt, self._deliver, key))
        if self._growing is not None and self._growing[1] != self._grown and not new_seen:
            key, _, since = self._growing
            due = max(self._pace.edit_due(), since + self._adapter.abilities.edit_interval)
            if due < best[0]:
                best = (due, partial(self._attempt, self._show_growth, key))
        return best

    def _place(self, key: Key) -> tuple[bool, int]:
        """In order of position; but a card that was decided loses its buttons first."""
        row = self.rows[key]
        card = isinstance(row.view, ApprovalCard | ChoiceCard | FormCard)
        return not (card and row.natives), row.position

    async def _attempt(self, deliver: Callable[[Key], Awaitable[None]], key: Key) -> None:
        try:
            await deliver(key)
            self._backoff = 0.5
        except RateLimited as error:
            self._pace.limited(error.retry_after)
            self._holder.limited(error.retry_after)
            log.warning("rate_limited", extra={"retry_after": error.retry_after})
        except (Unsent, Ambiguous) as error:
            self._pace.block(self._backoff)
            self._backoff = min(LONGEST_BACKOFF, self._backoff * 2)
            log.warning("not_delivered", extra={"view": key[1], "why": str(error)})
        except (StoreFailed, Fenced):
            self._stopping = True

    async def _deliver(self, key: Key) -> None:
        row = self.rows[key]
        version, view = row.version, row.view
        if row.doubtful:
            doubt: Text = "lost_note" if row.lost else "twice_note"
            view = labelled(view, say(doubt, self._holder.language))
        payloads = self._adapter.render(view, self._conversation)
        payloads += self._left_over(key, len(payloads))
        try:
            for index, payload in enumerate(payloads):
                last = index + 1 == len(payloads)
                await self._part(key, index, payload, version if last else row.sent)
        except Rejected as error:
            log.error("rejected", extra={"turn": key[0], "view": key[1], "why": str(error)})
            if not self.rows[key].natives:
                self._holder.refused(key, str(error))
        finally:
            self._release_gate(key)
        self._hold(key, sent=version, sending=-1)
        self._drop_delivered(key[0])

    def _left_over(self, key: Key, count: int) -> tuple[bytes, ...]:
        """What messages show that the view once needed: no old text, and above all no buttons."""
        surplus = len(self.rows[key].natives) - count
        if surplus <= 0:
            return ()
        above = Notice(text=say("above", self._holder.language))
        return self._adapter.render(above, self._conversation)[:1] * surplus

    async def _part(self, key: Key, index: int, payload: bytes, sent: int) -> None:
        mark = digest(payload)
        natives = self.rows[key].natives
        if index < len(natives):
            if natives[index].digest != mark:
                await self._call(
                    partial(self._adapter.edit, self._conversation, natives[index].id, payload)
                )
                self._pace.sent(new=False)
                self._set_native(key, index, Native(id=natives[index].id, digest=mark))
            return
        await self._mark_sending(key, index)
        try:
            native = await self._call(partial(self._first.send, self.rows[key], index, payload))
        except (RateLimited, Unsent, Rejected):
            self._update(key, sending=-1)
            raise
        except Ambiguous:
            known = self._first.known(self.rows[key])
            self._update(key, sending=-1, **{} if known else {"doubtful": True, "lost": True})
            raise
        self._pace.sent(new=True)
        self._set_native(key, index, Native(id=native, digest=mark))
        await self._update(key, sending=-1, sent=sent)

    async def _mark_sending(self, key: Key, index: int) -> None:
        """The mark stands before the call: found after a crash it means 'perhaps sent'."""
        if self._held is None or self._held[0] != key:
            self._held = (key, await self._gate.enter())
        if self.rows[key].sending != index:
            row = self.rows[key] = replace(self.rows[key], sending=index)
            await self._holder.keep(Changes(views=(row,)))
        await self._gate.front(self._held[1])

    async def _show_growth(self, key: Key) -> None:
        if self._growing is None:
            return
        text = self._growing[1]
        abilities = self._adapter.abilities
        if abilities.drafts and self._conversation.private:
            number = zlib.crc32(key[0].encode()) or 1
            try:
                await self._call(partial(self._adapter.draft, self._conversation, number, text))
            finally:
                self._pace.sent(new=False)  # a slow call must not bring the next one closer
        elif abilities.edits:
            view = Reply(text=text, state="streaming", language=self._holder.language)
            self.rows.setdefault(key, self._holder.preview(key))
            try:
                for index, payload in enumerate(self._adapter.render(view, self._conversation)):
                    await self._part(key, index, payload, 0)
            finally:
                self._release_gate(key)
        self._grown = text

    # ---- marks ---------------------------------------------------------------------------

    def _behind(self, key: Key) -> bool:
        row = self.rows[key]
        return row.sent < row.version

    def _unsent(self, key: Key) -> bool:
        """Wanted, not there, and its commit stands."""
        row = self.rows[key]
        return row.sent < row.version <= self._stands.get(key, 0)

    def _set_native(self, key: Key, index: int, native: Native) -> None:
        natives = list(self.rows[key].natives)
        natives[index : index + 1] = [native]
        self.rows[key] = replace(self.rows[key], natives=tuple(natives))
        self.dirty.add(key)

    def _hold(self, key: Key, *, sent: int, sending: int) -> None:
        """What the platform has now; edits ride on the next commit."""
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

    def _takes_gate(self, key: Key, row: OutboxRow) -> bool:
        """A lone first send takes the gate with the commit that wants it: one commit less."""
        alone = row.final and not row.natives and not any(map(self._unsent, self.rows))
        if not alone or self._sending or self._pace.new_due() > ambient.monotonic():
            return False
        if self._held is None and isinstance(row.view, Reply):
            ticket = self._gate.enter_now()
            self._held = (key, ticket) if ticket is not None else None
        return self._holds(key)

    def _holds(self, key: Key) -> bool:
        return self._held is not None and self._held[0] == key

    def _release_gate(self, key: Key) -> None:
        if self._holds(key):
            self._let_go()

    def _let_go(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._gate.leave(held[1])

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        if not self._holder.may_send(SEND_LIMIT):  # as after a sleep: it is renewed, or lost
            raise Unsent("the lease does not last for another call")
        try:
            async with ambient.limit(SEND_LIMIT):
                return await call()
        except TimeoutError as error:
            raise Ambiguous("the platform did not answer in time") from error

    async def _pause(self, seconds: float) -> None:
        try:
            async with ambient.limit(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
