"""Files and folders that are exchanged for links by another program, all the time that a tool works: no
tool reads, writes or lists what is outside, and each failure is one of its call."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.tools import paths
from agent_core.tools.backups import RollbackArguments, roll_back
from agent_core.tools.editing.editor import EditorArguments, edit
from agent_core.tools.files import (
    ListFilesArguments,
    ReadFileArguments,
    WriteFileArguments,
    bind,
    entries,
    preview,
    read,
    write,
)
from agent_core.tools.send import FileStore
from tests.sampling import examples

SECRET = "CANARY-outside-4f21"
EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2."""
AT = "d/x.txt"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.txt").write_text(SECRET)
    (tmp_path / "ws/d").mkdir(parents=True)
    (tmp_path / "ws" / AT).write_text("mine\n")
    return tmp_path / "ws"


def _link(workspace: Path, target: str) -> Path:
    (workspace / "l").symlink_to(target)
    return workspace / "l"


def _chain(workspace: Path) -> tuple[Path, Path]:
    (workspace / "far").symlink_to(workspace.parent / "outside")
    return workspace / "d", _link(workspace, "far")


def _hard(workspace: Path) -> tuple[Path, Path]:
    os.link(workspace.parent / "outside/x.txt", workspace / "l")
    return workspace / AT, workspace / "l"


def _pipe(workspace: Path) -> tuple[Path, Path]:
    os.mkfifo(workspace / "l")
    return workspace / AT, workspace / "l"


def _own(workspace: Path) -> tuple[Path, Path]:
    (workspace / paths.OWN).mkdir()
    return workspace / paths.OWN, _link(workspace, str(workspace.parent / "outside"))


KINDS: dict[str, Callable[[Path], tuple[Path, Path]]] = {
    "a folder for a link": lambda ws: (ws / "d", _link(ws, str(ws.parent / "outside"))),
    "a folder for a chain of links": _chain,
    "a file for a link": lambda ws: (ws / AT, _link(ws, str(ws.parent / "outside/x.txt"))),
    "a file for a link upwards": lambda ws: (ws / AT, _link(ws, "../outside/x.txt")),
    "a file for a link by the process": lambda ws: (
        ws / AT,
        _link(ws, "/proc/self/root/etc/passwd"),
    ),
    "a file for a hard link": _hard,
    "a file for a pipe": _pipe,
    "the gateway's folder for a link": _own,
}


def _edit(**given: object) -> EditorArguments:
    return EditorArguments.model_validate({"path": AT, **given})


def list_acts(workspace: Path) -> dict[str, Callable[[], object]]:
    kept = FileStore(workspace.parent / "kept")
    return {
        "read": lambda: read(ReadFileArguments(path=AT), workspace),
        "write": lambda: write(WriteFileArguments(path=AT, content="new"), workspace),
        "preview": lambda: preview(WriteFileArguments(path=AT, content="new"), workspace),
        "bind": lambda: bind(WriteFileArguments(path=AT, content="new"), workspace),
        "edit": lambda: edit(_edit(command="insert", insert_line=0, new_str="a"), workspace),
        "view": lambda: edit(_edit(command="view"), workspace),
        "roll back": lambda: roll_back(RollbackArguments(path=AT), workspace),
        "list": lambda: entries(ListFilesArguments(path="d", pattern="**/*"), workspace),
        "keep": lambda: kept.read(kept.keep(workspace, AT).ref),
        "add": lambda: paths.add(workspace, "d", "x.txt", BytesIO(b"new")),
        "output": lambda: paths.put_output(workspace, "o.txt", b"new"),
    }


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Exchange them until the end."""
    libc, over = ctypes.CDLL(None), threading.Event()
    names = (-100, os.fsencode(one), -100, os.fsencode(other), EXCHANGE)

    def exchange() -> None:
        while not over.is_set():
            libc.renameat2(*names)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_is_touched(workspace: Path, kind: str) -> None:
    outside = workspace.parent / "outside"
    with exchanging(*KINDS[kind](workspace)):
        for _ in range(examples(80)):
            for name, act in list_acts(workspace).items():
                said = ""
                with suppress(ToolFailed):
                    said = str(act())
                assert SECRET not in said and "root:" not in said, name
                assert [one.name for one in outside.iterdir()] == ["x.txt"], name
                assert (outside / "x.txt").read_text() == SECRET, name
