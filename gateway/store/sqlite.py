"""The embedded store: SQLite with WAL, one writing connection, group commit, full sync."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from agent_core import ambient
from agent_core.journal import Record
from agent_core.journal import decode as decode_record
from gateway.errors import StoreFailed
from gateway.messages import Inbound
from gateway.ports import Shown, Summary
from gateway.store import statements
from gateway.store.rows import (
    Accepted,
    AuditRow,
    Changes,
    InboxRow,
    Lease,
    Opened,
    OutboxRow,
    QuestionRow,
    Thread,
    TranscriptRow,
    TurnRow,
    shown,
)
from gateway.store.writer import Writer

T = TypeVar("T")
SCHEMA = Path(__file__).with_name("schema.sql")


NEAR = 1_000
"""Documents of the directory that are kept at hand."""
AT_HAND = ("memory:", "identity:")
"""How the names of those begin: what each turn asks for, and only this process writes."""


class SqliteStore:
    """All store ports over one file. Open it with `await SqliteStore.open(path)`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer = Writer(self._connect)
        self._reader = ThreadPoolExecutor(1, "store-reader")
        self._reading: sqlite3.Connection | None = None
        self._broken: set[tuple[str, int]] = set()
        self._recent: sqlite3.Connection | None = None
        self._near: dict[str, bytes | None] = {}
        """Small documents read lately: nobody else writes this file."""
        self._there: set[str] = set()
        """Names of all small documents that are there or may be: others cost no look."""
        self._puts = 0

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """The store in the file `path`, made if missing; StoreFailed if it cannot be."""
        store = cls(path)
        await store._writer.started()
        for prefix in AT_HAND:
            store._there.update(await store.keys(prefix))
        return store

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        await self._writer.close()
        self._reader.shutdown()
        for connection in (self._reading, self._recent):
            if connection is not None:
                connection.close()

    @property
    def commits(self) -> int:
        """Commits so far (each may hold many requests)."""
        return self._writer.commits

    # ---- inbox ---------------------------------------------------------------------------

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[Accepted, ...]:
        now = ambient.now()
        return await self._writer.submit(
            lambda c: tuple(statements.accept(c, inbound, now) for inbound in inbounds)
        )

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        # written a moment ago, so still in memory: a thread would cost more than the look
        try:
            if self._recent is None:
                self._recent = _open(self._path, patience=0.0)
                self._recent.execute("PRAGMA cache_size = -256")
            return statements.arrivals(self._recent, conversation, after)
        except sqlite3.Error:
            return await self._read(lambda c: statements.arrivals(c, conversation, after))

    async def dead_letters(self, limit: int) -> tuple[InboxRow, ...]:
        return await self._read(
            lambda c: tuple(
                InboxRow(seq=seq, at=at, inbound=statements.read_inbound(body))
                for seq, at, body in c.execute(
                    "SELECT seq, at, body FROM inbox WHERE state = 2 ORDER BY seq DESC LIMIT ?",
                    (limit,),
                )
            )
        )

    async def resubmit(self, seq: int) -> str | None:
        return await self._writer.submit(lambda c: statements.resubmit(c, seq))

    # ---- leases and commits --------------------------------------------------------------

    async def acquire(self, conversation: str, owner: str, ttl: float) -> Opened | None:
        now = ambient.now()

        return await self._writer.submit(lambda c: self._take(c, conversation, owner, now, ttl))

    def _take(
        self, c: sqlite3.Connection, conversation: str, owner: str, now: float, ttl: float
    ) -> Opened | None:
        opened = statements.acquire(c, conversation, owner, now, ttl)
        if opened is not None:
            self._broken.discard((conversation, opened.lease.token - 1))
        return opened

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[Accepted, ...], tuple[Opened, ...]]:
        now = ambient.now()

        def work(c: sqlite3.Connection) -> tuple[tuple[Accepted, ...], tuple[Opened, ...]]:
            accepted = tuple(statements.accept(c, inbound, now) for inbound in inbounds)
            fresh = (i.conversation.id for i, a in zip(inbounds, accepted, strict=True) if a.fresh)
            taken = [
                self._take(c, name, owner, now, ttl)
                for name in dict.fromkeys(fresh)
                if name in free
            ]
            return accepted, tuple(opened for opened in taken if opened is not None)

        return await self._writer.submit(work)

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        until = ambient.now() + ttl

        def work(c: sqlite3.Connection) -> frozenset[str]:
            sql = "UPDATE conversations SET expires = ? WHERE id = ? AND token = ? AND owner = ?"
            return frozenset(
                lease.conversation
                for lease in leases
                if c.execute(sql, (until, lease.conversation, lease.token, lease.owner)).rowcount
            )

        return await self._writer.submit(work)

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        def work(c: sqlite3.Connection) -> bool:
            self._apply(c, lease, changes)
            return bool(c.execute(statements.RELEASE, (seen, lease.conversation, seen)).rowcount)

        return self._writer.submit(work, lambda: self._break(lease))

    async def give_back(self, lease: Lease) -> None:
        def work(c: sqlite3.Connection) -> None:
            c.execute(
                "UPDATE conversations SET owner = NULL, expires = 0 WHERE id = ? AND token = ?",
                (lease.conversation, lease.token),
            )

        await self._writer.submit(work)

    async def work(self, owner: str) -> tuple[str, ...]:
        now = ambient.now()
        return await self._read(
            lambda c: tuple(
                row[0]
                for row in c.execute(
                    "SELECT id FROM conversations WHERE (work = 1 OR last > seen)"
                    " AND (owner IS NULL OR owner = ? OR expires <= ?) ORDER BY last",
                    (owner, now),
                )
            )
        )

    def submit(self, lease: Lease, changes: Changes) -> asyncio.Future[None]:
        return self._writer.submit(
            lambda c: self._apply(c, lease, changes), lambda: self._break(lease)
        )

    def _break(self, lease: Lease) -> None:
        """A commit of this lease failed: no later one may pass."""
        self._broken.add((lease.conversation, lease.token))

    def _apply(self, c: sqlite3.Connection, lease: Lease, changes: Changes) -> None:
        holder = (lease.conversation, lease.token)
        if holder in self._broken:
            raise StoreFailed("an earlier commit of this lease failed")
        try:
            statements.apply_changes(c, lease, changes)
        except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
            self._break(lease)
            raise StoreFailed(f"the store could not be written: {error}") from error

    # ---- reads ---------------------------------------------------------------------------

    async def records(self, turn: str) -> tuple[Record, ...]:
        sql = "SELECT body FROM records WHERE turn = ? ORDER BY n"
        return await self._read(
            lambda c: tuple(decode_record(body) for (body,) in c.execute(sql, (turn,)))
        )

    async def turn(self, turn: str) -> TurnRow | None:
        def work(c: sqlite3.Connection) -> TurnRow | None:
            row = c.execute("SELECT body FROM turns WHERE id = ?", (turn,)).fetchone()
            return statements.read_turn(row[0]) if row else None

        return await self._read(work)

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        sql = "SELECT body FROM outbox WHERE turn = ? AND conversation = ? ORDER BY position"
        wanted = (turn, conversation)
        return await self._read(
            lambda c: tuple(statements.read_view(body) for (body,) in c.execute(sql, wanted))
        )

    async def thread(self, conversation: str) -> Thread:
        sql = "SELECT body FROM threads WHERE conversation = ?"

        def work(c: sqlite3.Connection) -> Thread:
            row = c.execute(sql, (conversation,)).fetchone()
            return statements.read_thread(row[0]) if row else ()

        return await self._read(work)

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        sql = "SELECT body FROM transcript WHERE conversation = ? AND n >= ? AND n < ? ORDER BY n"
        if start >= end:
            return ()
        return await self._read(
            lambda c: tuple(
                statements.read_entry(body)
                for (body,) in c.execute(sql, (conversation, start, end))
            )
        )

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        sql = "SELECT body FROM transcript WHERE conversation = ? ORDER BY n DESC LIMIT ?"
        return await self._read(
            lambda c: tuple(
                statements.read_entry(body) for (body,) in c.execute(sql, (conversation, limit))
            )[::-1]
        )

    async def views(
        self, conversation: str, after: int, limit: int, *, latest: bool = False
    ) -> tuple[Shown, ...]:
        order = "position DESC" if latest else "rev"
        sql = f"SELECT body FROM outbox WHERE conversation = ? AND rev > ? ORDER BY {order} LIMIT ?"

        def work(c: sqlite3.Connection) -> tuple[Shown, ...]:
            rows = [
                statements.read_view(body)
                for (body,) in c.execute(sql, (conversation, after, limit))
            ]
            return tuple(map(shown, reversed(rows) if latest else rows))

        return await self._read(work)

    async def conversations(self, prefix: str, limit: int, words: str = "") -> tuple[Summary, ...]:
        return await self._read(lambda c: statements.conversations(c, prefix, limit, words))

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        sql = "SELECT body FROM audit ORDER BY n DESC LIMIT ?"
        return await self._read(
            lambda c: tuple(statements.read_audit(body) for (body,) in c.execute(sql, (limit,)))
        )

    # ---- questions -----------------------------------------------------------------------

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        def work(c: sqlite3.Connection) -> tuple[str, QuestionRow] | None:
            sql = "SELECT conversation, body FROM questions WHERE id = ?"
            row = c.execute(sql, (question,)).fetchone()
            return (row[0], statements.read_question(row[1])) if row else None

        return await self._read(work)

    async def due(self, now: float, limit: int) -> tuple[tuple[str, QuestionRow], ...]:
        sql = (
            "SELECT conversation, body FROM questions WHERE status IN ('open', 'telling')"
            " AND expires > 0 AND expires <= ? ORDER BY expires LIMIT ?"
        )
        return await self._read(
            lambda c: tuple(
                (row[0], statements.read_question(row[1])) for row in c.execute(sql, (now, limit))
            )
        )

    async def next_due(self) -> float | None:
        sql = (
            "SELECT min(expires) FROM questions WHERE status IN ('open', 'telling') AND expires > 0"
        )
        return await self._read(lambda c: c.execute(sql).fetchone()[0])

    # ---- directory -----------------------------------------------------------------------

    async def get(self, key: str) -> bytes | None:
        if key in self._near:
            return self._near[key]
        if key.startswith(AT_HAND) and key not in self._there:
            return None

        def work(c: sqlite3.Connection) -> bytes | None:
            row = c.execute("SELECT body FROM directory WHERE key = ?", (key,)).fetchone()
            return row[0] if row else None

        puts = self._puts
        found = await self._read(work)
        # with a write in between, it may be older than that
        if key.startswith(AT_HAND) and puts == self._puts:
            while len(self._near) >= NEAR:
                del self._near[next(iter(self._near))]
            self._near[key] = found
        return found

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        if body is not None and key.startswith(AT_HAND):
            self._there.add(key)
        try:
            return await self._writer.submit(lambda c: statements.put(c, key, body, expected))
        finally:
            self._puts += 1
            self._near.pop(key, None)

    async def keys(self, prefix: str) -> tuple[str, ...]:
        sql = "SELECT key FROM directory WHERE key >= ? AND key < ? ORDER BY key"
        return await self._read(
            lambda c: tuple(row[0] for row in c.execute(sql, (prefix, prefix + "\U0010ffff")))
        )

    async def sweep(self, now: float) -> int:
        return await self._writer.submit(lambda c: statements.sweep(c, now))

    # ---- other tables in the same file ---------------------------------------------------

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writing connection, in the next commit."""
        return await self._writer.submit(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the reading connection."""
        return await self._read(work)

    # ---- connections ---------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        connection = _open(self._path)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -2048"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.executescript(SCHEMA.read_text())
        return connection

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._reader, self._reading_do, work
        )

    def _reading_do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._reading is None:
                self._reading = _open(self._path)
                self._reading.execute("PRAGMA cache_size = -2048")
            return work(self._reading)
        except sqlite3.Error as error:
            raise StoreFailed(f"the store could not be read: {error}") from error


def _open(path: Path, patience: float = 10.0) -> sqlite3.Connection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=patience, cached_statements=256
    )
