"""Jobs at a moment that is told as people do, in the zone that their person chose."""

from datetime import UTC, datetime

import pytest

from agent_core import ambient
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import Shifted, only, runs, schedule
from tests.stories.rig import PERSON, Rig

AFTERNOON = datetime(2027, 3, 3, 14, 5, 30, tzinfo=UTC).timestamp()
"""A Wednesday; in Tokyo 23:05."""


@pytest.fixture
async def rig(clock: Shifted, rig: Rig) -> Rig:
    clock.offset = AFTERNOON - ambient.now()
    await rig.start()
    rig.telegram.say(PERSON, "/timezone Asia/Tokyo")
    await rig.shows("Your time zone is now Asia/Tokyo")
    return rig


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("tomorrow at nine", "2027-03-04 09:00 Asia/Tokyo"),
        ("morgen um neun", "2027-03-04 09:00 Asia/Tokyo"),
        ("next friday 18:00", "2027-03-05 18:00 Asia/Tokyo"),
    ],
)
async def test_a_day_is_one_of_the_persons_zone(rig: Rig, said: str, shown: str) -> None:
    rig.model.script(schedule(schedule=said, zone=""), Say("it stands"))
    rig.telegram.say(PERSON, f"{said}, look at the incidents")
    card = await rig.card()
    assert shown in card["text"]
    rig.press(card, "Confirm")
    await rig.shows("it stands")
    assert (await only(rig)).schedule.startswith("at 2027-03-0")
    await rig.quiet()


async def test_a_span_begins_when_it_is_proposed_and_the_job_runs_then(
    rig: Rig, clock: Shifted
) -> None:
    rig.model.script(schedule(schedule="in 20 minutes", zone=""), Say("it stands"))
    rig.telegram.say(PERSON, "in 20 minutes, look at the incidents")
    card = await rig.card()
    assert "2027-03-03 23:25" in card["text"]
    clock.offset += 600.0
    rig.press(card, "Confirm")
    await rig.shows("it stands")
    await rig.quiet()
    due = (await only(rig)).next_due
    assert due == pytest.approx(AFTERNOON + 1_200, abs=30), "not later for the late press"
    rig.model.script(Say("no incident is open"))
    clock.offset += 700.0
    rig.host.services.jobs.bell.set()  # type: ignore[union-attr]
    await rig.shows("no incident is open")
    assert [run.due for run in await runs(rig)] == [due]
    await rig.quiet()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("today at 9", "That time is in the past."),
        ("at 2027-03-03 09:00", "That time is in the past."),
        ("tomorrow", "Name a time of day too"),
        ("at half past", "Write a moment like"),
    ],
)
async def test_a_refused_time_says_what_time_it_is(rig: Rig, said: str, why: str) -> None:
    rig.model.script(schedule(schedule=said, zone=""), Say("not possible"))
    rig.telegram.say(PERSON, said)
    await rig.shows("not possible")
    (told,) = rig.seen(role="tool")
    assert why in told and "It is now 2027-03-03 23:05 Asia/Tokyo." in told
    assert rig.cards() == []
    await rig.quiet()
