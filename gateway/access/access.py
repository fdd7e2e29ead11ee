"""Rights to talk, command and decide: rules over settings, roles and the directory of people.

Denies by default. Paired people and linked accounts are looked up in the directory, so that a
change by one process holds in all. A found role is cached for a few seconds: for so long another
process may still accept a removed person. A person without a role is never cached.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from agent_core import ambient
from gateway.access.addressed import Addressed
from gateway.access.people import AllowLists
from gateway.access.policy import Policy
from gateway.approvers import DEFAULT, Person
from gateway.messages import Conversation, Inbound, MessageReceived, Sender, sender_of
from gateway.roles import Role as Role
from gateway.roles import at_least, stronger
from gateway.store.reading import read_document
from gateway.store.rows import QuestionRow
from gateway.texts import Key, say

CACHE_SECONDS = 5.0
"""Seconds that a role found in the directory is believed."""
MAX_KEPT = 1024
CHATS = ("telegram", "discord", "slack")
PAGE_NAME = re.compile(r"[A-Za-z0-9@._-]{1,64}")
"""Matches names of people on the page."""

LookUp = Callable[[str], Awaitable[bytes | None]]
Doc = TypeVar("Doc", bound=Struct)


class LetIn(Struct, frozen=True, kw_only=True):
    """A paired person: the document `person:<sender key>`."""

    role: Role
    name: str
    by: str
    at: float


class Identity(Struct, frozen=True, kw_only=True):
    """The person of an account: the document `identity:<sender key>`. Valid while that person's
    `accounts:<person>` names the account too."""

    person: str


class Accounts(Struct, frozen=True, kw_only=True):
    """One person's accounts: the document `accounts:<person>`."""

    keys: tuple[str, ...]


def find_page_account(key: str) -> str:
    """Return the name of the page's account that stands for the chat account `key`, "" if it can
    have none."""
    name = key.replace(":", ".", 1)
    return name if PAGE_NAME.fullmatch(name) and find_chat_account(name) is not None else ""


def find_chat_account(name: str) -> Sender | None:
    """Return the chat account that the page's account `name` stands for."""
    platform, _, person = name.partition(".")
    if platform not in CHATS or not person:
        return None
    return Sender(platform=platform, id=person)


class Access:
    """Roles of people. `paired`: people admitted by an admin, by sender key; `look_up` reads the
    directory; without it only `paired` count."""

    def __init__(
        self,
        platforms: Mapping[str, AllowLists],
        paired: Mapping[str, Role],
        policy: Policy | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        self.policy = policy or Policy()
        self._platforms = dict(platforms)
        self._paired: dict[str, Role] = dict(paired)
        self._until: dict[str, float] = {}
        self._names: dict[str, str] = {}
        """Display names by sender key, the latest speaker last."""
        self._look_up = look_up
        self.addressed = Addressed()

    def replace_lists(self, platforms: Mapping[str, AllowLists], policy: Policy) -> None:
        """Take over the lists and rules as they are set now; who was paired is looked up anew."""
        self.policy = policy
        self._platforms = dict(platforms)
        self._paired.clear()
        self._until.clear()
        self.addressed = Addressed()

    def has_admin(self, platform: str) -> bool:
        """The settings name an admin there."""
        return bool(self._platforms.get(platform, AllowLists()).admins)

    def list_admins(self, platform: str) -> frozenset[str]:
        """Return the ids of the known admins there: people and groups from the settings, and people
        paired as admins."""
        listed = self._platforms.get(platform, AllowLists()).admins
        paired = {
            key.partition(":")[2]
            for key, role in self._paired.items()
            if role == "admin" and key.startswith(f"{platform}:")
        }
        return listed | paired

    def find_name(self, key: str) -> str:
        """The name of the person `key`, "" if they have not spoken lately."""
        return self._names.get(key, "")

    # ---- roles ---------------------------------------------------------------------------

    def role(self, sender: Sender) -> Role | None:
        """The sender's role as far as it is known; None for a stranger. Ids are compared, never
        names. An id that a list names counts before groups and `*`."""
        named = self._read_listed_role(sender.platform, sender.id)
        if named is not None:
            return named
        found = stronger(self._paired.get(sender.key), self._read_common_role(sender))
        for group in sender.groups:
            found = stronger(found, self._read_listed_role(sender.platform, f"@{group}"))
        return found

    def _read_listed_role(self, platform: str, name: str) -> Role | None:
        people = self._platforms.get(platform, AllowLists())
        if name in people.admins:
            return "admin"
        if name in people.allowed:
            return "user"
        return "viewer" if name in people.viewers else None

    def _read_common_role(self, sender: Sender) -> Role | None:
        """Return the role of everybody, which people of other organizations do not have, nor those
        who may be of one."""
        foreign = sender.external or sender.unplaced
        return None if foreign else self._read_listed_role(sender.platform, "*")

    def is_kept_out_unplaced(self, sender: Sender) -> bool:
        """Return True if the sender has no role only because it is not known whether they are
        external."""
        placed = replace(sender, unplaced=False)
        return sender.unplaced and self.role(sender) is None and self.role(placed) is not None

    async def learn(self, sender: Sender) -> Role | None:
        """Return the sender's role like `role`, after a look into the directory if the lists do not
        name them."""
        key = sender.key
        if sender.name:
            self._names.pop(key, None)
            self._names[key] = sender.name
            if len(self._names) > MAX_KEPT:
                del self._names[next(iter(self._names))]
        fresh = self._until.get(key, 0.0) > ambient.monotonic()
        named = self._read_listed_role(sender.platform, sender.id) is not None
        highest = self._read_common_role(sender) == "admin"  # nothing can be added to it
        if self._look_up is None or fresh or named or highest:
            return self.role(sender)
        let_in = await self._read(f"person:{key}", LetIn)
        found = let_in.role if let_in is not None else None
        if sender.platform == "web":
            found = stronger(found, await self._learn_chat_role(sender.id))
        if found is None:
            self.forget(key)
        else:
            self.pair(key, found)
        return self.role(sender)

    async def learn_unrecognised(self, sender: Sender | None) -> str:
        """Look the sender up. Return why they can have no role while the platform does not tell who
        they are, "" if that is not the reason."""
        role = await self.learn(sender) if sender is not None else None
        if sender is None or role is not None:
            return ""
        if self.is_kept_out_unplaced(sender):
            return say("profile_unread", sender.language)
        return say("anonymous", sender.language, id=sender.id) if sender.anonymous else ""

    async def _learn_chat_role(self, name: str) -> Role | None:
        """Return the role of the chat account behind the page's account `name`, while they are
        linked. Roles by membership of a group are not known here."""
        chat = find_chat_account(name)
        if chat is None or chat.key not in await self.accounts(f"web:{name}"):
            return None
        return await self.learn(chat)

    def pair(self, key: str, role: Role) -> None:
        """Give the person `key` this role."""
        self.forget(key)
        if self._look_up is not None:
            while len(self._until) >= MAX_KEPT:
                self.forget(next(iter(self._until)))
            self._until[key] = ambient.monotonic() + CACHE_SECONDS
        self._paired[key] = role

    def forget(self, key: str) -> None:
        """The person `key` is not known by pairing."""
        self._paired.pop(key, None)
        self._until.pop(key, None)

    def is_listed(self, sender: Sender) -> bool:
        """The settings themselves let the sender in."""
        names = (sender.id, *(f"@{group}" for group in sender.groups))
        listed = any(self._read_listed_role(sender.platform, name) is not None for name in names)
        return listed or self._read_common_role(sender) is not None

    async def accounts(self, key: str) -> frozenset[str]:
        """The keys of all accounts of the person with the account `key`, that one among them."""
        alone = frozenset({key})
        if (identity := await self._read(f"identity:{key}", Identity)) is None:
            return alone
        known = await self._read(f"accounts:{identity.person}", Accounts)
        return frozenset(known.keys) if known is not None and key in known.keys else alone

    async def _read(self, name: str, kind: type[Doc]) -> Doc | None:
        """Return a document of the directory, None if there is none that can be read."""
        if self._look_up is None:
            return None
        body = await self._look_up(name)
        return read_document(name, body, partial(json.decode, type=kind))

    async def may_act_for(self, owner: str, sender: Sender, role: Role | None) -> bool:
        """Return True if the sender is the person behind `owner`, by any linked account, or an
        admin."""
        return role == "admin" or owner in await self.accounts(sender.key)

    async def person(self, sender: Sender) -> Person:
        """Return the sender as a person, with the role and the groups of this account."""
        role = await self.learn(sender)
        groups = frozenset(f"{sender.platform}:@{group}" for group in sender.groups)
        return Person(role=role, accounts=await self.accounts(sender.key), groups=groups)

    # ---- groups --------------------------------------------------------------------------

    def is_wanted(self, inbound: Inbound) -> bool:
        """Return False for messages of groups where the agent does not work, and for words there
        that are not addressed to it. A thread may have been addressed before; its session knows
        that."""
        where = inbound.conversation
        if where.private or sender_of(inbound) is None:
            return True
        chats = self._platforms.get(where.platform, AllowLists()).chats
        elsewhere = chats.isdisjoint(("*", where.channel, where.workspace))
        if chats and elsewhere and where.id != self.policy.chat:
            return False
        if not isinstance(inbound, MessageReceived) or inbound.addressed:
            return True
        group = self.policy.group
        return group == "always" or (group == "thread" and bool(where.thread))

    def is_for_agent(self, message: MessageReceived, *, followed: bool) -> bool:
        """A known person's words are for the agent. `followed`: it was addressed here before."""
        if message.conversation.private or message.addressed:
            return True
        return self.policy.group == "always" or (self.policy.group == "thread" and followed)


def say_not_yours(owner: str, where: Conversation, language: str) -> str:
    """Return the words for a presser who is not `owner`, which may be the group itself: whoever
    writes in its name presses as themselves."""
    group = not where.private and owner == f"{where.platform}:{where.channel}"
    return say("asked_anonymously" if group else "not_yours", language)


def refusal(
    question: QuestionRow, asked_in: str, conversation: Conversation, person: Person
) -> Key | None:
    """Return the reason why this press changes nothing, None if it decides. Checked at the time of
    the press."""
    if asked_in != conversation.id:
        return "not_here"
    rule, waited = question.deciders or DEFAULT, ambient.now() - question.asked
    if not rule.entitle(person, question.asker, waited):
        known = at_least(person.role, "user")
        if not known and question.asker in person.accounts:  # who has lost the right to decide
            return "not_allowed" if person.role else "not_known"
        return "not_entitled" if known and question.deciders is not None else "not_yours"
    if question.status != "open":
        return "not_open"
    return None
