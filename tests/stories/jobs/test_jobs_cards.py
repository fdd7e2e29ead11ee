"""The cards of jobs stay true: a job is deleted by a second press, and what is shown of it changes
with it. Over Telegram, the real gateway and model SDK."""

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from cron.book import JobBook
from gateway.command_texts import drop_marks
from gateway.features.jobs.cards import order_jobs
from gateway.jobs_port import Job, JobState
from gateway.messages import Sender, job_token
from gateway.texts import say
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import (
    TITLE,
    Shifted,
    card_of,
    jobs_of,
    make,
    only,
    runs,
    settled,
)
from tests.stories.rig import FRIEND, GROUP, PERSON, Json, Rig, labels, token

SURE = ["Delete permanently", "Keep"]


async def listed(rig: Rig, chat: int = PERSON) -> Json:
    """The card of the only job, newly listed."""

    def cards() -> list[Json]:
        shown = rig.telegram.chats[chat]
        return [m for m in shown if m["text"].startswith("1. ") and m.get("reply_markup")]

    count, at = len(cards()), "@test_bot" if chat == GROUP else ""
    rig.telegram.say(chat, f"/jobs{at}", PERSON, chat == GROUP)
    await rig.until(lambda: len(cards()) > count)
    await rig.quiet()
    return cards()[-1]


async def test_it_is_kept_or_deleted_by_a_second_press_on_the_same_card(rig: Rig) -> None:
    await rig.start()
    await make(rig)
    card = await listed(rig)
    before, count = card["text"], len(rig.said())
    rig.press(card, "Delete")
    await rig.until(lambda: labels(card) == SURE)
    assert say("jobs_sure", title=TITLE) in card["text"]
    rig.press(card, "Keep")
    await rig.until(lambda: card["text"] == before)
    assert labels(card)[-1] == "Delete"
    first = token(card, "Delete")
    rig.press(card, "Delete")
    await rig.until(lambda: labels(card) == SURE)
    last = token(card, "Delete permanently")
    rig.telegram.press(PERSON, card["message_id"], first, PERSON)  # twice: it asks as it did
    await rig.quiet()
    assert (await only(rig)).title == TITLE and labels(card) == SURE
    rig.press(card, "Delete permanently")
    await rig.until(lambda: not card.get("reply_markup"))
    assert card["text"] == f"{TITLE} was deleted." and len(rig.said()) == count, "no new message"
    assert await jobs_of(rig).store.list_jobs() == ()
    for late in (first, last, token_of("keep", first)):
        word = await rig.told(rig.telegram.press(PERSON, card["message_id"], late, PERSON))
        assert word == drop_marks(say("jobs_no_such"))
    await rig.quiet()
    assert card["text"] == f"{TITLE} was deleted." and len(rig.said()) == count


def token_of(action: str, like: str) -> str:
    _, job, _, slot = like.split(":")
    return job_token(job, action, slot)


async def test_all_its_cards_change_and_keep_changing_after_a_crash(rig: Rig) -> None:
    await rig.start()
    await make(rig)
    first, second = await listed(rig), await listed(rig)
    assert first["message_id"] != second["message_id"]
    rig.press(first, "Pause")
    await rig.until(lambda: "Resume" in labels(first) and "Resume" in labels(second))
    await rig.quiet()
    await rig.crash()
    await rig.start()
    rig.telegram.say(PERSON, "/jobs resume 1")
    await rig.until(lambda: "Pause" in labels(first) and "Pause" in labels(second))
    rig.press(first, "Delete")
    await rig.until(lambda: labels(first) == SURE)
    assert "Delete" in labels(second), "only the one that was pressed asks"
    await rig.quiet()
    await rig.crash()
    await rig.start()
    rig.press(first, "Delete permanently")
    await rig.until(lambda: not first.get("reply_markup") and not second.get("reply_markup"))
    assert await jobs_of(rig).store.list_jobs() == ()


async def test_what_was_deleted_elsewhere_is_found_out_by_a_press(rig: Rig) -> None:
    await rig.start()
    job = await make(rig)
    card = await listed(rig)
    await jobs_of(rig).book.remove(job.id)
    assert await rig.told(rig.press(card, "Run now")) == drop_marks(say("jobs_no_such"))
    await rig.until(lambda: say("jobs_gone") in card["text"] and not card.get("reply_markup"))


async def test_a_command_asks_too_and_so_does_a_card_from_before(rig: Rig) -> None:
    await rig.start()
    job = await make(rig)
    rig.telegram.say(PERSON, "/jobs delete 1")
    card = await rig.shows(say("jobs_sure", title=TITLE))
    assert labels(card) == SURE and (await only(rig)).id == job.id
    rig.press(card, "Keep")
    await rig.until(lambda: "Delete" in labels(card))
    await rig.quiet()
    count = len(rig.said())
    rig.telegram.press(PERSON, card["message_id"], job_token(job.id, "delete"), PERSON)
    await rig.until(lambda: len(rig.said()) == count + 1)
    rig.press(card_of(rig, "permanently?"), "Delete permanently")
    await rig.until(lambda: not any(m.get("reply_markup") for m in rig.telegram.chats[PERSON]))
    assert await jobs_of(rig).store.list_jobs() == ()


async def test_another_person_neither_asks_nor_deletes(rig: Rig) -> None:
    await rig.start()
    await make(rig, GROUP)
    card = await listed(rig, GROUP)
    refused = say("not_yours")
    for label in ("Delete", "Pause"):
        assert await rig.told(rig.press(card, label, FRIEND)) == refused
    rig.press(card, "Delete")
    await rig.until(lambda: labels(card) == SURE)
    for label in SURE:
        assert await rig.told(rig.press(card, label, FRIEND)) == refused
    await rig.quiet()
    assert labels(card) == SURE and (await only(rig)).title == TITLE


async def test_a_run_is_begun_once_a_press(rig: Rig) -> None:
    await rig.start()
    await make(rig)
    card = await listed(rig)
    for text in ("found one thing", "found another"):
        rig.model.script(Say(text))
        rig.press(card, "Run now")
        await rig.shows(text)
        await settled(rig, "done")
        await rig.quiet()
    assert [run.slot.startswith("now-") for run in await runs(rig)] == [True, True]


async def test_two_presses_at_once_begin_one_run(rig: Rig) -> None:
    await rig.start()
    await make(rig)
    card = await listed(rig)
    rig.model.script(Say("found one thing"), Say("found another"))
    rig.model.gate = asyncio.Event()
    first, second = (rig.press(card, "Run now") for _ in range(2))
    assert await rig.told(first) == ""
    assert await rig.told(second) == say("jobs_runs_already", title=TITLE)
    rig.telegram.say(PERSON, "/jobs run 1")
    await rig.shows(say("jobs_runs_already", title=TITLE))
    rig.model.gate.set()
    await rig.shows("found one thing")
    await settled(rig, "done")
    await rig.quiet()
    assert len(await runs(rig)) == 1
    assert sum("is running now" in text for text in rig.said()) == 1


async def test_a_list_names_what_it_has_no_card_for(rig: Rig) -> None:
    await rig.start()
    job = await make(rig)
    for n in range(12):  # written into the store: over for long, and newer than the other
        over = replace(job, id=f"over{n}", title=f"Over {n}", state="ended", made=job.made + 1 + n)
        await jobs_of(rig).store.commit(None, over, ())
    before = len(rig.said())
    rig.telegram.say(PERSON, "/jobs")
    more = (await rig.shows("More jobs:"))["text"]
    await rig.quiet()
    titles = [text.split(".")[0] for text in rig.said()[before:-1]]
    assert titles == ["1", *map(str, range(5, 14))], "what goes on, and what is newest of the rest"
    assert [line.split(":")[0] for line in more.splitlines()[1:-1]] == [
        "4. Over 2", "3. Over 1", "2. Over 0",
    ]  # fmt: skip
    rig.telegram.say(PERSON, "/jobs 3")
    await rig.until(lambda: rig.said()[-1].startswith("3. Over 1"))
    assert labels(rig.telegram.chats[PERSON][-1])[-1] == "Delete"


async def test_what_was_paused_past_its_time_is_told_to_be_over(rig: Rig, clock: Shifted) -> None:
    await rig.start()
    await make(rig, schedule="in 20 minutes")
    rig.press(await listed(rig), "Pause")
    await rig.shows("is paused")
    clock.offset = 1_300.0
    rig.telegram.say(PERSON, "/jobs resume 1")
    await rig.shows(say("jobs_is_over", title=TITLE))
    assert (await only(rig)).state == "ended"


@pytest.mark.parametrize("label", ["Pause", "Resume"])
async def test_what_is_pressed_twice_is_told_to_who_pressed_alone(rig: Rig, label: str) -> None:
    await rig.start()
    job = await make(rig)
    if label == "Resume":
        await jobs_of(rig).book.pause(job.id)
    card = await listed(rig)
    pressed = token(card, label)
    first, second = (
        rig.telegram.press(PERSON, card["message_id"], pressed, PERSON) for _ in range(2)
    )
    assert await rig.told(first) == ""
    assert await rig.told(second) == say("jobs_not_so", title=TITLE)
    await rig.quiet()
    done = "is paused" if label == "Pause" else "is resumed"
    assert sum(done in text for text in rig.said()) == 1
    assert not [text for text in rig.said() if "Nothing was changed" in text]


async def test_a_kill_between_the_deletion_and_its_commit(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.start()
    await make(rig)
    card = await listed(rig)
    rig.press(card, "Delete")
    await rig.until(lambda: labels(card) == SURE)
    removed, remove = asyncio.Event(), JobBook.remove

    async def dies(self: JobBook, name: str) -> bool:
        await remove(self, name)
        removed.set()
        await asyncio.Event().wait()  # until the process is gone
        return True

    monkeypatch.setattr(JobBook, "remove", dies)
    rig.press(card, "Delete permanently")
    await removed.wait()
    await rig.crash()
    monkeypatch.setattr(JobBook, "remove", remove)
    await rig.start()
    await rig.until(lambda: not card.get("reply_markup") and say("jobs_gone") in card["text"])
    await rig.quiet()


@pytest.mark.parametrize("action", ["delete", "pause"])
async def test_a_button_names_no_card_of_another_conversation(rig: Rig, action: str) -> None:
    """A token is written by who presses: by HTTP anybody may send any."""
    await rig.start()
    job = await make(rig)
    mine = await listed(rig)
    with suppress(ValueError):  # there are two jobs then
        await make(rig, GROUP)
    theirs = await listed(rig, GROUP)
    before = dict(theirs)
    slot = token(theirs, "Delete").rpartition(":")[2]
    await rig.told(
        rig.telegram.press(PERSON, mine["message_id"], job_token(job.id, action, slot), PERSON)
    )
    await rig.quiet()
    assert theirs == before
    rig.press(theirs, "Delete")
    await rig.until(lambda: labels(theirs) == SURE)


def test_jobs_that_are_over_come_last_the_newest_first() -> None:
    """In the list of a chat and at home on Slack; their numbers stay."""
    states: tuple[JobState, ...] = ("ended", "active", "ended", "paused")
    about = {"conversation": "c", "title": "", "prompt": "", "schedule": "", "zone": ""}
    owner = Sender(platform="telegram", id="1", name="Ann")
    jobs = [Job(id=f"{n}", owner=owner, state=s, **about) for n, s in enumerate(states)]
    assert [n for n, _ in order_jobs(jobs)] == [2, 4, 3, 1]
