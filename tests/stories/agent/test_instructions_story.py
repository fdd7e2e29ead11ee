"""Instructions that hold for good: the operator's, a platform's, a profile's, a conversation's."""

import pytest

from gateway.declaration import SettingsError
from gateway.features.instructions.commands import MAX_CHOSEN
from gateway.services.operator_instructions import MAX_INSTRUCTIONS, OperatorInstructions
from tests.fakes.model_server import Call, Say
from tests.sampling import dice
from tests.stories.rig import ADMIN, GROUP, PERSON, Rig, mention


async def command(rig: Rig, line: str, shows: str) -> None:
    rig.telegram.say(PERSON, line)
    await rig.shows(shows)
    await rig.quiet()


async def ask(rig: Rig, text: str) -> str:
    """The system text that the model was sent with `text`."""
    asked = len(rig.model.requests)
    rig.telegram.say(PERSON, text)
    await rig.until(lambda: len(rig.model.requests) > asked)
    await rig.quiet()
    return rig.sent(role="system")[0]


async def test_all_that_hold_here_stand_in_the_prompt_in_order(rig: Rig) -> None:
    rig.home.mkdir(parents=True)
    for name in ("instructions", "instructions.telegram", "instructions.discord"):
        (rig.home / f"{name}.md").write_text(f"from {name}\n")
    (rig.home / "instructions.data.md").write_text("from data")
    await rig.start(AGENT_INSTRUCTIONS="from the setting")
    await command(rig, "/instructions", "no instructions of its own")
    await command(rig, "/instructions set Answer\nin rhymes.", "Saved")
    system = await ask(rig, "hello")
    parts = ("from the setting\n\nfrom instructions\n\nfrom instructions.telegram\n\n[Instr",)
    parts += ("each of its requests.]\nAnswer\nin rhymes.",)
    assert all(part in system for part in parts), system
    assert "discord" not in system and "from data" not in system
    await command(rig, "/mode data", "data")
    assert "from instructions.telegram\n\nfrom data\n\n[" in await ask(rig, "look")
    await command(rig, "/instructions", "Answer\nin rhymes.")
    await command(rig, "/instructions clear", "no longer has")
    assert "rhymes" not in await ask(rig, "hello")


async def test_a_change_during_a_turn_holds_from_the_next_message_on(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Call("run_command", '{"command": "touch a"}'))
    rig.telegram.say(PERSON, "hello")
    card = await rig.card()
    await command(rig, "/instructions set Answer in rhymes.", "Saved")
    await rig.crash()
    await rig.start()
    rig.model.script(Say("done"))
    rig.press(card, "Approve")
    await rig.shows("done")
    await rig.quiet()
    one, other = (request.body["messages"] for request in rig.model.requests)
    assert other[: len(one)] == one
    assert "rhymes" in await ask(rig, "hello")


async def test_what_is_too_long_is_refused_with_its_size(rig: Rig) -> None:
    await rig.start()
    await command(rig, f"/instructions set {'x' * (MAX_CHOSEN + 1)}"[:4090], "4,001 characters")
    await command(rig, "/instructions", "no instructions of its own")
    await rig.stop()
    with pytest.raises(SettingsError, match="these are 8,001 characters"):
        await rig.start(AGENT_INSTRUCTIONS="x" * (MAX_INSTRUCTIONS + 1))
    file = rig.home / "instructions.md"
    file.write_text("ä" * (MAX_INSTRUCTIONS + 1))
    found = OperatorInstructions(rig.home)
    with pytest.raises(SettingsError, match="it may have 8,000 characters"):
        found.load("")
    file.write_bytes(b"\xff")
    with pytest.raises(ExceptionGroup) as refused:
        await rig.start()
    assert "instructions.md: write it in UTF-8" in str(refused.value.exceptions[0])
    file.write_text("ä" * MAX_INSTRUCTIONS)
    found.load("from the setting")
    assert found.select("telegram") == ("from the setting", "ä" * MAX_INSTRUCTIONS)


async def test_in_a_group_admins_change_what_holds_for_all(rig: Rig) -> None:
    await rig.start(TELEGRAM_ALLOWED_CHATS="*")
    rig.telegram.say(GROUP, "/instructions@test_bot set Be kind.", PERSON, True)
    await rig.shows("Only an admin can change a group's instructions.", GROUP)
    rig.telegram.say(GROUP, "/instructions@test_bot set Be kind.", ADMIN, True)
    await rig.shows("Saved", GROUP)
    rig.telegram.say(GROUP, "@test_bot hello", PERSON, True, **mention(""))
    await rig.until(lambda: rig.model.requests)
    assert rig.sent(role="system")[0].endswith("Be kind.")


async def test_a_file_of_the_workspace_is_data_until_a_person_takes_it(rig: Rig) -> None:
    await rig.start()
    path = rig.workspace() / "AGENTS.md"
    path.parent.mkdir(parents=True)
    path.write_text("Use tabs.")
    assert "Use tabs." not in await ask(rig, "hello")
    await command(rig, "/instructions file none.md", "There is no text file none.md")
    await command(rig, "/instructions file ../../turnkeeper.db", "There is no text file")
    await command(rig, "/instructions file AGENTS.md", "Use tabs.")
    assert (await ask(rig, "hello")).endswith("Use tabs.")
    path.write_text("Use spaces.")
    assert (await ask(rig, "hello")).endswith("Use tabs."), "what was approved"
    for n, quoted in enumerate(("`AGENTS.md`", '"AGENTS.md"', "\u201cAGENTS.md\u201d")):
        path.write_text(f"Use {n} spaces.")
        await command(rig, f"/instructions file {quoted}", f"Use {n} spaces.")


FILES: dict[str, tuple[bytes, str]] = {
    "mark.md": ("\ufeffUse täbs.\r\nAlways.".encode(), "Use täbs.\nAlways."),
    "western.md": ("Use täbs für Stücke.".encode("latin-1"), "Use täbs für Stücke."),
    "wide.md": ("\ufeffUse täbs.".encode("utf-16-le"), "Use täbs."),
    "picture.md": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, ""),
    "zero.md": (b"Use\0tabs", ""),
    "empty.md": (b"", ""),
    "blank.md": ("\ufeff \r\n".encode(), ""),
    "long.md": (b"x" * 10_000_000, "16,000 characters"),
}


async def test_a_files_size_is_told_as_far_as_it_was_counted(rig: Rig) -> None:
    await rig.start()
    path, chance = rig.workspace() / "some.md", dice("sizes of files")
    path.parent.mkdir(parents=True)
    for size in (4_001, 16_000, 16_001, *chance.sample(range(4_002, 90_000), 6)):
        path.write_text(chance.choice("xä字") * size)
        told = f"That is {size:,} char" if size <= 16_000 else "That is more than 16,000 char"
        await command(rig, "/instructions file some.md", told)
        rig.telegram.say(PERSON, "/new")
        await rig.shows("New conversation")
    path.write_text("x" * 4_000)
    await command(rig, "/instructions file some.md", "Saved")


@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_taken_as_the_text_that_it_is(rig: Rig, name: str) -> None:
    """Whatever wrote it; what is no text is none."""
    data, told = FILES[name]
    await rig.start()
    path = rig.workspace() / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    await command(rig, f"/instructions file {name}", told or f"There is no text file {name}")
    system = await ask(rig, "hello")
    assert ("[Instructions of" in system) == (bool(told) and "characters" not in told)
    assert system.endswith(told) or "characters" in told
    assert "\ufffd" not in system and "\0" not in system and "\r" not in system
