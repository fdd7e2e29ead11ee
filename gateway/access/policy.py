"""Settings about people beyond the lists of ids: groups, rights, quotas, deciders."""

from functools import partial
from typing import Literal, get_args

from msgspec import Struct

from gateway.access.people import PLATFORMS
from gateway.accounts import telegram
from gateway.approvers import Approvers, read_approvers
from gateway.declaration import Choice, Env, OrNever, Setting, SettingTables, WholeNumber
from gateway.messages import Conversation, read_conversation
from gateway.roles import Role, read_role

GroupPolicy = Literal["mention", "thread", "always"]
GroupScope = Literal["shared", "per_person"]


class Policy(Struct, frozen=True, kw_only=True):
    """Settings for all platforms. `chat`: the address of the approvers' chat, "" for none;
    `turns_per_hour`: 0 for no limit; `rights`: the role that a command requires, where it differs
    from the command's own."""

    approvers: Approvers = Approvers()
    chat: str = ""
    group: GroupPolicy = "mention"
    scope: GroupScope = "shared"
    rights: dict[str, Role] = {}
    turns_per_hour: int = 0


def read_rights(text: str) -> dict[str, Role]:
    """`model=admin,new=user` as least roles by command."""
    rights: dict[str, Role] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, role = piece.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"write command=role, e.g. model=admin, not {piece!r}.")
        rights[name.strip().lower().removeprefix("/")] = read_role(role.strip().lower())
    return rights


def read_chat(text: str, bot: str) -> str:
    """The address of `telegram:-100123`, a chat of our `bot`, or of a whole address."""
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


APPROVERS = Setting(
    "APPROVERS",
    Approvers(),
    partial(read_approvers, platforms=PLATFORMS),
    "who decides approvals, by risk; see below",
    default_text="`default=asker,role:admin`",
)
APPROVERS_CHAT = Setting(
    "APPROVERS_CHAT",
    "",
    str,
    "a chat that receives a copy of every approval card: `telegram:-100123`, or the complete "
    "address of a conversation",
)
GROUP_POLICY: Setting[GroupPolicy] = Setting(
    "GROUP_POLICY",
    "mention",
    Choice(words=get_args(GroupPolicy)),
    "which group messages are for the agent: `mention` (mentions and replies), `thread` "
    "(everything in a topic after the first mention), `always`. Only messages of allowed people "
    "count",
)
GROUP_SCOPE: Setting[GroupScope] = Setting(
    "GROUP_SCOPE",
    "shared",
    Choice(words=get_args(GroupScope)),
    "`shared`: one conversation per group. `per_person`: each member has their own history, "
    "files and turns",
)
COMMAND_RIGHTS: Setting[dict[str, Role]] = Setting(
    "COMMAND_RIGHTS",
    {},
    read_rights,
    "minimum roles of commands, e.g. `model=admin,new=viewer`",
)
TURNS_PER_HOUR = Setting(
    "QUOTA_TURNS_PER_HOUR",
    0,
    OrNever(
        kind=WholeNumber(
            least=1, most=10_000, mend="write a number from 1 to 10000, or 'never' for no limit."
        ),
        never=0,
    ),
    "maximum number of turns per person and hour, across all linked accounts; admins have no limit",
)
TABLES: SettingTables = {
    "running": (APPROVERS, APPROVERS_CHAT),
    "people": (GROUP_POLICY, GROUP_SCOPE, COMMAND_RIGHTS, TURNS_PER_HOUR),
}


def read_policy(env: Env) -> Policy:
    """The policy in `env`; raises SettingsError."""
    chat, bot = APPROVERS_CHAT.text(env), telegram.TOKEN.text(env).partition(":")[0]
    return Policy(
        approvers=APPROVERS.read(env),
        chat=APPROVERS_CHAT.parse(chat, partial(read_chat, bot=bot)) if chat else "",
        group=GROUP_POLICY.read(env),
        scope=GROUP_SCOPE.read(env),
        rights=COMMAND_RIGHTS.read(env),
        turns_per_hour=TURNS_PER_HOUR.read(env),
    )
