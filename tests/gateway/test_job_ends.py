"""Runs that never began, and the settings about jobs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.events import ErrorMet
from agent_core.journal import Emitted, Failed, Finished, Record
from gateway.declaration import SettingsError
from gateway.features.jobs.outcomes import outcome
from gateway.features.jobs.run_ends import NOT_BEGUN
from gateway.features.jobs.settings import read_jobs
from gateway.jobs_port import JobRun, JobSettings
from gateway.store.rows import TurnRow
from tests.cron.book_rig import BookRig, living_book


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BookRig]:
    async with living_book(tmp_path) as made:
        yield made


async def test_what_never_began_is_told_after_a_day(world: BookRig) -> None:
    await world.make()
    run = JobRun(job="j1", slot="s", due=1.0, state="fired", at=world.clock.time, version="r")
    job = await world.jobs.get("j1")
    assert job is not None
    await world.jobs.commit(job, replace(job, version="x"), (run,))
    assert not await world.ports.ends.settle(run) and world.told == []
    world.clock.time += NOT_BEGUN + 1
    assert not await world.ports.ends.settle(run)
    assert "never started" in world.told[0].text
    assert await world.jobs.list_unfinished() == ()
    assert await world.book.retry("j1", "s") and not await world.book.retry("j1", "s")


async def test_an_end_that_is_noticed_twice_at_once_is_logged_once(
    world: BookRig, caplog: pytest.LogCaptureFixture
) -> None:
    await world.make()
    run = JobRun(job="j1", slot="s", due=1.0, state="fired", at=world.clock.time, version="r")
    job = await world.jobs.get("j1")
    assert job is not None
    await world.jobs.commit(job, replace(job, version="x"), (run,))
    world.clock.time += NOT_BEGUN + 1
    with caplog.at_level("INFO"):
        await asyncio.gather(*(world.ports.ends.settle(run) for _ in range(3)))
    assert [one.message for one in caplog.records].count("run_ended") == 1


ROW = TurnRow(
    id="t", status="done", sender="", sender_name="", language="en", role="user", inbox=(),
    message="", begun=0.0, code="",
)  # fmt: skip
STUCK = Emitted(key="given-up", event=ErrorMet(text="I made no progress."))


def fail(text: str, fault: str) -> Failed:
    return Failed(key="m", error="model", text=text, fault=fault)


END = Finished(key="final", text="", finish="error")


@pytest.mark.parametrize(
    ("met", "text", "again"),
    [
        (STUCK, "I made no progress.", True),
        (fail("It is down.", "overloaded"), "It is down.", True),
        (fail("No such model.", "missing"), "No such model.", False),
        (fail("No credit.", "unpaid"), "No credit.", False),
    ],
)  # fmt: skip
def test_a_run_that_failed_says_why(met: Record, text: str, again: bool) -> None:
    ended = outcome(ROW, (met, END))
    assert ended is not None
    assert (ended.state, ended.text, ended.again) == ("failed", text, again)


def test_settings() -> None:
    given = {"JOBS_PER_PERSON": "3", "JOBS_TIMEZONE": "Europe/Berlin"}
    assert read_jobs(given) == JobSettings(per_person=3, zone="Europe/Berlin")
    with pytest.raises(SettingsError, match="JOBS_TIMEZONE=Nowhere: write a time zone"):
        read_jobs({"JOBS_TIMEZONE": "Nowhere"})
