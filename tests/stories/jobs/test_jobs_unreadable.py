"""A job whose time cannot be read any more (of another version, or of a zone that this machine does
not know): its chat is told once, all other jobs go on, and it can be mended there."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.fakes.model_server import Say
from tests.stories.jobs_rig import (
    TITLE,
    Shifted,
    jobs_of,
    make,
    pass_until,
    schedule,
)
from tests.stories.rig import PERSON, Rig

OTHER = "Weather"
TOLD = "cannot be read here any more"


def damage(rig: Rig, title: str, **fields: object) -> None:
    with closing(sqlite3.connect(rig.home / "turnkeeper.db")) as c, c:
        for name, body in c.execute("SELECT id, body FROM jobs").fetchall():
            job = json.loads(body)
            if job["title"] == title:
                new = json.dumps(job | fields).encode()
                c.execute("UPDATE jobs SET body = ? WHERE id = ?", (new, name))
    c.close()


async def state_of(rig: Rig, title: str) -> str:
    jobs = await jobs_of(rig).store.list_jobs()
    return next(job.state for job in jobs if job.title == title)


@pytest.mark.parametrize(
    "ways", [("/jobs edit 1 zone=UTC schedule=0 10 * * *",), ("/jobs delete 1",)]
)
@pytest.mark.parametrize(
    "fields", [{"zone": "Mars/Olympus"}, {"schedule": "at the second moon"}, {"zone": ""}]
)
async def test_it_stops_itself_alone(
    rig: Rig, clock: Shifted, fields: dict[str, object], ways: tuple[str, ...]
) -> None:
    await rig.start()
    job = await make(rig)
    rig.model.script(schedule(title=OTHER, prompt="Tell the weather."), Say("So be it."))
    rig.telegram.say(PERSON, "and the weather")
    rig.press(await rig.card(), "Confirm")
    await rig.shows("So be it.")
    await rig.quiet()
    damage(rig, TITLE, **fields)
    rig.telegram.say(PERSON, "/jobs")
    await rig.shows(f"1. {TITLE}")
    await rig.shows(f"2. {OTHER}")
    for day in (0, 1):
        rig.model.script(Say(f"sunny on day {day}"))
        await pass_until(rig, clock, job.next_due + 1 + day * 86_400)
        await rig.shows(f"sunny on day {day}")
        await rig.quiet()
    assert [TOLD in text for text in rig.said()].count(True) == 1
    assert await state_of(rig, TITLE) == "paused"
    for way in ways:
        rig.telegram.say(PERSON, way)
        await rig.quiet()
    if "delete" in ways[0]:
        rig.press(await rig.shows("permanently?"), "Delete")
        await rig.quiet()
        assert [one.title for one in await jobs_of(rig).store.list_jobs()] == [OTHER]
    else:
        rig.telegram.say(PERSON, "/jobs resume 1")
        await rig.shows("is resumed")
        assert await state_of(rig, TITLE) == "active"
