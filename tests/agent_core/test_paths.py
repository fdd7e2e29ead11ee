"""No path leaves the workspace."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.tools import paths
from agent_core.tools.editing.editor import EditorArguments, edit
from agent_core.tools.files import ReadFileArguments, WriteFileArguments, read, write
from tests.fakes.attacks import climb_out


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("SECRET")
    (tmp_path / "inside2").mkdir()
    return tmp_path


@pytest.fixture
def inside(outside: Path) -> Path:
    (outside / "inside").mkdir()
    return outside / "inside"


def blocked(workspace: Path, path: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        read(ReadFileArguments(path=path), workspace)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(ToolFailed):
        write(WriteFileArguments(path=path, content="x"), workspace)


@pytest.mark.parametrize(
    "path",
    [
        *climb_out(),
        *("../secret", "a/../../secret", "../inside2/x", "/etc/passwd", "~", "a\0b", "..\\x"),
        *(".ENV", ".Env", ".env.", ".env ", "d/.ssh/id_rsa", "key.PEM", "/workspace/../secret"),
        *("/workspace2/x", "\u202ex", "/etc/cron.d/x", "/var/lib/turnkeeper/audit.log"),
    ],
    ids=lambda path: repr(path)[:40],
)
def test_a_path_that_leaves_is_refused(inside: Path, path: str) -> None:
    blocked(inside, path)


def test_links(inside: Path, outside: Path) -> None:
    (inside / "link.txt").symlink_to(outside / "secret")
    (inside / "d").symlink_to(outside)
    (inside / "dangling").symlink_to(outside / "new")
    (inside / "loop").symlink_to("loop")
    os.link(outside / "secret", inside / "alias")
    for path in ("link.txt", "d/secret", "d/new", "dangling", "loop", "alias"):
        blocked(inside, path)
    assert not (outside / "new").exists()


def test_a_link_inside_is_followed_but_not_to_a_secret(inside: Path) -> None:
    (inside / "a").write_text("here")
    (inside / "b").symlink_to("a")
    assert read(ReadFileArguments(path="b"), inside) == "here"
    assert read(ReadFileArguments(path="/workspace/a"), inside) == "here"
    (inside / ".env").write_text("SECRET")
    (inside / "c").symlink_to(".env")
    blocked(inside, "c")


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("g", ".git", "g/hooks/pre-commit"),
        ("g", ".git", "g/new/config"),
        ("notes.txt", ".git/config", "notes.txt"),
        ("a", "b", "a/hooks/pre-commit"),
        ("notes.txt", ".bashrc", "notes.txt"),
        ("v", ".vscode", "v/tasks.json"),
    ],
)
def test_settings_are_not_written_by_a_link_with_another_name(
    inside: Path, link: str, target: str, path: str
) -> None:
    (inside / ".git" / "hooks").mkdir(parents=True)
    (inside / ".git" / "config").write_text("old")
    (inside / "b").symlink_to(".git")
    (inside / link).symlink_to(target)
    with pytest.raises(ToolFailed, match="is a link to"):
        write(WriteFileArguments(path=path, content="x"), inside)
    for command in ("create", "str_replace", "insert"):
        with pytest.raises(ToolFailed):
            edit(
                EditorArguments.model_validate(
                    {"command": command, "path": path, "file_text": "x", "old_str": "old"}
                    | {"new_str": "x", "insert_line": 0}
                ),
                inside,
            )
    assert (inside / ".git" / "config").read_text() == "old"
    write(WriteFileArguments(path=".git/config", content="x"), inside)
    assert (inside / ".git" / "config").read_text() == "x", "asked about by its own name"


def test_a_folder_swapped_after_the_check(inside: Path, outside: Path) -> None:
    (inside / "a").mkdir()
    (inside / "a/secret").write_text("mine")
    real = paths.resolve(inside, "a/secret")
    (inside / "a").rename(inside / "old")
    (inside / "a").symlink_to(outside)
    with pytest.raises(ToolFailed, match="link"), paths.folder(inside, real.parent):
        pass


def test_a_link_swapped_while_it_is_followed(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is no link any more as it is read as one."""
    (inside / "a").write_text("mine")
    (inside / "b").symlink_to("a")
    look = os.readlink

    def swap(path: str) -> str:
        (inside / "b").unlink()
        (inside / "b").write_text("mine")
        return look(path)

    monkeypatch.setattr(os, "readlink", swap)
    if sys.version_info >= (3, 13):  # what is no link any more is read as the file that it is
        assert paths.resolve(inside, "b") == inside / "b"
        return
    with pytest.raises(ToolFailed, match="cannot be used"):
        paths.resolve(inside, "b")


def test_pipes_and_devices_do_not_hang(inside: Path) -> None:
    os.mkfifo(inside / "p")
    blocked(inside, "p")
    blocked(inside, "/dev/zero")


def test_a_huge_file_is_not_read_whole(inside: Path) -> None:
    with open(inside / "huge", "wb") as file:
        file.truncate(100 << 30)
    assert "binary" in read(ReadFileArguments(path="huge"), inside)
    with pytest.raises(ToolFailed, match="too many"):
        write(WriteFileArguments(path="huge", content=""), inside)


def test_the_gateways_folder_is_not_written(inside: Path) -> None:
    with pytest.raises(ToolFailed):
        write(WriteFileArguments(path=".turnkeeper/backups/x", content=""), inside)


def test_calls_that_run_at_once_make_the_same_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for n in range(40):
            workspace = tmp_path / str(n)
            workspace.mkdir()
            together = threading.Barrier(8)

            def call(
                name: int, workspace: Path = workspace, wait: threading.Barrier = together
            ) -> str:
                wait.wait(10)
                return write(WriteFileArguments(path=f"a/b/c/{name}.txt", content="x"), workspace)

            done = list(threads.map(call, range(8)))
            assert all(text.startswith("Created") for text in done)
