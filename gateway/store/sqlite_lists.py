"""Lists of conversations in the embedded store, and searches in them.

A conversation is in the list of its account and in that of its group or person. It is moved to the
front only if it is not there already: further messages in the newest conversation write nothing,
and the lists stay in the order of the last messages.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.messages import Conversation, Inbound, is_press, sender_of
from gateway.ports import ListScope, Summary, account_scope, channel_scope, person_scope
from gateway.store import search
from gateway.store.reading import readable
from gateway.store.rows import OutboxRow, TranscriptRow

State = Literal["idle", "running", "waiting"]
STEP = 1e-6
"""Minimum seconds by which a moved conversation is ahead of the former first."""

_SUMMARY = """c.id, c.at, c.body, c.owner, EXISTS(SELECT 1 FROM turns WHERE conversation = c.id
AND status = 'parked')"""
_RECENT = f"""SELECT {_SUMMARY} FROM lists l CROSS JOIN conversations c ON c.id = l.conversation
WHERE l.list = ? ORDER BY l.at DESC LIMIT ?"""
_FRONT = "SELECT at, conversation FROM lists WHERE list = ? ORDER BY at DESC LIMIT 1"

_view = msgspec.json.Decoder(OutboxRow).decode
_entry = msgspec.json.Decoder(TranscriptRow).decode


class _Chosen(Struct, frozen=True):
    model: str = ""


class _Titled(Struct):
    """The part of a conversation's row that a list needs."""

    title: str = ""
    settings: _Chosen = _Chosen()


_title = msgspec.json.Decoder(_Titled).decode


def name_lists(where: Conversation, person: str) -> tuple[str, ...]:
    """Return the lists of a conversation; `person`: its owner if it is private."""
    if not where.private:
        own: ListScope | None = channel_scope(where)
    else:
        own = person_scope(person) if person else None
    return tuple(scope.key for scope in (account_scope(where), own) if scope is not None)


def bring_forward(c: sqlite3.Connection, inbound: Inbound, now: float) -> None:
    """Put the conversation of `inbound`, which has a row, to the front of its lists."""
    where, sender = inbound.conversation, sender_of(inbound)
    sql = "SELECT person, listed FROM conversations WHERE id = ?"
    known, listed = c.execute(sql, (where.id,)).fetchone()
    decides = bool(known) and is_press(inbound)  # who decides there is not whose it is
    person = sender.key if where.private and sender is not None and not decides else known
    lists = name_lists(where, person)
    fronts = [c.execute(_FRONT, (name,)).fetchone() for name in lists]
    if all(front is not None and front[1] == where.id for front in fronts):
        return
    at = max(now, *(front[0] + STEP for front in fronts if front is not None), listed + STEP)
    for name in name_lists(where, known) if listed else ():
        c.execute(
            "DELETE FROM lists WHERE list = ? AND at = ? AND conversation = ?",
            (name, listed, where.id),
        )
    enter(c, where.id, lists, at, person)


def enter(
    c: sqlite3.Connection, conversation: str, lists: Sequence[str], at: float, person: str
) -> None:
    """Write the conversation's place in `lists`, in which it is missing."""
    for name in lists:
        c.execute("INSERT INTO lists VALUES(?, ?, ?)", (name, at, conversation))
    sql = "UPDATE conversations SET listed = ?, person = ? WHERE id = ?"
    c.execute(sql, (at, person, conversation))


def read_summary(c: sqlite3.Connection, conversation: str) -> Summary | None:
    """Return one conversation as lists show it."""
    row = c.execute(
        f"SELECT {_SUMMARY} FROM conversations c WHERE c.id = ?", (conversation,)
    ).fetchone()
    return _summary(*row) if row is not None else None


def read_recent(
    c: sqlite3.Connection, scope: ListScope, limit: int, words: frozenset[str]
) -> tuple[Summary, ...]:
    """Return a list, newest first; with folded `words` only conversations that contain them."""
    if not words:
        return tuple(_summary(*row) for row in c.execute(_RECENT, (scope.key, limit)))
    found: list[Summary] = []
    for row in c.execute(_RECENT, (scope.key, search.MAX_SEARCHED)).fetchall():
        one = _summary(*row)
        bodies = _read_in_pieces(
            c, "SELECT body FROM outbox WHERE conversation = ?", one.conversation
        )
        if not search.miss(words, one.title, bodies, _read_shown):
            found.append(one)
            if len(found) == limit:
                break
    return tuple(found)


def _read_shown(body: bytes) -> str:
    return "".join(search.visible_text(row.view) for row in readable("view", _view, [[body]]))


def read_holding(
    c: sqlite3.Connection, conversations: Sequence[str], words: frozenset[str], limit: int
) -> tuple[tuple[str, tuple[TranscriptRow, ...]], ...]:
    """Return the last rows of the conversations whose last rows may contain all of the folded
    words."""
    sql = "SELECT body FROM transcript WHERE conversation = ? ORDER BY n DESC LIMIT ?"
    found = []
    for name in conversations:
        bodies = [body for (body,) in c.execute(sql, (name, limit))]
        if search.may_hold(words, bodies):
            rows = readable("transcript", _entry, ([body] for body in reversed(bodies)))
            found.append((name, tuple(rows)))
    return tuple(found)


def _read_in_pieces(c: sqlite3.Connection, sql: str, conversation: str) -> Iterator[list[bytes]]:
    rows = c.execute(sql, (conversation,))
    while piece := rows.fetchmany(search.PIECE):
        yield [body for (body,) in piece]


def _summary(
    address: str, at: float, body: bytes | None, owner: str | None, parked: int
) -> Summary:
    titles = readable("conversation", _title, [[body]] if body else [])
    row = next(iter(titles), _Titled())
    state: State = "running" if owner is not None else "waiting" if parked else "idle"
    return Summary(
        conversation=address, title=row.title, at=at, state=state, model=row.settings.model
    )
