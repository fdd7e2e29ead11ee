"""Removes conversations from the embedded store, by transactions of a few milliseconds each."""

import sqlite3
from collections.abc import Sequence

from agent_core import ambient
from gateway.messages import read_conversation
from gateway.store import sqlite_lists
from gateway.store.reading import as_bytes
from gateway.store.removal.port import Mark, Position
from gateway.store.sqlite import SqliteStore

ROWS, SECONDS = 100, 0.004
"""Maximum rows of one piece, and the seconds after which it ends early."""

_LISTS = "SELECT list FROM lists WHERE list > ? AND list < 'a;' ORDER BY list LIMIT 1"
# the newest entry keeps its position in the list: its own time tells its age
_IDLE = """SELECT l.at, l.conversation FROM lists l CROSS JOIN conversations c
ON c.id = l.conversation AND c.at < ?4
WHERE l.list = ?1 AND (l.at, l.conversation) > (?2, ?3) AND l.at < ?4
ORDER BY l.at, l.conversation LIMIT ?5"""
_BUSY = """SELECT EXISTS(SELECT 1 FROM turns WHERE conversation = ?1
AND status IN ('running', 'parked'))
OR EXISTS(SELECT 1 FROM questions WHERE conversation = ?1 AND status = 'open')
OR EXISTS(SELECT 1 FROM inbox WHERE conversation = ?1 AND state = 0)"""
_PARTS = (
    ("transcript", "n", "SELECT n FROM transcript WHERE conversation = ? LIMIT ?"),
    ("outbox", "rowid", "SELECT rowid FROM outbox WHERE conversation = ? LIMIT ?"),
    ("questions", "id", "SELECT id FROM questions WHERE conversation = ? LIMIT ?"),
    ("letters", "id", "SELECT id FROM letters WHERE conversation = ? LIMIT ?"),
)
_WAITING = "SELECT seq FROM inbox WHERE conversation = ? AND state = 0 AND seq <= ? LIMIT ?"


class SqliteRemoval:
    """The port `Removal` over the file of a SqliteStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def find_idle(self, before: float, limit: int, after: Position) -> tuple[Position, ...]:
        def work(c: sqlite3.Connection) -> tuple[Position, ...]:
            found: list[Position] = []
            start = after
            while len(found) < limit:
                if start.within:
                    wanted = (start.within, start.at, start.conversation, before, limit)
                    rows = c.execute(_IDLE, wanted).fetchall()
                    found += (Position(start.within, *row) for row in rows)
                following = c.execute(_LISTS, (start.within or "a:",)).fetchone()
                if following is None:
                    break
                start = Position(following[0])
            return tuple(found)

        return await self._store.read(work)

    async def begin(self, conversation: str, before: float | None) -> bool:
        return await self._store.write(lambda c: self._begin(c, conversation, before))

    def _begin(self, c: sqlite3.Connection, conversation: str, before: float | None) -> bool:
        sql = "SELECT token, owner, at, work, last, seen FROM conversations WHERE id = ?"
        row = c.execute(sql, (conversation,)).fetchone()
        if row is None:
            return False
        token, owner, at, work, last, seen = row
        if owner is not None and self._store.is_live(conversation, token):
            return False
        if before is not None:
            if at >= before or work or last > seen:
                return False
            if c.execute(_BUSY, (conversation,)).fetchone()[0]:
                return False
        # a higher token: an earlier holder cannot write any more
        c.execute(
            "UPDATE conversations SET owner = NULL, expires = 0, work = 0, seen = last,"
            " token = token + 1 WHERE id = ?",
            (conversation,),
        )
        c.execute("INSERT OR IGNORE INTO leaving VALUES(?, ?)", (conversation, last))
        return True

    async def remove_piece(self, conversation: str) -> bool:
        return await self._store.write(lambda c: _remove_piece(c, conversation))

    async def find_marked(self) -> tuple[str, ...]:
        sql = "SELECT conversation FROM leaving WHERE conversation > '' LIMIT ?"
        rows = await self._store.read(lambda c: c.execute(sql, (ROWS,)).fetchall())
        return tuple(name for (name,) in rows)

    async def drop_audit(self, before: float, mark: Mark) -> bool:
        sql = "SELECT n, at, body FROM audit WHERE n > 0 ORDER BY n LIMIT ?"
        rows = await self._store.read(lambda c: c.execute(sql, (ROWS,)).fetchall())
        old = [(n, as_bytes(body)) for n, at, body in rows if at < before]
        if old:
            go = await mark([body for _, body in old])
            old = [(n, body) for n, body in old if body in go]
            await self._store.write(lambda c: _drop_lines(c, [n for n, _ in old]))
        return bool(old) and len(rows) == ROWS


def _remove_piece(c: sqlite3.Connection, conversation: str) -> bool:
    until = ambient.monotonic() + SECONDS
    sql = "SELECT bound FROM leaving WHERE conversation = ?"
    marked = c.execute(sql, (conversation,)).fetchone()
    if marked is None:
        return False
    room = ROWS
    for table, column, select in _PARTS:
        keys = c.execute(select, (conversation, room)).fetchall()
        own = " AND conversation = ?" if table == "transcript" else ""
        more = (conversation,) if own else ()
        for (key,) in keys:
            c.execute(f"DELETE FROM {table} WHERE {column} = ?{own}", (key, *more))
            room -= 1
            if room <= 0 or ambient.monotonic() > until:
                return True
    for (seq,) in c.execute(_WAITING, (conversation, *marked, room)).fetchall():
        c.execute("DELETE FROM inbox WHERE seq = ?", (seq,))
        room -= 1
    if _remove_turns(c, conversation, room, until) or room <= 0:
        return True
    _finish(c, conversation, *marked)
    return False


def _remove_turns(c: sqlite3.Connection, conversation: str, room: int, until: float) -> bool:
    """Remove turns with their journals. Return True if there may be more."""
    turns = "SELECT id FROM turns WHERE conversation = ? LIMIT ?"
    records = "SELECT n FROM records WHERE turn = ? LIMIT ?"
    found = c.execute(turns, (conversation, ROWS)).fetchall()
    for (turn,) in found:
        for (n,) in c.execute(records, (turn, room)).fetchall():
            c.execute("DELETE FROM records WHERE turn = ? AND n = ?", (turn, n))
            room -= 1
            if room <= 0 or ambient.monotonic() > until:
                return True
        c.execute("DELETE FROM turns WHERE id = ?", (turn,))
        room -= 1
        if room <= 0 or ambient.monotonic() > until:
            return True
    return len(found) == ROWS


def _finish(c: sqlite3.Connection, conversation: str, bound: int) -> None:
    """Remove the conversation's own row, or reset it if something has arrived since."""
    c.execute("DELETE FROM leaving WHERE conversation = ?", (conversation,))
    sql = "UPDATE conversations SET body = NULL WHERE id = ? AND last > ?"
    if c.execute(sql, (conversation, bound)).rowcount:
        return
    sql = "SELECT listed, person FROM conversations WHERE id = ?"
    for listed, person in c.execute(sql, (conversation,)).fetchall():
        for name in sqlite_lists.name_lists(read_conversation(conversation), person):
            c.execute(
                "DELETE FROM lists WHERE list = ? AND at = ? AND conversation = ?",
                (name, listed, conversation),
            )
    c.execute("DELETE FROM conversations WHERE id = ?", (conversation,))


def _drop_lines(c: sqlite3.Connection, numbers: Sequence[int]) -> None:
    for n in numbers:
        c.execute("DELETE FROM audit WHERE n = ?", (n,))
