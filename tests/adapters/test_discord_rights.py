"""What the bot may do in a channel of Discord, as Discord documents that it is computed."""

from typing import Any

import pytest

from adapters.discord.lost_chats import BotRights, is_silenced, may_write

VIEW, SEND, IN_THREADS, ADMIN = 1 << 10, 1 << 11, 1 << 38, 1 << 3
ALL = VIEW | SEND | IN_THREADS
GUILD, BOT, OWN, OTHER = "7", "4", "43", "49"


def rule(who: str, allow: int = 0, deny: int = 0) -> dict[str, Any]:
    return {"id": who, "allow": str(allow), "deny": str(deny)}


@pytest.mark.parametrize(
    ("base", "rules", "writes"),
    [
        (ALL, [], True),
        (0, [], False),
        (ALL, [rule(GUILD, deny=VIEW)], False),
        (ALL, [rule(GUILD, deny=VIEW), rule(OWN, allow=VIEW)], True),
        (ALL, [rule(OWN, deny=VIEW), rule(BOT, allow=VIEW)], True),
        (ALL, [rule(BOT, deny=VIEW), rule(OWN, allow=VIEW)], False),
        (ALL, [rule(OTHER, deny=VIEW)], True),
        (ALL, [rule(GUILD, deny=SEND)], True),
        (ALL, [rule(GUILD, deny=SEND | IN_THREADS)], False),
        (VIEW, [rule(OWN, allow=IN_THREADS)], True),
        (ADMIN, [rule(BOT, deny=ALL)], True),
        (ALL, [{"id": OWN, "allow": None, "deny": "x"}, 5, {"id": [], "deny": "9"}], True),
    ],
)
def test_overwrites_come_after_roles_and_the_bots_own_last(
    base: int, rules: list[Any], writes: bool
) -> None:
    rights = BotRights(guild=GUILD, bot=BOT, base=base, roles=frozenset((GUILD, OWN)))
    assert may_write(rights.compute({"permission_overwrites": rules})) is writes


@pytest.mark.parametrize(
    ("until", "silent"),
    [(None, False), ("2001-01-01T00:00:00+00:00", False), ("2999-01-01T00:00:00+00:00", True),
     ("soon", False), (5, False)],
)  # fmt: skip
def test_who_is_silenced_is_so_until_then(until: object, silent: bool) -> None:
    assert is_silenced({"communication_disabled_until": until}) is silent


def test_who_is_silenced_may_read_and_an_admin_is_never() -> None:
    rights = BotRights(guild=GUILD, bot=BOT, base=ALL, roles=frozenset((GUILD,)), silenced=True)
    assert not may_write(rights.compute({})) and rights.compute({}).view_channel
    rights = BotRights(guild=GUILD, bot=BOT, base=ADMIN, roles=frozenset(), silenced=True)
    assert may_write(rights.compute({}))
