"""The people who may use the gateway, by platform: lists of ids in the settings."""

from msgspec import Struct

from gateway.declaration import Env, Setting, SettingTables, split_words

VIEWERS = "may only read answers and `/status`. An id in a list takes precedence over `*`"


class AllowLists(Struct, frozen=True, kw_only=True):
    """One platform's lists: platform ids, `@` and the id of a role or user group, `*` for
    everybody. `chats`: the groups in which the agent works; empty for all where an allowed person
    speaks."""

    allowed: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()
    viewers: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()


class ListSettings(Struct, frozen=True, kw_only=True):
    """The settings of one platform's lists. `always`: admins in any case."""

    allowed: Setting[frozenset[str]]
    admins: Setting[frozenset[str]]
    viewers: Setting[frozenset[str]]
    chats: Setting[frozenset[str]]
    always: frozenset[str] = frozenset()

    def read(self, env: Env) -> AllowLists:
        """The lists in `env`."""
        return AllowLists(
            allowed=self.allowed.read(env),
            admins=self.admins.read(env) | self.always,
            viewers=self.viewers.read(env),
            chats=self.chats.read(env),
        )


def parse_ids(text: str) -> frozenset[str]:
    """Ids with commas or spaces between them."""
    return frozenset(split_words(text))


def _declare(name: str, users: str, viewers: str, chats: str, *always: str) -> ListSettings:
    def declare(what: str, about: str, default: str) -> Setting[frozenset[str]]:
        return Setting(f"{name}_{what}", frozenset(), parse_ids, about, default_text=default)

    return ListSettings(
        allowed=declare("ALLOWED_USERS", users, "nobody"),
        admins=declare("ADMIN_USERS", users, "nobody"),
        viewers=declare("VIEWER_USERS", viewers, "nobody"),
        chats=declare("ALLOWED_CHATS", chats, "all"),
        always=frozenset(always),
    )


DISCORD_USERS = (
    "Discord user ids, as above; `@` and the id of a role for all its members in that server"
)
SLACK_USERS = "Slack user ids (`U…`), as above"
LISTS = {
    "telegram": _declare(
        "TELEGRAM",
        "Telegram user ids; `/whoami` shows your own",
        VIEWERS,
        "ids of the groups in which the bot works, or `*`; not set: wherever an allowed person "
        "addresses it",
    ),
    "discord": _declare(
        "DISCORD",
        DISCORD_USERS,
        DISCORD_USERS,
        "ids of the servers and channels in which the bot works (including a channel's threads), "
        "or `*`",
    ),
    "slack": _declare(
        "SLACK",
        SLACK_USERS,
        SLACK_USERS,
        "ids of the channels (`C…`) in which the bot works, or `*`",
    ),
    "web": _declare(
        "WEB",
        "in addition to the page's owner, who is always an admin",
        VIEWERS,
        "unused: the page has no groups",
        "owner",
    ),
}
PLATFORMS = tuple(LISTS)
TABLES: SettingTables = {
    "people": tuple(
        setting
        for lists in LISTS.values()
        for setting in (lists.allowed, lists.admins, lists.viewers, lists.chats)
    )
}


def read_people(env: Env) -> dict[str, AllowLists]:
    """Read the lists of people by platform."""
    return {platform: lists.read(env) for platform, lists in LISTS.items()}
