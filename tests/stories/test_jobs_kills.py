"""A due time is one run, one turn and one report: a kill at every point of a firing, from the claim to the
end that is put down."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agent_core import ambient
from cron import firing, scheduler
from cron.timetable import Times
from gateway.jobs.book import Book
from gateway.jobs.means import means_of
from gateway.jobs.port import FILE, HERE, Due, Job, Run
from gateway.jobs.settings import JobSettings
from gateway.jobs.store_sqlite import SqliteJobs
from gateway.messages import Conversation
from tests.fakes.lives import count_points, killed_at
from tests.fakes.world import ANN, ROOM, Ledger, Life, Points
from tests.stories.test_kills import assert_clean

T = TypeVar("T")
sends: Counter[int] = Counter()
OTHER = Conversation(platform="test", account="a", channel="other", private=True)


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


async def story(life: Life, deliver: tuple[str, ...] = ()) -> None:
    """A job that is due: its report, and its end on record."""
    firing.TASK = ""  # the scripted model reads its script from the beginning
    jobs = PointedJobs(SqliteJobs(life.store._store), life.points)  # type: ignore[arg-type]
    means = means_of(life.store, life.host.accept, life.folder, frozenset(("test",)))  # type: ignore[arg-type]
    book = Book(jobs, Times(), JobSettings(), means)  # type: ignore[arg-type]
    life.services.jobs = book
    due = float(int(ambient.now()) - 5)
    text = Times().read(f"at {ambient.utc(due):%Y-%m-%dT%H:%M:%S}Z", "UTC")
    job = Job(
        id="j1", owner=ANN, conversation=ROOM.id, title="Look", prompt="do note", schedule=text,
        zone="UTC", next_due=due, wake=due, made=due, version="a", deliver=deliver,
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


async def story_elsewhere(life: Life) -> None:
    """As `story`, with the report here, in another chat and in a file."""
    await story(life, (HERE, OTHER.id, f"{FILE}out/report.md"))
    opened = await life.store.acquire(OTHER.id, life.owner, 30.0)
    assert opened is not None and (opened.inbox, opened.views) == ((), ())
    assert opened.row.end == 1, "the report is in its transcript, once"


def check_elsewhere(folder: Path, label: str) -> None:
    lines = Ledger(folder / "ledger.jsonl").all("send")
    rooms = Counter(line["to"] for line in lines if line["view"]["kind"] == "report")
    assert rooms.keys() == {ROOM.id, OTHER.id}, f"{label}: {rooms}"
    sends.update(rooms.values())
    assert sum(rooms.values()) == len(lines), f"{label}: nothing but the report is sent"
    (file,) = folder.glob("*/out/report.md")
    assert file.read_text() and len(list(file.parent.iterdir())) == 1, label


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_kill_at_every_point_delivers_once() -> None:
    sends.clear()
    points = count_points(story_elsewhere)
    killed = 0
    for k in range(1, points["count"] + 1):
        label = f"kill at {k} ({points['names'][k - 1]})"
        killed += killed_at([{k}], story_elsewhere, check_elsewhere, label)
    assert killed > points["count"] * 0.9
    assert sends.keys() <= {1, 2} and sends[2] <= 10, sends
