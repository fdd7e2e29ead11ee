"""How strangers get in: they show a code, somebody entitled enters it.

Owns three kinds of small documents in the store's directory: codes shown (an hour), wrong codes
by who entered them, and the people let in. All but first writes are compare-and-set, so that two
replicas neither lose a failure nor pair a code twice.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

from agent_core import ambient
from gateway.access import Role
from gateway.messages import Sender
from gateway.store.port import Directory
from gateway.texts import say

log = logging.getLogger("turnkeeper.pairing")

HOUR = 3600.0
LENGTH = 8
MOST_WRONG = 5
MACHINE = "machine"
"""Who enters a code on the command line: whoever may use the gateway's files."""

Grant = Callable[[str, Role], None]
Doc = TypeVar("Doc", bound=Struct)


class Person(Struct, frozen=True, kw_only=True):
    """Somebody let in."""

    role: Role
    name: str
    by: str
    at: float


class _Code(Struct, frozen=True, kw_only=True):
    code: str
    key: str
    platform: str
    name: str
    until: float


class _Wrong(Struct, frozen=True, kw_only=True):
    times: int
    until: float


async def people(directory: Directory) -> dict[str, Role]:
    """Everybody let in so far, by sender key."""
    found: dict[str, Role] = {}
    for key in await directory.keys("person:"):
        body = await directory.get(key)
        if body is not None:
            found[key.removeprefix("person:")] = msgspec.json.decode(body, type=Person).role
    return found


class DirectoryPairing:
    """services.Pairing over the directory. `grant` tells the access lists at once;
    `appointed(platform)`: the settings name an admin there."""

    def __init__(
        self, directory: Directory, grant: Grant, appointed: Callable[[str], bool]
    ) -> None:
        self._directory = directory
        self._grant = grant
        self._appointed = appointed
        self._first_write = asyncio.Lock()

    async def code_for(self, sender: Sender) -> str:
        """The code for this stranger: the same one for an hour."""
        now = ambient.now()
        shown = f"shown:{sender.key}"
        async with self._first_write:
            known, body = await self._get(shown, _Code)
            if known is not None and known.until > now:
                return known.code
            code = _Code(
                code=ambient.token(LENGTH),
                key=sender.key,
                platform=sender.platform,
                name=sender.name or sender.handle or sender.id,
                until=now + HOUR,
            )
            if known is not None:
                await self._directory.put(f"code:{known.code}", None)
            if not await self._directory.put(shown, msgspec.json.encode(code), body or b""):
                newer, _ = await self._get(shown, _Code)
                return newer.code if newer is not None else code.code
            await self._directory.put(f"code:{code.code}", msgspec.json.encode(code))
        log.info("code_shown", extra={"to": sender.key})
        return code.code

    async def enter(self, code: str, by: str, language: str) -> str:
        """Let in who was shown `code`; what to tell the person `by` who entered it."""
        now = ambient.now()
        wrong, _ = await self._get(f"wrong:{by}", _Wrong)
        if wrong is not None and wrong.until > now and wrong.times >= MOST_WRONG:
            return say("pair_locked", language)
        code = "".join(letter for letter in code.upper() if letter.isalnum())[: 2 * LENGTH]
        found, body = await self._get(f"code:{code}", _Code)
        taken = (
            found is not None
            and found.until > now
            and await self._directory.put(f"code:{code}", None, body)
        )
        if found is None or not taken:
            times = await self._count(by, now)
            log.warning("wrong_code", extra={"by": by, "times": times})
            return say("pair_locked" if times >= MOST_WRONG else "pair_wrong", language)
        role = await self._let_in(found, by, now)
        return say("paired_admin" if role == "admin" else "paired", language, name=found.name)

    async def _let_in(self, found: _Code, by: str, now: float) -> Role:
        first = by == MACHINE and not await self._has_admin(found.platform)
        role: Role = "admin" if first else "user"
        person = Person(role=role, name=found.name, by=by, at=now)
        await self._directory.put(f"person:{found.key}", msgspec.json.encode(person))
        await self._directory.put(f"shown:{found.key}", None)
        self._grant(found.key, role)
        log.info("paired", extra={"person": found.key, "role": role, "by": by})
        return role

    async def _has_admin(self, platform: str) -> bool:
        if self._appointed(platform):
            return True
        known = await people(self._directory)
        start = f"{platform}:"
        return any(role == "admin" for key, role in known.items() if key.startswith(start))

    async def _count(self, by: str, now: float) -> int:
        """One more wrong code by `by` within the hour; how many."""
        key = f"wrong:{by}"
        async with self._first_write:
            while True:
                known, body = await self._get(key, _Wrong)
                going = known is not None and known.until > now
                times = known.times + 1 if known is not None and going else 1
                wrong = _Wrong(times=times, until=now + HOUR)
                if await self._directory.put(key, msgspec.json.encode(wrong), body or b""):
                    return times

    async def _get(self, key: str, kind: type[Doc]) -> tuple[Doc | None, bytes | None]:
        body = await self._directory.get(key)
        return (None if body is None else msgspec.json.decode(body, type=kind)), body
