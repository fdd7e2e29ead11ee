"""str_replace_editor: exact changes that can be taken back, and nothing outside the workspace.
terminate: the end of the loop."""

from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.messages import Text, ToolCall, ToolOutput
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.executor import react
from agent_core.policy import Situation, Verdict
from agent_core.tools.contract import ToolContext
from agent_core.tools.editing.editor import EditorArguments, bind, editor_tool, preview
from agent_core.tools.facts import judge_call
from agent_core.tools.toolbox import Prepared, Toolbox, run
from agent_core.tools.toolbox import bind as bound
from agent_core.tools.turn.terminate import terminate_tool
from tests.agent_core.scope_rig import Crew, Disk, make

TOOL = editor_tool()


async def edit(folder: Path, command: str, path: str = "a.txt", **more: object) -> str:
    wanted = EditorArguments.model_validate({"command": command, "path": path} | more)
    context = ToolContext(workspace=folder, key="k", limit=5.0, output=lambda text: None)
    said = await TOOL.call(wanted, context)
    assert isinstance(said, ToolOutput) and said.changed == (() if command == "view" else (path,))
    return said.text


async def fails(folder: Path, command: str, **more: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await edit(folder, command, **more)
    return str(caught.value)


async def test_a_file_is_made_changed_and_changed_back(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    assert "Created" in await edit(tmp_path, "create", file_text="one\ntwo\nthree\n")
    said = await edit(tmp_path, "str_replace", old_str="two", new_str="2")
    assert "-two" in said and "+2" in said and "    2  2" in said
    await edit(tmp_path, "insert", insert_line=0, new_str="zero")
    await edit(tmp_path, "insert", insert_line=4, new_str="four\n")
    assert file.read_text() == "zero\none\n2\nthree\nfour\n"
    for before in ("zero\none\n2\nthree\n", "one\n2\nthree\n", "one\ntwo\nthree\n"):
        await edit(tmp_path, "undo_edit")
        assert file.read_text() == before
    await edit(tmp_path, "undo_edit")
    assert not file.exists()
    assert "no older state" in await fails(tmp_path, "undo_edit")


async def test_views(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    assert "line 20" in await edit(tmp_path, "view")
    part = await edit(tmp_path, "view", view_range=[3, 4])
    assert part.startswith("line 3\nline 4\n") and "line 5" not in part
    assert (await edit(tmp_path, "view", view_range=[19, -1])).startswith("line 19\nline 20")
    assert "a.txt" in await edit(tmp_path, "view", path=".")
    assert "view_range" in await fails(tmp_path, "view", view_range=[4, 3])


async def test_only_an_exact_and_single_match_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x = 1\ny = 1\n  z\n")
    assert "lines 1, 2" in await fails(tmp_path, "str_replace", old_str="= 1", new_str="= 2")
    assert "not in a.txt" in await fails(tmp_path, "str_replace", old_str="q", new_str="r")
    assert "other spaces" in await fails(tmp_path, "str_replace", old_str="y = 1\nz", new_str="")
    assert "nothing would change" in await fails(tmp_path, "str_replace", old_str="z", new_str="z")
    assert "needs old_str" in await fails(tmp_path, "str_replace", new_str="z")
    assert "there already" in await fails(tmp_path, "create", file_text="new")
    assert "needs file_text" in await fails(tmp_path, "create", path="b.txt")
    assert "3 lines" in await fails(tmp_path, "insert", insert_line=9, new_str="n")
    assert file.read_text() == "x = 1\ny = 1\n  z\n"
    (tmp_path / "o.txt").write_text("aaa")
    assert "stands at" in await fails(tmp_path, "str_replace", path="o.txt", old_str="aa")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe\x00")
    assert "not text throughout" in await fails(
        tmp_path, "insert", path="b.bin", insert_line=0, new_str="n"
    )


async def test_line_ends_and_a_missing_last_one_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\ntwo")
    await edit(tmp_path, "str_replace", old_str="one", new_str="1")
    assert file.read_bytes() == b"1\r\ntwo"
    await edit(tmp_path, "insert", insert_line=2, new_str="three")
    assert file.read_bytes() == b"1\r\ntwo\nthree"


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", ".env", ".turnkeeper/x", "link/x", "~/x"])
async def test_nothing_outside_is_seen_or_changed(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "x").write_text("secret")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    for command, more in (
        ("create", {"file_text": "x"}), ("str_replace", {"old_str": "secret", "new_str": "x"}),
        ("insert", {"insert_line": 0, "new_str": "x"}), ("undo_edit", {}),
    ):  # fmt: skip
        await fails(inside, command, path=path, **more)
        assert (
            preview(
                EditorArguments.model_validate({"command": command, "path": path} | more), inside
            )
            == ""
        )
    if path != ".turnkeeper/x":
        await fails(inside, "view", path=path)
    assert (outside / "x").read_text() == "secret"


async def test_the_card_shows_the_change_and_holds_for_it_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    wanted = EditorArguments(command="str_replace", path="a.txt", old_str="one", new_str="two")
    assert "-one" in preview(wanted, tmp_path) and "+two" in preview(wanted, tmp_path)
    assert file.read_text() == "one\n"
    call = ToolCall(id="c", name=TOOL.name, arguments=wanted.model_dump_json())
    prepared = Prepared(call=call, tool=TOOL, arguments=wanted)
    approved = bound(prepared, tmp_path)
    context = ToolContext(workspace=tmp_path, key="k", limit=5.0, output=lambda text: None)
    file.write_text("one more\n")
    with pytest.raises(ToolFailed, match="changed after it was approved"):
        await run(prepared, context, approved)
    file.write_text("one\n")
    assert "Changed" in str(await run(prepared, context, approved))
    undo = EditorArguments(command="undo_edit", path="a.txt")
    first = bind(undo, tmp_path)
    await edit(tmp_path, "str_replace", old_str="two", new_str="three")
    assert bind(undo, tmp_path) != first
    assert "+two" in preview(undo, tmp_path)


def test_to_view_needs_nobody(tmp_path: Path) -> None:
    def ruling(mode: str, **arguments: object) -> str:
        situation = Situation(mode=mode, person="p")  # type: ignore[arg-type]
        return judge_call(TOOL, EditorArguments.model_validate(arguments), "d", situation).ruling

    assert ruling("ask", command="view", path="a") == "allow"
    assert ruling("ask", command="create", path="a", file_text="x") == "ask"
    assert ruling("auto", command="create", path="a", file_text="x") == "allow"
    assert ruling("auto", command="view", path="../a") == "deny"


async def test_terminate_ends_the_loop_with_its_answer(tmp_path: Path) -> None:
    asked: list[ModelRequest] = []

    async def complete(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        asked.append(request)
        wrong = ToolCall(id="c0", name="terminate", arguments='{"status": "tired"}')
        right = ToolCall(
            id="c1", name="terminate", arguments='{"status": "success", "answer": "All done."}'
        )
        return ModelReply(parts=(wrong if len(asked) == 1 else right,), model="m", provider="p")

    hands = Hands(
        complete=complete, toolbox=Toolbox((terminate_tool(),)), live=lambda event: None,
        judge=lambda item: Verdict(ruling="allow", rule="", reason=""),
    )  # fmt: skip
    brief = Brief(text="go", system="s", model="pro", tools=("terminate",), workspace=str(tmp_path))

    _, scope = make(Disk(), Crew())
    result = await react(scope, brief, hands, ())
    assert result.text == "All done." and result.finish == "stop" and len(asked) == 2
    assert result.messages[-1].parts == (Text(text="All done."),)
    assert [message.role for message in result.messages][-2:] == ["tool", "assistant"]
