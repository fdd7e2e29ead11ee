"""The turns that a loop has done: the last ones, on disk where its agent keeps a journal."""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import msgspec

from agent_core.library.turn_recorder import Done, Planned, Verification

MAX_HISTORY = 100
NAME = ".executions.jsonl"
"""The file in the journal's folder, with a turn a line. No task's journal begins with a dot."""


class Entry(TypedDict):
    """A turn in the history. `timestamp` in seconds since 1970, `execution_time` in seconds."""

    timestamp: float
    plan: list[Planned]
    results: list[Done]
    verification: Verification
    success: bool
    execution_time: float


class Entries:
    """The last MAX_HISTORY turns. `folder`: where they outlive the process, None: nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / NAME if folder is not None else None
        self._last = deque(self._read(), maxlen=MAX_HISTORY)
        self._lines = len(self._last)

    def __iter__(self) -> Iterator[Entry]:
        """Oldest first."""
        return iter(tuple(self._last))

    def __len__(self) -> int:
        return len(self._last)

    def add(self, entry: Entry) -> None:
        """Keep it; on disk before this returns. The file is cut when it holds twice as many."""
        self._last.append(entry)
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._lines >= 2 * MAX_HISTORY:
            self._cut(self._path)
            return
        with self._path.open("ab") as file:
            _append_entries(file.fileno(), [entry])
        self._lines += 1

    def _cut(self, path: Path) -> None:
        whole = path.with_suffix(".new")
        with whole.open("wb") as file:
            _append_entries(file.fileno(), list(self._last))
        os.replace(whole, path)
        self._lines = len(self._last)

    def _read(self) -> list[Entry]:
        """Read the entries; a line cut off by a crash is dropped."""
        if self._path is None or not self._path.exists():
            return []
        found: list[Entry] = []
        for line in self._path.read_bytes().splitlines():
            try:
                found.append(msgspec.json.decode(line, type=Entry))
            except msgspec.MsgspecError:
                continue
        return found


def _append_entries(file: int, entries: list[Entry]) -> None:
    """Append entries, each with a line break in front: a line cut off by a crash spoils no
    other."""
    os.write(file, b"".join(b"\n" + msgspec.json.encode(entry) for entry in entries))
    os.fsync(file)
