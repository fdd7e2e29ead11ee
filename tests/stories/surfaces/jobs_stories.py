"""Jobs on every surface, in long stories."""

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from gateway.features.jobs.hooks import ADDRESS, secret_name
from gateway.jobs_port import JobRun
from gateway.services.vault import Vault
from tests.fakes.model_server import Call, Fail, Say
from tests.stories.hooks_rig import BODY, SECRET, standard
from tests.stories.jobs_rig import (
    DAY,
    TITLE,
    Shifted,
    fire,
    jobs_of,
    only,
    pass_until,
    schedule,
    settled,
)
from tests.stories.rig import PERSON, write
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

MONDAY = 1_930_287_600.0
"""2031-03-03, 8 o'clock in Berlin: the times that are shown are the same in each run."""


PROMPT = "List the open incidents."


Tell = Callable[[Any, Shifted], Awaitable[None]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """`rests`: where the gateway is killed, one after another."""

    tell: Tell
    rests: tuple[str, ...]


STORIES: dict[str, Story] = {}


def story(*rests: str) -> Callable[[Tell], Tell]:
    """Enters the function into `STORIES`."""

    def enter(tell: Tell) -> Tell:
        STORIES[tell.__name__] = Story(tell=tell, rests=rests)
        return tell

    return enter


async def made(s: Surface, **more: object) -> None:
    """In words, and confirmed: nothing exists before."""
    asked = schedule(schedule="0 9 * * 1-5", **more)
    s.answers(weekday=[asked, Say("It stands.")])
    await s.say("Every weekday at 9 send me the open incidents")
    await s.card("New job")
    assert await jobs_of(s.rig).store.list_jobs() == ()
    await s.rest("asked")
    s.look("the card")
    await s.press("Confirm")
    await s.shows("It stands.")
    await s.rig.quiet()


async def reply(s: Surface, to: str, text: str) -> None:
    """To the bot's message that shows `to`, where messages can be replied to."""
    if isinstance(s, Web):
        await s.say(text)
    else:
        assert isinstance(s, Telegram | Discord | Slack)
        await s.say_as(PERSON, text, reply_to=s.named(to))


async def called(s: Surface) -> None:
    """POST /hooks/incidents, twice the same."""
    headers = standard("call-1")
    for _ in range(2):
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{s.rig.url}hooks/incidents", data=BODY, headers=headers) as answer,
        ):
            assert answer.status == 202, await answer.text()


async def at_rest(s: Surface, state: str) -> JobRun:
    """The newest run, once it is that far and all of it is shown."""
    run = await settled(s.rig, state)
    await s.rig.quiet()
    return run


@story("asked", "reported", "called", "paused", "changed")
async def a_job_from_its_first_day_to_its_last(s: Surface, clock: Shifted) -> None:
    Vault(s.rig.home).keep(ADDRESS, secret_name("incidents"), SECRET)
    await made(s, hook="incidents")
    s.answers(**{PROMPT: [Call("list_files"), Say("Two are **open**.")], "older": [Say("Two is.")]})
    await fire(s.rig, clock)
    await s.shows("are open.")
    await at_rest(s, "done")
    await s.rest("reported")
    await reply(s, "Two are", "Which one is older?")
    await s.shows("Two is.")
    s.answers(**{PROMPT: [Say("[SILENT]")]})
    await fire(s.rig, clock)
    await at_rest(s, "silent")
    s.answers(**{PROMPT: [Say("Version 1.2.3 brought none.")]})
    await pass_until(s.rig, clock, (await only(s.rig)).next_due - DAY + 3_600)
    await called(s)
    await s.shows("brought none.")
    await at_rest(s, "done")
    await s.rest("called")
    await s.command("/jobs")
    await s.shows("Last: ")
    await s.press("Pause")
    await s.shows("is paused")
    await pass_until(s.rig, clock, (await only(s.rig)).next_due + 60)
    await s.rest("paused")
    await s.command("/jobs resume 1")
    await s.shows("is resumed")
    change = json.dumps({"action": "change", "job": TITLE, "schedule": "30 8 * * 1-5"})
    s.answers(**{"half past": [Call("schedule_job", change), Say("It is changed.")]})
    await s.press("Edit")
    await s.shows("Write what to change")
    await s.say(f"Send {TITLE} at half past 8 instead")
    await s.card("Change the job")
    await s.press("Confirm")
    await s.shows("It is changed.")
    await s.rest("changed")
    s.answers(**{PROMPT: [Say("None at all.")]})
    await fire(s.rig, clock)
    await s.shows("None at all.")
    await at_rest(s, "done")
    await s.command("/jobs history 1")
    await s.shows("nothing to report")
    await s.press("Delete")
    await s.shows("permanently?")
    await s.press("Delete permanently")
    await s.shows("was deleted")
    await s.command("/jobs")
    await s.shows("You have no jobs")
    assert await jobs_of(s.rig).store.list_jobs() == ()


@story("asked", "missed", "it asks", "tried again", "told")
async def a_job_that_has_bad_days(s: Surface, clock: Shifted) -> None:
    await made(s)
    s.answers(**{PROMPT: [Say("Found after three days.")]})
    clock.offset += 3 * DAY  # nobody is told: as if nothing had run meanwhile
    await s.restart()
    await s.shows("after three days.")
    await at_rest(s, "done")
    await s.rest("missed")
    await s.command("/mode ask")
    await s.shows("I ask before")
    s.answers(**{PROMPT: [write("a.txt"), Say("Written, as you said.")]})
    await fire(s.rig, clock)
    await s.card("a.txt")
    await s.say("And now?")
    await s.shows("ack And now?")
    await s.rest("it asks")
    s.look("while it asks")
    await s.restart()
    await s.press("Approve once")
    await s.shows("Written, as you said.")
    await at_rest(s, "done")
    s.answers(**{PROMPT: [Fail(401)]})
    await fire(s.rig, clock)
    for tries in (1, 2, 3):
        run = await at_rest(s, "retrying")
        while run.tries < tries:
            run = await at_rest(s, "retrying")
        assert "failed" not in "".join(s.screen()), "told at the end"
        if tries == 2:
            await s.rest("tried again")
        await pass_until(s.rig, clock, run.wake + 1)
    await s.shows("now paused")
    await at_rest(s, "failed")
    await s.rest("told")
    s.look("while it is paused")
    s.answers(**{PROMPT: [Say("It works again.")]})
    await s.press("Retry")
    await s.shows("It works again.")
    await at_rest(s, "done")
    await s.command("/jobs history 1")
    await s.shows("It was missed")
