"""Schedulers are killed with -9 at random: each due time has one row or is counted in one, each run
that was to happen is in the inbox once, and none is missing."""

import asyncio
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from cron.claims import slot_of
from cron.schedule import read_schedule
from cron.scheduler import advance_schedule
from cron.trigger import next_fire
from gateway.jobs_port import MAX_RUNS, Job
from gateway.messages import JobFired, Sender, read_conversation
from gateway.store.jobs.job_stores import make_jobs
from tests.contracts.redis_server import RedisServer, redis_server
from tests.cron.worker import BEGINNING, opened

ROOT = Path(__file__).parents[2]
SCHEDULE = "* * * * *"


class Proof:
    """A store, workers upon it, and what must hold at the end."""

    def __init__(self, where: str, jobs: int, speed: float) -> None:
        self.where, self.speed = where, speed
        self.jobs = [self._job(n) for n in range(jobs)]
        self.start = time.time() + 1.0

    @staticmethod
    def _job(n: int) -> Job:
        job = Job(
            id=f"j{n}", owner=Sender(platform="telegram", id="7"), title="t", prompt="p",
            conversation=f"telegram:1::{n}::p", schedule=SCHEDULE, zone="UTC", version="a",
            overlap="queue", missed="all", window=1e6,
        )  # fmt: skip
        return advance_schedule(job, next_fire(read_schedule(SCHEDULE, "UTC"), "UTC", BEGINNING))

    def clock(self) -> float:
        return BEGINNING + (time.time() - self.start) * self.speed

    async def prepare(self) -> None:
        store = await opened(self.where)
        for job in self.jobs:
            await make_jobs(store).commit(None, job, ())
        await store.close()

    async def worker(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cron.worker", self.where, str(self.start),
            str(self.speed), cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        return process

    async def live(self, kills: int, slots: int, at_once: int = 1) -> None:
        """Until `slots` due times have passed and all `kills` were made; on a slow machine fewer,
        for a job keeps so many runs."""
        chance = random.Random(kills * 7 + slots)
        workers = [await self.worker() for _ in range(at_once)]
        most = BEGINNING + 60 * (MAX_RUNS * 3 // 4)
        while self.clock() < most and (kills or self.clock() < BEGINNING + 60 * slots):
            await asyncio.sleep(chance.uniform(0.02, 0.3))
            if kills:
                kills -= 1
                n = chance.randrange(at_once)
                workers[n].kill()
                await workers[n].wait()
                workers[n] = await self.worker()
        for one in workers:
            one.terminate()
            assert await one.wait() == 0
        last = await self.worker()  # what the last kill left is taken up
        last.terminate()
        assert await last.wait() == 0

    async def check(self) -> int:
        """How many due times there were."""
        store = await opened(self.where)
        jobs = make_jobs(store)
        total = 0
        for job in self.jobs:
            now = await jobs.get(job.id)
            assert now is not None
            runs = await jobs.runs(job.id, 100_000)
            slots = {
                slot_of(job.next_due + 60 * n)
                for n in range(int(now.next_due - job.next_due) // 60)
            }
            single = Counter(run.slot for run in runs)
            assert set(single.values()) <= {1}, "a due time has one row"
            assert sum(run.count for run in runs) == len(slots), "each one is accounted for"
            assert set(single) <= slots
            assert all(run.reason for run in runs if run.state == "skipped"), "none silently"
            rows = await store.arrivals(read_conversation(job.conversation).id, 0)
            fired = [row.inbound for row in rows]
            assert all(isinstance(one, JobFired) for one in fired)
            seen = Counter(one.slot for one in fired if isinstance(one, JobFired))
            assert set(seen.values()) <= {1}, "a run is in the inbox once"
            begun = {run.slot for run in runs if run.state in ("fired", "done")}
            assert begun == set(seen), "and none that began is missing there"
            total += len(slots)
        await store.close()
        return total


async def test_killed_at_random(tmp_path: Path) -> None:
    proof = Proof(str(tmp_path / "store.db"), jobs=5, speed=300.0)
    await proof.prepare()
    await proof.live(kills=4, slots=12)
    assert await proof.check() >= 60


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_killed_fifty_times(tmp_path: Path) -> None:
    proof = Proof(str(tmp_path / "store.db"), jobs=20, speed=120.0)
    await proof.prepare()
    await proof.live(kills=50, slots=100)
    assert await proof.check() >= 2_000


@pytest.fixture
def redis(tmp_path: Path) -> RedisServer:
    return redis_server(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_four_on_redis_killed_fifty_times(redis: RedisServer) -> None:
    proof = Proof(redis.url, jobs=20, speed=120.0)
    try:
        await proof.prepare()
        await proof.live(kills=50, slots=100, at_once=4)
        assert await proof.check() >= 2_000
    finally:
        redis.end()
