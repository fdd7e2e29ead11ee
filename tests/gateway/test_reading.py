"""Files of messages that are fetched: nothing stays open, whenever it is cut off."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from agent_core.tools import paths
from gateway.conversation.inbox import fetching
from gateway.conversation.inbox.fetching import FileFetcher, open_scratch
from gateway.errors import Unsent
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


def make_fetcher(
    group: asyncio.TaskGroup, fetch: Callable[[Attachment, BinaryIO], Awaitable[None]], place: Path
) -> tuple[FileFetcher, asyncio.Event]:
    """A fetcher for the workspace `place`, and the event that it sets when a file came."""
    state: Any = SimpleNamespace(
        services=SimpleNamespace(
            spawn=lambda work, name: group.create_task(work(), name=name),
            agent=SimpleNamespace(workspace=lambda conversation: place),
        ),
        adapter=SimpleNamespace(fetch=fetch),
        conversation=None,
        changed=asyncio.Event(),
    )
    return FileFetcher(state), state.changed


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
        fetcher, changed = make_fetcher(group, fetch, tmp_path / "w")
        assert fetcher.fetch_ahead([one, two])
        async with asyncio.timeout(PATIENCE):
            while "second" not in opened:
                await asyncio.sleep(0.005)
            assert fetcher.fetch_ahead([three]), "the second is being cut off"
            assert opened["first"].closed
            while fetcher.fetch_ahead([three]):
                changed.clear()
                await changed.wait()
        assert opened["second"].closed and not opened["third"].closed
        fetcher.close()
    assert opened["third"].closed and not stays.is_set()


async def trickle(to: BinaryIO) -> None:
    while True:
        to.write(b"x")
        await asyncio.sleep(0.001)


async def fail(to: BinaryIO) -> None:
    raise Unsent("502")


@pytest.mark.parametrize("come", ["fails", "fails, comes, fails", "comes, fails", "comes"])
@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.parametrize("how", [trickle, fail])
async def test_many_files_that_do_not_come_cost_little_more_than_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[BinaryIO], Awaitable[None]],
    count: int,
    come: str,
) -> None:
    """`come`: which of them come, again and again; a file that comes is given its whole time."""
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.3)
    monkeypatch.setattr(fetching, "LATE_SECONDS", 0.02)
    monkeypatch.setattr(fetching, "FETCH_PAUSE", 0.001)
    tries: Counter[str] = Counter()
    kinds = list(islice(cycle(come.split(", ")), count))
    files = [Attachment(ref=str(n), name=str(n), size=1) for n in range(count)]

    async def fetch(attachment: Attachment, to: BinaryIO) -> None:
        tries[attachment.name] += 1
        if kinds[int(attachment.name)] == "fails":
            await how(to)
        to.write(b"x")

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        fetcher, changed = make_fetcher(group, fetch, tmp_path / "w")
        while fetcher.fetch_ahead(files):
            changed.clear()
            await changed.wait()
        for one, kind in zip(files, kinds, strict=True):
            if kind == "fails":
                with pytest.raises(Unsent):
                    await fetcher.take(one)
            else:
                (await fetcher.take(one)).file.close()
    behind = [
        n for n, kind in enumerate(kinds) if kind == "fails" and n and kinds[n - 1] == "fails"
    ]
    assert all(tries[str(n)] == 1 for n in behind), "no file behind one that failed is asked twice"
