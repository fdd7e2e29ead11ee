"""Deletes content past its period: conversations one by one, the audit, small documents."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from agent_core import ambient
from gateway.services.audit_trail import AuditTrail
from gateway.services.workspaces import Workspaces
from gateway.store.port import Directory
from gateway.store.removal.periods import BEFORE, DAY, Periods
from gateway.store.removal.port import Position, Removal

log = logging.getLogger("turnkeeper.retention")

PAGE = 100
SECONDS = 5.0
"""Seconds of one sweep over conversations; the next one continues where it stopped."""
REST = 3_600.0
"""Seconds between two walks over conversations that must stay, and over small documents."""
GRACE = 2 * DAY
"""Seconds for which a document is kept after its end."""

Keeps = Callable[[], Awaitable[frozenset[str]]]
IsOver = Callable[[bytes, float], bool]
"""Tells by a document's content, and a time, whether it had expired by then."""


class _Until(msgspec.Struct):
    """The end of a code, or of a count of wrong ones."""

    until: float


class _Accounts(msgspec.Struct):
    """Accounts of a person."""

    keys: tuple[str, ...]


class Retention:
    """Deletes what a store's sweep does not. `keeps` returns True for conversations that stay at
    any age, because a job lives there."""

    def __init__(
        self,
        removal: Removal,
        periods: Periods,
        keeps: Keeps,
        workspaces: Workspaces,
        trail: AuditTrail,
    ) -> None:
        self.periods = periods
        self._removal = removal
        self._keeps = keeps
        self._workspaces = workspaces
        self._trail = trail
        self._after = Position()
        self._rested = -REST
        self._untidied: list[tuple[str, IsOver]] = []
        """Documents that the present round has not looked at."""

    async def sweep(self, now: float) -> int:
        """Go on for a while; how many conversations went."""
        until = ambient.monotonic() + SECONDS
        for name in await self._removal.find_marked():
            await self.finish(name)
        period = self.periods.audit
        before = now - (period or 0.0)
        mark = partial(self._trail.mark_dropped, before)
        while period is not None and await self._removal.drop_audit(before, mark):
            if ambient.monotonic() > until:
                return 0
        return await self._sweep_conversations(now, until)

    async def _sweep_conversations(self, now: float, until: float) -> int:
        period, gone = self.periods.conversations, 0
        if period is None or self._is_resting():
            return 0
        while page := await self._removal.find_idle(now - period, PAGE, self._after):
            keeps = await self._keeps()
            for place in page:
                self._after, name = place, place.conversation
                if name not in keeps and await self._removal.begin(name, now - period):
                    await self.finish(name)
                    gone += 1
                if ambient.monotonic() > until:
                    return gone
        self._after, self._rested = Position(), ambient.monotonic()
        if gone:
            log.info("conversations_dropped", extra={"count": gone})
        return gone

    def _is_resting(self) -> bool:
        """True while a complete walk is recent; conversations that must stay are not checked again
        yet."""
        return self._after == Position() and ambient.monotonic() - self._rested < REST

    async def remove(self, conversation: str) -> bool:
        """Delete a conversation with its files. Return False if a job lives there or somebody holds
        it."""
        if conversation in await self._keeps():
            return False
        if not await self._removal.begin(conversation, None):
            return False
        await self.finish(conversation)
        await asyncio.to_thread(self._workspaces.remove, conversation)
        return True

    async def finish(self, conversation: str) -> None:
        """Delete a marked conversation, piece by piece."""
        await asyncio.to_thread(self._workspaces.set_aside, conversation)
        await self._trail.close(conversation)
        while await self._removal.remove_piece(conversation):
            pass

    async def count(self, now: float) -> int:
        """Count conversations past their period, including those with open work."""
        period, count, after = self.periods.conversations, 0, Position()
        if period is None:
            return 0
        keeps = await self._keeps()
        while page := await self._removal.find_idle(now - period, PAGE, after):
            after = page[-1]
            count += sum(place.conversation not in keeps for place in page)
        return count

    async def tidy(self, directory: Directory, now: float) -> None:
        """Keep what jobs need. Delete workspaces set aside and expired documents; nothing of an
        installation that has not chosen a period."""
        await asyncio.to_thread(self._workspaces.keep_alive, await self._keeps())
        if self.periods == BEFORE:
            return
        if self.periods.files is not None:
            await asyncio.to_thread(self._workspaces.tidy, now - self.periods.files)
        if not self._untidied:
            for prefix, is_over in _DOCUMENTS:
                self._untidied += [(name, is_over) for name in await directory.keys(prefix)]
        while self._untidied:  # with many people it takes several rounds
            name, is_over = self._untidied.pop()
            body = await directory.get(name)
            try:
                over = body is not None and is_over(body, now - GRACE)
            except (msgspec.MsgspecError, ValueError):
                continue  # of another version: kept
            if over:
                await directory.put(name, None, body)


def _is_past(body: bytes, before: float) -> bool:
    return msgspec.json.decode(body, type=_Until).until < before


def _is_quota_past(body: bytes, before: float) -> bool:
    begun = msgspec.json.decode(body, type=tuple[tuple[float, str], ...])
    return all(at < before for at, _ in begun)


def _is_empty(body: bytes, before: float) -> bool:
    return not msgspec.json.decode(body, type=_Accounts).keys


_CODES = ("wrong:", "code:", "shown:", "linkcode:", "linkshown:", "pagelink:")
_DOCUMENTS: tuple[tuple[str, IsOver], ...] = (
    ("quota:", _is_quota_past),
    *((name, _is_past) for name in _CODES),
    ("accounts:", _is_empty),
)
"""Name prefixes of documents that expire, and how to tell."""
