"""Quick commands: a word that an operator made stands for a text, or for a command of ours."""

import json

import pytest

from gateway.settings import Settings, SettingsError
from gateway.wiring.features import load_features
from tests.stories.rig import ADMIN, PERSON, Rig

QUICK = json.dumps({
    "standup": "What did I do yesterday?",
    "translate": "Translate into German: {} (exactly)",
    "deep": "/mode research",
    "grant": "/pair",
    "again": "/again",
    "odd": "/nothing",
})  # fmt: skip


async def test_a_word_stands_for_a_text(rig: Rig) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    rig.telegram.say(PERSON, "/standup")
    await rig.shows("ack What did I do yesterday?")
    rig.telegram.say(PERSON, "/standup in the garden")
    await rig.shows("in the garden")
    rig.telegram.say(PERSON, "/translate good day")
    await rig.shows("ack Translate into German: good day (exactly)")
    await rig.quiet()
    assert rig.seen(-1, "user")[1] == "What did I do yesterday?\n\nin the garden"


async def test_a_word_stands_for_a_command_that_its_person_may_give(rig: Rig) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    rig.telegram.say(PERSON, "/deep")
    await rig.shows("Mode: research")
    rig.telegram.say(PERSON, "/grant 123")
    await rig.telegram.wait(lambda: len(rig.said()) == 2)
    assert "admin" in rig.said()[-1].lower()
    for word, named in (("again", "again"), ("odd", "nothing")):
        rig.telegram.say(PERSON, f"/{word}")
        await rig.shows(f"There is no command /{named}")
    await rig.quiet()
    assert rig.model.requests == []


async def test_help_and_menus_show_them(rig: Rig) -> None:
    await rig.start(QUICK_COMMANDS=QUICK)
    rig.telegram.say(ADMIN, "/help")
    assert "What did I do yesterday?" in (await rig.shows("standup", ADMIN))["text"]
    assert {"command": "deep", "description": "/mode research"} in rig.telegram.commands
    await rig.quiet()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "write JSON such as"),
        ("nonsense", "write JSON such as"),
        ('{"Stand Up": "x"}', "small letters"),
        ('{"a": " "}', "at most 8,000"),
        (json.dumps({f"c{n}": "x" for n in range(31)}), "may be 30"),
    ],
)
def test_what_cannot_be_one_is_refused(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Settings.read({"QUICK_COMMANDS": text})


def test_a_name_of_ours_is_refused() -> None:
    with pytest.raises(SettingsError, match="QUICK_COMMANDS.*help"):
        load_features(quick=(("help", "x"),))
