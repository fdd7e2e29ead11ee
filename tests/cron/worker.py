"""A scheduler in a process of its own, to be killed: `worker.py <store> <start> <speed>`. Its clock runs
`speed` times as fast, from `start` on; its runs are over as soon as they are in the inbox."""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_core import ambient
from agent_core.ambient import SystemClock
from cron.scheduler import Scheduler
from gateway.jobs_port import JobRun, JobStore
from gateway.messages import Inbound
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore

BEGINNING = 1_800_000_000.0


class Fast(SystemClock):
    def __init__(self, start: float, speed: float) -> None:
        self.start, self.speed = start, speed

    def now(self) -> float:
        return BEGINNING + (time.time() - self.start) * self.speed


async def opened(where: str) -> Store:
    if "://" not in where:
        return await SqliteStore.open(Path(where))
    from gateway.store.redis import RedisStore

    return await RedisStore.open(where)


async def work(where: str) -> None:
    store = await opened(where)
    jobs: JobStore = make_jobs(store)
    known: set[str] = set()

    async def accept(inbounds: Sequence[Inbound]) -> None:
        await store.accept(inbounds)
        known.update(one.event for one in inbounds)

    async def settle(run: JobRun) -> bool:
        if f"job:{run.job}:{run.slot}:{run.tries}" not in known:
            return False
        await jobs.advance(run, replace(run, state="done", version=ambient.new_id()))
        return True

    scheduler = Scheduler(jobs, accept, settle)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("ready", flush=True)
    while True:
        await scheduler.tick()
        if stop.is_set():
            break
        await asyncio.sleep(0.01)
    await store.close()


if __name__ == "__main__":
    ambient.use(Fast(float(sys.argv[2]), float(sys.argv[3])))
    asyncio.run(work(sys.argv[1]))
