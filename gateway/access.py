"""Who may talk, command and decide: pure rules over settings and roles. Deny by default."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from gateway.messages import Conversation, MessageReceived, Sender
from gateway.store.rows import QuestionRow
from gateway.texts import Key

Role = Literal["admin", "user", "viewer"]


class People(Struct, frozen=True, kw_only=True):
    """One platform's lists: platform ids, `*` for everybody."""

    allowed: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()


class Access:
    """Roles of people. `paired` are those let in by an admin, by sender key."""

    def __init__(self, platforms: Mapping[str, People], paired: Mapping[str, Role]) -> None:
        self._platforms = dict(platforms)
        self._paired: dict[str, Role] = dict(paired)

    def role(self, sender: Sender) -> Role | None:
        """The sender's role; None for a stranger. Ids are compared, never names."""
        people = self._platforms.get(sender.platform, People())
        if sender.id in people.admins or "*" in people.admins:
            return "admin"
        if sender.id in people.allowed or "*" in people.allowed:
            return "user"
        return self._paired.get(sender.key)

    def pair(self, key: str, role: Role) -> None:
        """From now on the person `key` has this role."""
        self._paired[key] = role


def wanted(message: MessageReceived) -> bool:
    """In a group only what is addressed to the agent is for it."""
    return message.conversation.private or message.addressed


def refusal(
    question: QuestionRow,
    asked_in: str,
    conversation: Conversation,
    sender: Sender,
    role: Role | None,
) -> Key | None:
    """Why this press must change nothing, None if it decides. Checked at the time of the press."""
    if asked_in != conversation.id:
        return "not_here"
    if role is None or role == "viewer":
        return "not_yours"
    if role != "admin" and sender.key not in question.entitled:
        return "not_yours"
    if question.status != "open":
        return "not_open"
    return None
