"""Runs that never began, and the settings about jobs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.declaration import SettingsError
from gateway.features.jobs.run_ends import NOT_BEGUN
from gateway.features.jobs.settings import read_jobs
from gateway.jobs_port import JobRun, JobSettings
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


def test_settings() -> None:
    given = {"JOBS_PER_PERSON": "3", "JOBS_TIMEZONE": "Europe/Berlin"}
    assert read_jobs(given) == JobSettings(per_person=3, zone="Europe/Berlin")
    with pytest.raises(SettingsError, match="JOBS_TIMEZONE=Nowhere: write a time zone"):
        read_jobs({"JOBS_TIMEZONE": "Nowhere"})
