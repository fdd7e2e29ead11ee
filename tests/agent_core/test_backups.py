"""rollback: one step back after another, and what each of them keeps."""

from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.tools.backups import MAX_STEPS, RollbackArguments, bind, preview, roll_back
from agent_core.tools.files import WriteFileArguments, write


def put(workspace: Path, content: str, path: str = "d/a.txt") -> str:
    return write(WriteFileArguments(path=path, content=content), workspace)


def back(workspace: Path, path: str = "d/a.txt") -> str:
    return roll_back(RollbackArguments(path=path), workspace)


def test_step_by_step_to_where_there_was_no_file(tmp_path: Path) -> None:
    for content in ("one\n", "two\n", "three\n"):
        put(tmp_path, content)
    file = tmp_path / "d/a.txt"
    assert "-three" in (said := back(tmp_path)) and "+two" in said and "Restored d/a.txt" in said
    assert file.read_text() == "two\n"
    back(tmp_path)
    assert file.read_text() == "one\n"
    assert "Removed d/a.txt" in back(tmp_path) and not file.exists()
    with pytest.raises(ToolFailed, match="no older state"):
        back(tmp_path)


def test_what_a_rollback_replaced_is_kept_and_no_step(tmp_path: Path) -> None:
    put(tmp_path, "one\n")
    put(tmp_path, "two\n")
    kept = back(tmp_path).split(" is in ")[1].split(".\n")[0]
    assert kept.endswith(".undone") and (tmp_path / kept).read_text() == "two\n"
    put(tmp_path, "other\n")
    back(tmp_path)
    assert (tmp_path / "d/a.txt").read_text() == "one\n", "the write after it is undone first"
    back(tmp_path)
    assert not (tmp_path / "d/a.txt").exists()


def test_a_file_changed_otherwise_goes_back_to_the_last_write(tmp_path: Path) -> None:
    put(tmp_path, "one\n")
    put(tmp_path, "two\n")
    (tmp_path / "d/a.txt").write_text("by a command\n")
    back(tmp_path)
    assert (tmp_path / "d/a.txt").read_text() == "one\n"
    put(tmp_path, "two\n")
    (tmp_path / "d/a.txt").write_text("one\n")
    assert "nothing changed" in back(tmp_path), "a step, and not a second one in its place"
    assert (tmp_path / "d/a.txt").read_text() == "one\n"


def test_permissions_neighbours_and_names_like_secrets(tmp_path: Path) -> None:
    for path in (".env.example", "a", "a.txt"):
        put(tmp_path, f"1 {path}\n", path)
        put(tmp_path, f"2 {path}\n", path)
    (tmp_path / "a").chmod(0o755)
    back(tmp_path, "a")
    back(tmp_path, ".env.example")
    assert (tmp_path / "a").read_text() == "1 a\n"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a.txt").read_text() == "2 a.txt\n"
    assert (tmp_path / ".env.example").read_text() == "1 .env.example\n"


def test_the_order_holds_though_the_clock_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ambient, "now", lambda: 1_800_000_000.999999)
    for n in range(5):
        put(tmp_path, f"{n}\n")
    monkeypatch.setattr(ambient, "now", lambda: 1_700_000_000.0)
    put(tmp_path, "5\n")
    for n in range(4, -1, -1):
        back(tmp_path)
        assert (tmp_path / "d/a.txt").read_text() == f"{n}\n"


def test_undone_states_are_bounded_too(tmp_path: Path) -> None:
    put(tmp_path, "first\n")
    for n in range(MAX_STEPS + 5):
        put(tmp_path, f"{n}\n")
        back(tmp_path)
    kept = list((tmp_path / ".turnkeeper/backups/d").iterdir())
    assert len([one for one in kept if one.name.endswith(".undone")]) == MAX_STEPS
    assert len(kept) == MAX_STEPS + 1
    assert (tmp_path / "d/a.txt").read_text() == "first\n"


def test_an_approval_holds_for_the_step_that_was_shown(tmp_path: Path) -> None:
    put(tmp_path, "one\n")
    put(tmp_path, "two\n")
    asked = RollbackArguments(path="d/a.txt")
    shown, bound = preview(asked, tmp_path), bind(asked, tmp_path)
    assert "-two" in shown and "+one" in shown
    assert (tmp_path / "d/a.txt").read_text() == "two\n", "a preview changes nothing"
    assert bind(asked, tmp_path) == bound
    put(tmp_path, "three\n")
    assert bind(asked, tmp_path) != bound


@pytest.mark.parametrize("path", ["../a", ".turnkeeper/x", "none", ".env", "/etc/passwd"])
def test_what_cannot_go_back(tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolFailed):
        back(tmp_path, path)
    assert (
        preview(RollbackArguments(path=path), tmp_path)
        == ""
        == bind(RollbackArguments(path=path), tmp_path)
    )


def test_a_backup_that_was_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "outside").write_text("secret")
    put(tmp_path / "ws", "one\n")
    put(tmp_path / "ws", "two\n")
    (newest,) = (tmp_path / "ws/.turnkeeper/backups/d").glob("*[0-9]")
    newest.unlink()
    newest.symlink_to(tmp_path / "outside")
    with pytest.raises(ToolFailed):
        back(tmp_path / "ws")
    assert (tmp_path / "ws/d/a.txt").read_text() == "two\n"
