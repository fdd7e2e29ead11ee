"""Small documents that SQLite keeps at hand are never older than what was written here."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

import pytest

from gateway.store.sqlite import CACHE_SIZE, SqliteStore


async def test_what_is_read_is_what_was_written_last(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        assert await store.get("memory:a") is None
        assert await store.put("memory:a", b"1", b"") and await store.get("memory:a") == b"1"
        assert not await store.put("memory:a", b"2", b"other")
        assert await store.get("memory:a") == b"1"
        assert await store.put("memory:a", None) and await store.get("memory:a") is None
        for n in range(200):
            _, seen = await asyncio.gather(
                store.put("memory:race", str(n).encode()), store.get("memory:race")
            )
            assert seen in (None, str(n - 1).encode(), str(n).encode())
            assert await store.get("memory:race") == str(n).encode()
        for n in range(CACHE_SIZE + 50):
            await store.get(f"memory:{n}")
        assert len(store._near) <= CACHE_SIZE
        await store.get("paired:x")
        assert "paired:x" not in store._near, "another process may pair"
    finally:
        await store.close()


@pytest.mark.parametrize("written", ["memory:a", "memory:b"])
async def test_no_reading_outlives_a_write_that_overtook_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await store.put("memory:a", b"1")
        plain, read, go_on = store._read, asyncio.Event(), asyncio.Event()

        async def read_slowly(work: Callable[[Connection], bytes | None]) -> bytes | None:
            found = await plain(work)
            read.set()
            await go_on.wait()
            return found

        monkeypatch.setattr(store, "_read", read_slowly)
        async with asyncio.TaskGroup() as group:
            group.create_task(store.get("memory:a"))
            await read.wait()
            await store.put(written, b"2")
            go_on.set()
        assert ("memory:a" in store._near) == (written != "memory:a")
        assert await store.get("memory:a") == (b"2" if written == "memory:a" else b"1")
    finally:
        await store.close()


async def test_what_is_written_elsewhere_costs_no_second_look(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await asyncio.gather(store.get("memory:a"), *(store.put(f"b:{n}", b"1") for n in range(9)))
        assert store._near == {"memory:a": None}
    finally:
        await store.close()


async def test_what_is_not_there_costs_one_look(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.put("identity:ann", b"1")
    await store.close()
    again = await SqliteStore.open(tmp_path / "store.db")
    try:
        assert await again.get("identity:ann") == b"1", "written in an earlier life"
        assert await again.get("identity:bob") is None
        again._reader._thread.shutdown()
        assert await again.get("identity:bob") is None
    finally:
        await again.close()


async def test_what_came_in_is_read_also_when_the_file_is_busy(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        assert await store.arrivals("nowhere", 0) == ()
        assert store._recent is not None
        store._recent.close()  # it answers with an error from now on
        assert await store.arrivals("nowhere", 0) == ()
    finally:
        await store.close()
