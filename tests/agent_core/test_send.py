"""The tool send_file: what is given is kept, whatever becomes of the file."""

from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools.contract import ToolContext
from agent_core.tools.send import MAX_BYTES, FileStore, Send, send_tool


def context(workspace: Path) -> ToolContext:
    return ToolContext(workspace=workspace, key="k", limit=5.0, output=lambda _: None)


async def give(tmp_path: Path, *paths: str, caption: str = "") -> ToolOutput:
    tool = send_tool(FileStore(tmp_path / "outputs"))
    gave = await tool.call(Send(paths=list(paths), caption=caption), context(tmp_path / "w"))
    assert isinstance(gave, ToolOutput)
    return gave


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


async def test_a_copy_stays_what_it_was(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a b.png").write_bytes(b"\x89PNG first")
    gave = await give(tmp_path, "a b.png", "a b.png", caption="look")
    (workspace / "a b.png").write_bytes(b"second")
    (file,) = gave.files
    assert (file.name, file.mime, file.size) == ("a b.png", "image/png", 10)
    assert (tmp_path / "outputs" / file.ref).read_bytes() == b"\x89PNG first"
    assert gave.caption == "look" and "a b.png" in gave.text
    assert (await give(tmp_path, "a b.png")).files[0].ref != file.ref


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "missing", ".", "link"])
async def test_nothing_outside_is_given(tmp_path: Path, workspace: Path, path: str) -> None:
    (tmp_path / "secret").write_text("s")
    (workspace / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolFailed):
        await give(tmp_path, path)
    assert not list((tmp_path / "outputs").glob("??/*"))


async def test_too_large(tmp_path: Path, workspace: Path) -> None:
    with (workspace / "big").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ToolFailed, match="50 MB"):
        await give(tmp_path, "big")


async def test_old_copies_are_forgotten(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a").write_text("a")
    gave = await give(tmp_path, "a")
    kept, copy = FileStore(tmp_path / "outputs"), tmp_path / "outputs" / gave.files[0].ref
    made = copy.stat().st_mtime
    assert kept.forget(made - 1) == 0 and copy.exists()
    assert kept.forget(made + 1) == 1 and not copy.exists()
