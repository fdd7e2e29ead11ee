"""The content of the embedded store as bytes: read and changed a hundred rows at a time."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from gateway.store.reading import as_bytes
from gateway.store.removal.stored import Edit, Stored, StoredKind
from gateway.store.sqlite import SqliteStore

ROWS, PAGE = 100, 1_000
GONE = b"{}"
_SELECTS: tuple[tuple[StoredKind, str], ...] = (
    ("conversation", "SELECT id, id, body FROM conversations WHERE id = ?1 AND id > ?2 LIMIT ?3"),
    (
        "turn",
        "SELECT id, id, body FROM turns WHERE conversation = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    ),
    (
        "view",
        "SELECT rowid, rowid, body FROM outbox WHERE conversation = ?1 AND rowid > ?2"
        " ORDER BY rowid LIMIT ?3",
    ),
    (
        "question",
        "SELECT id, id, body FROM questions WHERE conversation = ?1 AND id > ?2"
        " ORDER BY id LIMIT ?3",
    ),
    (
        "transcript",
        "SELECT n, n, body FROM transcript WHERE conversation = ?1 AND n > ?2 ORDER BY n LIMIT ?3",
    ),
    (
        "letter",
        "SELECT id, id, body FROM letters WHERE conversation = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    ),
)
_RECORDS = "SELECT n, body FROM records WHERE turn = ? ORDER BY n"
_MESSAGE = """UPDATE inbox SET body = ?1, state = CASE WHEN ?1 = x'7b7d' THEN 1 ELSE state END
WHERE seq = ?2"""
# an empty row counts as done: only its event is still known
_UPDATES: dict[StoredKind, str] = {
    "conversation": "UPDATE conversations SET body = ?2 WHERE id = ?1",
    "turn": "UPDATE turns SET body = ?2 WHERE id = ?1",
    "view": "UPDATE outbox SET body = ?2 WHERE rowid = ?1",
    "question": "UPDATE questions SET body = ?2 WHERE id = ?1",
    "letter": "UPDATE letters SET body = ?2 WHERE id = ?1",
}


class SqliteContents:
    """The port `Contents` over the file of a SqliteStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def read_all(self, conversation: str) -> AsyncIterator[Stored]:
        for kind, sql in _SELECTS:
            after: str | int = -1 if kind in ("view", "transcript") else ""
            while rows := await self._select(sql, conversation, after):
                after = rows[-1][0]
                for _, name, body in rows:
                    if body is not None:
                        yield Stored(kind, str(name), body)
                    if kind == "turn":
                        for n, record in await self._select_lines(_RECORDS, name):
                            yield Stored("record", f"{name} {n}", record)

    async def _select(self, sql: str, *values: str | int) -> list[tuple[str, str, bytes]]:
        return await self._store.read(partial(_fetch, sql, (*values, ROWS)))

    async def _select_lines(self, sql: str, *values: str | int) -> list[tuple[int, bytes]]:
        return await self._store.read(partial(_fetch, sql, values))

    async def write_all(self, conversation: str, rows: Sequence[Stored]) -> None:
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            await self._store.write(partial(_write, conversation, some))

    async def edit_messages(self, conversations: frozenset[str], edit: Edit) -> int:
        sql = "SELECT seq, conversation, body FROM inbox WHERE seq > ? ORDER BY seq LIMIT ?"
        after, count = -1, 0
        while found := await self._store.read(partial(_fetch, sql, (after, ROWS))):
            after = found[-1][0]
            edited = (
                (seq, GONE if where in conversations else edit(body), body)
                for seq, where, body in found
            )
            changed = [(new, seq) for seq, new, body in edited if new != body]
            await self._store.write(partial(_update, _MESSAGE, changed))
            count += len(changed)
        return count

    async def edit_audit(self, edit: Edit) -> int:
        sql = "SELECT n, body FROM audit WHERE n > ? ORDER BY n LIMIT ?"
        after, count = -1, 0
        while found := await self._select_lines(sql, after, ROWS):
            after = found[-1][0]
            edited = ((n, edit(body), body) for n, body in found)
            changed = [(new, n) for n, new, body in edited if new != body]
            update = "UPDATE audit SET body = ? WHERE n = ?"
            await self._store.write(partial(_update, update, changed))
            count += len(changed)
        return count

    async def read_audit(self) -> AsyncIterator[list[bytes]]:
        sql = "SELECT n, body FROM audit WHERE n > ? ORDER BY n LIMIT ?"
        after = -1
        while found := await self._select_lines(sql, after, PAGE):
            after = found[-1][0]
            yield [as_bytes(body) for _, body in found]

    async def read_rows(self) -> AsyncIterator[tuple[str, bytes]]:
        sql = "SELECT id, body FROM conversations WHERE id > ? ORDER BY id LIMIT ?"
        after = ""
        while found := await self._store.read(partial(_fetch, sql, (after, PAGE))):
            after = found[-1][0]
            for name, body in found:
                if body is not None:
                    yield name, as_bytes(body)

    async def read_row(self, conversation: str) -> bytes | None:
        sql = "SELECT body FROM conversations WHERE id = ?"
        found = await self._store.read(partial(_fetch, sql, (conversation,)))
        return as_bytes(found[0][0]) if found and found[0][0] is not None else None

    async def note(self, at: float, name: str, body: bytes, key: str, document: bytes) -> None:
        def write(c: sqlite3.Connection) -> None:
            known = c.execute("SELECT body FROM directory WHERE key = ?", (key,)).fetchone()
            if known is None or known[0] != document:  # otherwise the line is there as well
                c.execute("INSERT INTO audit(at, body) VALUES(?, ?)", (at, body))
                c.execute("INSERT OR REPLACE INTO directory VALUES(?, ?)", (key, document))

        await self._store.write(write)

    async def wipe(self, *, whole: bool) -> None:
        await asyncio.to_thread(self._store.compact, whole=whole)


def _fetch(sql: str, values: Sequence[str | int], c: sqlite3.Connection) -> list[Any]:
    return c.execute(sql, values).fetchall()


def _update(sql: str, rows: Sequence[tuple[bytes, int]], c: sqlite3.Connection) -> None:
    for row in rows:
        c.execute(sql, row)


def _write(conversation: str, rows: Sequence[Stored], c: sqlite3.Connection) -> None:
    for row in rows:
        if row.kind == "transcript":
            sql = "UPDATE transcript SET body = ? WHERE conversation = ? AND n = ?"
            c.execute(sql, (row.body, conversation, int(row.key)))
        elif row.kind == "record":
            turn, _, n = row.key.rpartition(" ")
            sql = "UPDATE records SET body = ? WHERE turn = ? AND n = ?"
            c.execute(sql, (row.body, turn, int(n)))
        else:
            name = int(row.key) if row.kind == "view" else row.key
            c.execute(_UPDATES[row.kind], (name, row.body))
