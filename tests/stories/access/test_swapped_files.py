"""What is approved is what runs, whatever way a command takes to a file, and however the file is
another one by then. Judged by what ran."""

import json
from typing import Any

import pytest

from tests.attacks.swap_grammar import EVIL, GOOD, SWAPS, WAYS, plant
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig, quick


def cases() -> list[Any]:
    """Every swap for every way, and none for each; two of them in a quick run."""
    return [
        pytest.param(
            way, swap, id=f"{way}-{swap or 'unchanged'}", marks=pytest.mark.pick("swapped", 2)
        )
        for way in WAYS
        for swap in ("", *SWAPS)
    ]


@pytest.mark.parametrize(("way", "swap"), cases())
async def test_a_file_that_is_another_one_by_then_does_not_run(
    rig: Rig, way: str, swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    rig.model.script(Call("run_command", json.dumps({"command": WAYS[way].command})), Say("over"))
    await rig.start()
    workspace = rig.workspace()
    workspace.mkdir(parents=True, exist_ok=True)
    plant(workspace, WAYS[way])
    rig.telegram.say(PERSON, "Do it")
    card = await rig.card()
    if swap:
        SWAPS[swap](workspace, WAYS[way])
    rig.press(card, "Approve once")
    if not swap:
        await rig.shows("over")
        assert list(workspace.rglob(GOOD)) and not list(workspace.rglob(EVIL))
        return
    await rig.until(lambda: "over" in str(rig.said()[-1:]) or is_another(rig, card["message_id"]))
    for again in rig.cards():
        rig.press(again, "Deny")
    await rig.shows("over")
    await rig.quiet()
    assert list(workspace.rglob(EVIL)) == []


def is_another(rig: Rig, message: int) -> bool:
    return any(card["message_id"] != message for card in rig.cards())


IN_FOLDER: dict[str, dict[str, str]] = {
    "as its folder": {"command": "touch made.txt", "cwd": "sub"},
    "entered": {"command": "cd sub && touch made.txt"},
    "as a place": {"command": "touch sub/made.txt"},
    "as a target": {"command": "cp good.txt sub/made.txt"},
    "deeper": {"command": "touch made.txt", "cwd": "sub/deep"},
}


@pytest.mark.parametrize(
    "way", [pytest.param(one, marks=pytest.mark.pick("led elsewhere", 2)) for one in IN_FOLDER]
)
async def test_a_folder_that_leads_elsewhere_by_then_is_asked_about_again(
    rig: Rig, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    rig.model.script(Call("run_command", json.dumps(IN_FOLDER[way])), Say("over"))
    await rig.start()
    workspace = rig.workspace()
    for folder in ("sub/deep", "other/deep"):
        (workspace / folder).mkdir(parents=True)
    (workspace / "good.txt").touch()
    rig.telegram.say(PERSON, "Do it")
    card = await rig.card()
    (workspace / "sub").rename(workspace / "away")
    (workspace / "sub").symlink_to("other")
    rig.press(card, "Approve once")
    await rig.until(lambda: "over" in str(rig.said()[-1:]) or is_another(rig, card["message_id"]))
    for again in rig.cards():
        rig.press(again, "Deny")
    await rig.shows("over")
    await rig.quiet()
    assert list(workspace.rglob("made.txt")) == []
