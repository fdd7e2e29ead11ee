"""Files of messages that are fetched: nothing stays open, whenever it is cut off."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from agent_core.tools import paths
from gateway.conversation.inbox.fetching import FileFetcher, open_scratch
from gateway.messages import Attachment
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


async def test_what_is_no_longer_wanted_is_closed(tmp_path: Path) -> None:
    """Of files that were fetched, while another one comes."""
    opened: dict[str, BinaryIO] = {}
    stays = asyncio.Event()

    async def fetch(attachment: Attachment, to: BinaryIO) -> None:
        opened[attachment.name] = to
        if attachment.name == "second":
            await stays.wait()

    one, two, three = (Attachment(ref=name, name=name) for name in ("first", "second", "third"))
    async with asyncio.TaskGroup() as group:
        state: Any = SimpleNamespace(
            services=SimpleNamespace(
                spawn=lambda work, name: group.create_task(work(), name=name),
                agent=SimpleNamespace(workspace=lambda conversation: tmp_path / "w"),
            ),
            adapter=SimpleNamespace(fetch=fetch),
            conversation=None,
            changed=asyncio.Event(),
        )
        fetcher = FileFetcher(state)
        assert fetcher.fetch_ahead([one, two])
        async with asyncio.timeout(PATIENCE):
            while "second" not in opened:
                await asyncio.sleep(0.005)
            assert fetcher.fetch_ahead([three]), "the second is being cut off"
            assert opened["first"].closed
            while fetcher.fetch_ahead([three]):
                state.changed.clear()
                await state.changed.wait()
        assert opened["second"].closed and not opened["third"].closed
        fetcher.close()
    assert opened["third"].closed and not stays.is_set()
