"""Files of messages that are fetched: nothing stays open, whenever it is cut off."""

import asyncio
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from agent_core.tools import paths
from gateway.conversation.inbox.fetching import open_scratch
from tests.fakes.waiting import PATIENCE


async def test_a_file_that_nobody_waits_for_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn ends while its thread opens the file."""
    opened: list[BinaryIO] = []
    plain, go_on = paths.scratch, threading.Event()

    def open_slowly(workspace: Path) -> BinaryIO:
        assert go_on.wait(PATIENCE)
        opened.append(plain(workspace))
        return opened[0]

    monkeypatch.setattr(paths, "scratch", open_slowly)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(open_scratch(tmp_path / "w"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
    async with asyncio.timeout(PATIENCE):
        while not (opened and opened[0].closed):
            await asyncio.sleep(0.005)


async def test_otherwise_it_is_open(tmp_path: Path) -> None:
    with await open_scratch(tmp_path / "w") as file:
        assert not file.closed and file.write(b"x") == 1
