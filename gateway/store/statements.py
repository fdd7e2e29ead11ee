"""The statements behind the embedded store: each works in the running transaction."""

import sqlite3
from itertools import islice
from typing import Literal

import msgspec

from agent_core import ambient
from gateway.errors import Fenced
from gateway.messages import Inbound, dedupe_keys
from gateway.ports import Summary
from gateway.store import search
from gateway.store.rows import (
    Accepted,
    AuditRow,
    Changes,
    ConversationRow,
    InboxRow,
    Lease,
    Opened,
    OutboxRow,
    QuestionRow,
    Thread,
    TranscriptRow,
    TurnRow,
)

State = Literal["idle", "running", "waiting"]
DAY = 86_400.0

encode = msgspec.json.Encoder().encode
read_inbound = msgspec.json.Decoder(Inbound).decode
read_row = msgspec.json.Decoder(ConversationRow).decode
read_turn = msgspec.json.Decoder(TurnRow).decode
read_view = msgspec.json.Decoder(OutboxRow).decode
read_question = msgspec.json.Decoder(QuestionRow).decode
read_entry = msgspec.json.Decoder(TranscriptRow).decode
read_thread = msgspec.json.Decoder(Thread).decode
read_audit = msgspec.json.Decoder(AuditRow).decode


RELEASE = """UPDATE conversations SET owner = NULL, expires = 0, work = 0, seen = ?1
WHERE id = ?2 AND last <= ?3
AND NOT EXISTS (SELECT 1 FROM outbox WHERE conversation = ?2 AND unsent = 1)
AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation = ?2 AND status = 'running')"""


def accept(c: sqlite3.Connection, inbound: Inbound, now: float) -> Accepted:
    """Keep one inbound value, unless it is known."""
    conversation = inbound.conversation.id
    event, message = dedupe_keys(inbound)
    done = c.execute(
        "INSERT OR IGNORE INTO inbox(conversation, event, message, at, body) VALUES(?, ?, ?, ?, ?)",
        (conversation, event, message or None, now, encode(inbound)),
    )
    if not done.rowcount:
        return Accepted(seq=0, fresh=False)
    seq = done.lastrowid or 0
    c.execute(
        "INSERT INTO conversations(id, last, at) VALUES(?1, ?2, ?3)"
        " ON CONFLICT(id) DO UPDATE SET last = ?2, at = ?3",
        (conversation, seq, now),
    )
    return Accepted(seq=seq, fresh=True)


def arrivals(c: sqlite3.Connection, conversation: str, after: int) -> tuple[InboxRow, ...]:
    """Waiting rows of the conversation above `after`."""
    sql = "SELECT seq, at, body FROM inbox WHERE conversation = ? AND state = 0 AND seq > ? ORDER BY seq"
    return tuple(
        InboxRow(seq=seq, at=at, inbound=read_inbound(body))
        for seq, at, body in c.execute(sql, (conversation, after))
    )


def resubmit(c: sqlite3.Connection, seq: int) -> str | None:
    """Make a dead letter wait again, as the newest row."""
    row = c.execute("SELECT conversation FROM inbox WHERE seq = ? AND state = 2", (seq,)).fetchone()
    if row is None:
        return None
    newest = c.execute("SELECT max(seq) + 1 FROM inbox").fetchone()[0]
    c.execute("UPDATE inbox SET state = 0, seq = ? WHERE seq = ?", (newest, seq))
    c.execute("UPDATE conversations SET last = ? WHERE id = ?", (newest, *row))
    return str(row[0])


def acquire(
    c: sqlite3.Connection, conversation: str, owner: str, now: float, ttl: float
) -> Opened | None:
    """Take the lease if it is free, with what its holder needs."""
    row = c.execute(
        "SELECT token, owner, expires, last, body FROM conversations WHERE id = ?", (conversation,)
    ).fetchone()
    token, holder, expires, last, body = row or (0, None, 0.0, 0, None)
    if holder is not None and holder != owner and expires > now:
        return None
    c.execute(
        "INSERT INTO conversations(id, token, owner, expires, work, at) VALUES(?1, ?2, ?3, ?4, 1, ?5)"
        " ON CONFLICT(id) DO UPDATE SET token = ?2, owner = ?3, expires = ?4, work = 1",
        (conversation, token + 1, owner, now + ttl, now),
    )
    of_it = (conversation,)
    turns = "SELECT body FROM turns WHERE conversation = ? AND status IN ('running', 'parked')"
    views = "SELECT body FROM outbox WHERE conversation = ? AND unsent = 1"
    questions = "SELECT body FROM questions WHERE conversation = ? AND status = 'open'"
    return Opened(
        lease=Lease(conversation=conversation, owner=owner, token=token + 1),
        row=read_row(body) if body else ConversationRow(),
        last=last,
        inbox=arrivals(c, conversation, 0),
        turns=tuple(read_turn(b) for (b,) in c.execute(turns, of_it)),
        views=tuple(read_view(b) for (b,) in c.execute(views, of_it)),
        questions=tuple(read_question(b) for (b,) in c.execute(questions, of_it)),
        crashed=holder is not None,
    )


def _status(question: QuestionRow) -> str:
    """`telling`: it is closed, and another conversation is to be told."""
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
            "INSERT OR REPLACE INTO turns(id, conversation, status, ended, body) VALUES(?, ?, ?, ?, ?)",
            (turn.id, conversation, turn.status, ended, encode(turn)),
        )
    for record in changes.records:
        c.execute("INSERT INTO records VALUES(?, ?, ?)", (record.turn, record.n, record.body()))
    for state, rows in ((1, changes.done), (2, changes.dead)):
        for seq in rows:
            c.execute("UPDATE inbox SET state = ? WHERE seq = ?", (state, seq))
    for view in changes.views:
        unsent = view.version > view.sent or view.sending >= 0
        c.execute(
            "INSERT OR REPLACE INTO outbox VALUES(?, ?, ?, ?, ?, ?, ?)",
            (view.turn, view.name, conversation, view.rev, view.position, unsent, encode(view)),
        )
    for question in changes.questions:
        c.execute(
            "INSERT OR REPLACE INTO questions VALUES(?, ?, ?, ?, ?)",
            (question.id, conversation, _status(question), question.due, encode(question)),
        )
    _write_history(c, conversation, changes)
    if changes.row is not None:
        c.execute(
            "UPDATE conversations SET body = ? WHERE id = ?", (encode(changes.row), conversation)
        )
    for line in changes.audit:
        c.execute("INSERT INTO audit(at, body) VALUES(?, ?)", (line.at, encode(line)))


def _write_history(c: sqlite3.Connection, conversation: str, changes: Changes) -> None:
    for entry in changes.transcript:
        c.execute(
            "INSERT INTO transcript VALUES(?, ?, ?, ?)",
            (conversation, entry.n, entry.turn, encode(entry)),
        )
    if changes.thread is not None:
        body = encode(changes.thread)
        c.execute("INSERT OR REPLACE INTO threads VALUES(?, ?)", (conversation, body))


def conversations(
    c: sqlite3.Connection, prefix: str, limit: int, words: str
) -> tuple[Summary, ...]:
    """Conversations by prefix, newest first; with `words` only those that hold them."""
    sql = (
        "SELECT id, at, body, owner, EXISTS(SELECT 1 FROM turns WHERE conversation = c.id"
        " AND status = 'parked') FROM conversations c"
        " WHERE id >= ? AND id < ? ORDER BY at DESC LIMIT ?"
    )
    missing = search.wanted(words)
    most = search.MOST_SEARCHED if missing else limit
    rows = c.execute(sql, (prefix, prefix + "\U0010ffff", most)).fetchall()
    found = (_summary(*row) for row in rows)
    if not missing:
        return tuple(found)
    return tuple(islice((one for one in found if _holds(c, one, missing)), limit))


def _holds(c: sqlite3.Connection, one: Summary, missing: frozenset[str]) -> bool:
    bodies = c.execute("SELECT body FROM outbox WHERE conversation = ?", (one.conversation,))
    return search.holds(missing, one.title, (read_view(body).view for (body,) in bodies))


def _summary(
    address: str, at: float, body: bytes | None, owner: str | None, parked: int
) -> Summary:
    title = read_row(body).title if body else ""
    state: State = "running" if owner is not None else "waiting" if parked else "idle"
    return Summary(conversation=address, title=title, at=at, state=state)


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


def sweep(c: sqlite3.Connection, now: float) -> int:
    """Drop what is past its time."""
    gone = c.execute("DELETE FROM inbox WHERE state = 1 AND at < ?", (now - DAY,)).rowcount
    ended = "SELECT id FROM turns WHERE ended IS NOT NULL AND ended < ?"
    gone += c.execute(f"DELETE FROM records WHERE turn IN ({ended})", (now - 30 * DAY,)).rowcount
    return gone
