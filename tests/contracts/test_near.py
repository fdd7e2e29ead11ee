"""Small documents that SQLite keeps at hand are never older than what was written here."""

import asyncio
from pathlib import Path

from gateway.store.sqlite import NEAR, SqliteStore


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
        for n in range(NEAR + 50):
            await store.get(f"memory:{n}")
        assert len(store._near) <= NEAR
        await store.get("paired:x")
        assert "paired:x" not in store._near, "another process may pair"
    finally:
        await store.close()
