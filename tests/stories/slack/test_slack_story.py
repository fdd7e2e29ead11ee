"""Dialogues over Slack, by both transports: the real gateway, the real SDKs, the platform's fake."""

import asyncio
import contextlib
import itertools
import json
import sqlite3

import pytest

from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.fakes.slack_server import (
    elements,
    labels,
    shown,
)
from tests.stories.plan_rig import ASK, GOOD, plan
from tests.stories.rig import write
from tests.stories.slack_rig import DEV, DM, SlackRig

BOTH = pytest.mark.parametrize("transport", ["socket", "http"])


@BOTH
async def test_a_question_is_answered_and_the_next_knows_it(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    await rig.start()
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    rig.slack.say(DM, "and now?")
    await rig.shows("ack and now?")
    await rig.quiet()
    assert rig.said() == ["ack hello", "ack and now?"]
    assert rig.seen(role="user") == ["hello", "and now?"]
    assert all("thread_ts" not in message for message in rig.slack.channels[DM])


@BOTH
async def test_a_mention_is_answered_in_its_thread_once(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    await rig.start(GROUP_POLICY="thread")
    said, again = rig.slack.mention(DEV, "hello")
    ts = said["event"]["ts"]
    await rig.shows("ack", DEV)
    rig.slack.say(DEV, "talk among people")
    rig.slack.say(DEV, "and this?", thread=ts)
    await rig.shows("and this?", DEV)
    await rig.quiet()
    assert [m["thread_ts"] for m in rig.slack.channels[DEV]] == [ts, ts]
    assert len(rig.model.requests) == 2
    assert again["event_id"] != said["event_id"]


@BOTH
async def test_each_event_three_times_in_any_order_is_one_turn(
    rig: SlackRig, transport: str
) -> None:
    rig.transport = transport
    await rig.start()
    first, second = rig.slack.mention(DEV, "one")
    third = rig.slack.say(DM, "two")
    for n, order in enumerate(itertools.permutations((first, second, third)), 1):
        for payload in order:
            rig.slack.again(payload, retry=1 + n % 3)
    await rig.shows("ack", DEV)
    await rig.shows("ack two")
    if transport == "socket":
        await rig.slack.wait(lambda: not rig.slack.unacknowledged)
    else:
        await rig.slack.wait(lambda: len(rig.slack.answers) == 21)
    await rig.quiet()
    assert len(rig.model.requests) == 2
    assert len(rig.said()) == len(rig.said(DEV)) == 1


@BOTH
async def test_an_approval_by_button_and_a_strangers_press(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    said, _ = rig.slack.mention(DEV, "write it")
    card = await rig.asks(DEV)
    assert "Write a file" in shown(card) and "a.txt" in shown(card) and "Ann" in shown(card)
    assert labels(card)[0] == "Approve once" and labels(card)[-1] == "Deny with reason"
    rig.slack.press(card, "Approve once", "U0EVE")
    await rig.slack.wait(lambda: rig.slack.ephemeral)
    (word,) = rig.slack.ephemeral
    assert (word["user"], word["channel"], word["thread_ts"]) == ("U0EVE", DEV, said["event"]["ts"])
    assert "Only the person who asked" in word["text"]
    assert elements(card), "nothing was changed"
    rig.slack.press(card, "Approve once")
    await rig.shows("written", DEV)
    await rig.quiet()
    assert elements(card) == [] and "by Ann" in shown(card)
    late = {**card, "blocks": [{"type": "actions", "elements": [
        {"type": "button", "action_id": "b0", "text": {"text": "Approve"}, "value": "q:1:once"}]}]}  # fmt: skip
    rig.slack.press(late, "Approve")
    await rig.slack.wait(lambda: len(rig.slack.ephemeral) == 2)


async def test_denied_with_a_reason_by_modal(rig: SlackRig) -> None:
    rig.model.script(write("a.txt"), Say("so not"))
    await rig.start()
    rig.slack.say(DM, "write it")
    card = await rig.asks()
    rig.slack.press(card, "Deny with reason")
    await rig.slack.wait(lambda: rig.slack.views)
    rig.slack.submit(rig.slack.views[0], "use another name")
    await rig.shows("so not")
    await rig.quiet()
    assert "use another name" in rig.seen(role="tool")[-1]
    assert elements(card) == [] and "use another name" in shown(card)


@BOTH
async def test_a_form_by_modal(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    rig.model.script(
        Call("ask_user", json.dumps({"question": "how many?", "kind": "input"})), Say("fine")
    )
    await rig.start()
    rig.slack.mention(DEV, "order")
    card = await rig.asks(DEV)
    assert labels(card) == ["Your answer"] and "how many?" in shown(card)
    rig.slack.press(card, "Your answer")
    await rig.slack.wait(lambda: rig.slack.views)
    assert rig.slack.views[0]["title"]["text"] == "Your answer"
    rig.slack.submit(rig.slack.views[0], "three")
    await rig.shows("fine", DEV)
    await rig.quiet()
    assert "three" in rig.seen(role="tool")[-1]
    assert elements(card) == [] and "Ann: three" in shown(card)


async def test_choices_and_a_slash_command(rig: SlackRig) -> None:
    options = {"question": "which?", "kind": "decision", "options": ["red", "green"]}
    rig.model.script(Call("ask_user", json.dumps(options)), Say("green it is"))
    await rig.start()
    rig.slack.command(DM, "status")
    await rig.shows("Idle")
    rig.slack.command(DM, "")
    await rig.shows("`/turnkeeper approvals`")
    rig.slack.command(DM, "plan on")
    await rig.shows("I show you plans")
    rig.slack.command(DM, "plan off")
    rig.slack.say(DM, "paint it")
    rig.slack.press(await rig.asks(), "green")
    await rig.shows("green it is")
    await rig.quiet()


async def test_a_slash_command_finds_the_thread_that_it_is_for(rig: SlackRig) -> None:
    """Slack does not say in which thread it was given."""
    rig.model.script(write("a.txt"), Say("as you say"), Say("never"))
    await rig.start()
    rig.slack.mention(DEV, "write it")
    await rig.asks(DEV)
    await rig.quiet()
    rig.slack.command(DEV, "deny the 2 of them are wrong", "U0BOB")
    rig.slack.command(DEV, "deny the 2 of them are wrong")
    await rig.shows("as you say", DEV)
    assert "the 2 of them are wrong" in rig.seen(role="tool")[-1]
    rig.model.gate = asyncio.Event()
    rig.slack.mention(DEV, "think long")
    await rig.model.wait_inflight(1)
    rig.slack.command(DEV, "stop")
    await rig.shows("Stopped", DEV)
    assert "Nothing is running" not in str(rig.slack.channels[DEV])


@pytest.mark.parametrize("who", ["U0ADM", "U0ANN"])
async def test_a_slash_command_that_decides_finds_the_thread_that_waits(
    rig: SlackRig, who: str
) -> None:
    """Also for an admin, and beside another turn of theirs."""
    rig.model.script(write("a.txt"))
    await rig.start()
    rig.slack.mention(DEV, "write it")
    await rig.asks(DEV)
    await rig.quiet()
    gate = rig.model.gate = asyncio.Event()
    rig.slack.mention(DEV, "think long", who)
    await rig.model.wait_inflight(1)
    rig.slack.command(DEV, "approvals", who)
    await rig.slack.wait(lambda: "a.txt" in str(rig.slack.ephemeral))
    rig.slack.command(DEV, "approvals", "U0BOB")
    await rig.slack.wait(lambda: say("no_approvals") in str(rig.slack.ephemeral))
    rig.slack.command(DEV, "deny 1 not now", who)
    await rig.shows("not now", DEV)
    gate.set()
    await rig.shows("think long", DEV)


async def test_a_setting_for_a_running_thread_says_where_it_holds(rig: SlackRig) -> None:
    await rig.start()
    gate = rig.model.gate = asyncio.Event()
    rig.slack.mention(DEV, "think long")
    await rig.model.wait_inflight(1)
    rig.slack.command(DEV, "plan on")
    await rig.slack.wait(lambda: say("set_in_thread") in str(rig.slack.ephemeral))
    told = len(rig.slack.ephemeral)
    rig.slack.command(DEV, "plan")
    await rig.slack.wait(lambda: len(rig.slack.ephemeral) > told)
    assert say("set_in_thread") not in str(rig.slack.ephemeral[told:]), "it changed nothing"
    gate.set()
    await rig.quiet()
    told = len(rig.slack.ephemeral)
    rig.slack.command(DEV, "plan off")
    await rig.slack.wait(lambda: len(rig.slack.ephemeral) > told)
    assert say("set_in_thread") not in str(rig.slack.ephemeral[told:]), "it is the channel's"
    await rig.quiet()


async def test_an_admin_stops_anothers_turn_by_a_slash_command(rig: SlackRig) -> None:
    await rig.start()
    gate = rig.model.gate = asyncio.Event()
    rig.slack.mention(DEV, "think long")
    await rig.model.wait_inflight(1)
    rig.slack.command(DEV, "stop", "U0BOB")
    await rig.slack.wait(lambda: say("nothing_running") in str(rig.slack.ephemeral))
    rig.slack.command(DEV, "stop", "U0ADM")
    await rig.shows("Stopped", DEV)
    gate.set()


@pytest.mark.parametrize("scope", ["shared", "per_person"])
async def test_a_slash_command_about_what_was_said_is_for_its_persons_newest_thread(
    rig: SlackRig, scope: str
) -> None:
    await rig.start(GROUP_SCOPE=scope)
    for text, who in (("older", "U0ANN"), ("mine", "U0ANN"), ("theirs", "U0BOB")):
        rig.slack.mention(DEV, text, who)
        await rig.shows(text, DEV)
        await rig.quiet()
    rig.slack.command(DEV, "usage")
    await rig.slack.wait(lambda: rig.slack.ephemeral)
    assert "Last request" in rig.slack.ephemeral[-1]["text"]
    rig.slack.command(DEV, "retry mine, in other words")
    again = await rig.shows("in other words", DEV)
    mine = next(one for one in rig.slack.channels[DEV] if shown(one).endswith("mine"))
    assert again["thread_ts"] == mine["thread_ts"]


@pytest.mark.parametrize("scope", ["shared", "per_person"])
async def test_what_is_chosen_in_a_channel_holds_for_its_new_threads(
    rig: SlackRig, scope: str
) -> None:
    await rig.start(GROUP_SCOPE=scope)
    old, _ = rig.slack.mention(DEV, "hello")
    await rig.shows("hello", DEV)
    await rig.quiet()
    for text in ("plan on", "instructions set be brief", "mode queue"):
        told = len(rig.slack.ephemeral)
        rig.slack.command(DEV, text, "U0ADM")
        await rig.slack.wait(lambda told=told: len(rig.slack.ephemeral) > told)
        await rig.quiet()
    who = "U0ADM" if scope == "per_person" else "U0ANN"
    rig.slack.mention(DEV, "and now?", who)
    await rig.shows("and now?", DEV)
    await rig.quiet()
    assert "be brief" in str(rig.model.requests[-1].body)
    asked, _ = rig.slack.mention(DEV, "/plan", who)
    shown_there = await rig.shows("I show you plans", DEV)
    assert shown_there["thread_ts"] == asked["event"]["ts"]
    rig.slack.mention(DEV, "what else?", "U0ANN", old["event"]["ts"])
    await rig.shows("what else?", DEV)
    assert "be brief" not in str(rig.model.requests[-1].body), "an older thread has its own"


@pytest.mark.parametrize("crash", [False, True])
async def test_what_is_chosen_in_the_apps_chat_holds_for_its_next_threads(
    rig: SlackRig, crash: bool
) -> None:
    """Before the first talk, then beside one."""
    await rig.start()
    for n, way in enumerate(("be brief", "be precise")):
        rig.slack.command(DM, f"instructions set {way}")
        await rig.slack.wait(lambda n=n: len(rig.said()) > 2 * n)
        await rig.quiet()
        if crash:
            await rig.crash()
            await rig.start()
        first = rig.slack.stamp()
        rig.slack.say(DM, f"in thread {n}", thread=first)
        await rig.shows(f"in thread {n}")
        await rig.quiet()
        assert way in str(rig.model.requests[-1].body)


@BOTH
async def test_what_a_slash_command_says_in_a_channel_is_for_who_gave_it(
    rig: SlackRig, transport: str
) -> None:
    rig.transport = transport
    await rig.start()
    rig.slack.command(DEV, "status")
    await rig.slack.wait(lambda: rig.slack.ephemeral)
    rig.slack.command(DEV, "status", "U0EVE")
    await rig.slack.wait(lambda: len(rig.slack.ephemeral) == 2)
    await rig.quiet()
    told, refused = rig.slack.ephemeral
    assert (told["channel"], told["user"]) == (DEV, "U0ANN") and "Idle" in told["text"]
    assert refused["user"] == "U0EVE" and refused["text"] == say("not_known")
    assert rig.said(DEV) == [], "nobody else sees it"
    assert not rig.slack.made("chat.postEphemeral"), "which wants the app to be a member"


async def test_a_plan_ticks_in_one_message(rig: SlackRig) -> None:
    rig.model.script(
        plan("find: Find the hosts", "table < find: Write it"),
        Say("came out"), GOOD, Say("so too"), GOOD, Say("There you are."),
    )  # fmt: skip
    await rig.start()
    rig.model.gate = asyncio.Event()
    rig.slack.say(DM, ASK)
    await rig.model.wait_inflight(1)
    old, rig.model.gate = rig.model.gate, asyncio.Event()
    old.set()
    message = await rig.shows("Find the hosts")
    block = message["blocks"][0]
    assert block["type"] == "plan" and [t["status"] for t in block["tasks"]] == [
        "in_progress",
        "pending",
    ]
    assert "Stop" in labels(message)
    old, rig.model.gate = rig.model.gate, None
    old.set()
    await rig.shows("There you are.")
    await rig.quiet()
    block = message["blocks"][0]
    assert [t["status"] for t in block["tasks"]] == ["complete", "complete"] and "2/2" in block[
        "title"
    ]
    assert len(rig.said()) == 2 and message["edits"] >= 2


@BOTH
async def test_a_crash_while_it_asks_and_a_press_on_the_old_message(
    rig: SlackRig, transport: str
) -> None:
    rig.transport = transport
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.slack.say(DM, "write it")
    card = await rig.asks()
    await rig.crash()
    if transport == "socket":
        rig.slack.press(card, "Approve once")  # it waits at Slack
        await rig.start()
    else:
        await rig.start()
        rig.slack.press(card, "Approve once")
    await rig.shows("written")
    await rig.quiet()
    assert elements(card) == [] and "by Ann" in shown(card)
    assert len(rig.model.requests) == 2


async def test_what_is_worked_at_in_a_channel_bears_eyes(rig: SlackRig) -> None:
    await rig.start()
    rig.model.gate = asyncio.Event()
    asked = rig.slack.mention(DEV, "look")[0]["event"]["ts"]
    await rig.slack.wait(lambda: rig.slack.reactions == [(DEV, asked, "eyes")])
    rig.model.gate.set()
    await rig.shows("look", DEV)
    await rig.slack.wait(lambda: rig.slack.reactions == [])


async def test_what_waits_is_changed_and_withdrawn_by_its_person(rig: SlackRig) -> None:
    await rig.start()
    rig.model.gate = asyncio.Event()
    rig.slack.say(DM, "first")
    await rig.model.wait_inflight(1)
    await rig.slack.wait(lambda: len(rig.slack.reactions) == 1)
    second = rig.slack.say(DM, "second")["event"]["ts"]
    third = rig.slack.say(DM, "third")["event"]["ts"]
    waiting = {(DM, second, "eyes"), (DM, third, "eyes")}
    await rig.slack.wait(lambda: waiting < set(rig.slack.reactions))
    rig.slack.edit(DM, second, "second, better")
    rig.slack.delete(DM, third)
    await rig.slack.wait(lambda: not rig.slack.unacknowledged)
    rig.model.gate.set()
    rig.model.gate = None
    await rig.shows("ack second, better")
    await rig.slack.wait(lambda: rig.slack.reactions == [])
    await rig.quiet()
    assert rig.said() == ["ack first", "ack second, better"]


async def test_a_stranger_is_shown_a_code_and_other_bots_are_not_heard(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.say("D0EVE", "hello", "U0EVE")
    await rig.shows("Show this code to an admin", "D0EVE")
    rig.slack.say(DM, "beep", "U0OTHER", bot_id="B0OTHER")
    rig.slack.say(DM, "my own", "U0BOT", bot_id="B0BOT")
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert len(rig.said()) == 1


async def test_files_are_read(rig: SlackRig) -> None:
    rig.model.script(Call("read_file", '{"path": "uploads/notes.txt"}'), Say("read"))
    rig.slack.files["F0NOTES"] = b"remember the milk"
    await rig.start()
    file = {"id": "F0NOTES", "name": "notes.txt", "mimetype": "text/plain", "size": 17}
    rig.slack.say(DM, "read this", subtype="file_share", files=[file])
    await rig.shows("read")
    await rig.quiet()
    assert any("notes.txt" in text for text in rig.seen(0, "user"))


async def test_too_many_requests_lose_nothing(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.fail("chat.postMessage", 429, "ratelimited", times=2, retry_after=0.05)
    rig.slack.fail("chat.postMessage", 0, after_effect=True)
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert rig.said() == ["ack hello"], "the one whose answer was lost was found"


async def test_a_user_group_is_let_in(rig: SlackRig) -> None:
    rig.slack.groups = {"S0OPS": ["U0EVE"], "S0SALES": ["U0MAX"]}
    await rig.start(SLACK_ALLOWED_USERS="U0ANN,@S0OPS")
    rig.slack.say("D0EVE", "hello", "U0EVE")
    rig.slack.say("D0MAX", "hello", "U0MAX")
    await rig.shows("ack hello", "D0EVE")
    await rig.shows("Show this code to an admin", "D0MAX")
    await rig.quiet()
    assert len(rig.model.requests) == 1


async def test_a_user_group_decides_and_its_members_at_the_press_count(rig: SlackRig) -> None:
    rig.slack.groups = {"S0OPS": ["U0ANN"]}
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(APPROVERS="slack:@S0OPS")
    rig.slack.mention(DEV, "write it")
    card = await rig.asks(DEV)
    assert "{'type': 'usergroup', 'usergroup_id': 'S0OPS'}" in str(card["blocks"])
    rig.slack.press(card, "Approve once")
    await rig.slack.wait(lambda: rig.slack.ephemeral)
    rig.slack.press(card, "Approve once", "U0BOB")
    await rig.slack.wait(lambda: len(rig.slack.ephemeral) == 2)
    who = say("not_entitled", who="slack:@S0OPS")
    assert [word["text"] for word in rig.slack.ephemeral] == [who, who], "not asker, not a member"
    await rig.crash()
    rig.slack.groups = {"S0OPS": ["U0BOB"]}
    await rig.start()
    rig.slack.press(card, "Approve once", "U0BOB")
    await rig.shows("written", DEV)
    await rig.quiet()
    assert "by Bob" in shown(card)


def count_rows(rig: SlackRig) -> list[int]:
    """Rows of what is known of conversations, and of what came in."""
    with contextlib.closing(sqlite3.connect(rig.home / "turnkeeper.db")) as store:
        tables = ("conversations", "inbox", "lists")
        return [store.execute(f"SELECT count(*) FROM {one}").fetchone()[0] for one in tables]


async def test_what_strangers_change_in_a_channel_leaves_no_row(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.mention(DEV, "hello")
    await rig.shows("ack", DEV)
    await rig.quiet()
    before = count_rows(rig)
    said = rig.slack.say(DEV, "lunch?", "U0EVE")["event"]["ts"]
    mine = rig.slack.say(DEV, "not for the bot", "U0ANN")["event"]["ts"]
    reply = rig.slack.say(DEV, "in a thread", "U0EVE", said)["event"]["ts"]
    for ts in (said, mine, reply):
        rig.slack.edit(DEV, ts, "changed")
        rig.slack.delete(DEV, ts)
    rig.slack.say(DM, "and now?")  # what came before it was taken in before it
    await rig.shows("and now?")
    await rig.quiet()
    conversations, inbox, lists = (n - m for n, m in zip(count_rows(rig), before, strict=True))
    assert (conversations, inbox) == (1, 1) and lists <= 3, "of the last message alone"


async def test_who_presses_while_the_groups_are_asked_for_waits_for_them(rig: SlackRig) -> None:
    rig.slack.groups = {"S0OPS": ["U0BOB"]}
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(APPROVERS="slack:@S0OPS")
    rig.slack.mention(DEV, "write it")
    card = await rig.asks(DEV)
    await rig.crash()
    rig.slack.hold("usergroups.list")
    looked = len(rig.slack.made("usergroups.list"))
    await rig.start(APPROVERS="slack:@S0OPS")  # reads back what was missed, and asks for its sender
    await rig.slack.wait(lambda: len(rig.slack.made("usergroups.list")) > looked)
    rig.slack.press(card, "Approve once", "U0BOB")
    await rig.slack.wait(lambda: rig.slack.made("users.info")[-1].arguments["user"] == "U0BOB")
    rig.slack.release("usergroups.list")
    await rig.shows("written", DEV)
    await rig.quiet()
    assert "by Bob" in shown(card)
    assert len(rig.slack.made("usergroups.list")) == looked + 1


async def test_without_the_scope_for_user_groups_nobody_is_kept_out(rig: SlackRig) -> None:
    rig.slack.fail("usergroups.list", error="missing_scope", times=9)
    await rig.start()
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    rig.slack.say(DM, "more")
    await rig.shows("ack more")
    assert len(rig.slack.made("usergroups.list")) == 1
