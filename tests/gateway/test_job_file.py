"""The operator's file of jobs, applied beside everything else that the gateway does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from gateway.errors import StoreFailed
from gateway.features.jobs.operator.apply import Applied, JobFile
from gateway.features.jobs.operator.jobfile import MAX_FAULTS, Faulty
from gateway.jobs_port import MAX_SCRIPT, JobSettings, JobStore
from gateway.wiring.jobs import make_job_ports
from tests.cron.book_rig import BookRig, living_book

PLATFORMS = frozenset(("telegram", "web"))
WHEN = ("*/5 * * * *", "0 9 29 2 *", "every 2h", "at 2099-01-01 09:00", "0 0 * * 5#2")
CALLS = 5


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


class FailingStore:
    """The store of jobs, whose call number `fails` fails."""

    def __init__(self, jobs: JobStore, fails: int) -> None:
        self._jobs, self.left = jobs, fails

    def __getattr__(self, name: str) -> object:
        real = getattr(self._jobs, name)

        async def call(*args: object) -> object:
            self.left -= 1
            if self.left == 0:
                raise StoreFailed("the store is away")
            return await real(*args)

        return call


@pytest.mark.parametrize("fails", range(1, CALLS + 1))
async def test_a_store_that_fails_meanwhile_loses_no_change(
    book: BookRig, tmp_path: Path, fails: int
) -> None:
    store = FailingStore(book.jobs, fails)
    ports = make_job_ports(cast(JobStore, store), JobSettings(), book.deps)
    file = JobFile(tmp_path, ports, PLATFORMS)
    write(tmp_path, 4)
    with pytest.raises(StoreFailed):
        await file.look()
    await file.look()
    assert len(await book.jobs.list_jobs()) == 4


TEXTS = ("title", "prompt", "schedule", "zone", "where", "missed", "overlap", "script")
TEXTS += ("context_from", "hook", "deliver", "model", "profile", "tools")


@pytest.mark.parametrize("size", [1, 200, 10_000, MAX_SCRIPT, MAX_SCRIPT + 1, 300_000])
@pytest.mark.parametrize("character", ["x", "1", "*", "/", "\\u0000", "\\u202E", "💥", "\\n"])
async def test_a_text_of_any_length_is_taken_or_refused_by_its_line(
    book: BookRig, tmp_path: Path, character: str, size: int
) -> None:
    """Each field in turn, in the second of two jobs."""
    file = JobFile(tmp_path, book.ports, PLATFORMS)
    known = {"prompt": "look", "schedule": "0 9 * * *", "where": "telegram:1::7::p"}
    for field in TEXTS:
        table = known | {field: character * (size // (2 if character == "💥" else 1) or 1)}
        text = "\n".join(f'{name} = "{value}"' for name, value in table.items())
        (tmp_path / "jobs.toml").write_text(f"[other]\nprompt = 1\n[odd]\n{text}\n")
        with pytest.raises(Faulty) as refused:
            await file.apply()
        told = [one for one in refused.value.faults if one.line > 2]
        line = 4 + list(table).index(field)
        assert {one.line for one in told} <= {3, line}, field
        assert len(told) <= 2 and all(len(one.text) < 1_000 for one in told), field


async def test_the_longest_command_is_taken(book: BookRig, tmp_path: Path) -> None:
    text = (
        f'[long]\nscript = "{"x" * MAX_SCRIPT}"\nschedule = "@daily"\nwhere = "telegram:1::7::p"\n'
    )
    (tmp_path / "jobs.toml").write_text(text)
    assert await JobFile(tmp_path, book.ports, PLATFORMS).apply() == Applied(made=("long",))
