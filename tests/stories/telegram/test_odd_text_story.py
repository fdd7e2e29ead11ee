"""Texts and names of any bytes, from everywhere they come in, through whole turns."""

import json
import os
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, Rig, labels

CONTROLS = "".join(map(chr, (*range(1, 9), 11, 12, *range(14, 32), *range(0x7F, 0xA0))))
ODD = f"a{CONTROLS}\u202eb\u2066\ufffe\uffffc"
HALVES = "half \ud83d and \udc00 nul \0 end"
BYTES = [bytes([n]) for n in range(1, 256) if n != 0x2F]


def plant(workspace: Path) -> int:
    workspace.mkdir(parents=True, exist_ok=True)
    for one in BYTES:
        (Path(os.fsdecode(os.fsencode(workspace) + b"/n" + one + b".txt"))).write_text("found")
    return len(BYTES)


async def test_a_folder_of_odd_names_is_listed_and_opened(rig: Rig) -> None:
    await rig.start()
    count = plant(rig.workspace(ADMIN))
    rig.model.script(
        Call("list_files", '{"path": "."}'),
        Call("read_file", json.dumps({"path": r"n\xE9.txt"})),
        Call("write_file", json.dumps({"path": r"n\x0A.txt", "content": "written"})),
        Call("rollback", json.dumps({"path": r"n\x0A.txt"})),
        Say("done"),
    )
    rig.telegram.say(ADMIN, "look")
    await rig.shows("done", ADMIN)
    await rig.quiet()
    assert len(rig.model.requests) == 5, "one call of the model a round"
    listed, page, wrote, back = rig.seen(role="tool")
    assert listed.count(".txt\tfile\t5") == count and r"n\xE9.txt" in listed
    assert page == "found"
    assert wrote.startswith(r"Changed n\x0A.txt") and back.startswith(r"Restored n\x0A.txt")


async def test_odd_texts_of_people_and_commands(rig: Rig) -> None:
    rig.model.script(Call("run_command", '{"command": "printf \'\\\\000\\\\033[1m\\\\351ok\'"}'))
    rig.model.script(Say(f"answer {ODD}"))
    await rig.start()
    rig.telegram.say(ADMIN, f"{ODD} {HALVES}")
    await rig.until(lambda: rig.cards(ADMIN) or len(rig.model.requests) > 1)
    if rig.cards(ADMIN):
        card = await rig.card(ADMIN)
        rig.press(card, labels(card)[0], ADMIN)
    await rig.shows("answer", ADMIN)
    await rig.quiet()
    assert len(rig.model.requests) == 2
    seen = "".join(rig.seen())
    assert "half \ufffd and \ufffd nul \ufffd end" in seen
    assert [char for char in CONTROLS + "\0" if char in seen] == []


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800", r"\u001b[8m", r"\u0085", r"\u202e"])
async def test_a_command_is_shown_bound_and_run_as_one(rig: Rig, escape: str) -> None:
    rig.model.script(Call("run_command", f'{{"command": "echo \'a{escape}b\' > out.txt"}}'))
    rig.model.script(Say("done"))
    await rig.start()
    rig.telegram.say(ADMIN, "do it")
    await rig.until(lambda: rig.cards(ADMIN) or len(rig.model.requests) > 1)
    if rig.cards(ADMIN):
        card = await rig.card(ADMIN)
        rig.press(card, labels(card)[0], ADMIN)
    await rig.shows("done", ADMIN)
    await rig.quiet()
    made = (rig.workspace(ADMIN) / "out.txt").read_text()
    expected = "\u202e" if "202e" in escape else "\ufffd"
    assert made == f"a{expected}{'[8m' if '[8m' in escape else ''}b\n"
