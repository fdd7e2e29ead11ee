"""A conversation's native messages: their order, and their first sends.

A send is made once if the platform can recognise a repeated one, after a lost answer and after a
crash. A reply's growing message whose words came before a call becomes the message of the first
tool lines, or is removed.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from agent_core import ambient
from gateway.delivery.holder import Holder, Key
from gateway.errors import RateLimited, Rejected, Unsent
from gateway.messages import Conversation, button_token, digest
from gateway.ports import Adapter, Recalling
from gateway.store.rows import OutboxRow
from gateway.views import (
    Activity,
    Card,
    Media,
    PlanView,
    ReplyView,
    View,
    asks_people,
    awaits_answer,
)

UPLOAD_RATE = 100_000
"""Bytes a second that an upload makes at least."""
MAX_SENT = 4_096
SKEW = 5.0
"""Seconds that the clocks of two replicas may differ."""

log = logging.getLogger("turnkeeper.outbox")


MARKS = (
    "position", "at", "sent", "natives", "sending", "doubtful", "lost", "copies", "crashes", "anew",
    "given", "spent", "language",
)  # fmt: skip
"""Fields of a row with the platform's state, and its language."""


def keep_marks(wanted: OutboxRow, known: OutboxRow) -> OutboxRow:
    """Return the row `wanted` with the platform's state of `known`."""
    return replace(wanted, **{name: getattr(known, name) for name in MARKS})


def place(rows: Mapping[Key, OutboxRow], key: Key) -> tuple[int, int]:
    """Return the sort key: by position, but a decided card loses its buttons first, and tool lines
    fold last, after the answer for which they fold."""
    row = rows[key]
    if isinstance(row.view, Activity) and (preview := find_preview(rows, key)) is not None:
        return 1, rows[preview].position  # sent as that message, before the answer
    if isinstance(row.view, Card) and row.natives:
        return 0, row.position
    folds = isinstance(row.view, Activity) and row.view.over and row.natives
    return 2 if folds else 1, row.position


def find_preview(rows: Mapping[Key, OutboxRow], key: Key) -> Key | None:
    """Return the reply of the same turn whose growing message is in the place of the tool lines
    `key`, while these have none: it shows the words that came with the calls, and the lines begin
    with those."""
    row = rows[key]
    for other, preview in rows.items():
        if other[0] == key[0] and isinstance(preview.view, ReplyView) and not row.natives:
            shown = bool(preview.natives) and all(one.id for one in preview.natives)
            sure = preview.sending < 0 and not preview.doubtful and not preview.sent
            if shown and sure and preview.position < row.position:
                return other
    return None


def hand_over(rows: Mapping[Key, OutboxRow], key: Key) -> dict[Key, OutboxRow]:
    """Give the message of a grown reply above them to the tool lines `key`. Return both rows, {} if
    there is no such message."""
    if (other := find_preview(rows, key)) is None:
        return {}
    row, preview = rows[key], rows[other]
    left = replace(preview, position=row.position, natives=(), given=preview.given + 1)
    return {key: replace(row, position=preview.position, natives=preview.natives), other: left}


def spend(rows: Mapping[Key, OutboxRow], key: Key) -> OutboxRow | None:
    """Return the row if its messages must be removed; None if it has none, or tool lines take them
    over."""
    row = rows.get(key)
    lines = (other for other, one in rows.items() if isinstance(one.view, Activity))
    if row is None or not row.natives or any(find_preview(rows, one) == key for one in lines):
        return None
    gone = tuple(one for one in row.natives if one.id)
    return replace(row, natives=(), given=row.given + 1, spent=(*row.spent, *gone))


def _asks(view: View, question: str) -> bool:
    if isinstance(view, PlanView):
        token = button_token(question, "once")
        return asks_people(view) and any(one.token == token for one in view.buttons)
    return awaits_answer(view) and view.question == question


def distrust_card(rows: Mapping[Key, OutboxRow], question: str) -> dict[Key, OutboxRow]:
    """Return the delivered card of the open question as one whose messages have to be edited again:
    those that are gone are sent anew, however often that was done before."""
    found = dict[Key, OutboxRow]()
    for key, row in rows.items():
        if _asks(row.view, question) and row.natives and row.sent == row.version:
            natives = tuple(replace(one, digest="") for one in row.natives)
            again, given = row.version - 1, row.given + row.anew
            found[key] = replace(row, natives=natives, sent=again, given=given, anew=0)
    return found


def find_upload_time(view: View) -> float:
    """Seconds that the files of `view` may take."""
    return sum(file.size for file in view.files) / UPLOAD_RATE if isinstance(view, Media) else 0.0


class SentHere:
    """The last first sends of this process for one account, by view: a store may forget them, as a
    promoted copy does or a restored one."""

    def __init__(self) -> None:
        self._sent: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def note(self, view: str, turn: str) -> None:
        """Note that a first message of the view was sent for `turn`, or may have been."""
        self._sent[view] = turn, ambient.monotonic()
        if len(self._sent) > MAX_SENT:
            self._sent.popitem(last=False)

    def find(self, view: str) -> tuple[str, float] | None:
        """Return the turn of the view's first message and the seconds since, None if it is not
        known."""
        if (found := self._sent.get(view)) is None:
            return None
        return found[0], ambient.monotonic() - found[1]


class FirstSends:
    """The first sends of one conversation. Earlier attempts are remembered by the name of the
    send. `sent`: of all conversations of the account; `holder` knows from which message a turn
    comes, since a turn that was forgotten begins again under another id."""

    def __init__(
        self, conversation: Conversation, adapter: Adapter, sent: SentHere, holder: Holder
    ) -> None:
        self._conversation = conversation
        self._adapter = adapter
        self._sent = sent
        self._holder = holder
        self._tried: set[str] = set()
        self._origins: dict[str, str] = {}

    def label(self, row: OutboxRow) -> OutboxRow:
        """Return `row`, in doubt if it has no message although this process has sent one, or
        another may have: the store has forgotten it."""
        self._origins.setdefault(row.turn, self._holder.find_origin(row.turn))
        if row.natives or row.doubtful or self._adapter.abilities.reads_views:
            return row
        found = self._sent.find(self._name_view(row))
        if found is None and not self._holder.may_repeat(row.turn):
            return row
        turn, ago = found or (row.turn, float("inf"))
        if turn == row.turn:
            self._tried.add(self._name(row, 0))  # the platform finds it, for a while
            if ago < self._adapter.abilities.recalls:
                return row
        log.warning("send_forgotten", extra={"turn": row.turn, "view": row.name})
        return replace(row, doubtful=True)

    def resume(self, row: OutboxRow) -> OutboxRow:
        """Return `row`, whose send was found unfinished: in doubt, unless the send can be repeated
        safely."""
        log.warning("send_in_doubt", extra={"turn": row.turn, "view": row.name})
        self._tried.add(self._name(row, row.sending))
        if self.is_known(row):
            return replace(row, sending=-1)
        return replace(
            row, sending=-1, doubtful=True, copies=row.copies + 1, crashes=row.crashes + 1
        )

    def is_known(self, row: OutboxRow) -> bool:
        """Return True if the platform certainly still recognises the send of `row`. A time that is
        yet to come is of another clock, or of one that was set back, and says nothing."""
        return -SKEW <= ambient.now() - row.at < self._adapter.abilities.recalls

    def is_tried(self, row: OutboxRow) -> bool:
        """Return True if the first message of `row` may have been sent, now or before a crash."""
        return row.sending >= 0 or row.doubtful or self._name(row, 0) in self._tried

    async def send(self, row: OutboxRow, index: int, payload: bytes) -> str:
        """The message's native id. One that stood there already is made to show `payload`."""
        arrived = True  # or perhaps
        try:
            return await self._send(row, index, payload)
        except (RateLimited, Unsent, Rejected):
            arrived = False
            raise
        finally:
            if index == 0 and arrived:
                self._sent.note(self._name_view(row), row.turn)

    async def _send(self, row: OutboxRow, index: int, payload: bytes) -> str:
        answered = (row.answers,) if index == 0 and row.answers else ()
        if not self._adapter.abilities.recalls:
            return await self._adapter.send(self._conversation, payload, *answered)
        name = self._name(row, index)
        again = name in self._tried
        self._tried.add(name)
        adapter = cast(Recalling, self._adapter)
        native = await adapter.send_as(name, self._conversation, payload, *answered)
        if again:
            await self._adapter.edit(self._conversation, native, payload)
        self._tried.discard(name)
        return native

    def _name(self, row: OutboxRow, index: int) -> str:
        again = f" {times}" if (times := row.anew + row.given) else ""
        name = f"{self._conversation.id} {row.turn} {row.name} {index}{again}"
        return digest(name.encode())

    def _name_view(self, row: OutboxRow) -> str:
        origin = self._origins.get(row.turn, row.turn)
        name = f"{self._conversation.id} {origin} {row.name} {row.anew + row.given}"
        return digest(name.encode())
