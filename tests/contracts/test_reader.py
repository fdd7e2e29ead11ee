"""Reads beside the writer: in order, together where several wait, and each with its own outcome."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from gateway.errors import StoreFailed
from gateway.store import sqlite_threads
from gateway.store.sqlite_threads import Reader, Work
from tests.fakes.waiting import PATIENCE


class Counted(Reader):
    """Counts how often the thread is given work."""

    given = 0

    def _run_batch(
        self,
        batch: "list[tuple[Work, asyncio.Future[object]]]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.given += 1
        super()._run_batch(batch, loop)


def _make(tmp_path: Path) -> Counted:
    path = tmp_path / "store.db"
    return Counted(lambda: sqlite3.connect(path, check_same_thread=False), "reader")


async def test_those_that_wait_share_a_hand_over(tmp_path: Path) -> None:
    reader = _make(tmp_path)
    ran: list[int] = []
    await asyncio.gather(*(reader.run(lambda _, n=n: ran.append(n)) for n in range(500)))
    assert ran == list(range(500)), "in order"
    assert reader.given <= 3
    await reader.close()


async def test_a_long_one_does_not_hold_back_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_threads, "MAX_HELD", 0.0)
    reader = _make(tmp_path)
    going_on = threading.Event()
    first = asyncio.create_task(reader.run(lambda _: going_on.wait(PATIENCE)))
    await asyncio.sleep(0)
    behind = [asyncio.create_task(reader.run(lambda _: None)) for _ in range(2)]
    ended = threading.Event()
    long = asyncio.create_task(reader.run(lambda _: ended.wait(PATIENCE)))
    await asyncio.sleep(0)
    going_on.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(first, *behind)
        assert not long.done()
        ended.set()
        assert await long
    await reader.close()


async def test_each_has_its_own_outcome(tmp_path: Path) -> None:
    reader = _make(tmp_path)

    def fail(_: sqlite3.Connection) -> None:
        raise KeyError("a bug")

    outcomes = await asyncio.gather(
        reader.run(lambda c: c.execute("SELECT 1").fetchone()[0]),
        reader.run(lambda c: c.execute("SELECT nothing FROM nowhere")),
        reader.run(fail),
        reader.run(lambda c: c.execute("SELECT 2").fetchone()[0]),
        return_exceptions=True,
    )
    assert (outcomes[0], outcomes[3]) == (1, 2), "also after one that failed"
    assert isinstance(outcomes[1], StoreFailed) and isinstance(outcomes[2], KeyError)
    await reader.close()


async def test_after_a_connection_that_failed_another_one_reads(tmp_path: Path) -> None:
    reader = _make(tmp_path)
    with pytest.raises(StoreFailed):
        await reader.run(lambda c: (c.close(), c.execute("SELECT 1")))
    assert await reader.run(lambda c: c.execute("SELECT 1").fetchone()[0]) == 1
    await reader.close()


async def test_who_waits_no_more_holds_up_nobody(tmp_path: Path) -> None:
    reader = _make(tmp_path)
    waiting = [asyncio.create_task(reader.run(lambda _, n=n: n)) for n in range(6)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait(waiting)
        assert [task.result() for task in waiting[1::2]] == [1, 3, 5]
        assert await reader.run(lambda _: "on") == "on"
    await reader.close()


@pytest.mark.parametrize("count", [0, 1, 7])
async def test_what_was_asked_for_is_read_before_it_closes(tmp_path: Path, count: int) -> None:
    reader = _make(tmp_path)
    waiting = [asyncio.create_task(reader.run(lambda _, n=n: n)) for n in range(count)]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await reader.close()
        assert [await task for task in waiting] == list(range(count))


async def test_once_it_is_closed_nobody_waits(tmp_path: Path) -> None:
    reader = _make(tmp_path)
    await reader.close()
    async with asyncio.timeout(PATIENCE):
        outcomes = await asyncio.gather(
            *(reader.run(lambda _: 1) for _ in range(3)), return_exceptions=True
        )
    assert [type(one) for one in outcomes] == [StoreFailed] * 3


async def test_it_closes_also_where_nothing_can_be_read(tmp_path: Path) -> None:
    def refuse() -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    reader = Reader(refuse, "reader")
    waiting = asyncio.create_task(reader.run(lambda _: 1))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await reader.close()
        with pytest.raises(StoreFailed):
            await waiting
