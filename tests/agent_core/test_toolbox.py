"""Calls as the model writes them, and approvals that hold for one call only."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.context.limits import MAX_OBSERVE
from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall, wrap_output
from agent_core.sandboxes.commands.background import Background
from agent_core.tools.contract import ToolContext
from agent_core.tools.files import file_tools
from agent_core.tools.shell import shell_tool
from agent_core.tools.toolbox import (
    Prepared,
    Toolbox,
    UnfitCall,
    bind,
    bind_digest,
    run,
)
from tests.fakes.sandboxes import unsafe_sandbox

BOX = Toolbox((*file_tools(), shell_tool(unsafe_sandbox(), Background())))


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=arguments)


def command(text: str) -> Prepared:
    ready = BOX.prepare(call("run_command", json.dumps({"command": text})), BOX.names)
    assert isinstance(ready, Prepared)
    return ready


def context(workspace: Path) -> ToolContext:
    return ToolContext(workspace=workspace, key="k", limit=5, output=lambda _: None)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", "{", "not valid JSON"),
        ("read_file", '{"pfad": 1}', "path: Field required"),
        ("read_file", "[]", "do not fit"),
        ("open_file", "{}", "There is no tool 'open_file'"),
    ],
)
def test_what_does_not_fit_is_explained(name: str, arguments: str, words: str) -> None:
    unfit = BOX.prepare(call(name, arguments), BOX.names)
    assert isinstance(unfit, UnfitCall) and words in unfit.text


def test_a_tool_that_is_not_offered_does_not_exist() -> None:
    assert isinstance(BOX.prepare(call("read_file", '{"path":"a"}'), ("list_files",)), UnfitCall)


async def test_a_long_result_is_kept_as_a_file(tmp_path: Path) -> None:
    seen = wrap_output(await run(command("seq 5000"), context(tmp_path), "")).text
    assert len(seen) < MAX_OBSERVE + 200
    assert "\n4000\n" in (tmp_path / kept_at(seen)).read_text()
    other = replace(context(tmp_path), key="a later round's call of the same id")
    later = wrap_output(await run(command("seq 6000"), other, "")).text
    assert (
        kept_at(later) != kept_at(seen) and "\n6000\n" not in (tmp_path / kept_at(seen)).read_text()
    )
    again = wrap_output(await run(command("seq 5000"), context(tmp_path), "")).text
    assert again == seen, "the same call has the same file"


def kept_at(seen: str) -> str:
    """Where a result that was cut says that the whole is."""
    return seen.partition("the whole is in ")[2].partition("]")[0]


@pytest.mark.parametrize("place", [".turnkeeper", ".turnkeeper/outputs", "the file"])
async def test_a_planted_link_leads_no_result_elsewhere(place: str, tmp_path: Path) -> None:
    """Also within the workspace, and what the call did is told all the same."""
    workspace, mine = tmp_path / "w", tmp_path / "w" / "mine"
    mine.mkdir(parents=True)
    mine.joinpath("notes.txt").write_text("mine")
    if place == "the file":
        first = kept_at(wrap_output(await run(command("seq 5000"), context(workspace), "")).text)
        (workspace / first).unlink()
        (workspace / first).symlink_to(mine / "notes.txt")
    else:
        (workspace / place).parent.mkdir(exist_ok=True)
        (workspace / place).symlink_to(mine)
    seen = wrap_output(await run(command("seq 5000"), context(workspace), "")).text
    assert seen.startswith("1\n2\n") and "[exit code 0]" in seen
    assert [one.name for one in mine.iterdir()] == ["notes.txt"]
    assert mine.joinpath("notes.txt").read_text() == "mine"
    if place == "the file":
        assert "\n4000\n" in (workspace / kept_at(seen)).read_text()
    else:
        assert "the whole could not be kept: " in seen


async def test_what_an_approval_is_bound_to_is_read_beside_the_loop(tmp_path: Path) -> None:
    """Its file is a thing that only the loop brings on: if it were waited for there, for ever."""
    came = threading.Event()

    def slow(arguments: BaseModel, workspace: Path) -> str:
        return str(came.wait(10))

    ready = command("true")
    ready = replace(ready, tool=replace(ready.tool, bind=slow))
    asyncio.get_running_loop().call_soon(came.set)
    known = await bind_digest(ready, tmp_path)
    assert known.digest == bind(ready, tmp_path) and came.is_set()
    came.clear()
    asyncio.get_running_loop().call_soon(came.set)
    assert "exit code 0" in wrap_output(await run(ready, context(tmp_path), known.digest)).text


async def test_an_approved_call_runs_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("echo good")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.sh").write_text("echo good")
    approved = bind(command("bash x.sh"), tmp_path)
    gave = wrap_output(await run(command("bash x.sh"), context(tmp_path), approved))
    assert gave.text == "good\n[exit code 0]" and gave.command is not None
    assert gave.text[: gave.command.written] == "good"
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash  x.sh"), context(tmp_path), approved)
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash x.sh"), context(tmp_path / "other"), approved)
    (tmp_path / "x.sh").write_text("echo bad")
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash x.sh"), context(tmp_path), approved)


def test_arguments_are_described_once_for_all_toolboxes() -> None:
    first, again = (Toolbox(file_tools()) for _ in range(2))
    for one, other in zip(first.specs(first.names), again.specs(again.names), strict=True):
        assert one == other and one.parameters is other.parameters
