"""A card shows the change of a file: of another file than that, and of one that an earlier call of the
same answer changed, a new card shows the new change before anything is written."""

from pathlib import Path

import pytest

from agent_core.messages import ToolCall
from agent_core.tools import files
from agent_core.tools.code import sandboxed
from agent_core.tools.code.sandboxed import SandboxFileArguments
from agent_core.tools.files import WriteFileArguments
from agent_core.tools.toolbox import Prepared, Toolbox, bind_digest, is_bound
from tests.fakes.model_server import Call, Calls, Say
from tests.stories.rig import PERSON, Json, Rig, write


async def ask(rig: Rig, *calls: Call) -> tuple[Path, Json]:
    rig.model.script(Calls(list(calls)), Say("That was it."))
    await rig.start()
    workspace = rig.workspace()
    workspace.mkdir(parents=True, exist_ok=True)
    place = workspace / "a.txt"
    place.write_text("old\n")
    rig.telegram.say(PERSON, "Do it")
    return place, await rig.card()


async def another(rig: Rig, card: Json) -> Json:
    """The card that came after this one."""
    number = card["message_id"]
    await rig.until(lambda: any(one["message_id"] > number for one in rig.cards()))
    return rig.cards()[-1]


async def test_a_file_that_changed_is_not_overwritten_unseen(rig: Rig) -> None:
    place, card = await ask(rig, write("a.txt", "new"))
    assert "-old" in card["text"]
    place.write_text("worth keeping\n")
    rig.press(card, "Approve once")
    again = await another(rig, card)
    assert "-worth keeping" in again["text"] and place.read_text() == "worth keeping\n"
    rig.press(again, "Approve once")
    await rig.shows("That was it.")
    assert place.read_text() == "new"


async def test_one_that_did_not_change_is_asked_about_once(rig: Rig) -> None:
    place, card = await ask(rig, write("a.txt", "new"), write("b.txt", "b"))
    rig.press(card, "Approve")
    await rig.shows("That was it.")
    assert place.read_text() == "new" and (place.parent / "b.txt").read_text() == "b"
    await rig.quiet()
    assert rig.cards() == []


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "/workspace/a.txt"])
async def test_the_second_of_two_changes_is_shown_as_it_will_be(rig: Rig, path: str) -> None:
    place, card = await ask(rig, write("a.txt", "xx"), write(path, "last"))
    rig.press(card, "Approve")
    again = await another(rig, card)
    assert "-xx" in again["text"] and place.read_text() == "xx"
    rig.press(again, "Approve once")
    await rig.shows("That was it.")
    assert place.read_text() == "last"


def test_what_is_bound_is_the_file_until_nothing_is_left_to_do(tmp_path: Path) -> None:
    place, content = tmp_path / "a.txt", "new"
    wanted = WriteFileArguments(path="a.txt", content=content)
    ways = (
        SandboxFileArguments(action="write", path="a.txt", content=content),
        SandboxFileArguments(action="delete", path="a.txt"),
    )
    absent = files.bind(wanted, tmp_path)
    assert not files.is_written(wanted, tmp_path)
    assert [sandboxed.is_done(one, tmp_path) for one in ways] == [False, True]
    seen = {absent}
    for text in ("old", "another", content):
        place.write_text(text)
        bound = files.bind(wanted, tmp_path)
        assert bound not in seen and all(sandboxed.bind(one, tmp_path) == bound for one in ways)
        seen.add(bound)
    assert files.is_written(wanted, tmp_path)
    assert [sandboxed.is_done(one, tmp_path) for one in ways] == [True, False]
    assert sandboxed.bind(SandboxFileArguments(action="read", path="a.txt"), tmp_path) == ""
    assert files.bind(WriteFileArguments(path="../a.txt", content=""), tmp_path) == ""


async def test_a_write_of_before_a_crash_is_still_what_was_approved(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    box = Toolbox(files.file_tools())
    call = ToolCall(id="c", name="write_file", arguments='{"path": "a.txt", "content": "new"}')
    item = box.prepare(call, box.names)
    assert isinstance(item, Prepared)
    approved = (await bind_digest(item, tmp_path)).digest
    files.write(WriteFileArguments(path="a.txt", content="new"), tmp_path)
    assert await is_bound(item, tmp_path, approved)
    (tmp_path / "a.txt").write_text("another")
    assert not await is_bound(item, tmp_path, approved)
