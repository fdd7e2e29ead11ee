"""What both stores promise of jobs and runs."""

import asyncio

from msgspec.structs import replace

from gateway.jobs_port import MAX_RUNS, Job, JobRun, JobStore
from gateway.messages import Sender


def job(name: str = "j1", **more: object) -> Job:
    owner = Sender(platform="telegram", id="7", name="Ada")
    known = Job(
        id=name, owner=owner, conversation="telegram:1::7::p", title=name, prompt="look",
        schedule="0 9 * * *", zone="UTC", next_due=100.0, wake=100.0, made=1.0, version="a",
    )  # fmt: skip
    return replace(known, **more)


def run(slot: str = "s1", due: float = 100.0, **more: object) -> JobRun:
    known = JobRun(job="j1", slot=slot, due=due, state="fired", version="a")
    return replace(known, **more)


class JobsContract:
    """`jobs` is a fixture: an empty store."""

    async def test_a_job_is_made_once_and_found(self, jobs: JobStore) -> None:
        assert await jobs.commit(None, job(), ())
        assert await jobs.commit(None, job(), ())  # the same write again
        assert not await jobs.commit(None, job(version="b"), ())
        assert await jobs.get("j1") == job()
        assert await jobs.get("j2") is None
        other = job("j2", owner=Sender(platform="telegram", id="8"), made=2.0)
        assert await jobs.commit(None, other, ())
        assert await jobs.list_jobs() == (job(), other)
        assert await jobs.list_jobs("telegram:8") == (other,)

    async def test_only_who_saw_the_newest_writes(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), ())
        assert await jobs.commit(job(), job(version="b", next_due=200.0, wake=200.0), (run(),))
        assert not await jobs.commit(job(), job(version="c"), (run("s2"),))
        assert await jobs.run("j1", "s2") is None
        assert [one.slot for one in await jobs.list_unfinished()] == ["s1"]

    async def test_of_many_claims_one_holds(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), ())
        claims = [
            jobs.commit(job(), job(version=f"v{n}"), (run(version=f"r{n}"),)) for n in range(20)
        ]
        assert (await asyncio.gather(*claims)).count(True) == 1
        assert len(await jobs.runs("j1", 10)) == 1

    async def test_a_slot_that_has_a_run_keeps_it(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), ())
        await jobs.commit(job(), job(version="b"), (run(),))
        later = run(state="skipped", version="z")
        assert await jobs.commit(job(version="b"), job(version="c"), (later,))
        assert await jobs.run("j1", "s1") == run()

    async def test_a_slot_that_a_clock_ahead_skipped_is_free(self, jobs: JobStore) -> None:
        at = {"s1": 500.0, "s2": 500.0, "s3": 40.0}
        early = tuple(run(slot, state="skipped", at=at[slot]) for slot in at)
        done = run("s4", state="done", at=500.0)
        await jobs.commit(None, job(), (*early, done))
        now = (run("s1", at=50.0, version="b"), run("s2", state="skipped", at=50.0, version="b"))
        kept = (run("s3", at=50.0, version="b"), run("s4", at=50.0, version="b"))
        assert await jobs.commit(job(), job(version="b"), (*now, *kept))
        assert [await jobs.run("j1", f"s{n}") for n in (1, 2, 3, 4)] == [*now, early[2], done]
        assert await jobs.list_unfinished() == now[:1]

    async def test_due_is_what_is_active_and_has_come(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), ())
        await jobs.commit(None, job("j2", wake=150.0), ())
        await jobs.commit(None, job("j3", state="paused"), ())
        await jobs.commit(None, job("j4", wake=0.0), ())
        due = await jobs.due(100.0, 10)
        assert [one.id for one in due.jobs] == ["j1"]
        assert due.next == 150.0
        assert (await jobs.due(200.0, 10)).next is None
        assert len((await jobs.due(200.0, 1)).jobs) == 1
        await jobs.commit(job(), job(version="b"), (run(state="retrying", wake=120.0),))
        assert (await jobs.due(110.0, 10)).next == 120.0
        assert [one.slot for one in (await jobs.due(120.0, 10)).runs] == ["s1"]

    async def test_a_run_moves_on_from_what_was_seen(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), (run(), run("s2", 90.0)))
        assert [one.slot for one in await jobs.list_unfinished()] == ["s2", "s1"]
        assert [one.slot for one in await jobs.list_unfinished("j1")] == ["s2", "s1"]
        assert await jobs.list_unfinished("j2") == ()
        done = run(state="done", text="found", version="b")
        assert await jobs.advance(run(), done)
        assert await jobs.advance(run(), done)  # the same write again
        assert not await jobs.advance(run(), run(state="failed", version="c"))
        assert not await jobs.advance(run("s9"), run("s9", version="c"))
        assert [one.slot for one in await jobs.list_unfinished()] == ["s2"]
        assert (await jobs.runs("j1", 10))[0] == done
        assert [one.slot for one in await jobs.runs("j1", 1)] == ["s1"]

    async def test_a_removed_job_stays_away(self, jobs: JobStore) -> None:
        await jobs.commit(None, job(), (run(), run("s0", 1.0, state="done")))
        assert await jobs.commit(job(), None, ())
        assert await jobs.commit(job(), None, ())
        assert not await jobs.commit(job(), job(version="b"), ())
        assert await jobs.get("j1") is None and await jobs.list_jobs() == ()
        assert (await jobs.due(1e9, 10)).jobs == ()
        assert await jobs.runs("j1", 10) == (run(),)  # what runs is still to be ended

    async def test_old_runs_go_and_open_ones_stay(self, jobs: JobStore) -> None:
        first = run("open", 1.0)
        old = tuple(run(f"s{n}", 10.0 + n, state="done") for n in range(MAX_RUNS + 5))
        await jobs.commit(None, job(), (first, *old))
        kept = await jobs.runs("j1", 10_000)
        assert MAX_RUNS <= len(kept) <= MAX_RUNS + 1
        assert kept[0].slot == f"s{MAX_RUNS + 4}" and kept[-1].slot == "open"
