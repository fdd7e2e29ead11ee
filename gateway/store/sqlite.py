"""The embedded store: SQLite with WAL, one writing connection, group commit, full sync."""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from agent_core import ambient
from agent_core.journal import Record
from gateway.errors import StoreFailed, Unstorable
from gateway.messages import Inbound
from gateway.ports import ListScope, Shown, Summary, parse_words
from gateway.store import sqlite_lists, statements
from gateway.store.dead_letters import (
    adopt_dead_rows,
    drop_letter,
    list_letters,
    read_each,
    resubmit_letter,
    write_letters,
)
from gateway.store.opening.file_place import FilePlace
from gateway.store.opening.sqlite_upgrade import read_layout, upgrade
from gateway.store.reading import read_record, read_row, readable
from gateway.store.removal.periods import CREATED
from gateway.store.rows import (
    AcceptedRow,
    AcquiredConversation,
    AuditRow,
    Changes,
    ConversationSettings,
    InboxRow,
    Lease,
    Letter,
    OutboxRow,
    QuestionRow,
    Spans,
    Thread,
    TranscriptRow,
    TurnRow,
    show_row,
)
from gateway.store.spending import budgets
from gateway.store.spending.expenses import Expense
from gateway.store.sqlite_sweep import JOURNALS, Sweep
from gateway.store.sqlite_threads import Reader, Writer, give_up

log = logging.getLogger("turnkeeper.store")

T = TypeVar("T")
SCHEMA = Path(__file__).with_name("schema.sql")


CACHE_SIZE = 3_000
"""Cached documents of the directory, missing ones included."""
CACHED_PREFIXES = ("memory:", "identity:", "accounts:", "zone:", "zonetold:")
"""Name prefixes of cached documents: read by each turn, and written by this process alone."""
SWEPT = 20
"""Pieces of a sweep, one after the other: other writes go in between."""
PAGE_SIZE = 2_048
"""Bytes of a page in a new file: a commit writes each page that it touches whole."""
LEAST_FREE = 1_048_576
"""Bytes of the disk without which a file is opened by luck."""
LOG_BYTES = 4_194_304
"""Length of the log from which on it is emptied into the file."""


class SqliteStore:
    """All store ports over one file. Open it with `await SqliteStore.open(path)`.

    One process has the file (the folder's lock), so a lease is judged here, by a clock that nobody
    can set: a lease that this object did not give out is of an earlier process, which has ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = FilePlace(path)
        self._writer = Writer(self._connect, self._place.check)
        self._reader = Reader(partial(_open_to_read, path), "store-reader")
        self._searcher = Reader(partial(_open_to_read, path), "store-search")
        """Long searches delay no turn."""
        self._broken: set[tuple[str, int]] = set()
        self._leases: dict[str, tuple[int, float]] = {}
        """Token and end (monotonic) of the leases given out; written by the writer's thread
        alone."""
        self._recent: sqlite3.Connection | None = None
        self._near: dict[str, bytes | None] = {}
        """Small documents read lately, None for missing ones: nobody else writes this file."""
        self._reads: dict[str, object] = {}
        """The newest reading of each of them that is under way, and that no write has overtaken."""
        self._sweep = Sweep()

    @classmethod
    async def open(cls, path: Path) -> "SqliteStore":
        """The store in the file `path`, made if missing; StoreFailed if it cannot be."""
        store = cls(path)
        try:
            await store._writer.wait_started()
        except StoreFailed as error:
            if not path.parent.is_dir() or shutil.disk_usage(path.parent).free >= LEAST_FREE:
                raise
            raise StoreFailed(f"{error}: no space is left where {path} lies") from error
        return store

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        try:
            self._place.check_whole()
        except StoreFailed as error:  # closing it would write a part of its content into the file
            log.error("store_left_open", extra={"why": str(error)})
            return
        await self._writer.close()
        await self._reader.close()
        await self._searcher.close()
        if self._recent is not None:
            self._recent.close()
        self._place.close()

    @property
    def commits(self) -> int:
        """Commits so far (each may hold many requests)."""
        return self._writer.commits

    # ---- inbox ---------------------------------------------------------------------------

    @property
    def failed(self) -> str:
        """The reason why nothing can be written any more, "" while all is well."""
        return self._writer.failed

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[AcceptedRow, ...]:
        now = ambient.now()
        return await self._writer.submit(
            lambda c: tuple(statements.accept(c, inbound, now) for inbound in inbounds)
        )

    async def arrivals(self, conversation: str, after: int) -> tuple[InboxRow, ...]:
        # written a moment ago and so still in memory: a thread would cost more than the read
        try:
            if self._recent is None:
                self._recent = _open(self._path, patience=0.0)
                self._recent.execute("PRAGMA cache_size = -256")
            return statements.arrivals(self._recent, conversation, after)
        except sqlite3.Error:
            give_up(self._recent)
            self._recent = None
            return await self._read(lambda c: statements.arrivals(c, conversation, after))

    async def letters(self, limit: int) -> tuple[Letter, ...]:
        return await self._read(lambda c: list_letters(c, limit))

    async def keep_letter(self, letter: Letter) -> None:
        await self._writer.submit(lambda c: write_letters(c, (letter,)))

    async def resubmit(self, name: str) -> str | None:
        now = ambient.now()
        return await self._writer.submit(lambda c: resubmit_letter(c, name, now))

    async def drop(self, name: str) -> bool:
        now = ambient.now()
        return await self._writer.submit(lambda c: drop_letter(c, name, now))

    # ---- leases and commits --------------------------------------------------------------

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        began, now = ambient.monotonic(), ambient.now()

        def work(c: sqlite3.Connection) -> AcquiredConversation | None:
            return self._take(c, statements.Wanted(conversation, owner, ttl, began, now))

        return await self._writer.submit(work)

    def _take(
        self, c: sqlite3.Connection, wanted: statements.Wanted
    ) -> AcquiredConversation | None:
        """Take the lease if it is free."""
        conversation, began = wanted.conversation, wanted.began
        opened = statements.acquire(c, wanted, lambda token: self.is_live(conversation, token))
        if opened is not None:
            self._leases[conversation] = (opened.lease.token, began + wanted.ttl)
            self._broken.discard((conversation, opened.lease.token - 1))
            self._broken.discard((conversation, opened.lease.token))  # a removal reuses the token
        return opened

    def _take_apart(
        self, c: sqlite3.Connection, wanted: statements.Wanted
    ) -> AcquiredConversation | None:
        """Take a lease like `_take`; a failure with one conversation does not affect accepted
        messages."""
        c.execute("SAVEPOINT take")
        try:
            opened = self._take(c, wanted)
        except sqlite3.Error:
            raise
        except Exception:  # boundary: it is retried separately, and fails alone
            log.exception("not_taken", extra={"conversation": wanted.conversation})
            c.execute("ROLLBACK TO take")
            opened = None
        c.execute("RELEASE take")
        return opened

    def is_live(self, conversation: str, token: int) -> bool:
        """Return True if this process gave out the lease with `token` and it has not expired."""
        held = self._leases.get(conversation)
        return held is not None and held[0] == token and held[1] > ambient.monotonic()

    def _forget(self, lease: Lease) -> None:
        held = self._leases.get(lease.conversation)
        if held is not None and held[0] == lease.token:
            del self._leases[lease.conversation]

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
        began, now = ambient.monotonic(), ambient.now()

        def work(
            c: sqlite3.Connection,
        ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
            accepted = tuple(statements.accept(c, inbound, now) for inbound in inbounds)
            fresh = (i.conversation.id for i, a in zip(inbounds, accepted, strict=True) if a.fresh)
            taken = [
                self._take_apart(c, statements.Wanted(name, owner, ttl, began, now))
                for name in dict.fromkeys(fresh)
                if name in free
            ]
            return accepted, tuple(opened for opened in taken if opened is not None)

        return await self._writer.submit(work)

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        began, until = ambient.monotonic(), ambient.now() + ttl

        def work(c: sqlite3.Connection) -> frozenset[str]:
            sql = "UPDATE conversations SET expires = ? WHERE id = ? AND token = ? AND owner = ?"
            kept = [
                lease
                for lease in leases
                if c.execute(sql, (until, lease.conversation, lease.token, lease.owner)).rowcount
            ]
            self._leases.update({one.conversation: (one.token, began + ttl) for one in kept})
            return frozenset(lease.conversation for lease in kept)

        return await self._writer.submit(work)

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        def work(c: sqlite3.Connection) -> bool:
            self._apply(c, lease, changes)
            wanted = (seen, lease.conversation, seen)
            released = bool(c.execute(statements.RELEASE, wanted).rowcount)
            if released:
                self._forget(lease)
            return released

        return self._writer.submit(work, lambda: self._break(lease))

    async def give_back(self, lease: Lease) -> None:
        def work(c: sqlite3.Connection) -> None:
            c.execute(
                "UPDATE conversations SET owner = NULL, expires = 0 WHERE id = ? AND token = ?",
                (lease.conversation, lease.token),
            )
            self._forget(lease)

        await self._writer.submit(work)

    async def work(self, owner: str) -> tuple[tuple[str, int], ...]:
        sql = (
            "SELECT id, last, owner, token FROM conversations WHERE (work = 1 OR last > seen)"
            " AND id > ''"
        )
        rows = await self._read(lambda c: c.execute(sql).fetchall())
        return tuple(
            (name, last)
            for name, last, holder, token in sorted(rows, key=itemgetter(1))
            if holder in (None, owner) or not self.is_live(name, token)
        )

    async def now(self) -> float:
        return ambient.now()

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
        except (TypeError, ValueError, OverflowError, sqlite3.IntegrityError) as error:
            self._break(lease)
            raise Unstorable(f"refused by the store: {error}") from error
        except (sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError) as error:
            self._break(lease)
            raise Unstorable(f"refused by the store: {error}") from error
        except sqlite3.Error as error:
            self._break(lease)
            raise StoreFailed(f"the store could not be written: {error}") from error

    # ---- reads ---------------------------------------------------------------------------

    async def records(self, turn: str) -> tuple[Record, ...]:
        sql = "SELECT n, body FROM records WHERE turn = ? ORDER BY n"
        rows = await self._read(lambda c: c.execute(sql, (turn,)).fetchall())
        return tuple(read_record(turn, n, body) for n, body in rows)

    async def locate(self, turn: str) -> str:
        sql = "SELECT conversation FROM turns WHERE id = ?"
        row = await self._read(lambda c: c.execute(sql, (turn,)).fetchone())
        return str(row[0]) if row else ""

    async def turn(self, turn: str) -> TurnRow | None:
        def work(c: sqlite3.Connection) -> TurnRow | None:
            row = c.execute("SELECT body FROM turns WHERE id = ?", (turn,)).fetchone()
            return read_row("turn", turn, row[0], statements.read_turn) if row else None

        return await self._read(work)

    async def outbox(self, conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        # by the key alone: an index on the conversation would scan all of its views
        sql = "SELECT body FROM outbox WHERE turn = ? AND +conversation = ?"

        def work(c: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            found = c.execute(sql, (turn, conversation))
            rows = readable("view", statements.read_view, found)
            return tuple(sorted(rows, key=lambda row: row.position))

        return await self._read(work)

    async def thread(self, conversation: str, spans: Spans) -> Thread:
        if not spans:
            return ()
        return await self._read(lambda c: statements.read_thread(c, conversation, spans))

    async def transcript(
        self, conversation: str, start: int, end: int
    ) -> tuple[TranscriptRow, ...]:
        sql = "SELECT body FROM transcript WHERE conversation = ? AND n >= ? AND n < ? ORDER BY n"
        if start >= end:
            return ()
        return await self._read(
            lambda c: tuple(
                readable(
                    "transcript", statements.read_entry, c.execute(sql, (conversation, start, end))
                )
            )
        )

    async def settings(self, conversation: str) -> ConversationSettings:
        sql = "SELECT body FROM conversations WHERE id = ? AND body IS NOT NULL"
        rows = await self._read(
            lambda c: tuple(
                readable("conversation", statements.read_row, c.execute(sql, (conversation,)))
            )
        )
        return rows[0].settings if rows else ConversationSettings()

    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]:
        sql = "SELECT body FROM transcript WHERE conversation = ? ORDER BY n DESC LIMIT ?"
        return await self._read(
            lambda c: tuple(
                readable("transcript", statements.read_entry, c.execute(sql, (conversation, limit)))
            )[::-1]
        )

    async def find_holding(
        self, conversations: Sequence[str], words: frozenset[str], limit: int
    ) -> tuple[tuple[str, tuple[TranscriptRow, ...]], ...]:
        return await self._searcher.run(
            lambda c: sqlite_lists.read_holding(c, conversations, words, limit)
        )

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        wanted = (conversation, after, limit)
        return await self._read(
            lambda c: tuple(
                map(
                    show_row,
                    readable("view", statements.read_view, c.execute(statements.CHANGED, wanted)),
                )
            )
        )

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        wanted = (conversation, before or statements.NO_POSITION, limit)
        return await self._read(
            lambda c: tuple(
                map(
                    show_row,
                    readable("view", statements.read_view, c.execute(statements.LATEST, wanted)),
                )
            )[::-1]
        )

    async def summary(self, conversation: str) -> Summary | None:
        return await self._read(lambda c: sqlite_lists.read_summary(c, conversation))

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        wanted = parse_words(words)
        look = self._searcher.run if wanted else self._read
        return await look(lambda c: sqlite_lists.read_recent(c, scope, limit, wanted))

    async def audit(self, limit: int) -> tuple[AuditRow, ...]:
        sql = "SELECT body FROM audit WHERE n > 0 ORDER BY n DESC LIMIT ?"
        return await self._read(
            lambda c: tuple(readable("audit", statements.read_audit, c.execute(sql, (limit,))))
        )

    # ---- questions -----------------------------------------------------------------------

    async def find(self, question: str) -> tuple[str, QuestionRow] | None:
        def work(c: sqlite3.Connection) -> tuple[str, QuestionRow] | None:
            sql = "SELECT conversation, body FROM questions WHERE id = ?"
            row = c.execute(sql, (question,)).fetchone()
            found = readable("question", statements.read_question, [row[1:]] if row else [])
            return next(((row[0], one) for one in found), None)

        return await self._read(work)

    async def due(
        self, now: float, limit: int, after: tuple[str, QuestionRow] | None = None
    ) -> tuple[tuple[str, QuestionRow], ...]:
        start = (after[1].due, after[1].id) if after is not None else (0.0, "")
        wanted = (now, *start, limit)
        found = await self._read(lambda c: c.execute(statements.DUE, wanted).fetchall())
        rows: list[tuple[str, QuestionRow]] = []
        damaged: list[Letter] = []
        for name, body, where in found:
            read = statements.read_question
            rows += (
                (where, q) for q in read_each([(name, body)], read, "question", where, damaged)
            )
        if damaged:  # otherwise they would be due forever
            await self._writer.submit(lambda c: write_letters(c, damaged))
        return tuple(rows)

    async def next_due(self, after: float = 0.0) -> float | None:
        wanted = (after,)
        return await self._read(lambda c: c.execute(statements.NEXT_DUE, wanted).fetchone()[0])

    # ---- directory -----------------------------------------------------------------------

    async def get(self, key: str) -> bytes | None:
        if key in self._near:
            return self._near[key]

        def work(c: sqlite3.Connection) -> bytes | None:
            row = c.execute("SELECT body FROM directory WHERE key = ?", (key,)).fetchone()
            return row[0] if row else None

        if not key.startswith(CACHED_PREFIXES):
            return await self._read(work)
        mark = self._reads[key] = object()
        found = await self._read(work)
        if self._reads.get(key) is mark:  # a write meanwhile takes it away: it may be outdated
            del self._reads[key]
            while len(self._near) >= CACHE_SIZE:
                del self._near[next(iter(self._near))]
            self._near[key] = found
        return found

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        try:
            return await self._writer.submit(lambda c: statements.put(c, key, body, expected))
        finally:
            self._reads.pop(key, None)
            self._near.pop(key, None)

    async def keys(self, prefix: str) -> tuple[str, ...]:
        sql = "SELECT key FROM directory WHERE key >= ? AND key < ? ORDER BY key"
        return await self._read(
            lambda c: tuple(row[0] for row in c.execute(sql, (prefix, prefix + "\U0010ffff")))
        )

    # ---- budgets -------------------------------------------------------------------------

    async def spend(self, day: str, expenses: Sequence[Expense]) -> str | None:
        return await self._writer.submit(lambda c: budgets.spend(c, day, expenses))

    async def read_spent(self, day: str, accounts: Sequence[str]) -> Mapping[str, int]:
        return await self._read(lambda c: budgets.read(c, day, accounts))

    async def sweep(self, now: float, journals: float | None = JOURNALS) -> int:
        gone, more, pieces = 0, True, 0
        while more and pieces < SWEPT:
            some, more = await self._writer.submit(lambda c: self._sweep.work(c, now, journals))
            gone, pieces = gone + some, pieces + 1
        return gone

    # ---- other tables in the same file ---------------------------------------------------

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writing connection, in the next commit."""
        return await self._writer.submit(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the reading connection."""
        return await self._read(work)

    def compact(self, *, whole: bool) -> None:
        """Remove overwritten content from the log; `whole`: also from pages freed by an older
        version, which rewrites the file. Blocks."""
        connection = _open(self._path)
        try:
            if whole:
                connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()

    # ---- connections ---------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        self._place.prepare(PAGE_SIZE)
        connection = _open(self._path)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._reader.run(work)


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables of this version in the file, or bring it up to them."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "cache_size = -2048",
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // size}").fetchall()
    read_layout(connection)  # refused before anything is created
    known = connection.execute("PRAGMA schema_version").fetchone()[0]
    with connection:  # all in one commit
        connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA.read_text()}")
        if not known:
            statements.put(connection, CREATED, str(ambient.now()).encode(), b"")
    upgrade(connection)
    adopt_dead_rows(connection)


def _open_to_read(path: Path) -> sqlite3.Connection:
    connection = _open(path)
    connection.execute("PRAGMA cache_size = -2048")
    return connection


def _open(path: Path, patience: float = 10.0) -> sqlite3.Connection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=patience, cached_statements=256
    )
