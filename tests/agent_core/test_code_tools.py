"""Tools that run code or work on files under other names: what runs, and what an approval holds
for."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall, ToolOutput, wrap_output
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.languages import find_languages
from agent_core.sandboxes.port import Language, Sandbox
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools import backups
from agent_core.tools.ask import ask_tool
from agent_core.tools.code.all import every_code_tool
from agent_core.tools.code.bash import Bash
from agent_core.tools.code.execute import bind, code_tools
from agent_core.tools.code.sandboxed import file_tool, vision_tool
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.send import FileStore
from agent_core.tools.toolbox import Prepared, Toolbox, UnfitCall
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.sampling import one_of

ISOLATED = pytest.param(bwrap_sandbox(), marks=NEEDS_BWRAP)
needs_python = pytest.mark.skipif(
    "python" not in unsafe_sandbox().programs, reason="needs python3 among the system's programs"
)
both = pytest.mark.parametrize("sandbox", one_of(ISOLATED, unsafe_sandbox()))
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def call(tool: Tool, workspace: Path, **given: object) -> str:
    return wrap_output(await output(tool, workspace, **given)).text


async def output(tool: Tool, workspace: Path, **given: object) -> str | ToolOutput:
    context = ToolContext(workspace=workspace, key="k", limit=30.0, output=lambda text: None)
    return await tool.call(tool.arguments.model_validate(given), context)


def named(tools: tuple[Tool, ...], name: str) -> Tool:
    return next(tool for tool in tools if tool.name == name)


# ---- code --------------------------------------------------------------------------------

PROGRAMS: dict[Language, str] = {
    "python": "import sys, helper\nprint(helper.x, 6 * 7)\nprint('err', file=sys.stderr)\nsys.exit(3)",
    "javascript": "const h = require('helper'); console.log(h.x, 6 * 7); console.error('err');"
    "process.exit(3)",
    "typescript": "const n: number = 6; console.log('from here', n * 7); console.error('err');"
    "process.exit(3)",
    "bash": '. ./helper.sh; echo "$x $((6 * 7))"; echo err >&2; exit 3',
}


@both
@pytest.mark.parametrize("language", PROGRAMS)
async def test_code_runs_in_the_workspace(
    sandbox: Sandbox, language: Language, tmp_path: Path
) -> None:
    if language not in sandbox.programs:
        pytest.skip(f"{language} is not installed here")
    (tmp_path / "helper.py").write_text("x = 'from here'")
    (tmp_path / "helper.js").write_text("exports.x = 'from here'")
    (tmp_path / "helper.sh").write_text("x='from here'")
    tool = named(code_tools(sandbox), "execute_code")
    said = await call(tool, tmp_path, code=PROGRAMS[language], language=language)
    assert said == "from here 42\nerr\n[exit code 3]"
    assert not list((tmp_path / ".turnkeeper/code").iterdir()), "nothing of it is left"


@needs_python
@both
async def test_python_by_its_other_names(sandbox: Sandbox, tmp_path: Path) -> None:
    tools = code_tools(sandbox)
    code = "open('out.txt', 'w').write('x'); print('done')"
    said = await call(named(tools, "python_execute"), tmp_path, code=code)
    assert said == "done\n[exit code 0]" and (tmp_path / "out.txt").read_text() == "x"
    tool = named(tools, "normal_python_execute")
    assert await call(tool, tmp_path, code="1/0", code_type="report") != said
    said = await call(tool, tmp_path, code="1/0")
    assert "ZeroDivisionError" in str(said) and str(said).endswith("[exit code 1]")
    with pytest.raises(ValidationError):
        await call(tool, tmp_path, code="1", code_type="other")


@needs_python
@both
async def test_code_that_takes_too_long_is_stopped(sandbox: Sandbox, tmp_path: Path) -> None:
    tool = named(code_tools(sandbox), "python_execute")
    said = await call(tool, tmp_path, code="print(1)\nwhile True: pass", timeout=2)
    assert said == "1\n[stopped after 2 s]"


class Bare(UnsafeTier):
    """A tier with other languages than this machine has, whose commands cannot talk."""

    channels = None

    def __init__(self, *languages: Language) -> None:
        self._languages: Mapping[Language, str] = dict.fromkeys(languages, "false")

    @property
    def programs(self) -> Mapping[Language, str]:
        return self._languages


def test_the_schema_lists_what_the_tier_has(tmp_path: Path) -> None:
    def names(*languages: Language) -> list[str]:
        bash = Bash(Bare(*languages), Background().shells, 60)
        return [tool.name for tool in every_code_tool(bash, FileStore(tmp_path))]

    tool = named(code_tools(Bare("javascript", "bash")), "execute_code")
    fields = tool.arguments.model_json_schema()["properties"]
    assert fields["language"]["enum"] == ["javascript", "bash"]
    with pytest.raises(ValidationError):
        tool.arguments.model_validate({"code": "1", "language": "python"})
    assert {"python_execute", "bash"} <= set(names("python", "bash"))
    assert "bash" not in names("python") and "execute_code" not in names()
    assert "python_execute" not in names("javascript")


def test_languages_are_found_by_their_programs(tmp_path: Path) -> None:
    def program(name: str, says: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)

    def typescript(version: str) -> str | None:
        find_languages.cache_clear()
        program("node", version)
        return find_languages(str(tmp_path)).get("typescript")

    assert set(find_languages(str(tmp_path))) <= {"bash"}
    assert typescript("v20.20.2") is None
    assert typescript("v22.6.0") == "node --experimental-strip-types --no-warnings"
    assert typescript("v24.1.0") == "node" and typescript("nonsense") is None
    program("tsx", "")
    assert typescript("v18.0.0") == "tsx"
    find_languages.cache_clear()


def test_an_approval_holds_for_what_the_code_names_and_imports(tmp_path: Path) -> None:
    (python,) = (t for t in code_tools(Bare("python")) if t.name == "python_execute")
    code = "import os, helper as h\nfrom pack import x\nopen('data.csv')"
    given = python.arguments.model_validate({"code": code})
    (tmp_path / "pack").mkdir()
    seen = {bind(given, tmp_path)}
    for name in ("helper.py", "pack/__init__.py", "data.csv"):
        for content in ("1", "2"):
            (tmp_path / name).write_text(content)
            seen.add(bind(given, tmp_path))
    assert len(seen) == 7, "each change is another call"
    (tmp_path / "other.py").write_text("1")
    assert bind(given, tmp_path) in seen


def test_an_approval_holds_for_modules_wherever_they_are_named(tmp_path: Path) -> None:
    execute, python = code_tools(Bare("python", "javascript"))[:2]
    (tmp_path / "pack").mkdir()
    code = "if 1: import late\nx = 1; import behind\nfrom pack import (one,\n    two)"
    calls = [(python, {"code": code}, f"{name}.py") for name in ("late", "behind", "pack/two")]
    words = "const h = require('helper'); import o from './other.mjs'"
    script = {"language": "javascript", "code": words}
    calls += [(execute, script, name) for name in ("helper.js", "other.mjs")]
    for tool, arguments, name in calls:
        given = tool.arguments.model_validate(arguments)
        before = bind(given, tmp_path)
        (tmp_path / name).write_text("swapped")
        assert bind(given, tmp_path) != before, name


def test_blank_lines_hold_nothing_up(tmp_path: Path) -> None:
    (python,) = (t for t in code_tools(Bare("python")) if t.name == "python_execute")
    given = python.arguments.model_validate({"code": "\n" * 60_000 + "x"})
    began = time.process_time()
    bind(given, tmp_path)
    assert time.process_time() - began < 5, "once this took a minute"


# ---- files -------------------------------------------------------------------------------


async def test_files_by_one_tool(tmp_path: Path) -> None:
    tool = file_tool()
    made = await output(tool, tmp_path, action="write", path="a/b.txt", content="x\n")
    assert isinstance(made, ToolOutput) and made.changed == ("a/b.txt",)
    assert await call(tool, tmp_path, action="read", path="a/b.txt") == "x\n"
    assert "b.txt\ta/b.txt\tfile\t2" in str(await call(tool, tmp_path, action="list", path="a"))
    gone = await output(tool, tmp_path, action="delete", path="a/b.txt")
    assert isinstance(gone, ToolOutput) and not (tmp_path / "a/b.txt").exists()
    again = await call(tool, tmp_path, action="delete", path="a/b.txt")
    assert "nothing to delete" in str(again)
    backups.roll_back(backups.RollbackArguments(path="a/b.txt"), tmp_path)
    assert (tmp_path / "a/b.txt").read_text() == "x\n"


@pytest.mark.parametrize(
    "given",
    [
        {"action": "delete", "path": "."},
        {"action": "delete", "path": "../x"},
        {"action": "delete", "path": "link"},
        {"action": "delete", "path": ".turnkeeper/x"},
        {"action": "write", "path": "x"},
        {"action": "write", "path": "link", "content": "y"},
        {"action": "read", "path": "link"},
        {"action": "list", "path": ".."},
    ],
)
async def test_files_never_leave_the_workspace(given: dict[str, str], tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (tmp_path / "outside").write_text("x")
    (workspace / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolFailed):
        await call(file_tool(), workspace, **given)
    assert (tmp_path / "outside").read_text() == "x" and (workspace / "link").is_symlink()


def test_what_a_file_call_would_change_is_shown_before(tmp_path: Path) -> None:
    tool = file_tool()
    (tmp_path / "a").write_text("old\n")

    def shown(**given: str) -> str:
        assert tool.preview is not None
        return tool.preview(tool.arguments.model_validate(given), tmp_path)

    assert "-old\n+new" in shown(action="write", path="a", content="new\n")
    assert "-old" in shown(action="delete", path="a")
    assert shown(action="read", path="a") == shown(action="delete", path="../a") == ""


async def test_a_picture_is_shown_to_the_model(tmp_path: Path) -> None:
    tool, kept = vision_tool(FileStore(tmp_path / "kept")), FileStore(tmp_path / "kept")
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.txt").write_text("x" * 20)
    seen = await output(tool, tmp_path, path="a.png")
    assert isinstance(seen, ToolOutput)
    (picture,) = seen.pictures
    assert (picture.path, picture.mime, kept.read(picture.ref)) == ("a.png", "image/png", PNG)
    with pytest.raises(ToolFailed, match="no picture"):
        await call(tool, tmp_path, path="a.txt")


# ---- names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ask_user", '{"question": "So?", "options": ["a"]}'),
        ("ask_human", '{"inquire": "So?", "options": ["a"]}'),
        ("clarify", '{"question": "So?", "choices": ["a"]}'),
    ],
)
def test_a_question_is_known_by_other_names(name: str, arguments: str) -> None:
    asked = ToolCall(id="c", name=name, arguments=arguments)
    box = Toolbox([ask_tool()])
    made = box.prepare(asked, ("ask_user",))
    assert isinstance(made, Prepared) and made.tool.name == "ask_user"
    assert made.arguments.model_dump() == {"question": "So?", "options": ["a"], "kind": None}
    assert isinstance(box.prepare(asked, ()), UnfitCall), "it is offered or it is not"
    assert [spec.name for spec in box.specs(box.names)] == ["ask_user"]
    wrong = box.prepare(ToolCall(id="c", name=name, arguments="{}"), ("ask_user",))
    assert isinstance(wrong, UnfitCall) and "do not fit" in wrong.text
