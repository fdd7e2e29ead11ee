"""Who may talk, over Telegram: strangers, viewers, groups, quotas, pairing and linking in chat."""

import re
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.command_texts import drop_marks
from gateway.messages import Conversation, MessageReceived, Sender
from gateway.ops import control
from gateway.ports import note_nowhere
from gateway.settings import Settings
from gateway.texts import say
from gateway.wiring import assembly
from tests.fakes.model_server import Say
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PERSON,
    STRANGER,
    Rig,
    mention,
    write,
)

OTHER_GROUP = -1008
TO_BOT = mention("@test_bot")


def call(rig: Rig, text: str, user: int = PERSON, **more: object) -> dict:
    """Words in the group that name the bot."""
    return rig.telegram.say(GROUP, f"@test_bot {text}", user=user, **(TO_BOT | more))


async def answered(rig: Rig, count: int, chat: int = GROUP) -> list[str]:
    """What the chat shows once it holds `count` messages and nothing is under way."""
    await rig.telegram.wait(lambda: len(rig.said(chat)) >= count, 15)
    await rig.quiet()
    assert len(rig.said(chat)) == count, rig.said(chat)
    return rig.said(chat)


def code_in(text: str) -> str:
    found = re.search(r"\b[A-Z0-9]{8}\b", text)
    assert found is not None, text
    return found[0]


# ---- roles ---------------------------------------------------------------------------------


async def test_of_a_stranger_no_time_zone_is_kept(rig: Rig) -> None:
    await rig.start()
    for user in (PERSON, STRANGER):
        sender = Sender(platform="telegram", id=str(user), zone="Asia/Tokyo")
        where = Conversation(platform="telegram", account="4242", channel=str(user), private=True)
        said = MessageReceived(
            conversation=where, sender=sender, event=f"e{user}", message=f"m{user}", text="hello"
        )
        await rig.host.accept([said])
    kept = [await rig.store.get(f"zonetold:telegram:{user}") for user in (PERSON, STRANGER)]
    assert kept == [b"Asia/Tokyo", None]


async def test_a_viewer_reads_and_does_nothing(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(TELEGRAM_VIEWER_USERS=str(STRANGER), GROUP_POLICY="always")
    rig.telegram.say(STRANGER, "hello")
    await rig.shows(say("not_allowed"), STRANGER)
    rig.telegram.say(STRANGER, "/status")
    await rig.shows("Idle", STRANGER)
    rig.telegram.say(STRANGER, "/new")
    await answered(rig, 3, STRANGER)
    rig.telegram.say(GROUP, "said among people", user=STRANGER)
    call(rig, "write it")
    card = await rig.card(GROUP)
    assert await rig.told(rig.press(card, "Approve once", STRANGER)) == say("not_yours")
    for command in ("/approve", "/deny no", "/mode auto", "/pair ABCD2345"):
        rig.telegram.say(GROUP, command, user=STRANGER)
    said = await answered(rig, 6)
    assert said.count(say("not_allowed")) == 3
    assert said.count(say("admins_only", role="viewer")) == 1
    assert len(rig.model.requests) == 1 and not (rig.workspace(GROUP) / "a.txt").exists()


async def test_rights_of_commands(rig: Rig) -> None:
    await rig.start(COMMAND_RIGHTS="new=admin,whoami=user", TELEGRAM_VIEWER_USERS=str(STRANGER))
    for person, count in ((PERSON, 1), (ADMIN, 1)):
        rig.telegram.say(person, "/new")
        await answered(rig, count, person)
    assert rig.said(PERSON) == [say("admins_only", role="user")] and rig.said(ADMIN) == [say("new")]
    rig.telegram.say(STRANGER, "/whoami")
    assert await answered(rig, 1, STRANGER) == [say("not_allowed")]
    rig.telegram.say(PERSON, "/help")
    assert "/new" not in (await answered(rig, 2, PERSON))[1]


def test_rights_of_a_command_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNKEEPER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TURNKEEPER_PORT", "0")
    monkeypatch.setenv("COMMAND_RIGHTS", "modle=admin")
    assert main(["run"]) == 2
    assert "COMMAND_RIGHTS=modle: there is no command /modle" in capsys.readouterr().err


# ---- groups --------------------------------------------------------------------------------


async def test_strangers_in_groups_get_nothing_under_any_policy(rig: Rig) -> None:
    await rig.start(GROUP_POLICY="always")
    rig.telegram.say(GROUP, "let me in", user=STRANGER)
    call(rig, "and me", user=STRANGER)
    rig.telegram.say(GROUP, "/link", user=STRANGER)
    rig.telegram.say(GROUP, "no name needed", user=PERSON)
    assert "ack" in (await answered(rig, 1))[0]
    assert not any("let me in" in text or "and me" in text for text in rig.seen())


async def test_the_agent_works_in_the_groups_that_are_set(rig: Rig) -> None:
    await rig.start(TELEGRAM_ALLOWED_CHATS=str(GROUP))
    rig.telegram.say(OTHER_GROUP, "@test_bot hello", user=ADMIN, **TO_BOT)
    rig.telegram.say(OTHER_GROUP, "/status", user=ADMIN)
    call(rig, "hello")
    rig.telegram.say(PERSON, "in private")
    await answered(rig, 1)
    await answered(rig, 1, PERSON)
    assert rig.said(OTHER_GROUP) == []


async def test_a_thread_is_followed_once_it_was_addressed(rig: Rig) -> None:
    await rig.start(GROUP_POLICY="thread")
    rig.telegram.say(GROUP, "zebra one", user=PERSON, thread=5)
    call(rig, "from a stranger", user=STRANGER, thread=5)
    rig.telegram.say(GROUP, "zebra two", user=PERSON, thread=5)
    call(rig, "hello", thread=5)
    await answered(rig, 1)
    await rig.crash()
    await rig.start(GROUP_POLICY="thread")
    rig.telegram.say(GROUP, "go on", user=FRIEND, thread=5)
    rig.telegram.say(GROUP, "not me", user=STRANGER, thread=5)
    rig.telegram.say(GROUP, "another topic", user=PERSON, thread=6)
    rig.telegram.say(GROUP, "no topic", user=PERSON)
    assert "go on" in (await answered(rig, 2))[1]
    assert not any("zebra" in text for text in rig.seen())


async def test_each_person_has_a_line_of_their_own(rig: Rig) -> None:
    await rig.start(GROUP_SCOPE="per_person")
    call(rig, "my secret is blue")
    await answered(rig, 1)
    call(rig, "what is the secret?", user=FRIEND)
    await answered(rig, 2)
    assert not any("blue" in text for text in rig.seen())
    call(rig, "and mine?")
    await answered(rig, 3)
    assert any("blue" in text for text in rig.seen())


async def test_a_press_reaches_the_line_in_which_it_was_asked(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(GROUP_SCOPE="per_person")
    call(rig, "write it")
    card = await rig.card(GROUP)
    await rig.quiet()
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == say("not_yours")
    rig.telegram.say(GROUP, "/approvals", user=FRIEND)
    await rig.shows(say("no_approvals"), GROUP)
    assert await rig.told(rig.press(card, "Approve once", ADMIN)) == ""
    await rig.shows("written", GROUP)


# ---- quotas --------------------------------------------------------------------------------


async def test_a_quota_ends_turns_and_says_so(rig: Rig) -> None:
    quota = {"QUOTA_TURNS_PER_HOUR": "2"}
    await rig.start(**quota)
    rig.telegram.say(PERSON, "one")
    await rig.shows("ack one")
    call(rig, "two")
    await rig.shows("ack", GROUP)
    await rig.quiet()
    await rig.crash()
    await rig.start(**quota)
    rig.telegram.say(PERSON, "three")
    await rig.shows("the limit of 2 requests an hour")
    assert "again in 60 minutes" in rig.said()[-1]
    rig.telegram.say(FRIEND, "mine")
    await rig.shows("ack mine", FRIEND)
    for n in range(3):
        rig.telegram.say(ADMIN, f"admin {n}")
        await rig.shows(f"ack admin {n}", ADMIN)
    await rig.quiet()
    assert len(rig.model.requests) == 6


# ---- pairing and linking -------------------------------------------------------------------


async def test_an_admin_lets_a_stranger_in_and_out_again(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(STRANGER, "hello")
    code = code_in((await rig.shows("I do not know you yet", STRANGER))["text"])
    rig.telegram.say(PERSON, f"/pair {code}")
    await rig.shows(say("admins_only", role="user"))
    rig.telegram.say(ADMIN, f"/pair {code}")
    await rig.shows(say("paired", name=f"U{STRANGER}"), ADMIN)
    await rig.shows(drop_marks(say("welcome")), STRANGER)
    rig.telegram.say(STRANGER, "hello again")
    await rig.shows("ack hello again", STRANGER)
    rig.telegram.say(PERSON, f"/unpair {STRANGER}")
    rig.telegram.say(ADMIN, f"/unpair {STRANGER}")
    await rig.shows(say("unpaired", person=f"telegram:{STRANGER}"), ADMIN)
    rig.telegram.say(STRANGER, "and now?")
    known = await answered(rig, 4, STRANGER)
    assert "I do not know you yet" in known[-1] and code not in known[-1]


async def test_pairing_while_no_gateway_runs_and_in_another_process(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(STRANGER, "hello")
    code = code_in((await rig.shows("I do not know you yet", STRANGER))["text"])
    await rig.quiet()
    settings = Settings.read(rig.env(), rig.folder)
    store = await assembly.open_store(settings)
    pairing = assembly.make_pairing_alone(settings, store, note_nowhere)
    operations = control.Operations(store=store, pairing=pairing)
    asked = control.ControlRequest(command="pair", words=(code,))
    assert (await operations.answer(asked)).text == say("paired", name=f"U{STRANGER}")
    rig.telegram.say(STRANGER, "let in elsewhere")
    await rig.shows("ack let in elsewhere", STRANGER)
    await rig.shows(drop_marks(say("welcome")), STRANGER)
    asked = control.ControlRequest(command="unpair", words=(f"telegram:{STRANGER}",))
    assert (await operations.answer(asked)).ok
    await store.close()
    await rig.stop()
    await rig.start()
    rig.telegram.say(STRANGER, "out again")
    await rig.telegram.wait(lambda: len(rig.said(STRANGER)) == 4, 15)
    assert "I do not know you yet" in rig.said(STRANGER)[-1]


async def test_linked_accounts_decide_for_each_other(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"), write("b.txt"), Say("again"))
    await rig.start()
    rig.telegram.say(GROUP, "/link", user=PERSON)
    await rig.shows(say("link_private"), GROUP)
    rig.telegram.say(PERSON, "/link")
    code = code_in((await rig.shows("Your code is"))["text"])
    rig.telegram.say(PERSON, f"/link {code}")
    await rig.shows(say("link_same"))
    rig.telegram.say(FRIEND, f"/link {code}")
    await rig.shows(f"Linked with telegram:{PERSON}", FRIEND)
    rig.telegram.say(PERSON, "/whoami")
    await rig.shows(f"Linked with: telegram:{FRIEND}.")
    call(rig, "write it")
    card = await rig.card(GROUP)
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == ""
    await rig.shows("written", GROUP)
    rig.telegram.say(FRIEND, "/link off")
    await rig.shows(say("parted"), FRIEND)
    call(rig, "once more")
    await rig.telegram.wait(lambda: "b.txt" in str(rig.cards(GROUP)), 15)
    word = await rig.told(rig.press(rig.cards(GROUP)[-1], "Approve once", FRIEND))
    assert word == say("not_yours")


async def test_a_linked_account_keeps_its_own_role(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(ADMIN, "/link")
    code = code_in((await rig.shows("Your code is", ADMIN))["text"])
    rig.telegram.say(PERSON, f"/link {code}")
    await rig.shows(f"Linked with telegram:{ADMIN}")
    rig.telegram.say(PERSON, "/mode auto")
    await rig.shows(say("admins_only", role="user"))


async def test_guessing_link_codes_locks_out_of_pairing_too(rig: Rig) -> None:
    await rig.start()
    for n in range(5):
        rig.telegram.say(ADMIN, f"/link AAAAAAA{n}")
    await rig.shows(say("pair_locked"), ADMIN)
    rig.telegram.say(ADMIN, "/pair AAAABBBB")
    said = await answered(rig, 6, ADMIN)
    assert said == [say("pair_wrong")] * 4 + [say("pair_locked")] * 2
