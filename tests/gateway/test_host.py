"""What runs beside the sessions, and how it ends."""

import asyncio
import gc
from pathlib import Path

import pytest

from tests.fakes.world import Life


@pytest.mark.filterwarnings("error")
async def test_work_that_never_begins_leaves_nothing_behind(tmp_path: Path) -> None:
    began: list[str] = []

    async def work() -> None:
        began.append("work")

    one = Life(tmp_path)
    async with one.living():
        (running,) = (
            task
            for task in asyncio.all_tasks()
            if getattr(task.get_coro(), "__qualname__", "") == "Host.run"
        )
        running.cancel()
        one.host.spawn(work, "at the end")
    one.host.spawn(work, "after the end")
    gc.collect()
    assert not began


@pytest.mark.parametrize("hint", ["", "nonsense", "a:b:c", "test:::::x", "\ufffd\ufffd", ":" * 9])
async def test_a_hint_that_is_no_address_begins_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hint: str
) -> None:
    one = Life(tmp_path)
    async with one.living():
        one.host.wake(hint)
        assert not one.host._starting
        assert [record.getMessage() for record in caplog.records] == ["not_an_address"]
