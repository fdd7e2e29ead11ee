"""Whatever a command planted in the workspace, what the gateway writes stays within it."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from agent_core.context import todo
from agent_core.errors import ToolFailed
from agent_core.handoffs import artifacts
from agent_core.orchestration.plan import Plan
from agent_core.skills import files as skill_files
from agent_core.tools import backups, paths, shell
from agent_core.tools.browser import memory
from agent_core.tools.files import (
    ListFilesArguments,
    ReadFileArguments,
    WriteFileArguments,
    entries,
    read,
    write,
)

Plant = Callable[[Path, Path], None]
"""Puts something in the place of a path; the second one is the folder outside."""


def _link_to_folder(place: Path, outside: Path) -> None:
    place.symlink_to(outside, target_is_directory=True)


def _relative_link(place: Path, outside: Path) -> None:
    place.symlink_to(os.path.relpath(outside, place.parent))


def _dangling(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "new")


def _chain(place: Path, outside: Path) -> None:
    links = [place.parent / f".chain{n}" for n in range(4)]
    for link, after in zip(links, [*links[1:], outside], strict=True):
        link.symlink_to(after)
    place.symlink_to(links[0])


def _link_to_file(place: Path, outside: Path) -> None:
    place.symlink_to(outside / "precious")


def _hard_link(place: Path, outside: Path) -> None:
    os.link(outside / "precious", place)


def _pipe(place: Path, outside: Path) -> None:
    os.mkfifo(place)


def _loop(place: Path, outside: Path) -> None:
    place.symlink_to(place.name)


PLANTS: list[Plant] = [
    _link_to_folder, _relative_link, _dangling, _chain, _link_to_file, _hard_link, _pipe, _loop
]  # fmt: skip

Writer = Callable[[Path], object]
WRITERS: dict[str, tuple[Writer, tuple[str, ...]]] = {
    "attachment": (
        lambda w: paths.add(w, "incoming", "report.txt", BytesIO(b"new")),
        ("incoming", "incoming/report.txt"),
    ),
    "download": (
        lambda w: paths.add(w, "downloads", "../../report.txt", BytesIO(b"new")),
        ("downloads", "downloads/report.txt"),
    ),
    "write_file": (lambda w: write(WriteFileArguments(path="a/b.txt", content="new"), w), ("a", "a/b.txt")),
    "skill": (lambda w: skill_files.store(w, "a/b.txt", b"new"), ("a", "a/b.txt")),
    "skill_new": (lambda w: skill_files.add(w, "a/b", ".txt", b"new"), ("a", "a/b.txt")),
    "output": (
        lambda w: paths.put_output(w, "o.txt", b"new"),
        (".turnkeeper", ".turnkeeper/outputs", ".turnkeeper/outputs/o.txt"),
    ),
    "todo": (
        lambda w: todo.write(w, "t", Plan(title="x", steps=())),
        (".turnkeeper", ".turnkeeper/todo.md"),
    ),
    "browser": (
        lambda w: memory.note(w, memory.RememberedPage()),
        (".turnkeeper", ".turnkeeper/browser.json"),
    ),
    "backup": (
        lambda w: backups.keep(w, Path("b.txt"), b"old"),
        (".turnkeeper", ".turnkeeper/backups"),
    ),
    "rollback": (lambda w: backups.roll_back(backups.RollbackArguments(path="a/b.txt"), w), ("a", "a/b.txt")),
    "read": (lambda w: read(ReadFileArguments(path="a/b.txt"), w), ("a", "a/b.txt")),
    "list": (lambda w: entries(ListFilesArguments(path="a", pattern="**"), w), ("a", "a/b.txt")),
    "bind": (
        lambda w: shell.bind(shell.RunCommandArguments(command="sh a/b.txt a/* **/x"), w),
        ("a", "a/b.txt"),
    ),
    "artifacts": (lambda w: artifacts.collect(w, ["**"]), ("a", "a/b.txt")),
}  # fmt: skip
CASES = [
    pytest.param(writer, place, plant, id=f"{name}-{place}-{plant.__name__}")
    for name, (writer, places) in WRITERS.items()
    for place in places
    for plant in PLANTS
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    (folder / "precious").write_text("SECRET")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspaces" / "one"
    folder.mkdir(parents=True)
    return folder


def look(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that is in it, with owner, permissions and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (info.st_mode, info.st_uid, data)
    return found


def attempt(writer: Writer, workspace: Path) -> object:
    """What the writer says, also that it cannot. In a thread: a pipe must not hold it up."""
    said: list[object] = []

    def work() -> None:
        try:
            said.append(writer(workspace))
        except (ToolFailed, OSError) as error:
            said.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it waits for a pipe"
    return said[0]


@pytest.mark.parametrize(("writer", "place", "plant"), CASES)
def test_nothing_outside_is_touched(
    writer: Writer, place: str, plant: Plant, workspace: Path, outside: Path
) -> None:
    where = workspace / place
    where.parent.mkdir(parents=True, exist_ok=True)
    plant(where, outside)
    before = look(outside)
    said = attempt(writer, workspace)
    assert look(outside) == before
    assert "SECRET" not in str(said)


@pytest.mark.parametrize("name", ["attachment", "write_file", "output", "todo", "skill"])
def test_a_folder_that_is_swapped_meanwhile(name: str, workspace: Path, outside: Path) -> None:
    writer, (place, *_) = WRITERS[name]
    before = look(outside)
    ended = threading.Event()
    where, aside = workspace / place, workspace / "aside"
    where.mkdir()

    def swap() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                where.rename(aside)
                where.symlink_to(outside)
                where.unlink()
                aside.rename(where)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(150):
            with contextlib.suppress(ToolFailed, OSError):
                writer(workspace)
    finally:
        ended.set()
        thread.join()
    assert look(outside) == before


async def test_a_file_for_everybody_beside_each_other(workspace: Path) -> None:
    def put(n: int) -> str:
        return paths.add(workspace, "incoming", "a.tar.gz", BytesIO(b"%d" % n))

    names = await asyncio.gather(*(asyncio.to_thread(put, n) for n in range(20)))
    assert len(set(names)) == 20 and "incoming/a.tar.gz" in names
    assert {(workspace / one).read_bytes() for one in names} == {b"%d" % n for n in range(20)}


@pytest.mark.parametrize(
    ("suggested", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../.env", "env"),
        ("a/b\\c.txt", "c.txt"),
        ("\u202egpj.exe", "gpj.exe"),
        ("a\nb\0c\x1b.txt", "abc.txt"),
        ("half \ud83d.txt", "half .txt"),
        ("...", "file"),
        ("", "file"),
        ("Ünïcode 名.txt", "Ünïcode 名.txt"),
    ],
)
def test_names_are_clean(suggested: str, name: str, workspace: Path) -> None:
    assert paths.add(workspace, "incoming", suggested, BytesIO(b"x")) == f"incoming/{name}"


def test_a_long_name_keeps_its_ending(workspace: Path) -> None:
    path = paths.add(workspace, "incoming", f"{'名' * 300}.pdf", BytesIO(b"x"))
    assert path.endswith("名.pdf") and len(path.encode()) < 160
    assert (workspace / path).read_bytes() == b"x"
