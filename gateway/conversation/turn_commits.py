"""The commits of turns: records, and all that follows from them, in one write."""

import asyncio
from collections.abc import Awaitable, Iterable
from functools import partial

from msgspec.structs import replace

from agent_core.journal import Finished, Record, Replied, Steered
from gateway.access.mentions import find_deciders
from gateway.conversation.question_rows import audit_records, derive_questions
from gateway.conversation.state import ConversationState
from gateway.conversation.thread import ConversationHistory
from gateway.conversation.turns import OpenTurn
from gateway.conversation.unsaved import Unsaved
from gateway.errors import Fenced, Unstorable
from gateway.ports import Growing
from gateway.store.rows import Changes, OutboxRow, RecordRow, TurnRow
from gateway.store.spending.tally import count_reply
from gateway.views import ApprovalCard, View

REPLY = "reply"
"""The view of a turn's answer."""


class TurnCommits:
    """Writes the records of one conversation's turns."""

    def __init__(self, state: ConversationState, history: ConversationHistory) -> None:
        self._state = state
        self._history = history

    def write(self, open_turn: OpenTurn, records: tuple[Record, ...]) -> Awaitable[None]:
        """Commit a turn's records and everything that follows from them."""
        records = tuple(self._keep_words(open_turn, record) for record in records)
        names = dict.fromkeys(name for record in records for name in open_turn.fold.add(record))
        rows = tuple(self._view_row(open_turn, name) for name in names)
        if not open_turn.stored:
            rows, self._state.along = (*self._state.along, *rows), ()
        start, open_turn.count = open_turn.count, open_turn.count + len(records)
        done = open_turn.done
        unsaved = Unsaved(
            turn=open_turn.row, stored=open_turn.stored, count=start, done=done, records=[]
        )
        open_turn.done = ()
        letters, open_turn.letters = open_turn.letters, ()
        paid = self._count_spent(open_turn, records)
        for record in records:
            if isinstance(record, Steered):
                done += record.rows
            elif isinstance(record, Replied) and record.reply.finish == "tool_calls":
                rows += self._end_growing(open_turn)
        row = open_turn.advance(records)
        if open_turn.closed and REPLY not in names:  # text of an earlier process, without an end
            rows += self._end_words(open_turn)
        if open_turn.closed:
            self._history.add_turn(open_turn)
        if row is not None:
            self._state.turns[row.id] = row
        if self._state.row.crashes:
            self._state.row = replace(self._state.row, crashes=0)
        changes = Changes(
            turns=(row,) if row is not None else (),
            records=tuple(
                RecordRow(turn=open_turn.id, n=start + n, record=record)
                for n, record in enumerate(records)
            ),
            done=done,
            letters=letters,
            views=rows,
            questions=derive_questions(self._state, open_turn, records),
            row=self._state.row if rows or paid else None,
            audit=audit_records(self._state, open_turn, records),
        )
        future = self._state.submit(changes)
        future.add_done_callback(partial(self._keep_unsaved, unsaved, records))
        self._state.show_when_stands(future, rows)
        return future

    def _count_spent(self, open_turn: OpenTurn, records: Iterable[Record]) -> bool:
        """Add the usage of model calls to the conversation's. Return True if there were any."""
        replies = [one.reply for one in records if isinstance(one, Replied) and one.reply.model]
        for reply in replies:
            spent = count_reply(self._state.row.spent, open_turn.id, reply.usage)
            self._state.row = replace(self._state.row, spent=spent)
        return bool(replies)

    def _end_growing(self, open_turn: OpenTurn) -> tuple[OutboxRow, ...]:
        """Take back the growing words: they came before tool calls, and are no answer."""
        open_turn.words = ""
        rows = self._end_words(open_turn)
        empty = Growing(turn=open_turn.id, text="")
        self._state.services.feed.publish(self._state.conversation.id, empty)
        return rows

    def _keep_words(self, open_turn: OpenTurn, record: Record) -> Record:
        """Return the end of a failed turn together with its words that people see."""
        if not isinstance(record, Finished) or record.finish != "error" or record.text:
            return record
        shown = self._state.outbox.rows.get((open_turn.id, REPLY))
        seen = shown is not None and shown.natives
        return replace(record, partial=open_turn.words) if seen else record

    def _end_words(self, open_turn: OpenTurn) -> tuple[OutboxRow, ...]:
        """The row to commit, if a message of words that are no answer has to go."""
        gone = self._state.outbox.end_words((open_turn.id, REPLY))
        return (gone,) if gone is not None else ()

    def _keep_unsaved(
        self, unsaved: Unsaved, records: tuple[Record, ...], future: "asyncio.Future[None]"
    ) -> None:
        """Keep what a failed commit of a turn held, for the next session to commit."""
        error = None if future.cancelled() else future.exception()
        if error is None or isinstance(error, Fenced | Unstorable):
            return
        if self._state.conversation.id in self._state.services.refused:
            return
        known = self._state.services.unsaved.setdefault(self._state.conversation.id, unsaved)
        if known.turn.id == unsaved.turn.id:
            known.add(records)

    def _view_row(self, open_turn: OpenTurn, name: str) -> OutboxRow:
        shape = open_turn.fold.shapes[name]
        view = self._mention_deciders(open_turn.row, shape.view)
        return self._state.want(open_turn.id, name, view, shape.version, final=shape.final)

    def _mention_deciders(self, row: TurnRow, view: View) -> View:
        """Mention the deciders on an open card in a group, unless the asker decides."""
        where = self._state.conversation
        if not isinstance(view, ApprovalCard) or view.state != "open" or where.private:
            return view
        access = self._state.services.access
        risks = (line.risk for line in view.proposals)
        rule = access.policy.approvers.find_deciders(risks, where.platform)
        asker = (row.sender, row.role)
        return replace(view, mentions=find_deciders(access, rule, where.platform, asker))
