"""Jobs over Telegram: made in words and confirmed, fired, reported, talked about, paused by a button,
missed while nothing ran, failed and retried."""

import asyncio
import json
import time
from typing import Any

import pytest
from msgspec.structs import replace

from agent_core import ambient
from cron.book import JobBook
from gateway.jobs_port import Job, JobRun
from gateway.messages import JobFired
from gateway.texts import say
from tests.fakes.model_server import Call, Fail, Say
from tests.stories.jobs_rig import (
    DAY,
    TITLE,
    Shifted,
    card_of,
    fire,
    jobs_of,
    make,
    only,
    pass_until,
    runs,
    schedule,
    settled,
)
from tests.stories.rig import (
    FRIEND,
    GROUP,
    PERSON,
    Rig,
    labels,
    mention,
    write,
)
from tests.stories.surfaces import Web


@pytest.fixture
async def rig(clock: Shifted, rig: Rig) -> Rig:
    return rig


async def test_made_in_words_and_nothing_before_the_press(rig: Rig) -> None:
    rig.model.script(schedule(), Say("It stands."))
    await rig.start()
    rig.telegram.say(PERSON, "every day at 9 send me the open incidents")
    card = await rig.card()
    assert await jobs_of(rig).store.list_jobs() == ()
    text = card["text"]
    assert "At 09:00" in text and "Europe/Berlin" in text and TITLE in text
    assert text.count(" 09:00") == 4, "in words, and the next three times"
    assert "List the open incidents." in text and "Budget: none" in text
    assert labels(card) == ["Confirm", "Change", "Cancel"]
    buttons = [one for row in card["reply_markup"]["inline_keyboard"] for one in row]
    assert [one.get("style", "") for one in buttons] == ["success", "", ""]
    await rig.quiet()
    await rig.crash()
    await rig.start()  # the card works after a restart
    rig.press(card, "Confirm")
    await rig.shows("It stands.")
    job = await only(rig)
    assert job.owner.key == f"telegram:{PERSON}" and job.conversation == rig.where().id
    assert job.schedule == "0 9 * * *" and job.next_due > ambient.now()


@pytest.mark.parametrize("button", ["Change", "Cancel"])
async def test_not_confirmed_is_not_made(rig: Rig, button: str) -> None:
    rig.model.script(schedule(), Say("as you like"))
    await rig.start()
    rig.telegram.say(PERSON, "every day at 9")
    rig.press(await rig.card(), button)
    await rig.shows("as you like")
    assert await jobs_of(rig).store.list_jobs() == ()
    told = rig.seen(role="tool")[-1]
    assert "ask_user" in told if button == "Change" else "did not confirm" in told


async def test_confirmed_after_its_time_it_is_not_made(rig: Rig, clock: Shifted) -> None:
    rig.model.script(schedule(schedule="in 20 minutes"), Say("too late, when else?"))
    await rig.start()
    rig.telegram.say(PERSON, "in 20 minutes send me the open incidents")
    card = await rig.card()
    await rig.quiet()
    clock.offset = 1_300.0
    rig.press(card, "Confirm")
    await rig.shows("too late, when else?")
    told = rig.seen(role="tool")[-1]
    assert "confirmed too late" in told and say("jobs_past") in told
    assert await jobs_of(rig).store.list_jobs() == ()


def asked(action: str, **more: str) -> Call:
    return Call("schedule_job", json.dumps({"action": action, "job": TITLE} | more))


async def test_a_change_that_is_confirmed_late_undoes_no_other_one(rig: Rig) -> None:
    """Its card shows the job as it was: what was changed since is not on it."""
    await rig.start()
    await make(rig)
    rig.model.script(asked("change", schedule="30 8 * * *"), Say("I look again"))
    rig.telegram.say(PERSON, "at half past 8 instead")
    card = await rig.card()
    await rig.quiet()
    rig.telegram.say(PERSON, "/jobs edit 1 title=Incidents prompt=List all of them.")
    await rig.shows("was changed")
    changed = await only(rig)
    rig.press(card, "Confirm")
    await rig.shows("I look again")
    assert "was changed after this card was shown" in rig.seen(role="tool")[-1]
    assert await only(rig) == changed and changed.title == "Incidents"


@pytest.mark.parametrize("action", ["create", "change", "run"])
async def test_a_kill_between_what_was_confirmed_and_its_record(
    rig: Rig, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is done once, and the agent hears that it was done."""
    method = {"create": "make", "change": "change", "run": "run_now"}[action]
    await rig.start()
    if action != "create":
        await make(rig)
    call = schedule() if action == "create" else asked(action, schedule="30 8 * * *")
    rig.model.script(call)
    rig.telegram.say(PERSON, "so it shall be")
    card = await rig.card()
    await rig.quiet()
    made, do = asyncio.Event(), getattr(JobBook, method)

    async def dies(*given: Any, **named: Any) -> object:
        await do(*given, **named)
        made.set()
        await asyncio.Event().wait()  # until the process is gone
        return None

    monkeypatch.setattr(JobBook, method, dies)
    rig.press(card, "Confirm")
    await made.wait()
    await rig.crash()
    monkeypatch.setattr(JobBook, method, do)
    rig.model.script(Say("so it is"), Say("none is open"))
    await rig.start()
    await rig.shows("so it is")
    heard = [one for n in range(len(rig.model.requests)) for one in rig.seen(n, "tool")]
    assert heard[-1].startswith("The job" if action == "create" else "Done.")
    job = await only(rig)
    assert job.schedule == ("30 8 * * *" if action == "change" else "0 9 * * *")
    if action == "run":
        await rig.shows("none is open")
        await settled(rig, "done")
    assert len(await runs(rig)) == (action == "run")


async def test_somebody_else_cannot_confirm(rig: Rig) -> None:
    rig.model.script(schedule())
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot daily", PERSON, True, **mention(""))
    card = await rig.card(GROUP)
    assert "Only the person who asked" in await rig.told(rig.press(card, "Confirm", FRIEND))
    assert await jobs_of(rig).store.list_jobs() == ()


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"schedule": "0 0 30 2 *"}, "There is no day 30 in month 2"),
        ({"schedule": "* * * * * *"}, "too often"),
        ({"zone": "Mars/Olympus"}, "no time zone"),
        ({"schedule": "at 2020-01-01 09:00"}, "past"),
        ({"title": ""}, "needs title"),
    ],
)
async def test_what_cannot_be_is_said_without_a_card(
    rig: Rig, wanted: dict[str, str], why: str
) -> None:
    rig.model.script(schedule(**wanted), Say("that cannot be"))
    await rig.start()
    rig.telegram.say(PERSON, "now and then")
    await rig.shows("that cannot be")
    assert why in rig.seen(role="tool")[-1] and rig.cards() == []


async def test_fires_reports_and_is_talked_about(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    job = await make(rig)
    rig.model.script(
        Call("list_files", "{}"), Say("Two incidents are open."), Say("The second is older.")
    )
    await fire(rig, clock)
    report = await rig.shows("Two incidents are open.")
    assert TITLE in report["text"] and "09:00 Europe/Berlin" in report["text"]
    run = await settled(rig, "done")
    assert run.text == "Two incidents are open."
    asked = rig.seen(1 + 1, role="user")[-1]
    assert "List the open incidents." in asked and "[SILENT]" in asked
    assert not [one for one in rig.said() if "List files" in one], "nothing on its way"
    rig.telegram.say(PERSON, "which one is older?")
    await rig.shows("The second is older.")
    assert any("Two incidents are open." in said for said in rig.seen(role="assistant"))
    after = await only(rig)
    assert after.next_due == job.next_due + DAY and len(await runs(rig)) == 1


@pytest.mark.parametrize("crashed", [False, True])
async def test_many_that_are_due_at_once_leave_the_chat_answered(
    rig: Rig, clock: Shifted, crashed: bool
) -> None:
    """What a person says waits for one run at most, and no run waits for more than one message."""
    await rig.start()
    job = await make(rig)
    for n in range(1, 5):
        one = replace(job, id=f"j{n}", title=f"Look {n}", prompt=f"work {n}.")
        await jobs_of(rig).store.commit(None, one, ())
    rig.model.gate = asyncio.Event()
    await pass_until(rig, clock, job.next_due + 1)
    await rig.until(lambda: waiting(rig) == (4, 0) and rig.model.inflight)
    rig.telegram.say(PERSON, "Who are you?")
    rig.telegram.say(PERSON, "What time is it?")
    await rig.until(lambda: waiting(rig) == (4, 2))
    if crashed:
        await rig.crash()
        await rig.start()
    rig.model.gate.set()
    await rig.until(lambda: len(rig.said()) == 2 + 5 + 2)
    await rig.quiet()
    wanted = ["List the open", "ack Who", "ack What", *(f"work {n}." for n in range(1, 5))]
    order = [next(one for one in wanted if one in text) for text in rig.said()[2:]]
    assert sorted(order) == sorted(wanted), order
    assert max(order.index("ack Who"), order.index("ack What") - 2) <= 1 + crashed, order


def waiting(rig: Rig) -> tuple[int, int]:
    """Runs and messages that wait for their turn in the chat."""
    session = rig.session()
    if session is None:
        return 0, 0
    queue = session.state.queue
    return len(queue) - queue.messages, queue.messages


async def test_silent_sends_nothing_and_is_in_the_history(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    await make(rig)
    before = len(rig.said())
    rig.model.script(Say("[SILENT]"))
    await fire(rig, clock)
    await settled(rig, "silent")
    await rig.quiet()
    assert len(rig.said()) == before
    rig.telegram.say(PERSON, "/jobs history 1")
    await rig.shows("nothing to report")


async def test_the_list_and_its_buttons(rig: Rig) -> None:
    await rig.start()
    await make(rig)
    rig.telegram.say(PERSON, "/jobs")
    await rig.shows("It has not run yet.")
    card = card_of(rig, "It has not run yet.")
    assert labels(card) == ["Run now", "Pause", "Edit", "History", "Delete"]
    assert TITLE in [
        card["text"][one["offset"] : one["offset"] + one["length"]]
        for one in card["entities"]
        if one["type"] == "bold"
    ]
    rig.press(card, "Pause")
    await rig.shows("is paused")
    assert (await only(rig)).state == "paused"
    rig.telegram.say(PERSON, "/jobs resume 1")
    await rig.shows("is resumed")
    rig.model.script(Say("found something"))
    rig.press(card, "Run now")
    await rig.shows("found something")
    assert (await settled(rig, "done")).slot.startswith("now-")
    assert await rig.told(rig.press(card, "Delete", FRIEND, PERSON)) is not None
    rig.press(card, "Delete")
    await rig.until(lambda: "Open incidents permanently?" in card["text"])
    assert (await only(rig)).state == "active", "nothing is gone by one press"
    rig.press(card, "Delete permanently")
    await rig.until(lambda: card["text"] == f"{TITLE} was deleted.")
    assert await jobs_of(rig).store.list_jobs() == ()


async def test_another_person_manages_nothing_here(rig: Rig) -> None:
    await rig.start()
    job = await make(rig, GROUP)
    rig.telegram.say(GROUP, "/jobs@test_bot", FRIEND, True)
    await rig.shows("You have no jobs", GROUP)
    rig.telegram.say(GROUP, "/jobs@test_bot", PERSON, True)
    await rig.shows("It has not run yet.", GROUP)
    card = card_of(rig, "It has not run yet.", GROUP)
    assert await rig.told(rig.press(card, "Delete", FRIEND)) == say("not_yours")
    assert await only(rig) == job


async def test_missed_while_down_runs_once(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    job = await make(rig)
    await rig.stop()
    clock.offset = job.next_due + 30 * DAY + 3_600 - time.time()  # noqa: TID251  # a clock
    rig.model.script(Say("after a month"))
    await rig.start()
    await rig.shows("after a month")
    await settled(rig, "done")
    found = await runs(rig)
    assert len(found) == 31 and [one.state for one in found].count("skipped") == 30
    assert {one.reason for one in found[1:]} == {"missed"}
    assert (await only(rig)).next_due > ambient.now()


async def test_fails_is_tried_again_then_told_and_paused(rig: Rig, clock: Shifted) -> None:
    await rig.start(MODEL_TIMEOUT="5")
    await make(rig)
    before = len(rig.said())
    rig.model.script(*[Fail(401)] * 4)
    await fire(rig, clock)
    for tries in (1, 2, 3):
        run = await settled(rig, "retrying")
        while run.tries < tries:
            run = await settled(rig, "retrying")
        await rig.quiet()
        assert len(rig.said()) == before, "told at the end"
        await pass_until(rig, clock, run.wake + 1)
    card = await rig.shows("now paused")
    await settled(rig, "failed")
    assert labels(card) == ["Retry", "Resume"] and TITLE in card["text"]
    assert (await only(rig)).state == "paused"
    rig.model.script(Say("it works again"))
    rig.press(card, "Retry")
    await rig.shows("it works again")
    assert len([one for one in rig.said() if "failed" in one]) == 1


async def test_what_was_due_once_is_tried_again_too(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    moment = f"at {ambient.utc(ambient.now() + DAY):%Y-%m-%d %H:%M}"
    await make(rig, schedule=moment, zone="UTC")
    rig.model.script(Fail(401), Say("Now it works."))
    await fire(rig, clock)
    run = await settled(rig, "retrying")
    assert (await only(rig)).state == "ended"
    await pass_until(rig, clock, run.wake + 1)
    await rig.shows("Now it works.")
    assert (await settled(rig, "done")).tries == 1


async def test_a_run_asks_parks_and_the_buttons_work_later(rig: Rig, clock: Shifted) -> None:
    await rig.start(PERMISSION_ASK_ALL="on")
    rig.model.script(schedule(), Say("It stands."))
    rig.telegram.say(PERSON, "daily")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("At 09:00")
    rig.press(card_of(rig, "At 09:00"), "Confirm")
    await rig.shows("It stands.")
    await rig.quiet()
    rig.model.script(write("a.txt"))
    await fire(rig, clock)
    card = await rig.card()
    rig.model.script(Say("meanwhile"))
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("meanwhile")
    await rig.quiet()
    await rig.crash()
    await rig.start(PERMISSION_ASK_ALL="on")
    rig.model.script(Say("written, as you said"))
    rig.press(card, "Approve once")
    await rig.shows("written, as you said")
    await settled(rig, "done")


async def test_a_job_makes_no_job_without_a_press(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    await make(rig)
    rig.model.script(schedule(title="Another"))
    await fire(rig, clock)
    card = await rig.card()
    await rig.quiet()
    assert len(await jobs_of(rig).store.list_jobs()) == 1
    rig.model.script(Say("[SILENT]"))
    rig.press(card, "Cancel")
    await settled(rig, "silent")
    assert len(await jobs_of(rig).store.list_jobs()) == 1


async def test_an_owner_who_was_put_out_pauses_the_job(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    await make(rig)
    await rig.stop()
    await rig.start(TELEGRAM_ALLOWED_USERS=str(FRIEND))
    await fire(rig, clock)
    await rig.shows("may no longer use the agent")
    assert (await only(rig)).state == "paused"
    assert (await runs(rig))[0].reason == "no_rights"


def again(rig: Rig, job: Job, run: JobRun) -> JobFired:
    """The same firing in a delivery that the inbox does not know any more."""
    return JobFired(
        conversation=rig.where(), event="known no more", job=job.id, slot=run.slot, due=run.due,
        text="again", owner=job.owner, turn=run.turn,
    )  # fmt: skip


async def test_a_set_of_tools_that_is_gone_pauses_its_job_and_holds_up_no_other(
    rig: Rig, clock: Shifted
) -> None:
    await rig.start(TOOLSETS='{"mine": ["read_file"]}')
    for words in ("tools=mine every day at nine: look A", "every day at nine: look B"):
        rig.telegram.say(PERSON, f"/jobs add {words}")
        await rig.shows(words[-6:])
    await rig.quiet()
    await rig.stop()
    await rig.start()
    rig.model.script(Say("B was looked at"))
    jobs = await jobs_of(rig).store.list_jobs()
    await pass_until(rig, clock, max(job.next_due for job in jobs) + 1)
    await rig.shows("B was looked at")
    card = await rig.shows(say("jobs_why_no_means"))
    assert "look A" in card["text"] and card["text"].endswith("tools mine.")
    assert labels(card) == ["Retry", "Resume"]
    await rig.quiet()
    jobs = await jobs_of(rig).store.list_jobs()
    assert {job.title: job.state for job in jobs} == {"look A": "paused", "look B": "active"}
    rig.telegram.say(PERSON, "/jobs edit 1 tools=-")
    await rig.shows("was changed")
    rig.model.script(Say("A was looked at"))
    rig.press(card, "Retry")
    await rig.shows("A was looked at")


async def test_a_firing_that_comes_twice_is_one_turn(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    job = await make(rig)
    rig.model.script(Say("once"), Say("twice"))
    await fire(rig, clock)
    await rig.shows("once")
    await rig.host.accept([again(rig, job, await settled(rig, "done"))])
    await rig.quiet()
    assert not [one for one in rig.said() if "twice" in one] and len(await runs(rig)) == 1


async def test_nor_does_it_begin_a_second_one_while_the_first_waits(
    rig: Rig, clock: Shifted
) -> None:
    await rig.start()
    job = await make(rig)
    rig.model.script(write("a.txt"), Say("the first"), Say("the second"))
    await fire(rig, clock)
    card = await rig.card()
    await rig.quiet()
    asked = len(rig.model.requests)
    await rig.host.accept([again(rig, job, await settled(rig, "fired"))])
    await rig.quiet()
    assert len(rig.model.requests) == asked
    rig.press(card, "Approve once")
    await rig.shows("the first")


async def test_at_the_page_in_german(rig: Rig, clock: Shifted) -> None:
    page = Web(rig, "de")
    await page.open()
    try:
        page.mind.lines = {
            "jeden Tag um 9": [schedule(), Say("Steht.")],
            "List the open incidents.": [Say("Zwei Störungen sind offen.")],
        }
        await page.say("jeden Tag um 9")
        await page.shows("Um 09:00")
        await page.press("Bestätigen")
        await page.shows("Steht.")
        await fire(rig, clock)
        await page.shows("Zwei Störungen sind offen.")
        await page.command("/jobs")
        await page.shows("Zuletzt")
        await page.press("Pause")
        await page.shows("ist pausiert")
        assert (await only(rig)).state == "paused"
    finally:
        await page.close()
