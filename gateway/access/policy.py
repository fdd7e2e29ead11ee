"""What the settings say about people beyond the lists of ids: groups, rights, quotas, deciders.
Pure readers of single settings; a ValueError's text is the mend."""

from typing import Literal, TypeVar, cast, get_args

from msgspec import Struct

from gateway.approvers import Approvers, read_approvers
from gateway.messages import Conversation, read_conversation
from gateway.ports import SettingReader
from gateway.roles import Role, read_role

GroupPolicy = Literal["mention", "thread", "always"]
GroupScope = Literal["shared", "per_person"]
T = TypeVar("T")


class Policy(Struct, frozen=True, kw_only=True):
    """The same on all platforms. `chat` is the address of the approvers' chat, "" = none;
    `turns_per_hour` 0 = no limit; `rights`: the least role that a command needs, where it differs
    from the command's own."""

    approvers: Approvers = Approvers()
    chat: str = ""
    group: GroupPolicy = "mention"
    scope: GroupScope = "shared"
    rights: dict[str, Role] = {}
    turns_per_hour: int = 0


def read_policy(parsed: SettingReader, platforms: tuple[str, ...], bot: str) -> Policy:
    """The policy that the settings write down; `bot`: the account of our Telegram bot."""
    group = parsed("GROUP_POLICY", lambda text: _one_of(text or "mention", get_args(GroupPolicy)))
    scope = parsed("GROUP_SCOPE", lambda text: _one_of(text or "shared", get_args(GroupScope)))
    return Policy(
        approvers=parsed("APPROVERS", lambda text: read_approvers(text, platforms)),
        chat=parsed("APPROVERS_CHAT", lambda text: read_chat(text, bot)),
        group=cast(GroupPolicy, group),
        scope=cast(GroupScope, scope),
        rights=parsed("COMMAND_RIGHTS", read_rights),
        turns_per_hour=parsed("QUOTA_TURNS_PER_HOUR", read_quota),
    )


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text.lower() not in known:
        raise ValueError(f"use one of: {', '.join(known)}.")
    return text.lower()


def read_rights(text: str) -> dict[str, Role]:
    """`model=admin,new=user` as least roles by command."""
    rights: dict[str, Role] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, role = piece.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"write command=role, e.g. model=admin, not {piece!r}.")
        rights[name.strip().lower().removeprefix("/")] = read_role(role.strip().lower())
    return rights


def read_quota(text: str) -> int:
    """Turns an hour; nothing and `never` are no limit."""
    if text.lower() in ("", "never"):
        return 0
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= 10_000:
        raise ValueError("write a number from 1 to 10000, or 'never' for no limit.")
    return int(text)


def read_chat(text: str, bot: str) -> str:
    """The address of `telegram:-100123`, a chat of our `bot`, or of a whole address."""
    if not text:
        return ""
    platform, _, chat = text.partition(":")
    number = chat.removeprefix(":")
    if platform == "telegram" and number.removeprefix("-").isdecimal():
        alone = not number.startswith("-")
        return Conversation(platform=platform, account=bot, channel=number, private=alone).id
    try:
        return read_conversation(text).id
    except ValueError:
        raise ValueError(
            "write telegram: and the id of the chat, as in telegram:-100123."
        ) from None
