"""Dialogues over Discord: the real gateway, the real discord.py and the real model SDK."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from adapters.discord import receive
from adapters.discord.adapter import DiscordAdapter
from gateway.errors import StoreFailed
from tests.fakes.discord_gateway import INVALID, RECONNECT
from tests.fakes.discord_rights import OWN_ROLE
from tests.fakes.discord_server import labels, text_of
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import (
    ADMIN,
    CHANNEL,
    DM,
    FRIEND,
    PERSON,
    STRANGER,
    THREAD,
    DiscordRig,
)
from tests.stories.jobs_rig import jobs_of, schedule
from tests.stories.plan_rig import ASK, CHAIN, GOOD
from tests.stories.rig import Rig, write

Json = dict[str, Any]


async def _refuse(*_: object, **__: object) -> None:
    raise StoreFailed("away")


# ---- talking -------------------------------------------------------------------------------


async def test_words_below_a_question_whose_sender_was_killed_are_an_answer(
    rig: DiscordRig,
) -> None:
    """The next life does not know its number yet when they come."""
    rig.model.script(Call("ask_user", '{"question": "which?"}'), Say("so be it"))
    await rig.start()
    rig.discord.hold_answers("send")
    await rig.discord.say(DM, "paint it", PERSON)
    await rig.discord.shows(DM, "which?")
    await rig.crash()
    await rig.discord.say(DM, "blue", PERSON)
    await rig.start()
    await rig.until(lambda: rig.seen(role="tool"))
    rig.discord.release("send")
    await rig.discord.shows(DM, "so be it")
    assert rig.seen(role="tool") == ["blue"]


async def test_a_message_is_answered_and_grows(rig: DiscordRig) -> None:
    rig.model.script(Say("One two three four five six seven.", words=7), Say("And more."))
    rig.model.gate = asyncio.Event()
    await rig.start()
    await rig.discord.say(DM, "hello", PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.shows(DM, "six seven.")
    await rig.quiet()
    await rig.discord.say(DM, "and now?", PERSON)
    await rig.discord.shows(DM, "And more.")
    await rig.quiet()
    assert rig.read() == ["One two three four five six seven.", "And more."]
    assert rig.seen(role="user") == ["hello", "and now?"]
    await rig.discord.wait(lambda: rig.discord.commands)
    names = {one["name"] for one in rig.discord.commands}
    assert {"approve", "deny", "stop", "new"} <= names
    assert rig.discord.commands[0]["description_localizations"]["de"]


async def test_the_first_message_tells_the_language(rig: DiscordRig) -> None:
    """Discord tells a person's language by presses and slash commands alone: until then it is the
    one that they write in. What it tells counts more."""
    rig.model.script(write("a.txt"), write("b.txt"), write("c.txt"))
    rig.discord.locale = "fr"
    await rig.start()
    await rig.discord.say(DM, "kannst du mir bitte eine Datei schreiben", PERSON)
    assert "Darf das laufen?" in text_of(await rig.carded(label="Einmal erlauben"))
    await rig.discord.say(DM, "ok", PERSON)
    await rig.until(lambda: sum("Darf das laufen?" in text for text in rig.read()) == 2)
    await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.say(DM, "und jetzt noch eine andere Datei bitte", PERSON)
    await rig.carded(label="Autoriser une fois")


async def test_the_answer_comes_before_outputs_fold(rig: DiscordRig) -> None:
    rig.model.script(Call("list_files"), Say("nothing there"))
    await rig.start()
    await rig.discord.say(DM, "look", PERSON)
    await rig.discord.shows(DM, "nothing there")
    await rig.quiet()
    written = [call.name for call in rig.discord.calls if call.name in ("send", "edit")]
    assert written[-2:] == ["send", "edit"] and "Nothing found" not in "".join(rig.read())


async def test_in_a_server_it_answers_who_speaks_to_it(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.threads[THREAD] = CHANNEL
    await rig.discord.say(CHANNEL, "not for the bot", PERSON)
    await rig.discord.say(THREAD, "@bot in the thread", FRIEND)
    answer = await rig.discord.shows(THREAD, "ack [U12] in the thread")
    said = await rig.discord.say(THREAD, "@bot and this", PERSON, reply_to=answer["id"])
    second = await rig.discord.shows(THREAD, "[U11] and this")
    assert second["message_reference"]["message_id"] == said["id"]
    await rig.quiet()
    assert "not for the bot" not in str(rig.seen())
    quoted = "> You:\n> ack [U12] in the thread\n[U11] and this"
    assert rig.seen(role="user") == ["[U12] in the thread", quoted]
    await rig.discord.say(CHANNEL, "@bot me too", STRANGER)
    await rig.discord.command(CHANNEL, "whoami", PERSON)
    await rig.discord.shows(CHANNEL, f"discord:{PERSON}")
    await rig.quiet()
    assert rig.discord.made("open") == [], "neither strangers nor commands open a thread"


@pytest.mark.parametrize("policy", ["mention", "thread"])
async def test_its_own_role_is_the_bot(rig: DiscordRig, policy: str) -> None:
    """Clients offer the role under the bot's name, before the bot. Without the intent the words
    do not come: the person hears why, and what to do."""
    await rig.start(GROUP_POLICY=policy)
    rig.discord.threads[THREAD] = CHANNEL
    for role in ("4999", OWN_ROLE):
        await rig.discord.say(THREAD, f"<@&{role}> look", PERSON, mention_roles=[role])
    await rig.discord.shows(THREAD, "look" if policy == "thread" else "choose me")
    await rig.discord.say(THREAD, f"<@&{OWN_ROLE}> too", FRIEND, mention_roles=["4003"])
    await rig.until(lambda: len(rig.model.requests) == 2)
    await rig.quiet()
    assert "4999" not in str([text.splitlines()[-1] for text in rig.seen(role="user")])
    assert len(rig.discord.made("guild_roles")) == 1, "asked for once"


async def test_waiting_messages_are_edited_and_withdrawn(rig: DiscordRig) -> None:
    rig.model.gate = asyncio.Event()
    await rig.start()
    await rig.discord.say(DM, "first", PERSON)
    await rig.model.wait_inflight(1)
    second = await rig.discord.say(DM, "secnd", PERSON)
    third = await rig.discord.say(DM, "third", PERSON)
    await rig.discord.wait(lambda: rig.discord.reacted.get(third["id"]) == ["👀"])
    await rig.discord.change(second, "second")
    await rig.discord.delete(third)
    fourth = await rig.discord.say(DM, "fourth", PERSON)
    assert fourth["id"]
    session_of = rig.host.sessions
    await rig.until(lambda: any(len(one.state.queue) == 2 for one in session_of.values()))
    assert rig.discord.typing, "seen typing while nothing else is seen"
    rig.model.gate.set()
    await rig.discord.shows(DM, "ack fourth")
    await rig.discord.wait(lambda: not rig.discord.reactions.get(second["id"]))
    await rig.quiet()
    assert rig.seen(role="user") == ["first", "second", "fourth"]


async def test_a_file_is_read_by_its_reference(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.files["notes.txt"] = b"the secret is 42"
    about = {"id": "5", "filename": "notes.txt", "content_type": "text/plain; charset=utf-8"}
    about |= {"size": 16, "url": f"{rig.discord.base}/files/notes.txt"}
    await rig.discord.say(DM, "look", PERSON, attachments=[about])
    await rig.until(lambda: rig.discord.made("look") and rig.model.requests)
    await rig.quiet()
    assert "notes.txt" in str(rig.seen())


# ---- decisions -----------------------------------------------------------------------------


async def test_an_approval_by_button_and_not_by_strangers(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    task = (await rig.discord.say(CHANNEL, "@bot write it", PERSON))["id"]
    card = await rig.carded(task)
    assert "Write a file" in text_of(card) and "a.txt" in text_of(card)
    assert labels(card)[-1] == "Deny with reason"
    foreign = await rig.discord.press(card, "Approve once", STRANGER)
    assert "admin" in (await rig.discord.told(foreign)).lower()
    assert rig.discord.answers[foreign] == {"type": 6}
    mine = await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(task, "written")
    await rig.quiet()
    assert f" by U{PERSON}" in text_of(card) and labels(card) == []
    assert rig.discord.whispers[mine] == []


async def test_denied_with_a_reason_by_modal(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("so not"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.discord.fill_in(card, "Deny with reason", "use another name", PERSON)
    await rig.discord.shows(DM, "so not")
    await rig.quiet()
    assert "use another name" in rig.seen(role="tool")[-1]
    assert "use another name" in text_of(card)
    assert not list(rig.dm.glob("*.txt"))


def ask(question: str, options: list[str]) -> Call:
    return Call("ask_user", json.dumps({"question": question, "options": options}))


async def test_a_choice_from_a_list_and_a_form_by_modal(rig: DiscordRig) -> None:
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    rig.model.script(ask("Which day?", days), ask("And why?", []), Say("Good."))
    await rig.start()
    await rig.discord.say(DM, "plan it", PERSON)
    card = await rig.carded(label="Thursday")
    await rig.discord.press(card, "Thursday", PERSON)
    form = await rig.carded(label="Your answer")
    await rig.discord.fill_in(form, "Your answer", "It rains\non the others", PERSON)
    await rig.discord.shows(DM, "Good.")
    await rig.quiet()
    said = rig.seen(role="tool")
    assert "Thursday" in said[-2] and "It rains\non the others" in said[-1].replace("\\n", "\n")
    assert labels(form) == labels(card) == []


async def test_a_plan_ticks_in_one_message_with_buttons(rig: DiscordRig) -> None:
    await rig.start()
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say("All found."))
    rig.model.gate = asyncio.Event()
    await rig.discord.say(DM, ASK, PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.shows(DM, "All found.")
    await rig.quiet()
    (plan,) = [one for one in rig.discord.chats[DM] if "Find the hosts" in text_of(one)]
    assert "☑ 1. Find the hosts" in text_of(plan) and "3/3" in text_of(plan)
    assert plan["edits"] >= 2 and labels(plan) == []
    shown = [call.params for call in rig.discord.calls if call.name in ("send", "edit")]
    ticking = [json.dumps(one, ensure_ascii=False) for one in shown]
    assert any("◐" in one and "Stop" in one for one in ticking)


async def test_a_slash_command_is_answered_once(rig: DiscordRig) -> None:
    await rig.start()
    echo = await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.shows(DM, "discord:11")
    await rig.discord.wait(lambda: rig.discord.made("take_back"))
    await rig.quiet()
    assert rig.discord.whispers[echo] == [] and len(rig.discord.chats[DM]) == 1


async def test_the_echo_of_a_command_stays_until_it_is_kept(
    rig: DiscordRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.start()
    monkeypatch.setattr(receive, "MIN_PAUSE", 60.0)
    monkeypatch.setattr(rig.store, "take_in", _refuse)
    echo = await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.wait(lambda: rig.log.named("discord_not_stored"))
    assert vars(rig.log.named("discord_not_stored")[0])["why"]
    assert rig.discord.whispers[echo] == ["`/whoami`"] and not rig.discord.made("take_back")
    monkeypatch.undo()
    await rig.crash()
    rig.discord.fail("take_back", 404, code=10015)
    await rig.start()
    await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.shows(DM, "discord:11")
    await rig.discord.wait(lambda: rig.log.named("discord_echo_stays"))


async def test_a_slash_command(rig: DiscordRig) -> None:
    await rig.start()
    given = await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.shows(DM, f"discord:{PERSON}")
    assert rig.discord.answers[given]["type"] == 4, "answered at once, for that person only"
    given = await rig.discord.command(f"9000{ADMIN}", "mode", ADMIN, "auto")
    await rig.discord.wait(lambda: given in rig.discord.answers)
    told = rig.discord.answers[given]["data"]["content"]
    assert told == "`/mode auto`", "the whole command, and no mark of something that runs on"
    await rig.discord.shows(f"9000{ADMIN}", "only before something risky")


async def test_a_command_is_completed_while_it_is_typed(rig: DiscordRig) -> None:
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say("All found."))
    rig.model.gate = asyncio.Event()
    await rig.start()
    assert (await rig.discord.type(DM, "mode", PERSON, "int")) == ["interrupt"]
    assert (await rig.discord.type(DM, "jobs", PERSON))[:2] == ["run", "pause"]
    assert (await rig.discord.type(DM, "jobs", PERSON, "pause ")) == [], "there are none"
    assert (await rig.discord.type(DM, "mode", STRANGER)) == []
    assert (await rig.discord.type(DM, "pair", PERSON)) == []
    await rig.discord.say(DM, ASK, PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.shows(DM, "All found.")
    await rig.quiet()
    requests = len(rig.model.requests)
    assert (await rig.discord.type(DM, "todo", PERSON, "skip ")) == [], "nothing runs"
    assert len(rig.model.requests) == requests and not rig.host.sessions, "no turn was touched"


async def test_the_steps_of_the_plan_that_runs_are_offered(rig: DiscordRig) -> None:
    rig.model.script(CHAIN)
    await rig.start()
    await rig.discord.say(DM, ASK, PERSON)
    await rig.discord.shows(DM, "Find the hosts")
    rig.model.gate = asyncio.Event()
    assert (await rig.discord.type(DM, "todo", PERSON, "skip host")) == ["skip 1"]
    assert (await rig.discord.type(DM, "todo", STRANGER, "skip ")) == []
    await rig.crash()


async def test_earlier_conversations_are_offered_to_who_may_see_them(rig: DiscordRig) -> None:
    await rig.start()
    rig.model.script(Say("noted"), Say("of course"))
    await rig.discord.say(DM, "The cabin in the woods is free in May", PERSON)
    await rig.discord.shows(DM, "noted")
    await rig.quiet()
    assert (await rig.discord.type(DM, "resume", PERSON, "cabin")) == [], "it is the one that runs"
    await rig.discord.command(DM, "new", PERSON)
    await rig.discord.shows(DM, "New conversation.")
    await rig.quiet()
    title = "The cabin in the woods is free in May"
    assert (await rig.discord.type(DM, "resume", PERSON, "cabin")) == [title]
    assert (await rig.discord.type(DM, "resume", PERSON)) == [title]
    assert (await rig.discord.type(DM, "resume", PERSON, "boat")) == []
    assert (await rig.discord.type(DM, "resume", STRANGER, "cabin")) == []
    assert (await rig.discord.type(f"9000{ADMIN}", "resume", ADMIN, "cabin")) == []
    await rig.discord.command(DM, "resume", PERSON, title)
    await rig.discord.shows(DM, "Found in earlier conversations")


async def test_who_types_waits_for_no_slow_list(
    rig: DiscordRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.start()
    monkeypatch.setattr(receive, "TYPING_LIMIT", 0.05)
    never = asyncio.Event()

    async def slow(_sender: object) -> None:
        await never.wait()

    monkeypatch.setattr(rig.host.services.access, "learn", slow)
    assert (await rig.discord.type(DM, "mode", PERSON)) == []


async def test_what_only_admins_may_is_shown_to_few(rig: DiscordRig) -> None:
    await rig.start()
    await rig.discord.wait(lambda: rig.discord.commands)
    menu = {one["name"]: one for one in rig.discord.commands}
    assert menu["pair"]["default_member_permissions"] == "0"
    assert "default_member_permissions" not in menu["stop"]
    assert menu["help"]["options"] == [] and menu["mode"]["options"][0]["autocomplete"]
    assert menu["retry"]["options"] and menu["undo"]["options"], "both take words"
    refused = await rig.discord.command(DM, "pair", PERSON, "ABCD2345")
    assert rig.discord.gateway.connected and refused
    await rig.discord.shows(DM, "admin")


async def test_roles_of_a_server_say_who_may_what(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    rig.discord.roles = {STRANGER: ["501"], 78: ["502", "503"], 79: ["504"]}
    await rig.start(DISCORD_ALLOWED_USERS="@501", DISCORD_ADMIN_USERS="@503")
    task = (await rig.discord.say(CHANNEL, "@bot write it", STRANGER))["id"]
    card = await rig.carded(task)
    refused = await rig.discord.press(card, "Approve once", 79)
    assert "admin" in (await rig.discord.told(refused)).lower()
    await rig.discord.press(card, "Approve once", 78)
    await rig.discord.shows(task, "written")
    await rig.discord.say(CHANNEL, "@bot me too", 79)
    assert (await rig.discord.type(CHANNEL, "mode", 79)) == []
    assert "auto" in (await rig.discord.type(CHANNEL, "mode", STRANGER))
    await rig.quiet()
    assert set(rig.discord.titles) == {task}


async def test_a_role_decides_and_who_has_it_at_the_press_counts(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    rig.discord.roles = {PERSON: ["333"]}
    await rig.start(APPROVERS="discord:@333")
    task = (await rig.discord.say(CHANNEL, "@bot write it", PERSON))["id"]
    card = await rig.carded(task)
    (sent,) = [one for one in rig.discord.made("send") if "<@&333>" in str(one.params)]
    pings = sent.params["allowed_mentions"]
    assert pings == {"parse": [], "users": [], "roles": ["333"]}
    for person in (PERSON, FRIEND):
        refused = await rig.discord.press(card, "Approve once", person)
        assert "discord:@333" in await rig.discord.told(refused), "not asker, without the role"
    rig.discord.roles[FRIEND] = ["1", "333"]
    await rig.discord.press(card, "Approve once", FRIEND)
    await rig.discord.shows(task, "written")
    await rig.quiet()
    assert f"by U{FRIEND}" in text_of(card)


async def test_who_is_let_in_by_a_role_makes_a_job_and_decides_while_having_it(
    rig: DiscordRig,
) -> None:
    """Also over a restart: the message told the role, no list names the person."""
    rig.discord.roles = {FRIEND: ["333"]}
    rig.model.script(schedule(), Say("It stands."))
    await rig.start(DISCORD_ALLOWED_USERS="@333")
    task = (await rig.discord.say(CHANNEL, "@bot every day at nine", FRIEND))["id"]
    card = await rig.carded(task, "Confirm")
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.start(DISCORD_ALLOWED_USERS="@333")
    rig.discord.roles = {}
    refused = await rig.discord.press(card, "Confirm", FRIEND)
    assert "I do not know you" in await rig.discord.told(refused), "without the role"
    assert await jobs_of(rig).store.list_jobs() == ()
    rig.discord.roles = {FRIEND: ["333"]}
    await rig.discord.press(card, "Confirm", FRIEND)
    await rig.discord.shows(task, "It stands.")
    await rig.quiet()
    (job,) = await jobs_of(rig).store.list_jobs()
    rig.model.script(Say("Two are open."))
    assert await jobs_of(rig).book.run_now(job.id, "1")
    await rig.discord.shows(task, "Two are open.")
    await rig.quiet()


@pytest.mark.parametrize("left", [False, True])
async def test_a_job_of_who_lost_the_role_does_not_run(rig: DiscordRig, left: bool) -> None:
    """Nothing was said or pressed since: Discord is asked when the job is due."""
    rig.discord.roles = {FRIEND: ["333"]}
    rig.model.script(schedule(), Say("It stands."))
    await rig.start(DISCORD_ALLOWED_USERS="@333")
    task = (await rig.discord.say(CHANNEL, "@bot every day at nine", FRIEND))["id"]
    await rig.discord.press(await rig.carded(task, "Confirm"), "Confirm", FRIEND)
    await rig.discord.shows(task, "It stands.")
    await rig.quiet()
    (job,) = await jobs_of(rig).store.list_jobs()
    asked = len(rig.model.requests)
    rig.discord.roles = {}
    rig.discord.left |= {FRIEND} if left else set()
    assert await jobs_of(rig).book.run_now(job.id, "1")
    await rig.discord.shows(task, "may no longer use the agent")
    assert len(rig.model.requests) == asked
    (run,) = await jobs_of(rig).store.runs(job.id, 5)
    assert run.reason == "no_rights"


async def test_a_private_word_waits_for_the_answer_to_its_press(rig: DiscordRig) -> None:
    """Discord takes no further word to an interaction before that."""
    rig.model.script(write("a.txt"))
    await rig.start()
    thread = (await rig.discord.say(CHANNEL, "@bot write it", PERSON))["id"]
    card = await rig.carded(thread)
    rig.discord.hold("answer")
    refused = await rig.discord.press(card, "Approve once", STRANGER)
    await rig.until(lambda: rig.log.named("press_refused") or rig.discord.made("whisper"))
    await rig.quiet()
    assert not rig.discord.made("whisper")
    rig.discord.release("answer")
    assert await rig.discord.told(refused)


async def test_a_plan_is_not_changed_by_who_lost_the_role(rig: DiscordRig) -> None:
    rig.discord.roles = {FRIEND: ["333"]}
    rig.model.script(CHAIN)
    rig.model.gate = asyncio.Event()
    await rig.start(DISCORD_ALLOWED_USERS="@333")
    task = (await rig.discord.say(CHANNEL, f"@bot {ASK}", FRIEND))["id"]
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    rig.model.gate = asyncio.Event()
    card = await rig.carded(task, "Edit")
    rig.discord.roles = {}
    for label in ("Edit", "Stop"):
        refused = await rig.discord.press(card, label, FRIEND)
        assert "I do not know you" in await rig.discord.told(refused), label
    assert rig.model.inflight, "it goes on"
    rig.model.gate.set()


# ---- going on ------------------------------------------------------------------------------


async def test_a_press_on_an_old_message_after_a_restart(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.discord.say(DM, "and this came meanwhile", PERSON)
    await rig.start()
    assert len(rig.discord.gateway.sessions) == 1, "the session went on"
    await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(DM, "ack write it")
    await rig.discord.shows(DM, "ack and this came meanwhile")
    await rig.quiet()
    assert (rig.dm / "a.txt").exists()


async def _reconnect(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(RECONNECT)


async def _invalid(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(INVALID, resumable=False)


async def _broken(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(code=4000)


@pytest.mark.parametrize("end", [_reconnect, _invalid, _broken])
async def test_a_lost_connection_is_made_again(
    rig: DiscordRig, end: Callable[[DiscordRig], Any]
) -> None:
    await rig.start()
    await rig.discord.say(DM, "one", PERSON)
    await rig.discord.shows(DM, "ack one")
    before = len(rig.discord.gateway.ops)
    await end(rig)
    lost = [op for _, op in rig.discord.gateway.ops[before:]]
    if end is not _invalid:  # what is said while nobody listens comes with the session
        await rig.discord.say(DM, "two", PERSON)
    await rig.discord.wait(
        lambda: {2, 6} & {op for _, op in rig.discord.gateway.ops[before + len(lost) :]}
    )
    await rig.discord.wait(lambda: rig.discord.gateway.connected)
    if end is _invalid:
        await rig.discord.say(DM, "two", PERSON)
    await rig.discord.shows(DM, "ack two")
    await rig.quiet()
    assert rig.read() == ["ack one", "ack two"]


async def test_events_that_come_three_times_in_any_order_are_one_turn(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(DM, "written")
    count = len(list(rig.discord.gateway.sessions.values())[0].events)
    await rig.discord.gateway.again([-n for n in range(1, count)])
    await rig.discord.gateway.again([-n for n in range(count - 1, 0, -1)])
    await rig.discord.say(DM, "the end", PERSON)
    await rig.discord.shows(DM, "ack the end")
    await rig.quiet()
    assert rig.seen(role="user") == ["write it", "the end"]
    assert len(rig.model.requests) == 3
    assert sum("written" in one for one in rig.read()) == 1


async def test_a_press_is_acknowledged_while_the_store_is_slow(
    rig: DiscordRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.quiet()
    slow, accept = asyncio.Event(), rig.host.accept

    async def late(inbounds: Any) -> None:
        await slow.wait()
        await accept(inbounds)

    monkeypatch.setattr(rig.host, "accept", late)
    pressed = await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.wait(lambda: pressed in rig.discord.answers)
    assert not (rig.dm / "a.txt").exists()
    slow.set()
    await rig.discord.shows(DM, "written")
    await rig.quiet()


async def test_a_send_that_was_cut_off_stands_there_once(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.drop("send")
    await rig.discord.say(DM, "hello", PERSON)
    await rig.discord.shows(DM, "ack hello")
    await rig.quiet()
    assert rig.read() == ["ack hello"], "once, and without a word of doubt"
    assert len({call.params["nonce"] for call in rig.discord.made("send")}) == 1


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_crash_in_a_send_leaves_one_message(rig: DiscordRig, arrived: bool) -> None:
    rig.model.script(Say("Good day."), write("a.txt"))
    await rig.start()
    rig.discord.hold("send")
    await rig.discord.say(DM, "hello", PERSON)
    await rig.discord.wait(lambda: rig.discord.made("send"))
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    if arrived:
        rig.discord.release("send")
        await rig.discord.shows(DM, "Good day.")
    else:
        rig.discord.forget("send")
    await rig.start()
    await rig.discord.shows(DM, "Good day.")
    await rig.quiet()
    assert rig.read() == ["Good day."], "once, and without a word of doubt"
    assert len({call.params["nonce"] for call in rig.discord.made("send")}) == 1


async def test_what_a_crash_left_is_made_to_show_what_is_wanted_now(rig: DiscordRig) -> None:
    rig.model.script(Say("One two three four five six", words=6), Say("Another answer."))
    rig.model.gate = asyncio.Event()
    await rig.start()
    rig.discord.hold("send")
    await rig.discord.say(DM, "hello", PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.wait(lambda: rig.discord.made("send"))
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    rig.discord.release("send")
    await rig.discord.wait(lambda: rig.discord.chats[DM])
    await rig.start()
    await rig.quiet()
    assert len(rig.discord.chats[DM]) == 1
    assert rig.read() in (["One two three four five six"], ["Another answer."])


async def test_long_after_a_crash_a_send_is_in_doubt(
    rig: DiscordRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        DiscordAdapter,
        "abilities",
        replace(DiscordAdapter.abilities, edit_interval=0.05, recalls=1e-9),
    )
    await rig.start()
    rig.discord.hold("send")
    await rig.discord.say(DM, "hello", PERSON)
    await rig.discord.wait(lambda: rig.discord.made("send"))
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    rig.discord.release("send")
    await rig.start()
    await rig.discord.shows(DM, "Possibly sent twice")
    await rig.quiet()


async def test_a_refused_bot_leaves_the_rest_alone(rig: DiscordRig) -> None:
    rig.discord.gateway.refuse = 4014
    await Rig.start(rig)
    await rig.until(lambda: rig.log.named("adapter_gave_up"))
    assert "Message Content Intent" in rig.log.named("adapter_gave_up")[0].why  # type: ignore[attr-defined]
