"""The history that the model sees, and its changes.

The transcript only grows: a row for each ended turn, and a row for each change of the visible
history (nothing after /new, less after /undo, a summary in place of what it covers). The
conversation's row names the visible rows: a turn begins with one read of them, or takes them over
from the session's previous turn, and adds its own.
"""

from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.messages import Message
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn, size
from gateway.services.recent_threads import RecentThread
from gateway.store.rows import Spans, Thread, TranscriptRow, TurnRow
from gateway.store.spans import append_row, length, without_first

MAX_HISTORY = 2_000_000
"""Characters that are held of a conversation; beyond it the older half is left behind."""


class ConversationHistory:
    """One conversation's transcript and visible history. A change is staged, and stored with the
    commit queued next in the same step."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        recent = state.services.threads.take(state.lease, state.row)
        self._rows = recent.rows if recent is not None else None
        self._characters = recent.characters if recent is not None else 0

    # ---- reading -------------------------------------------------------------------------

    async def rows(self) -> Thread:
        """The rows that the model sees, each a tuple of messages."""
        rows = self._rows
        if rows is None:
            rows = self._hold(list(await self.read(self._state.row.shows)))
        if self._characters > MAX_HISTORY:
            self._shorten(rows)
        return tuple(rows)

    async def read_start(self, open_turn: OpenTurn) -> tuple[Message, ...]:
        """Return the history that the turn began with: the same at each resume, whatever happened
        meanwhile."""
        spans = open_turn.row.history
        same = spans == self._state.row.shows
        rows = await self.rows() if same else await self.read(spans)
        return tuple(message for row in rows for message in row)

    async def read(self, spans: Spans) -> Thread:
        """The messages of the rows `spans`."""
        return await self._state.services.store.thread(self._state.lease.conversation, spans)

    def keep(self) -> None:
        """Hold the thread for the next session here: this one has let go of the conversation."""
        state = self._state
        if self._rows is not None:
            thread = RecentThread(state.lease.token, state.row, self._rows, self._characters)
            state.services.threads.keep(state.lease.conversation, thread)

    def _hold(self, rows: list[tuple[Message, ...]]) -> list[tuple[Message, ...]]:
        self._rows, self._characters = rows, size(rows)
        return rows

    def _add(self, messages: tuple[Message, ...]) -> None:
        if self._rows is not None:
            self._rows.append(messages)
            self._characters += size([messages])

    def _shorten(self, rows: list[tuple[Message, ...]]) -> None:
        while size(rows) > MAX_HISTORY // 2 and len(rows) > 1:
            del rows[: max(1, len(rows) // 8)]
        self._hold(rows)
        row = self._state.row
        shows = without_first(row.shows, length(row.shows) - len(rows))
        self._state.row = replace(row, shows=shows)

    # ---- changes -------------------------------------------------------------------------

    def add_turn(self, open_turn: OpenTurn) -> None:
        """Add the turn's messages to the transcript. A summary that it saw in place of its history
        stays, unless another turn came in between."""
        if open_turn.ending is None:
            return
        row, turn = self._state.row, open_turn.row
        entry = TranscriptRow(
            n=row.end, turn=turn.id, messages=open_turn.ending, person=turn.sender, at=ambient.now()
        )
        self._state.stage(entry, append_row(row.shows, row.end))
        self._add(open_turn.ending)
        if open_turn.seen and row.shows == turn.history:
            self.put("summary", open_turn.seen, turn)

    def add_messages(self, messages: tuple[Message, ...]) -> None:
        """Add messages that belong to no turn of this conversation to the transcript."""
        row = self._state.row
        entry = TranscriptRow(n=row.end, turn="", messages=messages, at=ambient.now())
        self._state.stage(entry, append_row(row.shows, row.end))
        self._add(messages)

    def put(
        self,
        kind: Literal["summary", "resumed"],
        messages: tuple[Message, ...],
        turn: TurnRow | None,
    ) -> None:
        """Replace the model's whole history by `messages`, in a row of their own. `turn`: the one
        that made them."""
        n = self._state.row.end
        entry = TranscriptRow(
            n=n,
            turn=turn.id if turn is not None else "",
            messages=messages,
            kind=kind,
            shows=((n, n + 1),),
            person=turn.sender if turn is not None else "",
            at=ambient.now(),
        )
        self._state.stage(entry, entry.shows)
        self._hold([messages])

    def show(
        self, kind: Literal["new", "undone", "resumed"], shows: Spans, rows: Thread, turn: str = ""
    ) -> None:
        """Make exactly the rows `shows`, with the messages `rows`, visible to the model. `turn`:
        the one that is undone."""
        entry = TranscriptRow(
            n=self._state.row.end,
            turn=turn,
            messages=(),
            kind=kind,
            shows=shows,
            at=ambient.now(),
        )
        self._state.stage(entry, shows)
        self._hold(list(rows))

    def forget(self) -> None:
        """Clear the history (/new) and end the rules for this conversation."""
        row = self._state.row
        kept = tuple(rule for rule in row.settings.rules if rule.lasting)
        self._state.configure(replace(row.settings, rules=kept))
        if row.shows:
            self.show("new", (), ())
