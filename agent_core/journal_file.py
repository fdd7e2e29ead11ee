"""A journal for library use: one file a task, a record a line, on disk before it counts."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import DecodeError

from agent_core.journal import Record, decode, encode


class FileJournal:
    """Records of tasks in the folder `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, task_id: str) -> tuple[Record, ...]:
        """The task's records in order; a line that a crash cut off is dropped."""
        path = self._path(task_id)
        if not path.exists():
            return ()
        records: list[Record] = []
        whole = 0
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                records.append(decode(line))
            except DecodeError:
                break
            whole += len(line)
        if whole < path.stat().st_size:
            os.truncate(path, whole)
        return tuple(records)

    async def append(self, task_id: str, records: Sequence[Record]) -> None:
        """Write `records` as one step; returns when they are on the disk."""
        body = b"".join(encode(record) + b"\n" for record in records)
        await asyncio.to_thread(self._append, self._path(task_id), body)

    def _append(self, path: Path, body: bytes) -> None:
        with path.open("ab") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())

    def _path(self, task_id: str) -> Path:
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in task_id).lstrip(".")
        return self._folder / f"{safe}.jsonl"
