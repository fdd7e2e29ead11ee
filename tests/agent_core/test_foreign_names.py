"""What a clone or an archive leaves in a workspace: no name of it hides, turns or breaks what a tool or
a card says, no link leads a tool out, and nothing that is no file keeps one waiting."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent_core.errors import ToolFailed
from agent_core.sandboxes.snapshots import Snapshots
from agent_core.tools import paths
from agent_core.tools.backups import RollbackArguments, roll_back
from agent_core.tools.files import (
    ListFilesArguments,
    ReadFileArguments,
    WriteFileArguments,
    entries,
    preview,
    read,
    write,
)
from agent_core.tools.send import FileStore
from agent_core.tools.sources import read_sources
from gateway.views import Media, MediaFile
from tests.attacks.text_grammar import DRAWN
from tests.attacks.workspace_grammar import BAD_SIGNS, SECRET, make_workspace
from tests.sampling import dice


def look_at_all(workspace: Path, made: list[str]) -> None:
    """Have each tool meet each file."""
    kept = FileStore(workspace.parent / "kept")
    acts: dict[str, Callable[[str], object]] = {
        "read": lambda path: read(ReadFileArguments(path=path), workspace),
        "preview": lambda path: preview(WriteFileArguments(path=path, content="b\n"), workspace),
        "write": lambda path: write(WriteFileArguments(path=path, content="b\n"), workspace),
        "roll back": lambda path: roll_back(RollbackArguments(path=path), workspace),
    }
    for path in made:
        for act in acts:
            said = ""
            for name in (path, paths.display_path(path)):
                try:
                    said += f"\n{acts[act](name)}"
                except ToolFailed as error:
                    said += f"\n{error}"
            assert SECRET not in said, (act, path)
            assert not set(said) & (BAD_SIGNS - {"\n"}), (act, path)
            assert "Approved by Ann" not in said.split("\n"), (act, path)
        try:
            given = kept.keep(workspace, paths.display_path(path))
        except ToolFailed:
            continue
        assert not set(given.name) & BAD_SIGNS, path
        assert SECRET not in kept.read(given.ref).decode()
        draw_all(Media(files=(msgspec.convert(given, MediaFile, from_attributes=True),)))


def draw_all(view: Media) -> None:
    for draw in DRAWN.values():
        drawn = draw(view)
        payloads = drawn if isinstance(drawn, tuple) else (msgspec.json.encode(drawn),)
        for payload in payloads:
            if isinstance(payload, bytes):
                assert not set("".join(list_texts(msgspec.json.decode(payload)))) & BAD_SIGNS


def list_texts(value: object) -> list[str]:
    """Each text in it."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for one in value for text in list_texts(one)]
    return [value] if isinstance(value, str) else []


def list_all(workspace: Path) -> None:
    """A line for each, of four columns, whatever the names hold."""
    for line in entries(ListFilesArguments(path=".", pattern="**/*"), workspace).split("\n"):
        assert len(line.split("\t")) == 4, line
        assert not set(line) & BAD_SIGNS


def snapshot_all(workspace: Path) -> None:
    """Before and after a change, and what differs as people are told."""
    snapshots = Snapshots()
    snapshots.take(workspace, "1")
    (workspace / "gnp.\u202efdp\n.exe").write_text("x")
    snapshots.take(workspace, "2")
    names = snapshots.list_changed(workspace, "1", "2")
    assert names and not any(set(name) & BAD_SIGNS for name in names)


def meet(chance: random.Random, at: Path) -> None:
    made = make_workspace(chance, at)
    workspace = at / "workspace"
    assert len(made) > 20
    list_all(workspace)
    assert read_sources(workspace).digest
    snapshot_all(workspace)
    look_at_all(workspace, made)
    assert (at / "outside.txt").read_text() == SECRET
    assert sorted(os.listdir(at)) == ["kept", "outside.txt", "workspace"]


def test_no_tool_is_misled_by_what_a_workspace_holds(tmp_path: Path) -> None:
    meet(dice("workspace"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(12))
def test_no_tool_is_misled_by_many_workspaces(tmp_path: Path, n: int) -> None:
    meet(dice("workspaces", n), tmp_path)


def test_a_file_is_given_under_a_name_that_shows_its_signs(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "gnp.\u202efdp.exe").write_text("x")
    kept = FileStore(tmp_path / "kept")
    with pytest.raises(ToolFailed):
        kept.keep(workspace, "gnp.\u202efdp.exe")
    assert kept.keep(workspace, "gnp.\\u202Efdp.exe").name == "gnp.\\u202Efdp.exe"
