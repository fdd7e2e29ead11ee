"""The embedded store's connections when the disk fails under them."""

import asyncio
import contextlib
import errno
import sqlite3
import threading
from pathlib import Path

import pytest

from gateway.errors import StoreFailed
from gateway.store import sqlite, sqlite_threads
from gateway.store.removal.periods import CREATED
from gateway.store.sqlite import SqliteStore
from tests.contracts.store_values import outcome, place, said
from tests.fakes.waiting import PATIENCE


class Disk:
    """What fails, by the beginning of a statement."""

    def __init__(self) -> None:
        self.broken: tuple[str, ...] = ()
        self.opened = 0
        self.last: sqlite3.Connection | None = None
        self.refusal: Exception = sqlite3.OperationalError("unable to open database file")
        self.tries = 0
        self.block: threading.Event | None = None

    def connect(self, path: Path) -> sqlite3.Connection:
        disk = self
        disk.opened += 1
        if "open" in disk.broken:
            raise disk.refusal

        class Failing(sqlite3.Connection):
            def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:  # type: ignore[override]
                if disk.broken and sql.startswith(disk.broken):
                    disk.tries += 1
                    if disk.block is not None:
                        disk.block.wait(PATIENCE)
                    raise sqlite3.OperationalError("disk I/O error")
                return super().execute(sql, *rest)  # type: ignore[arg-type]

        disk.last = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, factory=Failing
        )
        return disk.last


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Connections of a store that a test may break."""
    made = Disk()
    monkeypatch.setattr(sqlite, "_open", lambda path, patience=0.0: made.connect(path))
    return made


@pytest.mark.parametrize(
    "broken",
    [("COMMIT",), ("COMMIT", "ROLLBACK"), ("BEGIN", "ROLLBACK"), ("SAVEPOINT", "ROLLBACK")],
)
async def test_a_store_whose_disk_failed_writes_again(
    tmp_path: Path, disk: Disk, broken: tuple[str, ...]
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    disk.broken = broken
    for n in range(3):
        assert await outcome(store.accept([said(n)])) is StoreFailed
    disk.broken = (*broken, "open")
    assert await outcome(store.accept([said(3)])) is StoreFailed
    disk.broken = ()
    async with asyncio.timeout(PATIENCE):
        assert (await store.accept([said(4)]))[0].fresh
    rows = await store.arrivals(place().id, 0)
    assert [row.inbound.event for row in rows] == ["e4"]
    assert store.failed == ""
    await store.close()


async def test_a_file_that_is_held_by_another_is_waited_for_once_for_all(
    tmp_path: Path, disk: Disk
) -> None:
    """Each try takes as long as a lease lasts, or half of it: all who wait are told after one."""
    store = await SqliteStore.open(tmp_path / "store.db")
    disk.broken, disk.tries = ("BEGIN",), 0
    disk.block = threading.Event()
    asked = [asyncio.ensure_future(outcome(store.accept([said(n)]))) for n in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    disk.block.set()
    assert await asyncio.gather(*asked) == [StoreFailed] * 20
    assert disk.tries <= 2, "what came before the first, and all others"
    await store.close()


@pytest.mark.parametrize("read", ["turn", "arrivals", "holding"])
async def test_a_reading_connection_that_failed_is_opened_anew(
    tmp_path: Path, disk: Disk, read: str
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    calls = {
        "turn": lambda: store.turn("t1"),
        "arrivals": lambda: store.arrivals(place().id, 0),
        "holding": lambda: store.find_holding((place().id,), frozenset(("word",)), 9),
    }
    await calls[read]()
    disk.broken, before = ("SELECT", "WITH"), disk.opened
    assert await outcome(calls[read]()) is StoreFailed
    disk.broken = ()
    await calls[read]()
    assert disk.opened > before
    await store.close()


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "Too many open files"), MemoryError("no memory"), KeyError("x")]
)
async def test_a_start_that_fails_in_any_way_is_told(
    tmp_path: Path, disk: Disk, error: Exception
) -> None:
    disk.refusal = error
    disk.broken = ("open",)
    assert await outcome(SqliteStore.open(tmp_path / "store.db")) is StoreFailed
    disk.broken = ()
    await (await SqliteStore.open(tmp_path / "store.db")).close()


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
async def test_a_shortage_while_it_is_opened_anew_passes(
    tmp_path: Path, disk: Disk, error: Exception
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    disk.broken = ("COMMIT", "ROLLBACK")
    assert await outcome(store.accept([said(0)])) is StoreFailed
    disk.refusal, disk.broken = error, ("open",)
    assert await outcome(store.accept([said(1)])) is StoreFailed
    assert store.failed == "", "it may be opened later"
    disk.broken = ()
    assert (await store.accept([said(2)]))[0].fresh
    await store.close()


async def test_a_writer_that_ends_says_so(tmp_path: Path) -> None:
    """Nobody waits for what nobody does any more."""
    store = await SqliteStore.open(tmp_path / "store.db")

    def end(connection: sqlite3.Connection) -> None:
        raise SystemExit("the thread is told to end")

    ended = store.write(end)
    waiting = store.accept([said(1)])
    async with asyncio.timeout(PATIENCE):
        assert await outcome(ended) is StoreFailed
        assert await outcome(waiting) is StoreFailed
        assert await outcome(store.accept([said(2)])) is StoreFailed
    assert "writes no more" in store.failed
    assert isinstance(store._writer, sqlite_threads.Writer)
    await store.close()


async def test_what_took_the_transaction_back_is_told(tmp_path: Path) -> None:
    """As a full disk does in the middle of a statement."""
    store = await SqliteStore.open(tmp_path / "store.db")

    def fill(c: sqlite3.Connection) -> None:
        c.execute("ROLLBACK")
        raise StoreFailed("the disk is full")

    with pytest.raises(StoreFailed, match="the disk is full"):
        await store.write(fill)
    assert (await store.accept([said(1)]))[0].fresh
    await store.close()


def count_commits(log: Path) -> int:
    """Commits in SQLite's write-ahead log: frames that tell the size of the file."""
    data = log.read_bytes()
    size = 24 + int.from_bytes(data[8:12], "big")
    return sum(data[at + 4 : at + 8] != bytes(4) for at in range(32, len(data), size))


async def test_a_new_file_is_made_in_a_commit_and_numbered_in_another(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    store = await SqliteStore.open(file)
    assert count_commits(file.with_name("store.db-wal")) == 2
    await store.accept([said(1)])
    assert count_commits(file.with_name("store.db-wal")) == 3
    await store.close()


async def test_a_file_that_could_not_be_made_whole_is_made_anew(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, damaged = tmp_path / "store.db", tmp_path / "schema.sql"
    damaged.write_text(sqlite.SCHEMA.read_text() + "CREATE TABLE letters(id);")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "SCHEMA", damaged)
        with pytest.raises(StoreFailed, match="already exists"):
            await SqliteStore.open(file)
    assert disk.last is not None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        disk.last.execute("SELECT 1")
    with contextlib.closing(sqlite3.connect(file)) as plain:
        assert plain.execute("SELECT name FROM sqlite_master").fetchall() == []
    store = await SqliteStore.open(file)
    (row,) = await store.accept([said(1)])
    assert row.fresh and await store.get(CREATED)
    await store.close()


@pytest.mark.parametrize("what", ["moved", "removed", "replaced", "log"])
async def test_nothing_is_kept_in_a_file_that_is_not_in_its_place(
    tmp_path: Path, what: str
) -> None:
    """What would be written there is gone with the process, however well it seems to go."""
    path, aside = tmp_path / "store.db", tmp_path / "aside"
    store = await SqliteStore.open(path)
    await store.accept([said(0)])
    if what == "log":
        path = path.with_name("store.db-wal")
    path.rename(aside)
    if what == "replaced":
        path.write_bytes(aside.read_bytes())
    for n in range(2):
        assert await outcome(store.accept([said(1 + n)])) is StoreFailed
    aside.rename(path)
    assert (await store.accept([said(3)]))[0].fresh, "put back, it goes on"
    rows = await store.arrivals(place().id, 0)
    assert [row.inbound.event for row in rows] == ["e0", "e3"]
    if what == "removed":
        path.unlink()
        assert await outcome(store.accept([said(4)])) is StoreFailed
    await store.close()
