"""A due time is one run, one turn and one report: a kill at every point of a firing, from the claim to the
end that is put down."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agent_core import ambient
from cron import scheduler
from cron.timetable import Times
from gateway.jobs.book import Book
from gateway.jobs.port import Due, Job, Run
from gateway.jobs.settings import JobSettings
from gateway.jobs.store_sqlite import SqliteJobs
from tests.fakes.lives import count_points, killed_at
from tests.fakes.world import ANN, ROOM, Ledger, Life, Points
from tests.stories.test_kills import assert_clean

T = TypeVar("T")
sends: Counter[int] = Counter()


class PointedJobs:
    """Jobs with points before and after each write."""

    def __init__(self, jobs: SqliteJobs, points: Points) -> None:
        self._jobs, self._points = jobs, points

    async def get(self, job: str) -> Job | None:
        return await self._jobs.get(job)

    async def listed(self, owner: str = "") -> tuple[Job, ...]:
        return await self._jobs.listed(owner)

    async def due(self, now: float, limit: int) -> Due:
        return await self._jobs.due(now, limit)

    async def run(self, job: str, slot: str) -> Run | None:
        return await self._jobs.run(job, slot)

    async def runs(self, job: str, limit: int) -> tuple[Run, ...]:
        return await self._jobs.runs(job, limit)

    async def unfinished(self) -> tuple[Run, ...]:
        return await self._jobs.unfinished()

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[Run, ...]) -> bool:
        return await self._around("job", lambda: self._jobs.commit(before, after, runs))

    async def advance(self, before: Run, after: Run) -> bool:
        return await self._around("run", lambda: self._jobs.advance(before, after))

    async def _around(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        self._points.hit(name)
        done = await write()
        self._points.hit(f"{name} kept")
        return done


async def story(life: Life) -> None:
    """A job that is due: its report, and its end on record."""
    scheduler.TASK = "{prompt}"  # the scripted model reads its script from the beginning
    jobs = PointedJobs(SqliteJobs(life.store._store), life.points)  # type: ignore[arg-type]
    book = Book(jobs, Times(), JobSettings(), life.store, life.host.accept)  # type: ignore[arg-type]
    life.services.jobs = book
    due = float(int(ambient.now()) - 5)
    text = Times().read(f"at {ambient.utc(due):%Y-%m-%dT%H:%M:%S}Z", "UTC")
    job = Job(
        id="j1", owner=ANN, conversation=ROOM.id, title="Look", prompt="do note", schedule=text,
        zone="UTC", next_due=due, wake=due, made=due, version="a",
    )  # fmt: skip
    if await jobs._jobs.get("j1") is None:
        await jobs._jobs.commit(None, job, ())
    clock = scheduler.Scheduler(jobs, life.host.accept, book.settle)
    book.ring = clock.ring
    running = asyncio.create_task(clock.run())
    try:
        async with asyncio.timeout(10):
            while [run.state for run in await jobs.runs("j1", 9)] != ["done"]:
                await asyncio.sleep(0.005)
        await life.quiet()
        await assert_clean(life, 1)
    finally:
        running.cancel()
        await asyncio.wait({running})


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    reports = [line for line in ledger.all("send") if line["view"]["kind"] == "report"]
    assert 1 <= len(reports) <= 2, f"{label}: {len(reports)} reports"
    sends[len(reports)] += 1
    assert len(ledger.all("send")) == len(reports), f"{label}: nothing but the report is sent"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1, label


@pytest.mark.timeout(240)
def test_a_kill_at_every_point_reports_once() -> None:
    sends.clear()
    points = count_points(story)
    names = points["names"]
    assert {"job", "job kept", "run", "run kept", "accept", "commit", "send"} <= set(names)
    killed = 0
    for k in range(1, points["count"] + 1):
        killed += killed_at([{k}], story, check, f"kill at {k} ({names[k - 1]})")
    assert killed > points["count"] * 0.9
    # between the platform's answer and the commit of it nothing can tell whether it stands there;
    # the run's end is put down meanwhile
    assert sends[2] <= 5, sends
