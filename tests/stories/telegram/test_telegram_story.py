"""Dialogues over Telegram: the real gateway, the real Bot SDK, the real model SDK."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from gateway.messages import MessageDeleted, Sender
from tests.fakes.model_server import Call, Calls, Say, Slow
from tests.fakes.waiting import until
from tests.gateway.process import START, World
from tests.stories.isolated import isolate
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PATIENCE,
    PERSON,
    STRANGER,
    Rig,
    labels,
    mention,
    quick,
    write,
)


def eyes(rig: Rig, update: dict) -> bool:
    """The message of this update bears the receipt."""
    message = update["message"]
    reaction = rig.telegram.reacted.get((message["chat"]["id"], message["message_id"]))
    return reaction == [{"type": "emoji", "emoji": "👀"}]


async def waiting(rig: Rig, count: int, chat: int = PERSON) -> None:
    """Until `count` messages wait in the chat."""
    await rig.until(lambda: (s := rig.session(chat)) is not None and len(s.state.queue) == count)


# ---- asking and tools ----------------------------------------------------------------------


async def test_a_question_is_answered_and_the_next_knows_it(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("ack and now?")
    assert rig.said() == ["ack hello", "ack and now?"]
    assert rig.seen(role="user") == ["hello", "and now?"]
    await rig.quiet()
    assert [m["edits"] for m in rig.telegram.chats[PERSON]] == [0, 0]
    assert {"approve", "deny", "stop", "new"} <= {c["command"] for c in rig.telegram.commands}


async def test_tools_are_seen_at_work(rig: Rig) -> None:
    rig.model.script(
        Calls([write("a.txt", "hello"), Call("list_files", text="I look around.")]),
        Call("read_file", '{"path": "a.txt"}'),
        Say("All is there."),
    )
    await rig.start()
    rig.telegram.say(ADMIN, "write and look")
    await rig.shows("All is there.", ADMIN)
    await rig.quiet()
    activity, reply = rig.telegram.chats[ADMIN]
    assert reply["text"] == "All is there."
    for tool in ("Write a file: a.txt", "List files", "Read a file: a.txt"):
        assert f"☑ {tool}" in activity["text"]
    assert "hello" in activity["text"], "what the tool gave is shown"
    assert (rig.workspace(ADMIN) / "a.txt").read_text() == "hello"


async def test_an_older_server_shows_the_same_in_plain_messages(rig: Rig) -> None:
    table = "| Name | Size |\n|---|---|\n| a.txt | 5 |"
    rig.model.script(write("a.txt", "hello"), Say(table), Say("| x | y |\n|---|---|\n| 1 | 2 |"))
    rig.telegram.rich = False
    await rig.start()
    rig.telegram.say(ADMIN, "write")
    await rig.shows("a.txt | 5", ADMIN)
    rig.telegram.say(ADMIN, "again")
    await rig.shows("1 | 2", ADMIN)
    await rig.quiet()
    activity, *_ = rig.telegram.chats[ADMIN]
    assert "☑ Write a file: a.txt" in activity["text"]
    assert any(e["type"] == "expandable_blockquote" for e in activity["entities"])
    assert len(rig.telegram.chats[ADMIN]) == 3
    assert len(rig.telegram.made("sendRichMessage")) == 1, "it is asked once"


async def test_a_long_answer_arrives_whole(rig: Rig) -> None:
    lines = [f"Line {n}: " + "word " * 12 for n in range(150)]
    code = "```python\n" + "\n".join(f"x{n} = {n}" for n in range(450)) + "\n```"
    rig.model.script(Say("\n\n".join([*lines, code, "The very end."]), words=200))
    await rig.start()
    rig.telegram.say(PERSON, "tell me everything")
    await rig.shows("The very end.")
    await rig.quiet()
    parts = rig.telegram.chats[PERSON]
    assert 4 <= len(parts) <= 5 and all(len(m["text"]) <= 4096 for m in parts)
    whole = "\n".join(m["text"] for m in parts)
    assert re.findall(r"Line (\d+):", whole) == [str(n) for n in range(150)]
    assert re.findall(r"x(\d+) = ", whole) == [str(n) for n in range(450)]
    blocks = [m for m in parts if "x5 = " in m["text"] or "x449 = " in m["text"]]
    assert all(any(e["type"] == "pre" for e in m["entities"]) for m in blocks)


@pytest.mark.parametrize("chat", [PERSON, GROUP])
async def test_a_very_long_answer_is_a_beginning_and_a_file(rig: Rig, chat: int) -> None:
    text = "\n\n".join(f"Line {n}: " + "word " * 12 for n in range(600))
    rig.model.script(Say(text, words=400))
    await rig.start()
    rig.telegram.say(chat, "@test_bot tell me all", user=PERSON, **mention("@test_bot"))
    await rig.shows("this file contains all of it", chat)
    await rig.quiet()
    *beginning, document = rig.telegram.chats[chat]
    assert len(beginning) == 1
    assert beginning[0]["text"].startswith("Line 0: ")
    file = rig.telegram.file_of(document)
    assert file is not None
    assert (file.name, file.data.decode()) == ("answer.md", text)


# ---- approvals -----------------------------------------------------------------------------


async def test_approved_once_and_asked_again(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"), write("b.txt"), Say("again"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    assert "Write a file" in card["text"] and "a.txt" in card["text"] and "low risk" in card["text"]
    assert f"U{PERSON}" in card["text"]
    assert labels(card) == [
        "Approve once", "Approve in this conversation", "Always approve", "Deny",
        "Deny with reason",
    ]  # fmt: skip
    await rig.quiet()  # parked: nothing of it is in memory
    assert not (rig.workspace() / "a.txt").exists()
    assert await rig.told(rig.press(card, "Approve once")) == ""
    await rig.shows("written")
    await rig.quiet()
    assert (rig.workspace() / "a.txt").exists()
    assert f" by U{PERSON}" in card["text"] and "reply_markup" not in card
    rig.telegram.say(PERSON, "once more")
    await rig.card()
    assert not (rig.workspace() / "b.txt").exists()


async def test_denied_by_button_and_by_command_with_a_reason(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("so not"), write("b.txt"), Say("so not either"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    rig.press(card, "Deny")
    await rig.shows("so not")
    await rig.quiet()
    assert f"Denied by U{PERSON}" in rig.seen(role="tool")[-1]
    rig.telegram.say(PERSON, "and b?")
    second = await rig.card()
    rig.telegram.say(PERSON, "/deny the 2 of them need another name")
    await rig.shows("so not either")
    await rig.quiet()
    assert "the 2 of them need another name" in rig.seen(role="tool")[-1]
    assert "the 2 of them need another name" in second["text"] and not rig.cards()
    assert list(rig.workspace().glob("*.txt")) == []
    activity = [text for text in rig.said() if "Write a file" in text and "(denied)" in text]
    assert len(activity) == 2


async def test_for_this_conversation_covers_the_same_risk_until_new(rig: Rig) -> None:
    rig.model.script(
        write("a.txt"), Say("first"), write("b.txt"), Say("second"), write("c.txt"), Say("third")
    )
    await rig.start()
    rig.telegram.say(PERSON, "one")
    rig.press(await rig.card(), "Approve in this conversation")
    await rig.shows("first")
    rig.telegram.say(PERSON, "two")
    await rig.shows("second")
    assert (rig.workspace() / "b.txt").exists(), "no card for the same risk"
    await rig.quiet()
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    rig.telegram.say(PERSON, "three")
    await rig.card()
    assert rig.seen(role="user") == ["three"]
    assert not (rig.workspace() / "c.txt").exists()


async def test_always_covers_exactly_that_command(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch)
    run = [Call("run_command", json.dumps({"command": c})) for c in ("ls", "ls", "ls -a", "ls")]
    rig.model.script(
        run[0], Say("first"), run[1], Say("second"), run[2], Say("third"), run[3], Say("fourth")
    )
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.telegram.say(PERSON, "one")
    card = await rig.card()
    assert "“Always” covers: exactly ls" in card["text"]
    rig.press(card, "Always approve")
    await rig.shows("first")
    rig.telegram.say(PERSON, "two")
    await rig.shows("second")
    await rig.quiet()
    rig.telegram.say(PERSON, "three")
    other = await rig.card()
    assert "ls -a" in other["text"]
    rig.press(other, "Deny")
    await rig.shows("third")
    await rig.quiet()
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    rig.telegram.say(PERSON, "four")
    await rig.shows("fourth")
    assert rig.cards() == []
    rig.telegram.say(PERSON, "/permissions")
    await rig.shows("1. exactly ls, always, in all private chats, since ")


async def test_the_calls_of_one_batch_share_a_card(rig: Rig) -> None:
    rig.model.script(Calls([write("a.txt"), write("b.txt"), Call("list_files")]), Say("done"))
    await rig.start()
    rig.telegram.say(PERSON, "both")
    card = await rig.card()
    assert "these 2 calls" in card["text"] and "a.txt" in card["text"] and "b.txt" in card["text"]
    rig.press(card, "Approve once")
    await rig.shows("done")
    assert sorted(p.name for p in rig.workspace().glob("*.txt")) == ["a.txt", "b.txt"]


async def test_two_prompts_and_the_pressed_one_is_resolved(rig: Rig) -> None:
    for word in ("alpha", "beta"):
        rig.model.by_text[word] = [write(f"{word}.txt")]
    await rig.start()
    rig.telegram.say(PERSON, "alpha")
    first = await rig.card()
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    rig.telegram.say(PERSON, "beta")
    second = await rig.card(count=2)
    rig.model.script(Say("beta is there"), Say("alpha is there"))
    rig.press(second, "Approve once")
    await rig.shows("beta is there")
    await rig.quiet()
    assert [p.name for p in rig.workspace().glob("*.txt")] == ["beta.txt"]
    assert rig.cards() == [first]
    rig.telegram.say(PERSON, "/approvals")
    await rig.shows("1. Write a file: ")
    rig.press(first, "Approve once")
    await rig.shows("alpha is there")
    assert (rig.workspace() / "alpha.txt").exists()


async def test_a_message_runs_while_an_approval_waits(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("meanwhile"), Say("written"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    rig.telegram.say(PERSON, "how is the weather?")
    await rig.shows("meanwhile")
    assert "Still waiting for a person: approval of write_file" in rig.seen()[-1]
    rig.press(card, "Approve once")
    await rig.shows("written")
    assert rig.seen(role="user") == ["write it"], "the parked turn goes on where it was"


# ---- choices and forms ---------------------------------------------------------------------


def ask(question: str, *options: str) -> Call:
    return Call("ask_user", json.dumps({"question": question, "options": options}))


async def asking(rig: Rig, question: str, chat: int = PERSON) -> dict:
    """The form, once it is there: the tool's line shows the question as well."""

    def forms() -> list[dict]:
        found = rig.telegram.chats[chat]
        return [m for m in found if question in m["text"] and "reply_markup" in m]

    await rig.telegram.wait(lambda: bool(forms()), PATIENCE)
    return forms()[-1]


async def test_a_choice(rig: Rig) -> None:
    rig.model.script(ask("Which colour?", "Red", "Blue"), Say("blue it is"))
    await rig.start()
    rig.telegram.say(PERSON, "paint it")
    card = await rig.card()
    assert "Which colour?" in card["text"]
    assert labels(card) == ["Red", "Blue", "Something else"]
    rig.press(card, "Blue")
    await rig.shows("blue it is")
    await rig.quiet()
    assert rig.seen(role="tool") == ["Blue"]
    assert "Blue" in card["text"] and "reply_markup" not in card


async def test_a_form_is_answered_by_a_reply_or_the_next_plain_message(rig: Rig) -> None:
    rig.model.script(ask("Which day?"), Say("noted"), ask("Which hour?"), Say("noted too"))
    await rig.start()
    rig.telegram.say(PERSON, "a date, please")
    form = await asking(rig, "Which day?")
    assert form["reply_markup"]["force_reply"]
    rig.telegram.say(PERSON, "Monday", reply_to=form["message_id"])
    await rig.shows("noted")
    assert rig.seen(role="tool") == ["Monday"]
    rig.telegram.say(PERSON, "and a time")
    await asking(rig, "Which hour?")
    rig.telegram.say(PERSON, "eight")
    await rig.shows("noted too")
    assert rig.seen(role="tool")[-1] == "eight"
    assert len(rig.model.requests) == 4, "the answers began no turns of their own"


async def test_in_a_group_only_a_reply_of_the_asked_answers_a_form(rig: Rig) -> None:
    rig.model.script(ask("Which day?"), Say("a turn of its own"), Say("noted"))
    await rig.start()
    asked = rig.telegram.say(GROUP, "@test_bot a date", user=PERSON, **mention("@test_bot"))
    form = await asking(rig, "Which day?", GROUP)
    assert rig.telegram.replies[form["message_id"]] == asked["message"]["message_id"]
    assert form["reply_markup"]["selective"], "the field opens for who was asked"
    rig.telegram.say(GROUP, "Sunday", user=FRIEND, reply_to=form["message_id"])
    await rig.shows("a turn of its own", GROUP)
    rig.telegram.say(GROUP, "Monday", user=PERSON, reply_to=form["message_id"])
    await rig.shows("noted", GROUP)
    assert rig.seen(role="tool") == ["Monday"]


# ---- messages during a turn ----------------------------------------------------------------


async def test_many_who_wait_are_seen_typing_to_a_few_at_a_time(rig: Rig) -> None:
    people, gate = range(9_001, 9_061), asyncio.Event()
    rig.model.gate = gate
    await rig.start(TELEGRAM_ALLOWED_USERS="*")
    began = time.monotonic()
    for person in people:
        rig.telegram.say(person, "hello")
    await rig.telegram.wait(lambda: set(rig.telegram.working) == set(people), PATIENCE)
    took = time.monotonic() - began
    assert took > 1.9 and len(rig.telegram.working) <= 20 * (1 + took)
    rig.model.gate = None
    gate.set()
    for person in people:
        await rig.shows("ack hello", person)


async def test_a_message_during_a_turn_waits_and_shows_its_receipt(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.model.wait_inflight(1, PATIENCE)
    two, three = rig.telegram.say(PERSON, "two"), rig.telegram.say(PERSON, "three")
    await rig.telegram.wait(lambda: eyes(rig, two) and eyes(rig, three), PATIENCE)
    assert rig.telegram.working == [PERSON], "seen typing while nothing else is seen"
    rig.model.gate = None
    gate.set()
    await rig.shows("ack three")
    await rig.telegram.wait(lambda: not any(rig.telegram.reactions.values()), PATIENCE)
    assert rig.said() == ["ack one", "ack two", "ack three"]
    assert [rig.seen(n)[-1] for n in range(3)] == ["one", "two", "three"]


async def test_more_than_fifty_waiting_are_joined_word_for_word(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    rig.telegram.say(PERSON, "first")
    await rig.model.wait_inflight(1, PATIENCE)
    for n in range(60):
        rig.telegram.say(PERSON, f"wait {n}.")
    await waiting(rig, 60)
    await rig.shows("More than 50 messages are pending.")
    rig.model.gate = None
    gate.set()
    await rig.shows("ack wait 59.")
    await rig.quiet()
    turns = [r.body["messages"][-1]["content"] for r in rig.model.requests]
    assert len(turns) == 51
    assert [word for turn in turns[1:] for word in re.findall(r"wait (\d+)\.", turn)] == [
        str(n) for n in range(60)
    ]
    assert len([text for text in rig.said() if "More than 50" in text]) == 1, "told once"


async def test_steering(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    rig.model.script(Call("list_files"), Say("on my way"))
    await rig.start()
    rig.telegram.say(PERSON, "/mode steer")
    await rig.shows("are taken into account at once")
    rig.telegram.say(PERSON, "one")
    await rig.model.wait_inflight(1, PATIENCE)
    rig.telegram.say(PERSON, "but quickly")
    await waiting(rig, 1)
    rig.model.gate = None
    gate.set()
    await rig.shows("on my way")
    await rig.quiet()
    assert len(rig.model.requests) == 2
    assert rig.seen(role="user") == ["one", "but quickly"]


async def test_interrupting(rig: Rig) -> None:
    rig.model.script(Slow(0.02, "word " * 500), Say("the second"))
    await rig.start()
    rig.telegram.say(PERSON, "/mode interrupt")
    await rig.shows("stops me, and I answer that message")
    rig.telegram.say(PERSON, "one")
    await rig.telegram.wait(lambda: len(rig.telegram.drafts[PERSON]) > 2, PATIENCE)
    rig.telegram.say(PERSON, "two")
    await rig.shows("the second")
    await rig.quiet()
    first = rig.said()[1]
    assert first.startswith("word word") and "a newer message arrived" in first
    assert rig.model.dropped == 1, "the model is not paid for what nobody reads"
    seen = rig.seen()
    assert seen[1] == "one" and "(stopped)" in seen[2] and seen[3] == "two"


async def test_stop_while_the_model_streams(rig: Rig) -> None:
    rig.model.script(Slow(0.02, "word " * 500))
    await rig.start()
    rig.telegram.say(PERSON, "count")
    await rig.telegram.wait(lambda: len(rig.telegram.drafts[PERSON]) > 1, PATIENCE)
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Stopped here.")
    await rig.quiet()
    answer, note = rig.said()
    assert rig.model.dropped == 1 and answer.startswith("word word") and note == "Stopped here."
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")


async def test_telegrams_own_stop_button(rig: Rig) -> None:
    rig.model.script(Slow(0.02, "word " * 500))
    await rig.start()
    rig.telegram.say(PERSON, "count")
    await rig.telegram.wait(lambda: len(rig.telegram.drafts[PERSON]) > 1, PATIENCE)
    assert rig.telegram.drafts[PERSON][0]["can_stop"] is True
    chat = {"id": PERSON, "type": "private", "first_name": "U"}
    draft = rig.telegram.drafts[PERSON][0]["draft_id"]
    rig.telegram.push({"stopped_message_generation": {"chat": chat, "draft_id": draft}})
    await rig.shows("Stopped here.")


async def test_stop_while_a_tool_runs(rig: Rig) -> None:
    command = "echo $$ > pid; echo begun; sleep 60"
    rig.model.script(Call("run_command", json.dumps({"command": command}), id="slow"))
    await rig.start()
    rig.telegram.say(PERSON, "run it")
    rig.press(await rig.card(), "Approve once")
    pid = rig.workspace() / "pid"
    await rig.until(lambda: pid.exists() and pid.read_text().strip())
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Stopped.")
    await rig.quiet()
    await rig.until(lambda: not alive(int(pid.read_text())))
    assert any("✕ Run a command" in text and "(stopped)" in text for text in rig.said())
    rig.telegram.say(PERSON, "what happened?")
    await rig.shows("ack what happened?")
    (result,) = rig.seen(role="tool")
    assert "cancel" in result.lower(), result


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


async def test_stop_with_nothing_to_stop_and_stop_all(rig: Rig) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Nothing is running.")
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    rig.telegram.say(PERSON, "/stop all")
    await rig.telegram.wait(lambda: not rig.cards(), PATIENCE)
    await rig.quiet()
    assert "Withdrawn" in card["text"]
    assert await rig.told(rig.telegram.press(PERSON, card["message_id"], "q:x:once"))


async def test_a_waiting_message_is_edited_or_taken_back(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.model.wait_inflight(1, PATIENCE)
    two, three = rig.telegram.say(PERSON, "tow"), rig.telegram.say(PERSON, "three")
    await waiting(rig, 2)
    rig.telegram.edit(PERSON, two["message"]["message_id"], "two")
    # Telegram tells bots of no deletion; other platforms do.
    gone = str(three["message"]["message_id"])
    sender = Sender(platform="telegram", id=str(PERSON))
    where = rig.where()
    await rig.host.accept(
        [MessageDeleted(conversation=where, sender=sender, event="d1", message=gone)]
    )
    await waiting(rig, 1)
    await rig.until(lambda: "tow" not in str(rig.session().state.queue))  # type: ignore[union-attr]
    rig.model.gate = None
    gate.set()
    await rig.shows("ack two")
    await rig.quiet()
    assert rig.said() == ["ack one", "ack two"]


async def edit_while_it_runs(rig: Rig) -> None:
    """Oslo becomes Bergen while the model answers for the first time."""
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    one = rig.telegram.say(PERSON, "to Oslo")
    await rig.model.wait_inflight(1, PATIENCE)
    rig.telegram.edit(PERSON, one["message"]["message_id"], "to Bergen")
    await rig.until(lambda: (s := rig.session()) and s.state.active and s.state.active.changes)
    rig.model.gate = None
    gate.set()


async def test_an_edit_of_the_running_message_steers(rig: Rig) -> None:
    rig.model.script(Call("list_files"), Say("changed course"))
    await edit_while_it_runs(rig)
    await rig.shows("changed course")
    assert rig.seen(role="user") == ["to Oslo", "(I changed my message to: to Bergen)"]


async def test_an_edit_in_the_last_round_offers_to_answer_again(rig: Rig) -> None:
    rig.model.script(Say("go to Oslo"))
    await edit_while_it_runs(rig)
    await rig.shows("You edited your message after")
    await rig.quiet()
    assert rig.seen(role="user") == ["to Oslo"]
    rig.model.script(Say("go to Bergen"))
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("go to Bergen")
    await rig.quiet()
    assert rig.seen(role="user") == ["to Bergen"], "it is asked again as it was edited"


# ---- groups and strangers ------------------------------------------------------------------


async def test_changes_of_what_was_not_for_the_bot_leave_nothing_behind(rig: Rig) -> None:
    await rig.start()
    for user in (STRANGER, PERSON):
        talk = rig.telegram.say(GROUP, "just talking", user=user)["message"]["message_id"]
        rig.telegram.edit(GROUP, talk, "just talking more")
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    assert await rig.host.services.store.summary(rig.where(GROUP).id) is None
    assert await rig.host.services.store.summary(rig.where(PERSON).id) is not None


async def test_what_only_looks_like_a_command_is_a_message(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/tmp is full, why?")
    await rig.shows("ack /tmp is full, why?")
    rig.telegram.say(PERSON, "/tmp")
    await rig.shows("There is no command /tmp.")
    rig.telegram.say(GROUP, "/weather berlin", user=PERSON)
    rig.telegram.say(GROUP, "/weather@test_bot berlin", user=PERSON)
    await rig.shows("There is no command /weather.", GROUP)
    await rig.quiet()
    assert len(rig.said(GROUP)) == 1, "a command without a name is another bot's"


async def test_what_is_forwarded_is_read_with_the_comment_and_its_author(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "who is right?")
    for name, words in (("Bob", "it is free"), ("Eve", "it costs 5")):
        origin = {"type": "user", "sender_user": {"id": 9, "first_name": name}, "date": 1}
        rig.telegram.say(PERSON, words, forward_origin=origin)
    await rig.shows("it costs 5")
    await rig.quiet()
    said = "who is right?\n> Forwarded, by Bob:\n> it is free\n> Forwarded, by Eve:\n> it costs 5"
    assert len(rig.model.requests) == 1 and said in rig.seen(role="user")[0]


async def test_what_is_marked_in_an_answer_is_what_the_model_hears(rig: Rig) -> None:
    rig.model.script(Say("one two three"), Say("the second"))
    await rig.start()
    rig.telegram.say(PERSON, "count")
    answer = await rig.shows("one two three")
    quote = {"text": "two", "position": 4}
    rig.telegram.say(PERSON, "why?", reply_to=answer["message_id"], quote=quote)
    await rig.shows("the second")
    assert "> You:\n> two\nwhy?" in rig.seen(role="user")[-1]


async def test_in_a_group_it_speaks_when_spoken_to(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "just talking", user=PERSON)
    one = rig.telegram.say(GROUP, "@test_bot hello", user=PERSON, **mention("@test_bot"))
    answer = await rig.shows("ack", GROUP)
    two = rig.telegram.say(GROUP, "go on", user=FRIEND, reply_to=answer["message_id"])
    await rig.telegram.wait(lambda: len(rig.said(GROUP)) == 2, PATIENCE)
    assert len(rig.model.requests) == 2
    asked = [one["message"]["message_id"], two["message"]["message_id"]]
    assert list(rig.telegram.replies.values()) == asked, "each answer replies to its question"
    first, second = rig.seen(role="user")
    assert "@test_bot hello" in first and f"U{PERSON}" in first, "who speaks is in the prompt"
    assert "go on" in second and f"U{FRIEND}" in second


async def test_a_topic_is_a_conversation_of_its_own(rig: Rig) -> None:
    await rig.start()
    for thread in (5, 6):
        say = {"user": PERSON, "thread": thread} | mention("@test_bot")
        rig.telegram.say(GROUP, f"@test_bot in topic {thread}", **say)
    await rig.shows("in topic 5", GROUP)
    await rig.shows("in topic 6", GROUP)
    await rig.quiet()
    for message in rig.telegram.chats[GROUP]:
        assert f"in topic {message['message_thread_id']}" in message["text"]
    assert all(len(r.body["messages"]) == 2 for r in rig.model.requests)


@pytest.mark.parametrize(("chat", "thread"), [(GROUP, 5), (GROUP, 0), (PERSON, 0)])
async def test_a_card_that_is_old_is_decided_in_its_topic(rig: Rig, chat: int, thread: int) -> None:
    """After days the platform no longer tells in which topic a pressed button is."""
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    say = mention("@test_bot") if chat == GROUP else {}
    rig.telegram.say(chat, "@test_bot write it", user=PERSON, thread=thread, **say)
    card = await rig.card(chat)
    strange = rig.press(card, "Approve once", FRIEND, chat=-100_777, old=True)
    assert "another" in await rig.told(strange), "of another chat it is not"
    rig.press(card, "Approve once", old=True)
    answer = await rig.shows("written", chat)
    assert int(answer.get("message_thread_id") or 0) == thread
    await rig.telegram.wait(lambda: "Approved once by" in card["text"], PATIENCE)


async def test_what_is_replied_to_is_in_the_prompt(rig: Rig) -> None:
    await rig.start()
    fact = rig.telegram.say(GROUP, "The train leaves at nine.", user=FRIEND)
    say = {"user": PERSON, "reply_to": fact["message"]["message_id"]} | mention("@test_bot")
    rig.telegram.say(GROUP, "@test_bot is that true?", **say)
    await rig.shows("ack", GROUP)
    (prompt,) = rig.seen(role="user")
    assert "The train leaves at nine." in prompt and f"U{FRIEND}" in prompt
    assert "is that true?" in prompt and f"U{PERSON}" in prompt


async def test_buttons_speak_the_persons_language(rig: Rig) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    german = {"id": PERSON, "is_bot": False, "first_name": "Anna", "language_code": "de"}
    rig.telegram.say(PERSON, "schreib es", **{"from": german})
    assert labels(await rig.card())[0] == "Einmal erlauben"


async def test_a_stranger_is_told_nothing_in_a_group(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot let me in", user=STRANGER, **mention("@test_bot"))
    rig.telegram.say(GROUP, "/status", user=STRANGER)
    rig.telegram.say(GROUP, "@test_bot hello", user=PERSON, **mention("@test_bot"))
    await rig.shows("ack", GROUP)
    await rig.quiet()
    assert len(rig.said(GROUP)) == 1, rig.said(GROUP)


async def test_a_foreign_press_is_refused_with_a_private_word(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, **mention("@test_bot"))
    card = await rig.card(GROUP)
    for other in (FRIEND, STRANGER):
        assert "Only the person who asked" in await rig.told(rig.press(card, "Approve once", other))
    await rig.quiet()
    assert rig.cards(GROUP) == [card] and not (rig.workspace(GROUP) / "a.txt").exists()
    assert await rig.told(rig.press(card, "Approve once", ADMIN)) == ""
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert f" by U{ADMIN}" in card["text"]


async def test_pairing_in_private(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(STRANGER, "let me in")
    shown = await rig.shows("Show this code", STRANGER)
    found = re.search(r"admin: ([A-Z0-9]{8})", shown["text"])
    assert found
    rig.telegram.say(PERSON, f"/pair {found[1]}")
    await rig.shows("Only an admin may do this; your role here is user.")
    rig.telegram.say(ADMIN, "/pair AAAAAAAA")
    await rig.shows("not valid", ADMIN)
    rig.telegram.say(ADMIN, f"/pair {found[1]}")
    await rig.shows(f"U{STRANGER} may now use this bot.", ADMIN)
    rig.telegram.say(STRANGER, "hello")
    await rig.shows("ack hello", STRANGER)
    assert len(rig.model.requests) == 1


async def test_two_peoples_chats_never_mix(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "my secret is 42")
    rig.telegram.say(FRIEND, "what is the secret?")
    await rig.shows("ack my secret")
    await rig.shows("ack what is", FRIEND)
    assert all(len(r.body["messages"]) == 2 for r in rig.model.requests)
    assert rig.workspace(PERSON) != rig.workspace(FRIEND)


# ---- streaming -----------------------------------------------------------------------------


async def test_in_private_a_draft_grows_and_one_message_stays(rig: Rig) -> None:
    rig.model.script(Slow(0.03, " ".join(f"w{n}" for n in range(20))))
    await rig.start()
    rig.telegram.say(PERSON, "slowly")
    await rig.shows("w19")
    calls = rig.telegram.made("sendMessageDraft")
    assert len(calls) >= 3 and len({call.params["draft_id"] for call in calls}) == 1
    texts = [call.params["text"] for call in calls]
    assert all(later.startswith(earlier) for earlier, later in zip(texts, texts[1:], strict=False))
    await rig.quiet()
    assert len(rig.said()) == 1 and not rig.telegram.made("editMessageText")


async def test_at_a_server_without_drafts_one_message_grows_by_edits(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, edit_interval=0.1)
    rig.telegram.fail("sendMessageDraft", 404, times=99)
    rig.model.script(Slow(0.03, " ".join(f"w{n}" for n in range(30))), Slow(0.03, "and once more"))
    await rig.start()
    rig.telegram.say(PERSON, "slowly")
    await rig.shows("w29")
    rig.telegram.say(PERSON, "again")
    await rig.shows("more")
    await rig.quiet()
    assert len(rig.telegram.made("sendMessageDraft")) == 1, "it is not asked for again"
    assert len(rig.said()) == 2 and len(rig.telegram.made("editMessageText")) >= 2


async def test_in_a_group_edits_are_paced_and_the_same_message_ends_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch, edit_interval=0.2)
    rig.model.script(Slow(0.01, " ".join(f"w{n}" for n in range(100))))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot slowly", user=PERSON, **mention("@test_bot"))
    await rig.shows("w99", GROUP)
    await rig.quiet()
    (message,) = rig.telegram.chats[GROUP]
    assert message["text"].split() == [f"w{n}" for n in range(100)]
    edits = rig.telegram.made("editMessageText")
    assert len(edits) >= 2 and message["edits"] == len(edits)
    gaps = [b.at - a.at for a, b in zip(edits, edits[1:], strict=False)]
    assert min(gaps) > 0.18, gaps
    assert not rig.telegram.made("sendMessageDraft"), "drafts exist in private chats only"


# ---- kill -9 -------------------------------------------------------------------------------


@pytest.fixture
async def world(world: World) -> AsyncIterator[World]:
    yield world
    assert world.telegram.violations == []


def buttons(world: World) -> list[dict]:
    return [m for m in world.telegram.chats[PERSON] if m.get("reply_markup")]


async def parked(url: str) -> None:
    """Until nothing of the conversation is in memory."""
    async with ClientSession() as http, asyncio.timeout(START):
        while True:
            async with http.get(f"{url}metrics") as answer:
                if "turnkeeper_sessions 0.0" in await answer.text():
                    return


@pytest.mark.pick("a killed process at Telegram")
async def test_killed_while_it_streams_the_same_message_goes_on(world: World) -> None:
    world.model.script(Slow(0.02, " ".join(f"w{n}" for n in range(300))), Say("whole again"))
    run = await world.start()
    say = {"user": PERSON} | mention("@test_bot")
    world.telegram.say(GROUP, "@test_bot slowly", **say)
    chat = world.telegram.chats[GROUP]
    await world.telegram.wait(lambda: chat and chat[0]["edits"], START)  # so its mark stands
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await world.start()
    await world.telegram.wait_text(GROUP, "whole again", START)
    (message,) = world.telegram.chats[GROUP]  # no second one
    assert message["text"] == "whole again" and message["edits"] >= 2


@pytest.mark.pick("a killed process at Telegram")
async def test_killed_in_a_tool_it_is_not_run_twice(world: World) -> None:
    command = "echo begun >> log; sleep 60"
    world.model.script(
        Call("run_command", json.dumps({"command": command})), Say("I do not know how it went.")
    )
    run = await world.start()
    world.telegram.say(PERSON, "run it")
    await world.telegram.wait(lambda: bool(buttons(world)), START)
    (card,) = buttons(world)
    once = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    world.telegram.press(PERSON, card["message_id"], once)
    workspaces = world.folder / ".turnkeeper" / "workspaces"
    await until(lambda: list(workspaces.glob("*/log")), START)
    await world.sent(2)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await world.start()
    await world.telegram.wait_text(PERSON, "I do not know", START)
    (log,) = workspaces.glob("*/log")
    assert log.read_text() == "begun\n"
    told = world.model.requests[-1].body["messages"][-1]
    assert told["role"] == "tool" and "nknown" in told["content"]
    await world.telegram.wait(
        lambda: any("outcome unknown" in m["text"] for m in world.telegram.chats[PERSON]), START
    )
    assert len(world.telegram.chats[PERSON]) == 3, "activity, card, answer: each one message"


@pytest.mark.pick("a killed process at Telegram")
async def test_killed_while_an_approval_waits_the_old_button_works(world: World) -> None:
    world.model.script(write("a.txt"), Say("written"))
    run = await world.start()
    world.telegram.say(PERSON, "write it")
    await world.telegram.wait(lambda: bool(buttons(world)), START)
    (card,) = buttons(world)
    once = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    await parked(run.url)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    world.telegram.press(PERSON, card["message_id"], once)  # while it is down
    await world.start()
    await world.telegram.wait_text(PERSON, "written", START)
    await world.telegram.wait(lambda: "Approved once by" in card["text"], START)
    assert list((world.folder / ".turnkeeper" / "workspaces").glob("*/a.txt"))
    assert len(world.telegram.chats[PERSON]) == 3 and len(world.model.requests) == 2


@pytest.mark.pick("a killed process at Telegram")
async def test_killed_in_a_send_it_stands_there_once_or_is_labelled(world: World) -> None:
    run = await world.start()
    world.telegram.hold("sendMessage")
    world.telegram.say(PERSON, "hello")
    await world.telegram.wait_calls("sendMessage", 1, START)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    world.telegram.release("sendMessage")
    await world.start()
    await world.telegram.wait_text(PERSON, "Possibly sent twice (restart).", START)
    first, *more = sorted(m["text"] for m in world.telegram.chats[PERSON])
    assert first == "ack hello" or not more
    assert len(world.model.requests) == 1, "the answer was there already"


async def test_an_anonymous_admin_is_the_group(rig: Rig) -> None:
    group = {"id": GROUP, "type": "supergroup", "title": "Ops"}
    await rig.start(TELEGRAM_ALLOWED_USERS=f"{PERSON},{GROUP}")
    rig.telegram.say(
        GROUP, "@test_bot who am I?", user=1087968824, sender_chat=group, **mention("")
    )
    await rig.shows("ack", GROUP)
    rig.telegram.say(-1008, "@test_bot and I?", sender_chat=group | {"id": -1008}, **mention(""))
    await rig.shows("I cannot see who you are", -1008)
    await rig.quiet()
    assert len(rig.said(-1008)) == 1
