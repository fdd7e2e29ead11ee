"""What many jobs cost while nothing is due, and how late one of them is.

`python -m benchmarks.jobs [jobs] [idle seconds] [probes]` fills a store, looks at it from a process
of its own, prints JSON and a row for benchmarks/README.md. A probe is a job that is due in a second.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agent_core import ambient
from benchmarks.parked import rss
from cron.scheduler import Scheduler
from gateway.jobs_port import Job, JobRun, JobStore
from gateway.messages import Inbound, JobFired, Sender
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.sqlite import SqliteStore

GOAL_CORE = 0.01
GOAL_MIB = 50.0
GOAL_START = 1.0
GOAL_LATE_MS = 500.0
DAY = 86_400.0
WAVE = 500
APART = 0.02
"""Seconds between two probes."""
OWNER = Sender(platform="telegram", id="7")
ROOM = "telegram:1::7::p"


def job(name: str, due: float, schedule: str) -> Job:
    """A job that is due then."""
    return Job(id=name, owner=OWNER, conversation=ROOM, title=name, prompt="Look.", zone="UTC",
               schedule=schedule, next_due=due, wake=due, made=ambient.now(), version="a")  # fmt: skip


async def fill(path: Path, count: int) -> None:
    """Put `count` weekly jobs into a new store, due on the day after tomorrow."""
    store = await SqliteStore.open(path)
    jobs, day = make_jobs(store), int(ambient.now() // DAY) + 2
    for first in range(0, count, WAVE):
        wave = range(first, min(first + WAVE, count))
        await _made(jobs, [_make_weekly(f"j{n}", day, n % 1440) for n in wave])
    await store.close()


def _make_weekly(name: str, day: int, minute: int) -> Job:
    """A job that is due at this minute of the day that has this number since 1970, a Thursday."""
    schedule = f"{minute % 60} {minute // 60} * * {(day + 4) % 7}"
    return job(name, day * DAY + minute * 60, schedule)


async def _made(jobs: JobStore, new: Sequence[Job]) -> None:
    async with asyncio.TaskGroup() as group:
        for one in new:
            group.create_task(jobs.commit(None, one, ()))


class Probed:
    """A scheduler over the store at `path`, whose probes' lateness is taken."""

    def __init__(self, store: SqliteStore) -> None:
        self.late: list[float] = []
        self._store = store
        self.jobs = make_jobs(store)
        self.scheduler = Scheduler(self.jobs, self._accept, self._settle)

    async def _accept(self, inbounds: Sequence[Inbound]) -> None:
        await self._store.accept(inbounds)
        now = ambient.now()
        self.late += (now - one.due for one in inbounds if isinstance(one, JobFired))

    async def _settle(self, run: JobRun) -> bool:
        return True

    async def probe(self, count: int) -> list[float]:
        """Seconds that each of `count` probes was late."""
        for n in range(count):
            due = ambient.now() + 1.0
            await self.jobs.commit(None, job(f"probe-{n}", due, "every 1d"), ())
            self.scheduler.ring()
            await asyncio.sleep(APART)
        async with asyncio.timeout(30):
            while len(self.late) < count:
                await asyncio.sleep(APART)
        return sorted(self.late)


async def look(path: Path, idle: float, probes: int) -> dict[str, float]:
    """Start, stay idle, probe: in this process."""
    store = await SqliteStore.open(path)
    before, began = rss(), time.perf_counter()
    probed = Probed(store)
    await probed.scheduler.tick()
    start = time.perf_counter() - began
    running = asyncio.create_task(probed.scheduler.run())
    await asyncio.sleep(1.0)  # the clock is wound up
    used = time.process_time()
    await asyncio.sleep(idle)
    used = time.process_time() - used
    added = rss() - before
    late = await probed.probe(probes)
    running.cancel()
    await asyncio.wait({running})
    await store.close()
    return {
        "start_s": round(start, 4),
        "idle_core": round(used / idle, 5),
        "added_mib": round(added / 2**20, 1),
        "process_mib": round(rss() / 2**20, 1),
        "late_p50_ms": round(late[len(late) // 2] * 1000, 1),
        "late_p99_ms": round(late[int(len(late) * 0.99)] * 1000, 1),
        "late_max_ms": round(late[-1] * 1000, 1),
    }


def measure(count: int, idle: float, probes: int) -> dict[str, float]:
    """Fill a store here, look at it from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        asyncio.run(fill(path, count))
        words = ("look", str(path), str(idle), str(probes))
        command = (sys.executable, "-m", "benchmarks.jobs", *words)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603
        found: dict[str, float] = json.loads(done.stdout)
    return {"jobs": count} | found


def met(found: dict[str, float]) -> bool:
    """Every goal."""
    return (
        found["idle_core"] < GOAL_CORE
        and found["added_mib"] < GOAL_MIB
        and found["start_s"] < GOAL_START
        and found["late_p99_ms"] < GOAL_LATE_MS
    )


def main() -> int:
    """0 if every goal is met."""
    words = sys.argv[1:]
    if words[:1] == ["look"]:
        print(json.dumps(asyncio.run(look(Path(words[1]), float(words[2]), int(words[3])))))
        return 0
    numbers = [float(word) for word in words] + [10_000, 30, 200][len(words) :]
    found = measure(int(numbers[0]), numbers[1], int(numbers[2]))
    print(json.dumps(found))
    print(
        f"| {found['jobs']:.0f} | {found['start_s']} s | {100 * found['idle_core']:.2f} % "
        f"| {found['added_mib']} MiB | {found['process_mib']} MiB | {found['late_p50_ms']} / "
        f"{found['late_p99_ms']} / {found['late_max_ms']} ms |"
    )
    return 0 if met(found) else 1


if __name__ == "__main__":
    sys.exit(main())
