"""What people do with the history of a conversation: /undo, /retry, /resume, and what happens to
one that has grown long."""

import errno
import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from agent_core.context.record_events import events_of
from agent_core.events import Compressed, UsageCounted
from agent_core.journal import decode
from agent_core.tools import paths
from agent_core.tools.files import WriteFileArguments
from agent_core.tools.files import write as write_now
from tests.fakes.model_server import Call, Calls, Fail, Json, Say
from tests.fakes.model_steps import Step
from tests.stories.history_rig import SHORT, summaries, until_long
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, Rig, mention, token, write

AUTO = {"TELEGRAM_ADMIN_USERS": f"{ADMIN},{PERSON}"}
"""The person is an admin, whose own writes need no approval."""
GROUPS = {"TELEGRAM_ALLOWED_CHATS": str(GROUP)}


async def ask(rig: Rig, text: str, answer: str, *steps: Step, chat: int = PERSON) -> None:
    """Say `text`, and see `answer` after `steps`."""
    rig.model.script(*steps, Say(answer))
    rig.telegram.say(chat, text)
    await rig.shows(answer, chat)
    await rig.quiet()


def users(rig: Rig, n: int = -1) -> list[str]:
    return rig.seen(n, "user")


# ---- /undo -------------------------------------------------------------------------------


async def test_undo_takes_the_turn_and_its_files_back_step_by_step(rig: Rig) -> None:
    await rig.start(**AUTO)
    await ask(rig, "hello", "hi")
    await ask(rig, "make it", "made", write("a.txt", "one"))
    again = Calls([write("a.txt", "two"), write("b.txt", "new")])
    await ask(rig, "change it", "changed", again, write("a.txt", "three"))
    rig.telegram.say(PERSON, "/undo")
    told = await rig.shows("Restored files: a.txt, b.txt")
    assert "no longer see" in told["text"]
    assert (rig.workspace() / "a.txt").read_text() == "one"
    assert not (rig.workspace() / "b.txt").exists()
    await rig.quiet()
    assert "changed" in rig.said(), "what people saw stays"
    await ask(rig, "what is there?", "one is there")
    assert users(rig) == ["hello", "make it", "what is there?"]
    rig.telegram.say(PERSON, "/undo")
    await rig.telegram.wait(lambda: len(undone(rig)) == 2)
    rig.telegram.say(PERSON, "/undo")
    await rig.telegram.wait(lambda: len(undone(rig)) == 3)
    assert not (rig.workspace() / "a.txt").exists()
    await rig.quiet()
    await ask(rig, "again", "yes")
    assert users(rig) == ["hello", "again"]


def undone(rig: Rig, chat: int = PERSON) -> list[str]:
    return [text for text in rig.said(chat) if text.startswith("The last request is undone")]


async def made_by_command(rig: Rig) -> None:
    """A turn that writes a.txt by a tool, c.txt and d/ by a command, and removes old.txt so."""
    await rig.start(**AUTO)
    rig.workspace().mkdir(parents=True, exist_ok=True)
    (rig.workspace() / "old.txt").write_text("old")
    command = Call(
        "run_command", json.dumps({"command": "echo x > c.txt; mkdir d; echo y > d/e; rm old.txt"})
    )
    rig.model.script(write("a.txt", "one"), command, Say("made"))
    rig.telegram.say(PERSON, "make it")
    rig.press(await rig.card(), "Approve")
    await rig.shows("made")
    await rig.quiet()
    assert (rig.workspace() / "d/e").exists() and not (rig.workspace() / "old.txt").exists()


async def test_undo_takes_back_what_commands_did(rig: Rig) -> None:
    await made_by_command(rig)
    await rig.crash()
    await rig.start(**AUTO)
    rig.telegram.say(PERSON, "/undo")
    told = (await rig.shows("The last request is undone"))["text"]
    assert "Restored files: a.txt, c.txt, d/e, old.txt." in told and "stay" not in told
    assert (rig.workspace() / "old.txt").read_text() == "old"
    assert not [name for name in ("a.txt", "c.txt", "d") if (rig.workspace() / name).exists()]
    await rig.quiet()


@pytest.mark.parametrize(("wish", "left"), [("keep", "another's"), ("all", None)])
async def test_undo_asks_about_what_something_else_changed_since(
    rig: Rig, wish: str, left: str | None
) -> None:
    await made_by_command(rig)
    write_now(WriteFileArguments(path="a.txt", content="another's"), rig.workspace())
    rig.telegram.say(PERSON, "/undo")
    told = (await rig.shows("These files were changed by something else since then: a.txt."))[
        "text"
    ]
    assert f"/undo {wish}" in told and (rig.workspace() / "c.txt").exists() and not undone(rig)
    rig.telegram.say(PERSON, f"/undo {wish}")
    told = (await rig.shows("The last request is undone"))["text"]
    assert ("Left as they are: a.txt" in told) is (wish == "keep") and "Could not" not in told
    path = rig.workspace() / "a.txt"
    assert (path.read_text() if path.exists() else None) == left
    assert not (rig.workspace() / "c.txt").exists()
    await rig.quiet()


@pytest.mark.pick
@pytest.mark.parametrize("wish", ["/undo", "/undo all", "/retry"])
async def test_what_a_full_disk_refuses_is_undone_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, wish: str
) -> None:
    await made_by_command(rig)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(paths, "put_file", refuse)
        rig.telegram.say(PERSON, wish)
        await rig.shows("not undone yet")
        await rig.quiet()
        assert not undone(rig) and not (rig.workspace() / "old.txt").exists()
    rig.model.script(Say("made anew"))
    rig.telegram.say(PERSON, wish)
    await rig.shows(
        "made anew" if wish == "/retry" else "Restored files: a.txt, c.txt, d/e, old.txt."
    )
    assert (rig.workspace() / "old.txt").read_text() == "old"
    assert not (rig.workspace() / "c.txt").exists()
    await rig.quiet()


async def test_undo_without_a_snapshot_goes_by_backups(rig: Rig) -> None:
    """As after an update: what tools wrote is known, what commands did is not."""
    await made_by_command(rig)
    shutil.rmtree(rig.workspace() / ".turnkeeper/snapshots")
    rig.telegram.say(PERSON, "/undo")
    told = (await rig.shows("The last request is undone"))["text"]
    assert (
        "Restored files: a.txt." in told and "The effects of these remain: Run a command." in told
    )
    assert not (rig.workspace() / "a.txt").exists() and (rig.workspace() / "c.txt").exists()
    await rig.quiet()


async def test_without_a_turn_there_is_nothing_to_undo_or_retry(rig: Rig) -> None:
    await rig.start()
    for n, command in enumerate(("/undo", "/retry"), 1):
        rig.telegram.say(PERSON, command)
        await rig.telegram.wait(
            lambda n=n: sum("no request here" in text for text in rig.said()) == n
        )
    await rig.quiet()


async def test_in_a_group_only_the_asker_or_an_admin_undoes(rig: Rig) -> None:
    await rig.start(**GROUPS)
    rig.model.script(Say("hi Ann"))
    rig.telegram.say(GROUP, "@test_bot hello", PERSON, True, **mention(""))
    await rig.shows("hi Ann", GROUP)
    await rig.quiet()
    rig.telegram.say(GROUP, "/undo@test_bot", FRIEND, True)
    await rig.shows("Only the person who asked", GROUP)
    assert not undone(rig, GROUP)
    rig.telegram.say(GROUP, "/undo@test_bot", ADMIN, True)
    await rig.shows("The last request is undone", GROUP)
    await rig.quiet()


# ---- /retry ------------------------------------------------------------------------------


async def test_retry_asks_the_last_message_anew(rig: Rig) -> None:
    await rig.start(**AUTO)
    await ask(rig, "hello", "hi")
    await ask(rig, "write a poem", "bad poem", write("poem.txt", "bad"))
    rig.model.script(write("poem.txt", "good"), Say("good poem"))
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("good poem")
    await rig.quiet()
    assert users(rig) == ["hello", "write a poem"]
    assert "Created poem.txt" in rig.seen(role="tool")[-1], "the bad one was taken back first"
    rig.telegram.say(PERSON, "/undo")
    await rig.shows("The last request is undone")
    await rig.quiet()
    await ask(rig, "and now", "fine")
    assert users(rig) == ["hello", "and now"]


async def test_while_a_turn_runs_neither_undo_nor_retry(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "hello", "hi")
    rig.model.script(Call("ask_user", json.dumps({"question": "which?"})), Say("done"))
    rig.telegram.say(PERSON, "wait for me")
    await rig.shows("which?")
    await rig.quiet()
    rig.telegram.say(PERSON, "/undo")
    await rig.shows("The last request is undone")
    await rig.quiet()
    rig.telegram.say(PERSON, "this one")
    await rig.shows("done")
    await rig.quiet()
    assert users(rig)[:2] == ["hello", "wait for me"], "it goes on with what it began with"
    await ask(rig, "next", "ok")
    assert users(rig) == ["wait for me", "next"], "the undone one stays undone"


# ---- buttons of a turn that is over ---------------------------------------------------------


async def test_retry_is_for_who_asked_and_works_once(rig: Rig) -> None:
    await rig.start(**GROUPS)
    rig.model.script(Fail(401))
    rig.telegram.say(GROUP, "@test_bot hello", PERSON, True, **mention(""))
    await rig.shows("rejected the API key", GROUP)
    await rig.quiet()
    (card,) = rig.buttons(GROUP)
    pressed = GROUP, card["message_id"], token(card, "Retry")
    told = await rig.told(rig.telegram.press(*pressed, user=FRIEND))
    assert "Only the person who asked" in told
    assert rig.buttons(GROUP) == [card]
    rig.model.script(Say("hi Ann"))
    assert await rig.told(rig.telegram.press(*pressed, user=ADMIN)) == ""
    await rig.shows("hi Ann", GROUP)
    await rig.quiet()
    assert rig.buttons(GROUP) == [], "nothing is offered any more"
    asked = len(rig.model.requests)
    told = await rig.told(rig.telegram.press(*pressed, user=PERSON))
    assert "already done" in told
    await rig.quiet()
    assert len(rig.model.requests) == asked


async def test_retry_takes_other_words(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "hello", "hi")
    rig.model.script(Say("a good poem"))
    rig.telegram.say(PERSON, "/retry write a poem")
    await rig.shows("a good poem")
    await rig.quiet()
    assert users(rig) == ["write a poem"]


async def test_a_new_message_and_undo_take_the_buttons_away(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Fail(401))
    rig.telegram.say(PERSON, "hello")
    await rig.telegram.wait(lambda: bool(rig.buttons(PERSON)))
    await ask(rig, "never mind", "fine")
    assert rig.buttons(PERSON) == []
    rig.model.script(Fail(401))
    rig.telegram.say(PERSON, "once more")
    await rig.telegram.wait(lambda: bool(rig.buttons(PERSON)))
    rig.telegram.say(PERSON, "/undo")
    await rig.telegram.wait(lambda: not rig.buttons(PERSON))
    await rig.quiet()


# ---- /resume -----------------------------------------------------------------------------


async def test_resume_finds_an_earlier_part_and_goes_on_from_it(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "plan the garden", "tulips and a pond")
    await ask(rig, "how deep", "the pond is one metre deep")
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    await rig.quiet()
    await ask(rig, "fix the bike", "the chain is loose")
    rig.telegram.say(PERSON, "/new")
    await rig.telegram.wait(lambda: sum("New conv" in one for one in rig.said()) == 2)
    await rig.quiet()
    await ask(rig, "what now", "nothing")
    rig.telegram.say(PERSON, "/resume pond METRE")
    told = (await rig.shows("Found in earlier"))["text"]
    assert "1. plan the garden" in told and "one metre deep" in told and "2." not in told
    await rig.quiet()
    rig.telegram.say(PERSON, "/resume 2")
    await rig.shows("no such number")
    rig.telegram.say(PERSON, "/resume 1")
    await rig.shows("Continuing from 'plan the garden'")
    await rig.quiet()
    await ask(rig, "and the fish", "three")
    assert users(rig) == ["plan the garden", "how deep", "and the fish"]
    rig.telegram.say(PERSON, "/resume")
    told = (await rig.shows("Your latest"))["text"]
    assert "\n\nPress one" in told, "below the list, not in its last item"
    titles = re.findall(r"^\d+\. (.*), ", told, re.M)
    assert titles[:2] == ["what now", "fix the bike"]
    await rig.quiet()


async def test_a_button_of_the_list_goes_on_from_there(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "plan the garden", "tulips and a pond")
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    await ask(rig, "fix the bike", "the chain is loose")
    rig.telegram.say(PERSON, "/resume pond")
    first = await rig.shows("Found in earlier")
    rig.telegram.say(PERSON, "/new")
    await rig.telegram.wait(lambda: sum("New conv" in one for one in rig.said()) == 2)
    rig.telegram.say(PERSON, "/resume chain")
    await rig.telegram.wait(lambda: sum("Found in earlier" in one for one in rig.said()) == 2)
    await rig.quiet()
    assert "no such number" in await rig.told(rig.press(first, "1. plan the garden"))
    rig.telegram.say(PERSON, "/resume pond")
    await rig.telegram.wait(lambda: sum("Found in earlier" in one for one in rig.said()) == 3)
    assert "I do not know you yet" in await rig.told(
        rig.press(first, "1. plan the garden", user=99)
    )
    assert await rig.told(rig.press(first, "1. plan the garden")) == ""
    await rig.shows("Continuing from 'plan the garden'")
    await rig.quiet()
    await ask(rig, "and the fish", "three")
    assert users(rig) == ["plan the garden", "and the fish"]


async def test_a_person_resumes_only_what_they_may_see(rig: Rig) -> None:
    await rig.start(**GROUPS)
    await ask(rig, "the secret is tulip", "tulip, noted")
    await ask(rig, "my own is tulip", "tulip too", chat=FRIEND)
    rig.telegram.say(FRIEND, "/resume tulip")
    await rig.shows("No matching earlier conversation", FRIEND)
    rig.telegram.say(GROUP, "/resume@test_bot tulip", PERSON, True)
    await rig.shows("No matching earlier conversation", GROUP)
    rig.telegram.say(FRIEND, "/new")
    await rig.shows("New conversation", FRIEND)
    rig.telegram.say(FRIEND, "/resume tulip")
    told = (await rig.shows("Found in earlier", FRIEND))["text"]
    assert "my own" in told and "secret" not in told
    await rig.quiet()


# ---- long conversations ------------------------------------------------------------------


def told(body: Json) -> str:
    return json.dumps(body["messages"])


def told_by(rig: Rig) -> list[UsageCounted | Compressed]:
    """What the journals tell of requests and summaries, in order."""
    (store,) = rig.home.glob("*.db")
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        bodies = [body for (body,) in db.execute("SELECT body FROM records ORDER BY turn, n")]
    events = (event for body in bodies for event in events_of(decode(body)))
    return [one for one in events if isinstance(one, UsageCounted | Compressed)]


async def test_what_requests_begin_with_has_a_name_that_changes_with_it_alone(rig: Rig) -> None:
    """From turn to turn and over a restart it stays; after a summary and in another profile it is
    another one."""
    await rig.start(**SHORT)
    n = await until_long(rig, Say("They spoke of words."))
    events = told_by(rig)
    (at,) = (n for n, one in enumerate(events) if isinstance(one, Compressed))
    summary = events[at]
    assert isinstance(summary, Compressed) and summary.parent == "" and len(summary.lineage) == 12
    before = {one.prefix for one in events[:at] if isinstance(one, UsageCounted) and one.prefix}
    after = {one.prefix for one in events[at:] if isinstance(one, UsageCounted)}
    assert n > 1 and len(before) == len(after) == 1 and before.isdisjoint(after)
    await rig.stop()
    await rig.start(**SHORT)
    await ask(rig, "short one", "short answer")
    rig.telegram.say(PERSON, "/mode swe")
    await rig.shows("swe")
    await ask(rig, "another", "another answer")
    last, other = (one.prefix for one in told_by(rig)[-2:] if isinstance(one, UsageCounted))
    assert {last} == after and other not in before | after
    await rig.quiet()


async def test_a_long_conversation_goes_on_from_a_summary(rig: Rig) -> None:
    await rig.start(**SHORT)
    n = await until_long(rig, Say("They spoke of words."))
    await rig.shows("Earlier messages were summarised.")
    (asked,) = summaries(rig)
    assert "question 0" in told(asked) and f"question {n}" not in told(asked)
    first = rig.model.requests[-1].body
    assert "They spoke of words" in told(first) and "question 0" not in told(first)
    assert f"question {n}" in told(first) and f"question {n - 1}" in told(first)
    await rig.stop()
    await rig.start(**SHORT)
    await ask(rig, "short one", "short answer")
    second = rig.model.requests[-1].body["messages"]
    assert second[: len(first["messages"])] == first["messages"], "it is only added to"
    assert len(summaries(rig)) == 1
    for count in (1, 2):
        rig.telegram.say(PERSON, "/undo")
        await rig.telegram.wait(lambda count=count: len(undone(rig)) == count)
        await rig.quiet()
    rig.model.script(
        *[lambda body: Say("summary" if body["model"] == "fake-flash" else "fine")] * 2
    )
    rig.telegram.say(PERSON, "once more")
    await rig.shows("fine")
    await rig.quiet()
    rig.model.steps.clear()
    last = rig.model.requests[-1].body
    assert rig.seen()[-1] == "once more" and f"question {n}" not in told(last)
    again = told(last) + "".join(map(told, summaries(rig)[1:]))
    assert "question 0" in again, "undone with the turn that was summarised in"
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    rig.telegram.say(PERSON, "/resume question")
    assert "1. question 0" in (await rig.shows("Found in earlier"))["text"], "all of it is kept"
    await rig.quiet()


async def test_where_no_summary_is_to_be_had_the_oldest_is_left_out(rig: Rig) -> None:
    await rig.start(**SHORT)
    n = await until_long(rig, Fail(400))
    said = told(rig.model.requests[-1].body)
    assert "left out here" in said and "question 0" not in said and f"question {n}" in said


async def test_switched_off_everything_is_sent(rig: Rig) -> None:
    await rig.start(**SHORT, CONTEXT_COMPRESSION_ENABLED="false")
    with pytest.raises(AssertionError, match="never too long"):
        await until_long(rig, Say("none"))
    assert "question 0" in told(rig.model.requests[-1].body)
