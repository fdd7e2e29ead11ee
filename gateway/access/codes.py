"""Codes that one account is shown and another enters: short-lived, each good for one enterer, and
wrong ones lock the enterer out. Small documents in the directory, compared and set, so that
replicas neither lose a failure nor take a code twice.

A code that was taken stays with who took it: the same one may enter it again within its time and
gets the same answer, for a command that was cut off is carried out again.
"""

import asyncio
import hashlib
import hmac
import logging
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from gateway.messages import Conversation, Sender
from gateway.store.port import Directory
from gateway.store.reading import read_document

log = logging.getLogger("turnkeeper.codes")

HOUR = 3600.0
LENGTH = 8
MAX_WRONG = 5

Doc = TypeVar("Doc", bound=Struct)


class PairingCode(Struct, frozen=True, kw_only=True):
    """A code and the account it was shown to. `taken`: who entered it; `grants`: what it
    granted."""

    code: str
    key: str
    platform: str
    name: str
    until: float
    language: str = ""
    where: str = ""
    taken: str = ""
    grants: str = ""


class _Wrong(Struct, frozen=True, kw_only=True):
    times: int
    until: float
    last: str = ""

    def counts(self) -> bool:
        """Return True within the hour; of a clock that was set back since, it counts no more."""
        return 0 < self.until - ambient.now() <= HOUR


class Codes:
    """The codes of one kind. `kind` begins their documents' keys; `lasts` in seconds. Wrong codes
    of all kinds are counted together."""

    def __init__(self, directory: Directory, kind: str, lasts: float) -> None:
        self._directory = directory
        self._kind = kind
        self._lasts = lasts
        self._first_write = asyncio.Lock()

    async def show(self, sender: Sender, where: Conversation | None = None) -> str:
        """Return the code for this account: the same one until it expires or is used."""
        now = ambient.now()
        shown = f"{self._kind}shown:{sender.key}"
        async with self._first_write:
            known, body = await load_document(self._directory, shown, PairingCode)
            if known is not None and known.until > now and await self._free(known.code):
                return known.code
            code = PairingCode(
                code=ambient.token(LENGTH),
                key=sender.key,
                platform=sender.platform,
                name=sender.name or sender.handle or sender.id,
                until=now + self._lasts,
                language=sender.language,
                where=where.id if where is not None else "",
            )
            if known is not None:
                await self._directory.put(self._name(known.code), None)
            if not await self._directory.put(shown, msgspec.json.encode(code), body or b""):
                newer, _ = await load_document(self._directory, shown, PairingCode)
                return newer.code if newer is not None else code.code
            await self._directory.put(self._name(code.code), msgspec.json.encode(code))
        log.info("code_shown", extra={"to": sender.key, "kind": self._kind or "pair"})
        return code.code

    async def _free(self, code: str) -> bool:
        known, _ = await load_document(self._directory, self._name(code), PairingCode)
        return known is not None and not known.taken

    async def drop(self, key: str) -> None:
        """Invalidate the code shown to the account `key`."""
        shown = f"{self._kind}shown:{key}"
        known, _ = await load_document(self._directory, shown, PairingCode)
        if known is not None:
            await self._directory.put(self._name(known.code), None)
            await self._directory.put(shown, None)

    async def is_locked(self, by: str) -> bool:
        """`by` entered too many wrong codes within the hour."""
        wrong, _ = await load_document(self._directory, f"wrong:{by}", _Wrong)
        return wrong is not None and wrong.counts() and wrong.times >= MAX_WRONG

    async def find(self, text: str, by: str) -> tuple[PairingCode, bytes] | None:
        """The code as it is written, if `by` may take it, and its document to `take` it with."""
        found, body = await load_document(
            self._directory, self._name(_normalize(text)), PairingCode
        )
        if found is None or body is None or found.until <= ambient.now():
            return None
        return (found, body) if found.taken in ("", by) else None

    async def take(
        self, found: tuple[PairingCode, bytes], by: str, grants: str = ""
    ) -> PairingCode | None:
        """Give the code to `by`; None if another one was faster."""
        code, body = found
        if code.taken:
            return code
        taken = replace(code, taken=by, grants=grants)
        written = await self._directory.put(self._name(code.code), msgspec.json.encode(taken), body)
        return taken if written else None

    async def note_wrong(self, by: str, text: str) -> bool:
        """Count a wrong code by `by` within the hour; return True if that locks them out. The same
        one in a row counts once, as an interrupted command is run again."""
        key, code = f"wrong:{by}", _normalize(text)
        async with self._first_write:
            while True:
                now = ambient.now()
                known, body = await load_document(self._directory, key, _Wrong)
                if known is None or not known.counts():
                    known = _Wrong(times=0, until=now + HOUR)
                if known.last == code:
                    return known.times >= MAX_WRONG
                more = _Wrong(times=known.times + 1, until=now + HOUR, last=code)
                if await self._directory.put(key, msgspec.json.encode(more), body or b""):
                    log.warning("wrong_code", extra={"by": by, "times": more.times})
                    return more.times >= MAX_WRONG

    def _name(self, code: str) -> str:
        return f"{self._kind}code:{code}"


def _normalize(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())[: 2 * LENGTH]


async def load_document(
    directory: Directory, key: str, kind: type[Doc]
) -> tuple[Doc | None, bytes | None]:
    """The document `key` and its bytes; an unreadable one counts as missing."""
    body = await directory.get(key)
    return read_document(key, body, partial(msgspec.json.decode, type=kind)), body


def hash_secret(secret: str) -> str:
    """Hash the secret of a link for the store."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def is_secret_of(digest: str, secret: str) -> bool:
    """Compare a secret with its digest in constant time; "" matches nothing."""
    return bool(digest) and hmac.compare_digest(digest, hash_secret(secret))
