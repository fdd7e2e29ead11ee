"""The room of a workspace binds what the gateway writes there, as it binds commands."""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.skills import files as skill_files
from agent_core.tools import backups, paths, room
from agent_core.tools.code import sandboxed
from agent_core.tools.files import WriteFileArguments, write

MOST, ENOUGH = 400_000, 200_000
WORDS = b"x" * ENOUGH
WRITERS: dict[str, Callable[[Path, str], object]] = {
    "write_file": lambda place, name: write(
        WriteFileArguments(path=name, content=WORDS.decode()), place
    ),
    "attachments": lambda place, name: paths.add(place, "incoming", name, BytesIO(WORDS)),
    "outputs": lambda place, name: paths.put_output(place, name, WORDS),
    "new files of skills": lambda place, name: skill_files.add(place, name, ".txt", WORDS),
    "files of skills": lambda place, name: skill_files.store(place, name, WORDS),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", MOST)
    monkeypatch.setattr(room, "_rooms", {})


@pytest.mark.parametrize("writes", WRITERS.values(), ids=WRITERS.keys())
def test_it_is_filled_up_to_the_limit_and_not_beyond(
    writes: Callable[[Path, str], object], tmp_path: Path
) -> None:
    writes(tmp_path, "one")
    with pytest.raises(ToolFailed, match="workspace would have more than"):
        for n in range(5):
            writes(tmp_path, f"more-{n}")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert ENOUGH <= sum(path.stat().st_size for path in files) <= MOST
    for path in files:
        path.unlink()
    writes(tmp_path, "again")


def test_what_a_command_wrote_counts_and_snapshots_do_not(tmp_path: Path) -> None:
    kept = tmp_path / ".turnkeeper/snapshots/contents"
    kept.mkdir(parents=True)
    (kept / "one").write_bytes(bytes(MOST))
    write(WriteFileArguments(path="a", content="a"), tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "large").write_bytes(bytes(MOST))
    os.symlink(kept, tmp_path / "home" / "loop")
    room._rooms.clear()  # as it is some seconds later
    with pytest.raises(ToolFailed, match="Delete files"):
        write(WriteFileArguments(path="b", content="b"), tmp_path)


def test_where_it_is_full_files_are_deleted_and_brought_back(tmp_path: Path) -> None:
    write(WriteFileArguments(path="a", content="kept"), tmp_path)
    (tmp_path / "large").write_bytes(bytes(MOST))
    room._rooms.clear()
    assert "Deleted a" in sandboxed.delete(
        sandboxed.SandboxFileArguments(action="delete", path="a"), tmp_path
    )
    assert "Restored a" in backups.roll_back(backups.RollbackArguments(path="a"), tmp_path)
