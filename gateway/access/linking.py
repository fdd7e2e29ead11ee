"""Links a person's accounts on several platforms: a code shown to one account is entered with
another.

An account belongs to a person while its own document names the person and the person's document
names the account, so a half-done write counts as not linked.
"""

import logging

import msgspec

from agent_core import ambient
from gateway.access.access import Accounts, Identity
from gateway.access.codes import Codes, load_document
from gateway.messages import Sender
from gateway.ports import NoteAudit, note_nowhere
from gateway.store.port import Directory
from gateway.texts import say

log = logging.getLogger("turnkeeper.linking")

LASTS = 600.0
"""Seconds for which a code is valid."""
MAX_ACCOUNTS = 8
"""Accounts of one person."""


class DirectoryLinking:
    """services.Linking over the directory."""

    def __init__(self, directory: Directory, note: NoteAudit = note_nowhere) -> None:
        self._directory = directory
        self._note = note
        self._codes = Codes(directory, "link", LASTS)

    async def code_for(self, sender: Sender) -> str:
        """The code that the person enters with another account."""
        return await self._codes.show(sender)

    async def enter(self, code: str, sender: Sender) -> str:
        """Link the account that was shown `code` with the sender's. Return the reply."""
        by, language = sender.key, sender.language
        if await self._codes.is_locked(by):
            return say("pair_locked", language)
        found = await self._codes.find(code, by)
        if found is not None and found[0].key == by:
            return say("link_same", language)
        fresh = ambient.new_id()
        taken = await self._codes.take(found, by, fresh) if found is not None else None
        if taken is None:
            locked = await self._codes.note_wrong(by, code)
            return say("pair_locked" if locked else "pair_wrong", language)
        keys = await self._join(taken.key, by, taken.grants)
        if not keys:
            return self.say_full(language)
        log.info("linked", extra={"account": by, "with": taken.key})
        await self._note(by, "linked", taken.key)
        return say("linked", language, accounts=", ".join(key for key in keys if key != by))

    async def adopt(self, key: str, other: str) -> bool:
        """Link the account `other` with the account `key`, whose person stays. Idempotent. Return
        False if that person has too many accounts."""
        return bool(await self._join(key, other, f"of.{key}"))

    def say_full(self, language: str) -> str:
        """Say that no further account can be linked."""
        return say("link_full", language, n=MAX_ACCOUNTS)

    async def leave(self, sender: Sender) -> str:
        """Unlink this account from the others. Return the reply."""
        person = await self._person(sender.key)
        if person is None:
            return say("not_linked", sender.language)
        await self._remove_account(person, sender.key)
        await self._directory.put(f"identity:{sender.key}", None)
        log.info("parted", extra={"account": sender.key})
        await self._note(sender.key, "parted", person)
        return say("parted", sender.language)

    async def _join(self, first: str, second: str, fresh: str) -> tuple[str, ...]:
        """Make both accounts the person of `first`, otherwise `fresh`. Return all its accounts, ()
        if there are too many. Accounts linked with `second` stay behind: nobody speaks for them
        here."""
        person = await self._person(first) or fresh
        old = await self._person(second)
        if old is not None and old != person:
            await self._remove_account(old, second)
        keys = await self._add_accounts(person, first, second)
        if keys:
            body = msgspec.json.encode(Identity(person=person))
            for key in (first, second):
                await self._directory.put(f"identity:{key}", body)
        return keys

    async def _person(self, key: str) -> str | None:
        known, _ = await load_document(self._directory, f"identity:{key}", Identity)
        return known.person if known is not None else None

    async def _add_accounts(self, person: str, *more: str) -> tuple[str, ...]:
        while True:
            known, body = await load_document(self._directory, f"accounts:{person}", Accounts)
            keys = tuple(dict.fromkeys((*(known.keys if known else ()), *more)))
            if len(keys) > MAX_ACCOUNTS:
                return ()
            if await self._put(person, keys, body):
                return keys

    async def _remove_account(self, person: str, key: str) -> None:
        while True:
            known, body = await load_document(self._directory, f"accounts:{person}", Accounts)
            if known is None or key not in known.keys:
                return
            if await self._put(person, tuple(one for one in known.keys if one != key), body):
                return

    async def _put(self, person: str, keys: tuple[str, ...], body: bytes | None) -> bool:
        encoded = msgspec.json.encode(Accounts(keys=keys))
        return await self._directory.put(f"accounts:{person}", encoded, body or b"")
