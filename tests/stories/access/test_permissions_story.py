"""What was allowed for longer is told in plain words and taken back, by a button or by its number.
Over Telegram, the real gateway and model SDK."""

import json

import pytest

from gateway.command_texts import drop_marks
from gateway.features.approvals.grants import describe_rule
from gateway.store.rows import Rule
from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.isolated import isolate
from tests.stories.rig import (
    FRIEND,
    GROUP,
    PERSON,
    Json,
    Rig,
    labels,
    mention,
    write,
)

LS = Call("run_command", '{"command": "ls"}')


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    isolate(monkeypatch)
    return rig


async def allowed(rig: Rig, call: Call, label: str, chat: int = PERSON) -> None:
    """Ask for something that needs a yes, and give it so."""
    rig.model.script(call, Say("done"))
    count = rig.said(chat).count("done")
    if chat == GROUP:
        rig.telegram.say(chat, "@test_bot do it", user=PERSON, **mention("@test_bot"))
    else:
        rig.telegram.say(chat, "do it")
    rig.press(await rig.card(chat), label)
    await rig.until(lambda: rig.said(chat).count("done") > count)
    await rig.quiet()


async def listed(rig: Rig, chat: int = PERSON) -> Json:
    at = "@test_bot" if chat == GROUP else ""
    rig.telegram.say(chat, f"/permissions{at}", PERSON, chat == GROUP)
    card = await rig.shows(say("grants_are"), chat)
    await rig.quiet()
    return card


async def test_it_says_in_words_what_is_allowed_and_takes_it_back(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.telegram.say(PERSON, "/permissions")
    await rig.shows(say("grants_none"))
    await allowed(rig, LS, "Always")
    await allowed(rig, write("a.txt"), "Approve in this")
    card = await listed(rig)
    first, second = (line for line in card["text"].splitlines() if line[:2] in ("1.", "2."))
    assert first.startswith("1. exactly ls, always, in all private chats, since 20")
    assert first.endswith("approved by U11"), first
    assert second.startswith(
        "2. Write a file: any call (low risk), in this conversation, until /new"
    )
    assert "telegram:" not in card["text"] and " · as of " not in card["text"]
    assert labels(card) == ["Revoke 1", "Revoke 2"]
    press = rig.press(card, "Revoke 1")
    assert await rig.told(press) == say("grant_dropped", what="exactly ls")
    await rig.until(lambda: labels(card) == ["Revoke 1"])
    assert "1. Write a file" in card["text"]
    rig.model.script(LS, Say("asked again"))
    rig.telegram.say(PERSON, "do it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("asked again")
    await rig.quiet()
    await rig.crash()
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.telegram.say(PERSON, "/permissions drop 2")
    await rig.shows(drop_marks(say("grants_usage")))
    rig.telegram.say(PERSON, "/permissions drop 1")
    await rig.shows("Revoked: Write a file")
    await rig.until(lambda: not card.get("reply_markup") and say("grants_none") in card["text"])
    whats = [what for _, what, _ in await rig.audit()]
    assert whats.count("rule_dropped") == 2


async def test_late_and_double_presses_take_back_nothing_else(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="auto")
    await allowed(rig, LS, "Always")
    await allowed(rig, write("a.txt"), "Approve in this")
    card = await listed(rig)
    tokens = [b["callback_data"] for row in card["reply_markup"]["inline_keyboard"] for b in row]
    for word in (say("grant_dropped", what="exactly ls"), say("grant_gone")):
        press = rig.telegram.press(PERSON, card["message_id"], tokens[0], PERSON)
        assert await rig.told(press) == word
    rig.telegram.say(PERSON, "/new")
    await rig.shows("New conversation")
    late = rig.telegram.press(PERSON, card["message_id"], tokens[1], PERSON)
    assert await rig.told(late) == say("grant_gone")
    await rig.until(lambda: not card.get("reply_markup"))


async def test_in_a_group_it_says_for_whom_and_others_take_nothing_back(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="auto")
    await allowed(rig, write("a.txt"), "Approve in this", GROUP)
    card = await listed(rig, GROUP)
    assert f"for requests of telegram:{PERSON}" in card["text"]
    assert await rig.told(rig.press(card, "Revoke 1", FRIEND)) == say("grant_not_yours")
    rig.telegram.say(GROUP, "/permissions@test_bot drop 1", FRIEND, True)
    await rig.shows(say("grant_not_yours"), GROUP)
    assert labels(card) == ["Revoke 1"]


async def test_in_german(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="auto")
    await allowed(rig, LS, "Always")
    ann = {"id": PERSON, "is_bot": False, "first_name": "U11", "language_code": "de"}
    rig.telegram.say(PERSON, "/permissions", **{"from": ann})
    card = await rig.shows("Ohne Nachfrage erlaubt:")
    assert "1. genau ls, immer, in allen privaten Chats, seit 20" in card["text"]
    assert labels(card) == ["1 zurücknehmen"]


async def test_what_is_allowed_is_shown_sign_for_sign(rig: Rig) -> None:
    """A command is no markdown: a star that is not shown is another command, and what looks like a
    link or like the next rule is neither."""
    await rig.start(SANDBOX_PROVIDER="auto")
    command = "ls *a* `b` [c](https://evil.example) __d__"
    await allowed(rig, Call("run_command", json.dumps({"command": command})), "Always")
    await allowed(rig, LS, "Always")
    card = await listed(rig)
    lines = [line for line in card["text"].splitlines() if line[:1].isdecimal()]
    assert command in lines[0], card["text"]
    assert lines[1].startswith("2. exactly ls,")
    assert not any("url" in entity for entity in card["entities"])
    rig.telegram.say(PERSON, "/permissions drop 1")
    await rig.shows(f"Revoked: exactly {command}, while")


def test_a_name_is_no_other_rule() -> None:
    rule = Rule(
        tool="run_command", pattern="risk:low", person="telegram:11",
        by="Eve\n2. exactly rm *x*",
    )  # fmt: skip
    told = describe_rule(rule, "en", private=True)
    assert "\n" not in told and told.endswith("`Eve 2. exactly rm *x*`")
