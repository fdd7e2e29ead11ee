"""Calls as the model writes them, and approvals that hold for one call only."""

import json
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall
from agent_core.sandboxes.background import Background
from agent_core.sandboxes.bwrap import PlainSubprocess
from agent_core.tools.contract import ToolContext
from agent_core.tools.files import file_tools
from agent_core.tools.shell import shell_tool
from agent_core.tools.toolbox import MAX_OBSERVE, Prepared, Toolbox, Unfit, bind, run

BOX = Toolbox((*file_tools(), shell_tool(PlainSubprocess(), Background())))


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
    assert isinstance(unfit, Unfit) and words in unfit.text


def test_a_tool_that_is_not_offered_does_not_exist() -> None:
    assert isinstance(BOX.prepare(call("read_file", '{"path":"a"}'), ("list_files",)), Unfit)


async def test_a_long_result_is_kept_as_a_file(tmp_path: Path) -> None:
    seen = await run(command("seq 5000"), context(tmp_path), "")
    assert len(seen) < MAX_OBSERVE + 200 and ".turnkeeper/outputs/call_1.txt" in seen
    assert "\n4000\n" in (tmp_path / ".turnkeeper/outputs/call_1.txt").read_text()


async def test_an_approved_call_runs_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("echo good")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.sh").write_text("echo good")
    approved = bind(command("bash x.sh"), tmp_path)
    assert "good" in await run(command("bash x.sh"), context(tmp_path), approved)
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash  x.sh"), context(tmp_path), approved)
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash x.sh"), context(tmp_path / "other"), approved)
    (tmp_path / "x.sh").write_text("echo bad")
    with pytest.raises(ToolFailed, match="changed after"):
        await run(command("bash x.sh"), context(tmp_path), approved)
