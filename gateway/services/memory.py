"""The memory: documents in the store's directory, shared by all replicas.

- `memory:chat:<channel>`: MEMORY.md of a group, for all its threads.
- `memory:own:<account>`: MEMORY.md and USER.md of a person, as this account told them. Documents of
linked accounts are seen together; an unlinked account takes its own along.

A conversation's address alone decides which it may see: a group the group's, a private conversation
the person's. There is no way from one to the other.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct, json
from msgspec.structs import replace

from agent_core.errors import ToolFailed
from agent_core.guardrails.redaction import Hides
from agent_core.memory.documents import (
    FILES,
    Change,
    ChangeOutcome,
    EntryEdit,
    MemoryDocuments,
    Target,
    edit,
    end_sentence,
    one_line,
)
from agent_core.memory.refusals import SECRET
from agent_core.memory.settings import MemorySettings
from agent_core.memory.tool import GROUP, OFF
from gateway.errors import StoreFailed, Unreadable
from gateway.messages import Conversation, digest
from gateway.store.port import Directory
from gateway.store.reading import read_row

log = logging.getLogger("turnkeeper.memory")

MAX_KEYS = 50
"""Changes that a document knows to be stored already."""
NOBODY = "Nobody speaks here, so there is nobody to remember it for."


class Sheet(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One document of the directory. `done`: keys of its last changes."""

    memory: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    done: tuple[str, ...] = ()

    def select(self, target: Target) -> tuple[str, ...]:
        """The entries of one document."""
        return self.memory if target == "memory" else self.user

    def edit(self, target: Target, wanted: EntryEdit) -> "Sheet":
        """Return the sheet with one document edited; `wanted.at` counts its own entries."""
        after = wanted.apply(self.select(target))
        return replace(self, memory=after) if target == "memory" else replace(self, user=after)


decode_sheet = json.Decoder(Sheet).decode
_Sheets = dict[str, tuple[bytes, Sheet]]


class PendingRemoval(Struct, frozen=True, kw_only=True):
    """A removal that another memory has to repeat: entries removed from the document `place` by
    the change `key`, and whom to tell if it fails. `everything`: the whole content of the place."""

    place: str
    key: str
    entries: tuple[str, ...]
    everything: bool = False
    where: str = ""
    language: str = ""


class Removals(Protocol):
    """Removes from another memory what was removed from ours."""

    @property
    def name(self) -> str:
        """The other memory's."""

    @property
    def possible(self) -> bool:
        """True if it can remove something."""

    async def note(self, pending: PendingRemoval) -> None:
        """Store `pending` before its entries are removed from ours. A second time with the same
        key adds to the first. StoreFailed."""

    async def settle(self, space: str) -> bool:
        """Carry out what is pending in `space`. Return False if some of it has to wait. Raises
        nothing."""

    async def run(self) -> None:
        """Retry what waits, until cancelled."""


class Memories:
    """The memories of all conversations. `accounts`: returns all accounts of a person, by one of
    them; `removals`: None if there is no other memory; `hides`: secrets, which are never stored."""

    def __init__(
        self,
        directory: Directory,
        limits: MemorySettings,
        accounts: Callable[[str], Awaitable[frozenset[str]]],
        removals: Removals | None = None,
        hides: Hides | None = None,
    ) -> None:
        self.directory = directory
        self.hides = hides
        self.limits = limits
        self.accounts = accounts
        self.removals = removals

    def open_for(
        self, where: Conversation, account: str, off: Callable[[], bool], language: str = ""
    ) -> "ConversationMemory":
        """Return the memory that the person with `account`, who reads `language`, may see in
        `where`; "" or ":" for nobody."""
        return ConversationMemory(self, where, account.strip(":"), off, language)


class ConversationMemory:
    """One conversation's memory: an `agent_core.memory.port.Memory`."""

    def __init__(
        self,
        memories: Memories,
        where: Conversation,
        account: str,
        off: Callable[[], bool],
        language: str,
    ) -> None:
        self._memories = memories
        self._where = where
        self._language = language
        self._account = account
        self._off = off

    @property
    def off(self) -> bool:
        """People have switched it off here."""
        return self._off()

    @property
    def space(self) -> str:
        """A pseudonym of the memory's owner; "" for nobody."""
        place = self._own_place()
        return name_space(place) if place else ""

    @property
    def personal(self) -> bool:
        """True if there is a USER.md."""
        return self._where.private

    async def read(self) -> MemoryDocuments:
        """Return the memory; nothing while it is off."""
        return MemoryDocuments() if self.off else await self.everything()

    async def everything(self) -> MemoryDocuments:
        """Return the memory, also while it is off; without documents that cannot be read."""
        sheets: _Sheets = {}
        for place in await self._places():
            try:
                sheets[place] = await self._sheet(place)
            except Unreadable as error:
                log.error("document_unreadable", extra={"key": place, "why": str(error)})
        memory, user = (
            tuple(dict.fromkeys(e for _, sheet in sheets.values() for e in sheet.select(target)))
            for target in FILES
        )
        return MemoryDocuments(memory=memory, user=user)

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        """Apply a change of the agent: not while it is off, never about a person in a group."""
        if self.off:
            return ChangeOutcome(text=OFF)
        if change.target == "user" and not self.personal:
            return ChangeOutcome(text=GROUP)
        try:
            return await self.apply(change, key)
        except StoreFailed as error:
            return ChangeOutcome(text=f"It could not be stored: {error}")

    async def apply(self, change: Change, key: str) -> ChangeOutcome:
        """Store `change`, once for `key`, with retries on concurrent changes. StoreFailed."""
        removes = change.action == "remove"
        hides = self._memories.hides
        if not removes and hides is not None and hides().hide(change.text) != change.text:
            return ChangeOutcome(text=SECRET)
        while True:
            sheets = await self._sheets()
            if not sheets:
                return ChangeOutcome(text=NOBODY)
            if any(key in sheet.done for _, sheet in sheets.values()):
                return _make_outcome(change, one_line(change.old if removes else change.text))
            lines = [
                (place, n, entry)
                for place, (_, sheet) in sheets.items()
                for n, entry in enumerate(sheet.select(change.target))
            ]
            try:
                limits = self._memories.limits
                limit = limits.memory if change.target == "memory" else limits.user
                wanted = edit(tuple(entry for *_, entry in lines), change, limit)
            except ToolFailed as error:
                return ChangeOutcome(text=str(error))
            if wanted is None:
                return ChangeOutcome(text="That is remembered already.")
            own = next(iter(sheets))
            place, n, before = (own, None, "") if wanted.at is None else lines[wanted.at]
            body, sheet = sheets[place]
            wanted = EntryEdit(at=n, text=wanted.text)
            await self._note(place, key, (before,) if before else ())
            if await self._put(place, body, sheet.edit(change.target, wanted), key):
                return _make_outcome(change, wanted.text or before)

    async def clear(self, key: str) -> None:
        """Forget everything, once for `key`. StoreFailed."""
        for place in await self._places():
            while True:
                try:
                    body, sheet = await self._sheet(place)
                except Unreadable:
                    body, sheet = await self._memories.directory.get(place) or b"", Sheet()
                if key in sheet.done:
                    break
                await self._note(place, key, (*sheet.memory, *sheet.user), everything=True)
                if await self._put(place, body, Sheet(done=sheet.done), key):
                    break

    async def settle(self) -> bool:
        """Let another memory remove what left this one. Return False if some of it has to wait."""
        removals = self._memories.removals
        if removals is None:
            return True
        return all([await removals.settle(name_space(one)) for one in await self._places()])

    async def _note(
        self, place: str, key: str, entries: tuple[str, ...], *, everything: bool = False
    ) -> None:
        removals = self._memories.removals
        if removals is not None and removals.possible and (entries or everything):
            pending = PendingRemoval(
                place=place,
                key=key,
                entries=entries,
                everything=everything,
                where=self._where.id,
                language=self._language,
            )
            await removals.note(pending)

    async def is_done(self, key: str) -> bool:
        """Return True if the change `key` is stored."""
        return any(key in sheet.done for _, sheet in (await self._sheets()).values())

    async def _places(self) -> list[str]:
        """Return the keys of the documents that may be seen here; the first one is written."""
        own = self._own_place()
        if not own or not self._where.private:
            return [own] if own else []
        others = await self._memories.accounts(self._account) - {self._account}
        return [f"memory:own:{account}" for account in (self._account, *sorted(others))]

    def _own_place(self) -> str:
        if not self._where.private:
            return f"memory:chat:{replace(self._where, thread='', person='').id}"
        return f"memory:own:{self._account}" if self._account else ""

    async def _sheets(self) -> _Sheets:
        return {place: await self._sheet(place) for place in await self._places()}

    async def _sheet(self, place: str) -> tuple[bytes, Sheet]:
        """Return a document and its bytes. Unreadable: it is never overwritten, but forgotten."""
        body = await self._memories.directory.get(place)
        return (body, read_row("memory", place, body, decode_sheet)) if body else (b"", Sheet())

    async def _put(self, place: str, body: bytes, sheet: Sheet, key: str) -> bool:
        """Write `sheet` if the document still is `body`."""
        new = replace(sheet, done=(*sheet.done, key)[-MAX_KEYS:])
        return await self._memories.directory.put(place, json.encode(new), body)


def name_space(place: str) -> str:
    """Return the pseudonym of the document `place` in another memory."""
    return digest(place.encode())


def _make_outcome(change: Change, entry: str) -> ChangeOutcome:
    verb = "Removed from" if change.action == "remove" else "Stored in"
    said = end_sentence(f"{verb} {FILES[change.target]}: {entry}")
    text = f"{said} The person was told; do not repeat it."
    return ChangeOutcome(text=text, shown=entry)
