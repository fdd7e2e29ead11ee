"""A memory in a folder: MEMORY.md and USER.md, an entry a line. For the library."""

import asyncio
import os
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.memory.documents import (
    FILES,
    Change,
    ChangeOutcome,
    MemoryDocuments,
    Target,
    edit,
    end_sentence,
    one_line,
    write_document,
)
from agent_core.memory.settings import MemorySettings

KEYS = ".stored"
"""The file of keys of stored changes, one a line."""
MAX_KEYS = 200


class FolderMemory:
    """A memory of one person and one process; people may edit its files. `limits`: characters."""

    off = False
    personal = True

    def __init__(self, folder: Path, limits: MemorySettings | None = None) -> None:
        self._folder = folder
        self._limits = limits or MemorySettings()
        self._changing = asyncio.Lock()

    async def read(self) -> MemoryDocuments:
        """Return both documents."""
        return await asyncio.to_thread(self._read)

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        """Store `change`, once for `key`."""
        async with self._changing:
            return await asyncio.to_thread(self._change, change, key)

    def _read(self) -> MemoryDocuments:
        return MemoryDocuments(memory=self._load("memory"), user=self._load("user"))

    def _change(self, change: Change, key: str) -> ChangeOutcome:
        keys, entries = self._lines(KEYS), self._load(change.target)
        entry = one_line(change.old if change.action == "remove" else change.text)
        if key not in keys:
            own = self._limits
            limit = own.memory if change.target == "memory" else own.user
            try:
                wanted = edit(entries, change, limit)
            except ToolFailed as error:
                return ChangeOutcome(text=str(error))
            if wanted is None:
                return ChangeOutcome(text="That is remembered already.")
            entry = wanted.text or (entries[wanted.at] if wanted.at is not None else "")
            after = wanted.apply(entries)
            self._put(FILES[change.target], write_document(after) if after else "")
            self._put(KEYS, "\n".join((*keys, key)[-MAX_KEYS:]))
        verb = "Removed from" if change.action == "remove" else "Stored in"
        text = end_sentence(f"{verb} {FILES[change.target]}: {entry}")
        return ChangeOutcome(text=text, shown=entry)

    def _load(self, target: Target) -> tuple[str, ...]:
        found = (one_line(line.removeprefix("- ")) for line in self._lines(FILES[target]))
        return tuple(filter(None, found))

    def _lines(self, name: str) -> tuple[str, ...]:
        try:
            return tuple((self._folder / name).read_text("utf-8", "replace").splitlines())
        except FileNotFoundError:
            return ()

    def _put(self, name: str, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"{name}.new"
        new.write_text(f"{text}\n" if text else "", "utf-8")
        os.replace(new, self._folder / name)
