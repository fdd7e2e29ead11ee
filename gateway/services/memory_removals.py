"""Removals that another memory has to make after ours: noted first, retried within bounds, and told
if they fail.

- `memory-removal:<digest>`: one change that removed something. It is written before the document it
changes, so a crash can only leave one too many; entries still in the document are not removed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.memory import provider as outside
from agent_core.memory.provider import MemoryProvider
from gateway.errors import StoreFailed
from gateway.messages import GatewaySaid, digest, read_conversation
from gateway.ports import Accept
from gateway.services.memory import PendingRemoval, decode_sheet, name_space
from gateway.store.port import Directory
from gateway.store.reading import read_document
from gateway.texts import say

log = logging.getLogger("turnkeeper.memory")

PREFIX = "memory-removal:"
MAX_TRIES = 12
"""Maximum attempts, over about 20 hours; a restart adds one."""
FIRST_DELAY, MAX_DELAY = 60.0, 6 * 3_600.0
"""Seconds between two tries: twice as long each time."""
LOOK_EVERY = 60.0
"""Seconds between two looks at the notes."""
GRACE = 60.0
"""Seconds within which a noted change is stored in its document, or never will be."""


class MemoryRemoval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Entries to remove from `space`. `place`, `key`: the document and the change, "" for an erased
    person; `where`: who is told if it fails; `due`: when it is retried."""

    space: str
    entries: tuple[str, ...] = ()
    everything: bool = False
    place: str = ""
    key: str = ""
    where: str = ""
    language: str = ""
    at: float = 0.0
    tries: int = 0
    due: float = 0.0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(MemoryRemoval).decode


class MemoryRemovals:
    """`gateway.services.memory.Removals` on one provider. `deliver` sends a notice to a
    conversation."""

    def __init__(self, directory: Directory, provider: MemoryProvider, deliver: Accept) -> None:
        self._directory, self._provider, self._deliver = directory, provider, deliver
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()

    @property
    def name(self) -> str:
        """The provider's."""
        return self._provider.name

    @property
    def possible(self) -> bool:
        """The provider can remove an entry, or all of a space."""
        return self._provider.forgets or self._provider.clears

    async def note(self, pending: PendingRemoval) -> None:
        """Note a removal; see `Removals`."""
        await note_removal(self._directory, pending)

    async def settle(self, space: str) -> bool:
        """Remove what left `space`; see `Removals`."""
        try:
            async for name, removal in _read_all(self._directory):
                if removal.space == space and not await self._attempt(name):
                    self._wake.set()
                    return False
        except StoreFailed:
            return False
        return True

    async def run(self) -> None:
        """Retry what is due, until cancelled."""
        await self._take_up_again()
        while True:
            self._wake.clear()
            try:
                nap = await self._work_off()
            except StoreFailed as error:
                log.warning("memory_removals_unread", extra={"why": str(error)})
                nap = LOOK_EVERY
            with suppress(TimeoutError):
                async with ambient.limit(nap):
                    await self._wake.wait()

    async def _take_up_again(self) -> None:
        """Try given-up removals once more after a restart."""
        with suppress(StoreFailed):
            async for name, removal in _read_all(self._directory):
                if removal.tries >= MAX_TRIES:
                    again = replace(removal, tries=MAX_TRIES - 1, due=0.0)
                    await self._directory.put(name, _encode(again), _encode(removal))

    async def _work_off(self) -> float:
        """Try what is due. Return the seconds until there may be more."""
        nap = LOOK_EVERY
        async for name, removal in _read_all(self._directory):
            if removal.tries >= MAX_TRIES:
                continue
            if removal.due > ambient.now():
                nap = min(nap, max(0.05, removal.due - ambient.now()))
            elif not await self._attempt(name):
                nap = min(nap, FIRST_DELAY)
        return nap

    async def _attempt(self, name: str) -> bool:
        """Attempt the removal `name`, one at a time. Return False if some of it is left.
        StoreFailed."""
        async with self._lock:
            body = await self._directory.get(name)
            if body is None:
                return True
            removal = _decode(body)
            held = await self._read_held(removal)
            if held is None:
                return True  # the change is not committed yet: its caller retries
            left = await self._remove(removal, held)
            if left is None:
                await self._directory.put(name, None, body)
                return True
            if left.tries >= MAX_TRIES:
                left = await self._give_up(left)
            await self._directory.put(name, _encode(left), body)
            return False

    async def _read_held(self, removal: MemoryRemoval) -> tuple[str, ...] | None:
        """Return the entries now in the document; None if the change may still come."""
        if not removal.place:
            return ()
        body = await self._directory.get(removal.place)
        if body is None:
            return () if ambient.now() - removal.at > GRACE else None
        sheet = decode_sheet(body)
        if removal.key not in sheet.done and ambient.now() - removal.at <= GRACE:
            return None
        return (*sheet.memory, *sheet.user)

    async def _remove(self, removal: MemoryRemoval, held: tuple[str, ...]) -> MemoryRemoval | None:
        """Ask the provider. Return None if all is removed, otherwise the rest with the next
        attempt."""
        provider, space, left = self._provider, removal.space, list(removal.entries)
        try:
            async with ambient.limit(outside.SECONDS):
                if provider.clears and (removal.everything or not provider.forgets):
                    await provider.clear(space)
                    for text in held:
                        await provider.add(space, text)
                    return None
                while left:
                    if left[0] not in held:
                        await provider.forget(space, left[0])
                    del left[0]
            return None
        except Exception as error:  # noqa: BLE001  # boundary: third-party code
            why = {"provider": provider.name, "kind": type(error).__name__}
            log.warning("memory_removal_failed", extra=why)
        going = len(left) < len(removal.entries)
        tries = 1 if going else removal.tries + 1
        due = ambient.now() + min(MAX_DELAY, FIRST_DELAY * 2 ** (tries - 1))
        return replace(removal, entries=tuple(left), tries=tries, due=due)

    async def _give_up(self, removal: MemoryRemoval) -> MemoryRemoval:
        """Tell it, once; it stays noted."""
        log.error("memory_removal_given_up", extra={"provider": self._provider.name})
        if not removal.where:
            return removal
        text = say("memory_beside_failed", removal.language, name=self._provider.name)
        where, event = read_conversation(removal.where), f"{PREFIX}{removal.key}"
        await self._deliver([GatewaySaid(conversation=where, event=event, text=text)])
        return replace(removal, where="")


async def _read_all(directory: Directory) -> AsyncIterator[tuple[str, MemoryRemoval]]:
    for name in await directory.keys(PREFIX):
        body = await directory.get(name)
        if body is not None:
            with suppress(msgspec.MsgspecError):  # kept; `list_given_up` names it
                yield name, _decode(body)


class GivenUpRemoval(Struct, frozen=True, kw_only=True):
    """A removal that is retried only after an operator or a restart asks for it, or that this
    version cannot read. `name`: of its document; `entries`: how many; `at`: when it was
    requested."""

    name: str
    entries: int = 0
    at: float = 0.0
    readable: bool = True


async def list_given_up(directory: Directory) -> tuple[GivenUpRemoval, ...]:
    """Return the given-up removals, newest first, without their content."""
    found = []
    for name in await directory.keys(PREFIX):
        body = await directory.get(name)
        one = read_document(name, body, _decode)
        if one is not None and one.tries >= MAX_TRIES:
            found.append(GivenUpRemoval(name=name, entries=len(one.entries), at=one.at))
        elif one is None and body is not None:
            found.append(GivenUpRemoval(name=name, readable=False))
    return tuple(sorted(found, key=lambda one: -one.at))


async def try_again(directory: Directory, name: str) -> bool:
    """Retry a given-up removal with new attempts. Return False if there is none."""
    body = await directory.get(name) if name.startswith(PREFIX) else None
    removal = read_document(name, body, _decode)
    if body is None or removal is None or removal.tries < MAX_TRIES:
        return False
    return await directory.put(name, _encode(replace(removal, tries=0, due=0.0)), body)


async def drop_given_up(directory: Directory, name: str) -> bool:
    """Forget a given-up or unreadable removal; the other memory keeps its entries."""
    body = await directory.get(name) if name.startswith(PREFIX) else None
    removal = read_document(name, body, _decode)
    if body is None or (removal is not None and removal.tries < MAX_TRIES):
        return False
    return await directory.put(name, None, body)


async def note_removal(directory: Directory, pending: PendingRemoval) -> None:
    """Note entries before they are removed, together with those noted under the same key.
    StoreFailed."""
    name = f"{PREFIX}{digest(f'{pending.place} {pending.key}'.encode())}"
    body = await directory.get(name)
    known = read_document(name, body, _decode)
    before = known.entries if known is not None else ()
    removal = MemoryRemoval(
        space=name_space(pending.place),
        entries=tuple(dict.fromkeys((*before, *pending.entries))),
        everything=pending.everything,
        place=pending.place,
        key=pending.key,
        where=pending.where,
        language=pending.language,
        at=ambient.now(),
    )
    await directory.put(name, _encode(removal))


async def note_erased(directory: Directory, place: str) -> None:
    """Note that everything ever in `place` must go, as its person is erased. Earlier notes are
    merged into it, so that none names the person. StoreFailed."""
    space = name_space(place)
    name = f"{PREFIX}{digest(f'erased {place}'.encode())}"
    others: list[str] = []
    entries: list[str] = []
    async for one, known in _read_all(directory):
        if known.space == space:
            others += [one] if one != name else []
            entries += known.entries
    body = await directory.get(place)
    sheet = read_document(place, body, decode_sheet)
    if sheet is not None:
        entries += (*sheet.memory, *sheet.user)
    noted = MemoryRemoval(
        space=space, entries=tuple(dict.fromkeys(entries)), everything=True, at=ambient.now()
    )
    await directory.put(name, _encode(noted))
    for one in others:
        await directory.put(one, None)
