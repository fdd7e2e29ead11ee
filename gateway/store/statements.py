"""The statements behind the embedded store: each works in the running transaction."""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from gateway.errors import Fenced
from gateway.messages import Inbound, dedupe_keys
from gateway.store import sqlite_lists
from gateway.store.audit_chain import note_end
from gateway.store.dead_letters import read_each, write_letter
from gateway.store.reading import readable
from gateway.store.rows import (
    AcceptedRow,
    AcquiredConversation,
    AuditRow,
    Changes,
    ConversationRow,
    InboxRow,
    Lease,
    Letter,
    LetterKind,
    OutboxRow,
    QuestionRow,
    Spans,
    Thread,
    TranscriptRow,
    TurnRow,
)

T = TypeVar("T")
encode = msgspec.json.Encoder().encode
read_inbound = msgspec.json.Decoder(Inbound).decode
read_row = msgspec.json.Decoder(ConversationRow).decode
read_turn = msgspec.json.Decoder(TurnRow).decode
read_view = msgspec.json.Decoder(OutboxRow).decode
read_question = msgspec.json.Decoder(QuestionRow).decode
read_entry = msgspec.json.Decoder(TranscriptRow).decode
read_audit = msgspec.json.Decoder(AuditRow).decode


RELEASE = """UPDATE conversations SET owner = NULL, expires = 0, work = 0, seen = ?1
WHERE id = ?2 AND last <= ?3
AND NOT EXISTS (SELECT 1 FROM outbox WHERE conversation = ?2 AND unsent = 1)
AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation = ?2
  AND status = 'running')"""
OPEN_TURNS = """SELECT id, body FROM turns WHERE conversation = ?
AND status IN ('running', 'parked')"""
UNSENT_VIEWS = """SELECT turn || ' ' || name, body FROM outbox
WHERE conversation = ? AND unsent = 1"""
OPEN_QUESTIONS = "SELECT id, body FROM questions WHERE conversation = ? AND status = 'open'"
DUE = """SELECT id, body, conversation FROM questions
WHERE status IN ('open', 'telling') AND expires > 0 AND expires <= ?1 AND (expires, id) > (?2, ?3)
ORDER BY expires, id LIMIT ?4"""
NEXT_DUE = """SELECT min(expires) FROM questions
WHERE status IN ('open', 'telling') AND expires > 0 AND expires > ?"""
LEAVING = "SELECT 1 FROM leaving WHERE conversation = ?"
WAITING_ROWS = """SELECT seq, at, body FROM inbox
WHERE conversation = ? AND state = 0 AND seq > ? ORDER BY seq"""
COUNTERS = """SELECT
(SELECT coalesce(max(n) + 1, 0) FROM transcript WHERE conversation = :where),
(SELECT coalesce(max(rev), 0) FROM outbox WHERE conversation = :where),
(SELECT coalesce(max(position), 0) FROM outbox WHERE conversation = :where)"""
# One aggregate per query: for two SQLite reads all rows.
CHANGED = "SELECT body FROM outbox WHERE conversation = ? AND rev > ? ORDER BY rev LIMIT ?"
NO_POSITION = 2**62
"""A position above all views."""
LATEST = (
    "SELECT body FROM outbox WHERE conversation = ? AND position < ? ORDER BY position DESC LIMIT ?"
)


def accept(c: sqlite3.Connection, inbound: Inbound, now: float) -> AcceptedRow:
    """Keep one inbound value, unless it is known."""
    conversation = inbound.conversation.id
    event, message = dedupe_keys(inbound)
    done = c.execute(
        "INSERT OR IGNORE INTO inbox(conversation, event, message, at, body) VALUES(?, ?, ?, ?, ?)",
        (conversation, event, message or None, now, encode(inbound)),
    )
    if not done.rowcount:
        return AcceptedRow(seq=0, fresh=False)
    seq = done.lastrowid or 0
    c.execute(
        "INSERT INTO conversations(id, last, at) VALUES(?1, ?2, ?3)"
        " ON CONFLICT(id) DO UPDATE SET last = ?2, at = ?3",
        (conversation, seq, now),
    )
    sqlite_lists.bring_forward(c, inbound, now)
    return AcceptedRow(seq=seq, fresh=True)


def arrivals(c: sqlite3.Connection, conversation: str, after: int) -> tuple[InboxRow, ...]:
    """Waiting rows of the conversation above `after` that can be read."""
    return _read_inbox(c, conversation, after, [])


def _read_inbox(
    c: sqlite3.Connection, conversation: str, after: int, damaged: list[Letter]
) -> tuple[InboxRow, ...]:
    rows: list[InboxRow] = []
    for seq, at, body in c.execute(WAITING_ROWS, (conversation, after)).fetchall():
        one = [(str(seq), body)]
        found = read_each(one, read_inbound, "message", conversation, damaged)
        rows += (InboxRow(seq=seq, at=at, inbound=inbound) for inbound in found)
    return tuple(rows)


class Wanted(NamedTuple):
    """A requested lease: `began` monotonic, `now` seconds since 1970."""

    conversation: str
    owner: str
    ttl: float
    began: float
    now: float


def acquire(
    c: sqlite3.Connection, wanted: Wanted, is_live: Callable[[int], bool]
) -> AcquiredConversation | None:
    """Take the lease if it is free, and return the content for its holder. `is_live`: whether the
    lease with this token has not expired."""
    conversation, owner, ttl, began, now = wanted
    row = c.execute(
        "SELECT token, owner, last, body FROM conversations WHERE id = ?", (conversation,)
    ).fetchone()
    token, holder, last, body = row or (0, None, 0, None)
    if holder not in (None, owner) and is_live(token):
        return None
    if c.execute(LEAVING, (conversation,)).fetchone() is not None:
        return None
    c.execute(
        "INSERT INTO conversations(id, token, owner, expires, work, at) VALUES(?1, ?2, ?3, ?4, 1, "
        "?5) ON CONFLICT(id) DO UPDATE SET token = ?2, owner = ?3, expires = ?4, work = 1",
        (conversation, token + 1, owner, now + ttl, now),
    )
    damaged: list[Letter] = []

    def read(kind: LetterKind, select: str, decode: Callable[[bytes], T]) -> tuple[T, ...]:
        found = c.execute(select, (conversation,)).fetchall()
        return tuple(read_each(found, decode, kind, conversation, damaged))

    return AcquiredConversation(
        lease=Lease(conversation=conversation, owner=owner, token=token + 1),
        row=_read_conversation(c, conversation, body, damaged),
        last=last,
        inbox=_read_inbox(c, conversation, 0, damaged),
        turns=tuple(sorted(read("turn", OPEN_TURNS, read_turn), key=lambda turn: turn.id)),
        views=read("view", UNSENT_VIEWS, read_view),
        questions=read("question", OPEN_QUESTIONS, read_question),
        crashed=holder is not None,
        damaged=tuple(damaged),
        began=began,
    )


def _read_conversation(
    c: sqlite3.Connection, conversation: str, body: bytes | None, damaged: list[Letter]
) -> ConversationRow:
    """Return the conversation's own row. From an unreadable one only the counters are recovered, so
    that later writes do not overwrite existing rows."""
    stored = [("", body)] if body else []
    rows = read_each(stored, read_row, "conversation", conversation, damaged)
    row = next(rows, ConversationRow())
    if row.is_counted:
        return row
    end, rev, position = c.execute(COUNTERS, {"where": conversation}).fetchone()
    return replace(row, end=end, rev=rev, position=position)


def _status(question: QuestionRow) -> str:
    """Return the status; `telling`: it is closed, and another conversation is to be told."""
    return "telling" if question.status != "open" and question.due > 0 else question.status


def apply_changes(c: sqlite3.Connection, lease: Lease, changes: Changes) -> None:
    """Write `changes` in the running transaction; Fenced if the lease's token is not the newest."""
    conversation = lease.conversation
    held = c.execute(
        "SELECT token, owner FROM conversations WHERE id = ?", (conversation,)
    ).fetchone()
    if held != (lease.token, lease.owner):
        raise Fenced(f"{conversation} is held under a newer token")
    for turn in changes.turns:
        ended = None if turn.status in ("running", "parked") else ambient.now()
        c.execute(
            "INSERT OR REPLACE INTO turns(id, conversation, status, ended, body) VALUES(?, ?, ?, "
            "?, ?)",
            (turn.id, conversation, turn.status, ended, encode(turn)),
        )
    for record in changes.records:
        c.execute("INSERT INTO records VALUES(?, ?, ?)", (record.turn, record.n, record.body()))
    for seq in changes.done:
        c.execute("UPDATE inbox SET state = 1 WHERE seq = ?", (seq,))
    for message in changes.unheard:
        c.execute("UPDATE inbox SET message = NULL WHERE message = ?", (message,))
    for view in changes.views:
        _write_view(c, conversation, view)
    for question in changes.questions:
        c.execute(
            "INSERT OR REPLACE INTO questions VALUES(?, ?, ?, ?, ?)",
            (question.id, conversation, _status(question), question.due, encode(question)),
        )
    for letter in changes.letters:
        write_letter(c, letter)
    _write_history(c, conversation, changes)
    if changes.row is not None:
        c.execute(
            "UPDATE conversations SET body = ? WHERE id = ?", (encode(changes.row), conversation)
        )
    for line in changes.audit:
        c.execute("INSERT INTO audit(at, body) VALUES(?, ?)", (line.at, encode(line)))
    if (note := note_end(changes.row, changes.audit)) is not None:
        put(c, *note, None)


def _write_view(c: sqlite3.Connection, conversation: str, view: OutboxRow) -> None:
    """Write a view. A sent one keeps its place in all indexes but that of unsent views."""
    unsent, body = view.is_unsent, encode(view)
    same = (view.turn, view.name, view.rev, view.position, conversation)
    done = c.execute(
        "UPDATE outbox SET unsent = ?, body = ? WHERE turn = ? AND name = ? AND rev = ?"
        " AND position = ? AND conversation = ?",
        (unsent, body, *same),
    )
    if not done.rowcount:
        c.execute(
            "INSERT OR REPLACE INTO outbox VALUES(?, ?, ?, ?, ?, ?, ?)",
            (view.turn, view.name, conversation, view.rev, view.position, unsent, body),
        )


def _write_history(c: sqlite3.Connection, conversation: str, changes: Changes) -> None:
    for entry in changes.transcript:
        c.execute(
            "INSERT INTO transcript VALUES(?, ?, ?, ?)",
            (conversation, entry.n, entry.turn, encode(entry)),
        )


def read_thread(c: sqlite3.Connection, conversation: str, spans: Spans) -> Thread:
    """The messages of the transcript's rows `spans`, a tuple for each row."""
    sql = "SELECT body FROM transcript WHERE conversation = ? AND n >= ? AND n < ? ORDER BY n"
    return tuple(
        row.messages
        for start, end in spans
        for row in readable("transcript", read_entry, c.execute(sql, (conversation, start, end)))
    )


def put(c: sqlite3.Connection, key: str, body: bytes | None, expected: bytes | None) -> bool:
    """Write a document, if it still is `expected`."""
    if expected is not None:
        row = c.execute("SELECT body FROM directory WHERE key = ?", (key,)).fetchone()
        if (row[0] if row else b"") != expected:
            return False
    if body is None:
        c.execute("DELETE FROM directory WHERE key = ?", (key,))
    else:
        c.execute("INSERT OR REPLACE INTO directory VALUES(?, ?)", (key, body))
    return True
