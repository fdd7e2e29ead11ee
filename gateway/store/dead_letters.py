"""Dead letters in the embedded store, and how damaged rows become letters.

A letter holds the payload itself: its source may be swept, or unreadable.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from gateway.store.reading import as_bytes
from gateway.store.rows import Letter, LetterKind, OutboxRow, QuestionRow, TurnRow

log = logging.getLogger("turnkeeper.store")

T = TypeVar("T")
MAX_REASON = 300

encode_letter = msgspec.json.Encoder().encode
_read_letter = msgspec.json.Decoder(Letter).decode
_read_view = msgspec.json.Decoder(OutboxRow).decode
_read_turn = msgspec.json.Decoder(TurnRow).decode
_read_question = msgspec.json.Decoder(QuestionRow).decode
_encode = msgspec.json.Encoder().encode


def make_damaged_letter(
    kind: LetterKind, conversation: str, name: str, payload: bytes | str, error: Exception
) -> Letter:
    """Make the letter of an unreadable row, whose body may not even be bytes."""
    log.error(
        "row_unreadable",
        extra={"conversation": conversation, "row": f"{kind} {name}", "why": str(error)},
    )
    return Letter(
        id=letter_id(kind, name),
        kind=kind,
        conversation=conversation,
        name=name,
        at=ambient.now(),
        why=f"unreadable: {error}"[:MAX_REASON],
        payload=payload if isinstance(payload, bytes) else str(payload).encode(errors="replace"),
    )


def letter_id(kind: LetterKind, name: str) -> str:
    """The id by which an operator names a letter: a message's number, else a short one."""
    return name if kind == "message" else f"{kind[0]}-{ambient.token(8)}"


def read_letter(name: str, conversation: str, body: bytes) -> Letter:
    """The stored letter `name`. For one that cannot be read a letter that can only be dropped."""
    try:
        return _read_letter(as_bytes(body))
    except (msgspec.MsgspecError, ValueError) as error:
        damaged = make_damaged_letter("conversation", conversation, name, body, error)
        return replace(damaged, id=name)


def read_each(
    rows: Iterable[tuple[str, bytes]],
    read: Callable[[bytes], T],
    kind: LetterKind,
    conversation: str,
    damaged: list[Letter],
) -> Iterator[T]:
    """Yield `read` of each (name, body); unreadable ones are added to `damaged`."""
    for name, body in rows:
        try:
            yield read(as_bytes(body))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            damaged.append(make_damaged_letter(kind, conversation, name, body, error))


def revive_view(payload: bytes) -> OutboxRow | None:
    """A view to be tried again from the beginning; None if its payload cannot be read."""
    try:
        row = _read_view(payload)
    except (msgspec.MsgspecError, ValueError):
        return None
    return replace(
        row, sent=min(row.sent, row.version - 1), sending=-1, copies=0, crashes=0, doubtful=False
    )


def revive_turn(payload: bytes) -> TurnRow | None:
    """Return the turn to run again; None if its payload cannot be read."""
    try:
        return replace(_read_turn(payload), status="running", resumes=0)
    except (msgspec.MsgspecError, ValueError):
        return None


def due_of(payload: bytes) -> float:
    """Return the time of a question's next action; 0 if its payload cannot be read."""
    try:
        return _read_question(payload).due
    except (msgspec.MsgspecError, ValueError):
        return 0.0


# ---- SQLite ------------------------------------------------------------------------------


def write_letter(c: sqlite3.Connection, letter: Letter) -> None:
    """Keep a letter, and take the row that it is about out of the work."""
    c.execute(
        "INSERT OR REPLACE INTO letters VALUES(?, ?, ?, ?, ?)",
        (letter.id, letter.conversation, letter.kind, letter.at, encode_letter(letter)),
    )
    name = letter.name
    match letter.kind:
        case "message":
            c.execute("UPDATE inbox SET state = 1 WHERE seq = ?", (int(name),))
        case "turn":
            # its journal stays as long as the letter: a turn that goes on without it does all again
            c.execute("UPDATE turns SET status = 'dead', ended = NULL WHERE id = ?", (name,))
        case "view":
            turn, _, view = name.partition(" ")
            c.execute("UPDATE outbox SET unsent = 0 WHERE turn = ? AND name = ?", (turn, view))
        case "question":
            c.execute("UPDATE questions SET status = 'aside', expires = 0 WHERE id = ?", (name,))
        case "job":
            c.execute("UPDATE jobs SET wake = 0 WHERE id = ?", (name,))
        case "run":
            job, _, slot = name.partition(" ")
            sql = "UPDATE runs SET open = 0, wake = 0 WHERE job = ? AND slot = ?"
            c.execute(sql, (job, slot))
        case "conversation":
            pass


def write_letters(c: sqlite3.Connection, letters: Iterable[Letter]) -> None:
    """Write several letters; see `write_letter`."""
    for letter in letters:
        write_letter(c, letter)


def list_letters(c: sqlite3.Connection, limit: int) -> tuple[Letter, ...]:
    """The newest letters."""
    sql = (
        "SELECT id, conversation, body FROM letters WHERE at > 0 ORDER BY at DESC, id DESC LIMIT ?"
    )
    return tuple(starmap(read_letter, c.execute(sql, (limit,))))


def find_letter(c: sqlite3.Connection, name: str) -> Letter | None:
    """The letter `name`."""
    sql = "SELECT id, conversation, body FROM letters WHERE id = ?"
    row = c.execute(sql, (name,)).fetchone()
    return read_letter(*row) if row else None


def drop_letter(c: sqlite3.Connection, name: str, now: float) -> bool:
    """Delete a letter for good; a turn ends with it. Return False if there is none."""
    letter = find_letter(c, name)
    if letter is not None and letter.kind == "turn":
        sql = "UPDATE turns SET ended = ? WHERE id = ? AND status = 'dead'"
        c.execute(sql, (now, letter.name))
    return _delete_letter(c, name)


def _delete_letter(c: sqlite3.Connection, name: str) -> bool:
    return bool(c.execute("DELETE FROM letters WHERE id = ?", (name,)).rowcount)


def resubmit_letter(c: sqlite3.Connection, name: str, now: float) -> str | None:
    """Make a letter's content work again. Return its conversation, None if that is impossible."""
    letter = find_letter(c, name)
    if letter is None or letter.kind == "conversation":
        return None
    where = letter.conversation
    if c.execute("SELECT 1 FROM leaving WHERE conversation = ?", (where,)).fetchone():
        return None  # it goes with its conversation
    match letter.kind:
        case "message":
            done = c.execute(
                "INSERT INTO inbox(conversation, event, at, body) VALUES(?, ?, ?, ?)",
                (where, f"again:{name}:{ambient.new_id()}", now, letter.payload),
            )
            c.execute("UPDATE conversations SET last = ? WHERE id = ?", (done.lastrowid, where))
        case "turn":
            turned = revive_turn(letter.payload)
            body = letter.payload if turned is None else _encode(turned)
            sql = "UPDATE turns SET status = 'running', ended = NULL, body = ? WHERE id = ?"
            c.execute(sql, (body, letter.name))
        case "view":
            turn, _, view = letter.name.partition(" ")
            row = revive_view(letter.payload)
            body = letter.payload if row is None else _encode(row)
            sql = "UPDATE outbox SET unsent = 1, body = ? WHERE turn = ? AND name = ?"
            c.execute(sql, (body, turn, view))
        case "question":
            sql = "UPDATE questions SET status = 'open', expires = ? WHERE id = ?"
            c.execute(sql, (due_of(letter.payload), letter.name))
        case "job":
            c.execute("UPDATE jobs SET wake = ? WHERE id = ?", (now, letter.name))
        case "run":
            job, _, slot = letter.name.partition(" ")
            sql = "UPDATE runs SET open = 1, wake = ? WHERE job = ? AND slot = ?"
            c.execute(sql, (now, job, slot))
    c.execute("UPDATE conversations SET work = 1 WHERE id = ?", (where,))
    _delete_letter(c, name)
    return where


def adopt_dead_rows(c: sqlite3.Connection) -> None:
    """Messages that an earlier version gave up, as letters."""
    sql = "SELECT seq, conversation, at, body FROM inbox WHERE state = 2"
    for seq, where, at, body in c.execute(sql).fetchall():
        write_letter(
            c,
            Letter(
                id=str(seq),
                kind="message",
                conversation=where,
                name=str(seq),
                at=at,
                why="given up by an earlier version",
                payload=body,
            ),
        )
