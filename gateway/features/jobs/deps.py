"""The gateway's services that jobs need."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from agent_core.journal import Record
from gateway.features.jobs.binding import bind_command
from gateway.jobs_port import Asker, JobRequest
from gateway.messages import digest, read_conversation
from gateway.ports import Accept
from gateway.store.rows import TranscriptRow, TurnRow

NEWEST = 8
"""Rows of a transcript among which a chat's person is looked for."""


Fits: TypeAlias = Callable[[JobRequest], tuple[str, str]]


def find_nothing_missing(wish: JobRequest) -> tuple[str, str]:
    """Report nothing as missing: the default without a catalogue."""
    return "", ""


class JobDirectory(Protocol):
    """The part of the store that jobs use, and its clock."""

    async def now(self) -> float: ...
    async def turn(self, turn: str) -> TurnRow | None: ...
    async def records(self, turn: str) -> tuple[Record, ...]: ...
    async def newest(self, conversation: str, limit: int) -> tuple[TranscriptRow, ...]: ...
    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool: ...


class JobDeps(Struct, frozen=True, kw_only=True):
    """`accept` delivers a message to a conversation. `folder` holds the workspaces. `platforms`:
    those that are set up. `fits` returns the models, profiles and tool sets of a request that do
    not exist, and those that do. `hide` redacts known secrets."""

    store: JobDirectory
    accept: Accept
    folder: Path
    platforms: frozenset[str]
    fits: Fits = find_nothing_missing
    hide: Callable[[str], str] = str

    def workspace(self, address: str) -> Path:
        """The folder of a conversation."""
        return self.folder / digest(address.encode())

    def bind(self, address: str, command: str) -> str:
        """Return the digest to which an approval of the command at an address is bound. Blocks."""
        return bind_command(command, self.workspace(address))

    async def may(self, asker: Asker, address: str) -> bool:
        """The person may let reports go to that address."""
        reached = is_reachable(address, self.platforms)
        return reached and await may_report_to(self.store, asker, address)


def is_reachable(address: str, platforms: frozenset[str]) -> bool:
    """Return True for a conversation's address on a platform that is set up."""
    try:
        return read_conversation(address).platform in platforms
    except ValueError:
        return False


async def may_report_to(store: JobDirectory, asker: Asker, address: str) -> bool:
    """Return True if reports of this person's jobs may go there: an admin's to any conversation of
    the agent, anybody's to their own private chats with it."""
    if address == asker.conversation.id:
        return True
    rows = await store.newest(address, NEWEST)
    if asker.role == "admin":
        return bool(rows)
    people = {row.person for row in rows if row.person}
    mine = asker.accounts | {asker.sender.key}
    return read_conversation(address).private and bool(people) and people <= mine
