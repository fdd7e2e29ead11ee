"""Pairing of strangers: they show a code, an entitled person enters it; it can be revoked.

Paired people are small documents in the store's directory.
"""

import logging
from typing import Protocol

import msgspec

from agent_core import ambient
from gateway.access.access import LetIn, Role
from gateway.access.codes import HOUR, Codes, PairingCode, load_document
from gateway.access.standing import drop_all
from gateway.messages import Conversation, GatewaySaid, Sender, read_conversation
from gateway.ports import Accept, NoteAudit, note_nowhere
from gateway.roles import read_role
from gateway.store.port import Directory
from gateway.texts import say

log = logging.getLogger("turnkeeper.pairing")

MACHINE = "machine"
"""The decider of codes on the command line: anybody who may use the gateway's files."""


class Lists(Protocol):
    """The running gateway's roles of people."""

    def pair(self, key: str, role: Role) -> None:
        """Give the person `key` this role."""

    def forget(self, key: str) -> None:
        """The person `key` is not known by pairing."""

    def is_listed(self, sender: Sender) -> bool:
        """The settings themselves let the sender in."""

    def has_admin(self, platform: str) -> bool:
        """The settings name an admin there."""


async def load_people(directory: Directory) -> dict[str, Role]:
    """Everybody let in so far, by sender key."""
    found: dict[str, Role] = {}
    for key in await directory.keys("person:"):
        let_in, _ = await load_document(directory, key, LetIn)
        if let_in is not None:
            found[key.removeprefix("person:")] = let_in.role
    return found


class DirectoryPairing:
    """services.Pairing over the directory. `lists` are updated at once; `accept` sends the news to
    the paired person."""

    def __init__(
        self,
        directory: Directory,
        lists: Lists,
        accept: Accept,
        note: NoteAudit = note_nowhere,
    ) -> None:
        self._directory = directory
        self._lists = lists
        self._accept = accept
        self._note = note
        self._codes = Codes(directory, "", HOUR)

    async def code_for(self, sender: Sender, where: Conversation | None = None) -> str:
        """The code for this stranger: the same one for an hour."""
        return await self._codes.show(sender, where)

    async def enter(self, code: str, by: str, language: str) -> str:
        """Admit the person who was shown `code`. Return the reply to `by`, who entered it."""
        if await self._codes.is_locked(by):
            return say("pair_locked", language)
        found = await self._codes.find(code, by)
        taken = None
        if found is not None:
            taken = await self._codes.take(found, by, await self._role(found[0], by))
        if taken is None:
            locked = await self._codes.note_wrong(by, code)
            return say("pair_locked" if locked else "pair_wrong", language)
        role = read_role(taken.grants)
        await self._let_in(taken, role, by)
        return say("paired_admin" if role == "admin" else "paired", language, name=taken.name)

    async def _let_in(self, code: PairingCode, role: Role, by: str) -> None:
        """Admit the person. Idempotent."""
        person = LetIn(role=role, name=code.name, by=by, at=ambient.now())
        await self._directory.put(f"person:{code.key}", msgspec.json.encode(person))
        self._lists.pair(code.key, role)
        log.info("paired", extra={"person": code.key, "role": role, "by": by})
        await self._note(by, "paired", f"{code.key} {role}")
        if code.where:
            text = say("welcome_admin" if role == "admin" else "welcome", code.language)
            where, event = read_conversation(code.where), f"paired:{code.code}"
            await self._accept([GatewaySaid(conversation=where, event=event, text=text)])

    async def put_out(self, key: str, by: str, language: str) -> str:
        """Revoke what pairing gave the account `key`. Return the reply to `by`, who did it."""
        platform, _, name = key.partition(":")
        known = await self._directory.get(f"person:{key}") is not None
        if known:
            await self._codes.drop(key)
            await self._directory.put(f"person:{key}", None)
            await drop_all(self._directory, key)
            log.info("put_out", extra={"person": key})
            await self._note(by, "put_out", key)
        self._lists.forget(key)
        if self._lists.is_listed(Sender(platform=platform, id=name)):
            return say("unpair_listed", language, person=key)
        return say("unpaired" if known else "unpair_unknown", language, person=key)

    async def _role(self, code: PairingCode, by: str) -> Role:
        """The first one let in on a platform, on the machine itself, becomes its admin."""
        if by != MACHINE or self._lists.has_admin(code.platform):
            return "user"
        start = f"{code.platform}:"
        known = await load_people(self._directory)
        has_admin = any(role == "admin" for key, role in known.items() if key.startswith(start))
        return "user" if has_admin else "admin"
