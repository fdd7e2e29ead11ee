"""A plan that failed is tried again: its card says so and offers nothing any more, whoever presses
what, when, and whatever dies in between. Over Telegram, the real gateway and model SDK."""

import asyncio
import re
from typing import Any

import pytest

from gateway.command_texts import drop_marks
from gateway.features.plans import amend
from gateway.store.rows import Changes, Lease, OutboxRow
from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.plan_rig import ASK, CHAIN, GOOD, pass_on, plan
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PERSON,
    Json,
    Rig,
    labels,
    mention,
    token,
)

BAD, NONE = Say('{"ok": false, "why": "nobody there"}'), Say('{"steps": []}')


async def failed(rig: Rig) -> Json:
    """The card of a plan whose first step failed for good."""
    rig.model.script(CHAIN, Say("hm"), BAD, NONE, Say("It did not work."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("It did not work.")
    await rig.quiet()
    assert labels(rig.plan()) == ["Retry 1"]
    return dict(rig.plan())


def old(rig: Rig) -> Json:
    """The card of the first plan, as it is now."""
    return next(m for m in rig.telegram.chats[PERSON] if "Find the hosts" in m["text"])


def newest(rig: Rig) -> str:
    """What the card of the last plan says."""
    return str([m["text"] for m in rig.telegram.chats[PERSON] if "Find the hosts" in m["text"]][-1])


async def test_the_old_card_says_so_and_the_new_plan_is_the_one_card(rig: Rig) -> None:
    await rig.start()
    card = await failed(rig)
    rig.model.script(CHAIN, Say("found"), GOOD, Say("two"), BAD, NONE, Say("Half of it."))
    rig.model.gate = asyncio.Event()
    rig.press(card, "Retry 1")
    await rig.model.wait_inflight(1)
    await rig.until(lambda: say("plan_retried", n=1) in old(rig)["text"])
    assert "✕ 1. Find the hosts" in old(rig)["text"], "what became of it stays to be read"
    assert rig.buttons() == []
    rig.model.gate.set()
    await rig.shows("Half of it.")
    await rig.quiet()
    (one,) = rig.buttons()
    assert labels(one) == ["Retry 2"] and one["message_id"] != old(rig)["message_id"]


async def test_the_plan_keeps_its_title_and_counts_the_tries(rig: Rig) -> None:
    await rig.start()
    card = await failed(rig)
    title = card["text"].split("\n")[0].removeprefix("✕ ").removesuffix(" 0/3")
    rig.model.script(CHAIN, Say("hm"), BAD, NONE, Say("Not again."))
    rig.press(card, "Retry 1")
    await rig.shows("Not again.")
    await rig.quiet()
    assert rig.plan()["text"].startswith(f"✕ {title} (try 2) 0/3")
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("Now it did."))
    rig.press(rig.plan(), "Retry 1")
    await rig.shows("Now it did.")
    await rig.quiet()
    assert newest(rig).startswith(f"☑ {title} (try 3) 3/3")
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("And anew."))
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("And anew.")
    await rig.quiet()
    assert newest(rig).startswith(f"☑ {title} (try 3) 3/3")


async def test_one_turn_comes_of_many_presses(rig: Rig) -> None:
    await rig.start()
    card = await failed(rig)
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "something else")
    await rig.model.wait_inflight(1)
    assert await rig.told(rig.press(card, "Retry 1")) == say("plan_again_waits")
    assert await rig.told(rig.press(card, "Retry 1")) == say("plan_again_before")
    assert labels(old(rig)) == ["Retry 1"], "it has not taken over yet"
    await rig.crash()
    rig.model.script(Say("busy"), CHAIN, *[Say("x"), GOOD] * 3, Say("Now it did."))
    rig.model.gate = None
    await rig.start()
    await rig.shows("Now it did.")
    await rig.quiet()
    word = rig.telegram.press(PERSON, card["message_id"], token(card, "Retry 1"), PERSON)
    assert await rig.told(word) == say("plan_again_before")
    await rig.quiet()
    assert rig.said().count("Now it did.") == 1 and rig.buttons() == []
    assert old(rig)["text"].count("retried below") == 1


async def test_what_a_person_skipped_stays_skipped(rig: Rig) -> None:
    await rig.start()
    rig.model.script(CHAIN, Say("hm"), BAD, NONE, Say("It did not work."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, ASK)
    await rig.model.wait_inflight(1)
    pass_on(rig)
    await rig.shows("◐ 1. Find the hosts")
    rig.telegram.say(PERSON, "/todo skip 3")
    await rig.shows("– 3. Write it")
    rig.model.gate.set()
    await rig.shows("It did not work.")
    await rig.quiet()
    rig.model.gate = None
    two = plan("find: Find the hosts", "compare < find: Compare them")
    rig.model.script(two, *[Say("x"), GOOD] * 2, Say("Now it did."))
    rig.press(rig.plan(), "Retry 1")
    await rig.shows("Now it did.")
    await rig.quiet()
    wishes = [text for n in range(5, len(rig.model.requests)) for text in rig.seen(n, "user")]
    wish = next(text for text in wishes if "try this again" in text)
    assert "1. Compare them" in wish and "Write it" not in wish


@pytest.mark.parametrize(("command", "word"), [("retry", "plan_anew"), ("undo", "plan_undone")])
async def test_a_turn_that_is_taken_back_offers_nothing(rig: Rig, command: str, word: str) -> None:
    await rig.start()
    card = await failed(rig)
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("Now it did."))
    rig.telegram.say(PERSON, f"/{command}")
    await rig.until(lambda: drop_marks(say(word, "")) in old(rig)["text"])  # type: ignore[arg-type]
    await rig.quiet()
    assert rig.buttons() == []
    late = rig.telegram.press(PERSON, card["message_id"], token(card, "Retry 1"), PERSON)
    assert await rig.told(late) == say("plan_again_before")
    await rig.quiet()
    assert len([one for one in rig.said() if one == "Now it did."]) == (command == "retry")


async def test_a_press_in_the_moment_in_which_the_plan_ends(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card of a plan that runs bears the button too. The plan's last commit is not through yet
    when the press is read: the old card must be changed from what that commit made of it."""
    await rig.start()
    rig.model.script(CHAIN, Say("hm"), BAD, NONE, Say("It did not work."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, ASK)
    for count in range(1, 5):
        await rig.until(lambda count=count: len(rig.model.requests) == count)
        pass_on(rig)
    await rig.until(lambda: len(rig.model.requests) == 5)
    await rig.shows("✕ 1. Find the hosts")
    session = rig.session()
    assert session is not None and session.state.active is not None
    active, submit, late = session.state.active, rig.store.submit, amend.press_late
    pressed, read = asyncio.Event(), asyncio.Event()

    def slow(lease: Lease, changes: Changes) -> "asyncio.Future[None]":
        if not active.closed or pressed.is_set():
            return submit(lease, changes)
        pressed.set()
        rig.telegram.press(PERSON, old(rig)["message_id"], f"p:{active.id}:retry:find", PERSON)

        async def held() -> None:
            await read.wait()
            await submit(lease, changes)

        return asyncio.ensure_future(held())  # noqa: TID251  # a store that is slow

    async def seen(*given: Any) -> None:
        asyncio.get_running_loop().call_later(0.05, read.set)
        await late(*given)

    monkeypatch.setattr(rig.store, "submit", slow)
    monkeypatch.setattr(amend, "press_late", seen)
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("Now it did."))
    gate, rig.model.gate = rig.model.gate, None
    gate.set()
    await rig.shows("Now it did.")
    await rig.quiet()
    assert pressed.is_set() and rig.buttons() == []
    assert say("plan_retried", n=1) in old(rig)["text"]


async def test_a_press_is_no_word_for_the_turn_that_runs(rig: Rig) -> None:
    """What is said meanwhile goes into the running turn here; a press has a turn of its own."""
    await rig.start()
    rig.telegram.say(PERSON, "/mode steer")
    await rig.shows(say("mode_steer"))
    card = await failed(rig)
    rig.model.script(Call("list_files"), Say("looked"), CHAIN, *[Say("x"), GOOD] * 3, Say("Done."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, "look")
    await rig.model.wait_inflight(1)
    assert await rig.told(rig.press(card, "Retry 1")) == say("plan_again_waits")
    gate, rig.model.gate = rig.model.gate, None
    gate.set()
    await rig.shows("looked")
    await rig.shows("Done.")
    await rig.quiet()
    assert "try this again" not in str(rig.model.requests[6].body), "it was not steered"
    assert say("plan_retried", n=1) in old(rig)["text"] and rig.buttons() == []


async def test_whoever_is_the_same_person_changes_the_plan_by_words_too(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/link")
    told = await rig.shows("/link ")
    code = re.findall(r"/link ([A-Z0-9]{4,})", told["text"])[0]
    rig.telegram.say(FRIEND, f"/link {code}")
    await rig.shows("telegram:", FRIEND)
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("All."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(GROUP, f"@test_bot {ASK}", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    pass_on(rig)
    await rig.shows("◐ 1. Find the hosts", GROUP)
    rig.telegram.say(GROUP, "/todo@test_bot skip 3", FRIEND, True)
    await rig.shows("– 3. Write it", GROUP)
    rig.telegram.say(GROUP, "/stop@test_bot", FRIEND, True)
    await rig.shows("– 1. Find the hosts", GROUP)
    await rig.quiet()


async def test_two_people_press_at_once(rig: Rig) -> None:
    """The admin skips what its person stops, then both press what is over."""
    await rig.start()
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("All."))
    rig.model.gate = asyncio.Event()
    rig.telegram.say(GROUP, f"@test_bot {ASK}", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    pass_on(rig)
    await rig.shows("◐ 1. Find the hosts", GROUP)
    card = rig.plan(GROUP)
    skip, stop = token(card, "Skip 1"), token(card, "Stop")
    at = card["message_id"]
    rig.telegram.press(GROUP, at, skip, ADMIN)
    rig.telegram.press(GROUP, at, stop, PERSON)
    late = [rig.telegram.press(GROUP, at, one, who) for one in (skip, stop) for who in (ADMIN, 11)]
    assert {await rig.told(one) for one in late} <= {say("plan_over"), say("plan_none"), ""}
    await rig.quiet()
    assert not card.get("reply_markup") and "– 1. Find the hosts" in card["text"]


async def test_the_last_turn_is_taken_back_by_the_commit_that_begins_the_new_one(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of the sender's may stand between the two: killed after it, /retry would take back
    another turn. Here one is made whenever the old card is looked for."""
    await rig.start()
    await failed(rig)
    outbox, submit, taking = rig.store.outbox, rig.store.submit, list[Changes]()

    async def between(conversation: str, turn: str) -> tuple[OutboxRow, ...]:
        if (session := rig.session()) is not None:
            session.state.submit(Changes(row=session.state.row))
        return await outbox(conversation, turn)

    def seen(lease: Lease, changes: Changes) -> "asyncio.Future[None]":
        if any(row.kind == "undone" for row in changes.transcript):
            taking.append(changes)
        return submit(lease, changes)

    monkeypatch.setattr(rig.store, "outbox", between)
    monkeypatch.setattr(rig.store, "submit", seen)
    rig.model.script(CHAIN, *[Say("x"), GOOD] * 3, Say("Now it did."))
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("Now it did.")
    await rig.quiet()
    (one,) = taking
    assert one.turns and one.done and any(row.name == "plan" for row in one.views)


async def test_a_press_that_waited_too_long_is_told(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was about is kept no longer when its turn comes."""
    await rig.start()
    card = await failed(rig)
    rig.model.gate = asyncio.Event()
    rig.model.script(Say("busy"))
    rig.telegram.say(PERSON, "something else")
    await rig.model.wait_inflight(1)
    assert await rig.told(rig.press(card, "Retry 1")) == say("plan_again_waits")

    async def gone(turn: str) -> None:
        return None

    monkeypatch.setattr(rig.store, "turn", gone)
    rig.model.gate.set()
    await rig.shows(say("plan_over"))
    await rig.quiet()
    assert rig.said()[-1] == say("plan_over")
