"""The files of the embedded store, emptied or cut short by somebody: nothing is acknowledged that
they do not hold, and no empty store takes the place of a full one."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gateway.errors import StoreFailed, StoreUnfit
from gateway.ops.control import probe_store
from gateway.ops.http import WRITABLE, StoreProbe
from gateway.store.opening import file_place
from gateway.store.sqlite import SqliteStore
from tests.contracts.store_values import place, said
from tests.fakes.waiting import PATIENCE
from tests.sampling import dice

LOG, INDEX = "store.db-wal", "store.db-shm"


async def fill(store: SqliteStore, first: int, count: int) -> list[int]:
    """The messages that were acknowledged."""
    kept = []
    for n in range(first, first + count):
        try:
            await store.accept((said(n),))
        except StoreFailed:
            continue
        kept.append(n)
    return kept


async def read_crashed(folder: Path) -> set[str]:
    """What a gateway finds that is started after a crash at this very moment."""
    crashed = folder / "crashed"
    crashed.mkdir()
    for name in ("store.db", LOG):
        shutil.copy(folder / name, crashed / name)
    store = await SqliteStore.open(crashed / "store.db")
    found = {row.inbound.message for row in await store.arrivals(place().id, 0)}  # type: ignore[union-attr]
    await store.close()
    with closing(sqlite3.connect(crashed / "store.db")) as file:
        assert file.execute("PRAGMA quick_check").fetchone() == ("ok",)
    shutil.rmtree(crashed)
    return found


@pytest.mark.parametrize("log", [True, False])
async def test_an_emptied_file_is_refused_and_its_log_stays(tmp_path: Path, log: bool) -> None:
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await fill(store, 0, 3)
    if log:
        shutil.copy(tmp_path / LOG, tmp_path / "kept")
    await store.close()
    if log:
        (tmp_path / "kept").rename(tmp_path / LOG)
    os.truncate(path, 0)
    before = {one.name: one.stat().st_size for one in tmp_path.iterdir()}
    with pytest.raises(StoreUnfit, match=r"store\.db is empty.*restore FILE --force.*remove it"):
        await SqliteStore.open(path)
    assert {one.name: one.stat().st_size for one in tmp_path.iterdir()} == before
    path.unlink()
    if log:  # without its file it would make a damaged one of a new file
        with pytest.raises(
            StoreUnfit, match=r"store\.db is missing, while its log store\.db-wal is"
        ):
            await SqliteStore.open(path)
        (tmp_path / LOG).unlink()
    store = await SqliteStore.open(path)
    assert await store.arrivals(place().id, 0) == ()
    await store.close()


@pytest.mark.parametrize("step", ["touch", "fsync", "replace"])
async def test_a_crash_in_the_first_start_leaves_no_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "store.db"

    def crash(*_: object, **__: object) -> None:
        raise OSError("the machine stops here")

    with monkeypatch.context() as patch:
        patch.setattr(file_place.os if step == "fsync" else Path, step, crash)
        with pytest.raises(StoreFailed, match="stops here"):
            await SqliteStore.open(path)
    assert not path.exists()
    store = await SqliteStore.open(path)
    assert await fill(store, 0, 1) == [0]
    await store.close()
    assert [one.name for one in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize("rest", [0.0, 0.001, 0.5, 0.999, None])
async def test_what_is_acknowledged_after_the_log_was_cut_is_kept(
    tmp_path: Path, rest: float | None
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await fill(store, 0, 5)
    share = dice("cut log").random() if rest is None else rest
    os.truncate(tmp_path / LOG, int((tmp_path / LOG).stat().st_size * share))
    kept = await fill(store, 5, 5)
    assert kept == []
    with pytest.raises(StoreFailed, match=r"-wal was cut short.*restart the gateway"):
        await store.accept((said(11),))
    await store.close()  # leaves the files as they are
    await read_crashed(tmp_path)


async def test_an_emptied_file_in_use_takes_no_messages(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await fill(store, 0, 5)
    os.truncate(tmp_path / "store.db", 0)
    assert await fill(store, 5, 5) == []
    await store.close()
    with pytest.raises(StoreUnfit):
        await SqliteStore.open(tmp_path / "store.db")
    assert (tmp_path / LOG).stat().st_size > 0


async def test_a_log_that_was_emptied_into_the_file_is_no_damage(tmp_path: Path) -> None:
    """By our own erasure, and by programs that copy a live store elsewhere."""
    store = await SqliteStore.open(tmp_path / "store.db")
    kept = await fill(store, 0, 3)
    store.compact(whole=False)
    assert (tmp_path / LOG).stat().st_size == 0
    kept += await fill(store, 3, 3)
    for n in range(6, 12):
        with closing(sqlite3.connect(tmp_path / "store.db")) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        kept += await fill(store, n, 1)
    assert kept == list(range(12))
    assert await read_crashed(tmp_path) == {f"m{n}" for n in kept}
    await store.close()


LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+b") as index:
    try:
        fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    except BlockingIOError:
        print("locked")
"""
"""Asks for SQLite's lock on an index that is in use: whoever gets it makes the index anew."""


async def test_other_processes_see_that_the_store_is_in_use(tmp_path: Path) -> None:
    """Looking at its files, as each commit does, drops none of SQLite's locks on them."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await fill(store, 0, 3)
    asked = subprocess.run(
        [sys.executable, "-c", LOCKED, str(tmp_path / INDEX)],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert asked.stdout == "locked\n"
    assert len(store._place._held) == 1
    await store.close()
    assert not store._place._held


async def test_a_file_that_vanished_is_not_made_anew_when_it_is_opened_again(
    tmp_path: Path,
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await fill(store, 0, 3)
    store._writer._connection = None  # as after a failed disk
    (tmp_path / "store.db").rename(tmp_path / "elsewhere")
    assert await fill(store, 3, 1) == []
    assert not (tmp_path / "store.db").exists()
    (tmp_path / "elsewhere").rename(tmp_path / "store.db")
    assert await fill(store, 3, 1) == [3]
    await store.close()


async def test_a_file_too_full_for_messages_is_not_ready(tmp_path: Path) -> None:
    """Small writes still fit, in pages that are there."""
    store = await SqliteStore.open(tmp_path / "store.db")
    probe = StoreProbe()
    assert await probe.state(store) == WRITABLE
    await store.put("probe", b"1")  # its pages are free again, and taken by messages

    def fill(c: sqlite3.Connection) -> None:
        c.execute(f"PRAGMA max_page_count = {c.execute('PRAGMA page_count').fetchone()[0]}")

    await store.write(fill)
    assert len(await fill_up(store)) < 100
    probe._known = None  # a second later
    assert "full" in await probe.state(store)
    with pytest.raises(StoreFailed, match="full"):
        await probe_store(store)
    await store.close()


async def fill_up(store: SqliteStore) -> list[int]:
    for n in range(100):
        if not await fill(store, n, 1):
            return list(range(n))
    return list(range(100))


async def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot open the store.*gone"):
        await SqliteStore.open(tmp_path / "gone" / "turnkeeper.db")
