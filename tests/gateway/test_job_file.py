"""The operator's file of jobs, applied beside everything else that the gateway does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.features.jobs.operator.apply import Applied, JobFile
from gateway.features.jobs.operator.jobfile import MAX_FAULTS, Faulty
from tests.cron.book_rig import BookRig, living_book

PLATFORMS = frozenset(("telegram", "web"))
WHEN = ("*/5 * * * *", "0 9 29 2 *", "every 2h", "at 2099-01-01 09:00", "0 0 * * 5#2")


@pytest.fixture
async def book(tmp_path: Path) -> AsyncIterator[BookRig]:
    async with living_book(tmp_path) as book:
        yield book


def write(folder: Path, count: int, where: str = "telegram:1::7::p", last: str = "") -> None:
    tables = [
        f'[j{n}]\nprompt = "look"\nschedule = "{WHEN[n % len(WHEN)]}"\n'
        f'zone = "Europe/Berlin"\nwhere = "{where}"\n'
        for n in range(count)
    ]
    (folder / "jobs.toml").write_text("\n".join((*tables, last)))


async def count_looks(work: asyncio.Task[Applied | None]) -> int:
    """Return how often something else could run until the work was over."""
    looks = 0
    while not work.done():
        looks += 1
        await asyncio.sleep(0)
    return looks


@pytest.mark.parametrize("count", [30, 300])
async def test_others_go_on_between_any_two_jobs(book: BookRig, tmp_path: Path, count: int) -> None:
    """The last job is refused, so that no write gives way to others."""
    write(tmp_path, count, last='[last]\nprompt = "look"\nschedule = "@daily"\nwhere = "none"\n')
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(fail(JobFile(tmp_path, book.ports, PLATFORMS)))
        assert await count_looks(work) > count
    assert not await book.jobs.list_jobs()


async def fail(file: JobFile) -> Applied | None:
    with pytest.raises(Faulty):
        await file.apply()
    return None


@pytest.mark.parametrize("count", [3, MAX_FAULTS, 2_000])
@pytest.mark.parametrize("where", ["", "none", "fax:1::7::p"])
async def test_many_faults_are_reported_in_part(
    book: BookRig, tmp_path: Path, count: int, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, count, where)
    await JobFile(tmp_path, book.ports, PLATFORMS).look()
    told = [one for one in caplog.records if one.message == "jobs_file_refused"]
    assert len(told) == min(count, MAX_FAULTS)
    lines = [vars(one)["line"] for one in told]
    assert lines == sorted(lines)
