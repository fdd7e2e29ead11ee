"""What signs the sessions of the page, as the store keeps it."""

from pathlib import Path

import pytest

from gateway.store.sqlite import SqliteStore
from gateway.wiring.assembly import MIN_SECRET, WEB_SECRET, web_secret


@pytest.mark.parametrize("spoilt", [None, b"", b"\xff\x00", b"[1]"])
async def test_there_is_always_one_and_it_stays(spoilt: bytes | None, tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        if spoilt is not None:
            await store.put(WEB_SECRET, spoilt)
        first = await web_secret(store)
        assert len(first) >= MIN_SECRET and await web_secret(store) == first
    finally:
        await store.close()
