"""Rules stored by 'always': each person's own, under `standing:<account>`.

A rule given in a private chat holds in all private chats of the person, by any linked account; one
given in a group holds in that group with its threads. It holds while the person's role is at least
what it was then, checked at each call.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.access.codes import load_document
from gateway.messages import Conversation
from gateway.roles import RANK
from gateway.store.port import Directory
from gateway.store.rows import ConversationRow, Rule

log = logging.getLogger("turnkeeper.standing")

UNHEEDED = frozenset(("risk:medium", "risk:high"))
"""Patterns of an older version that covered more than its cards said."""
MAX_RULES = 200
"""Maximum rules of one account; the oldest are dropped."""


class StandingRule(Struct, frozen=True, kw_only=True):
    """A rule, the place where it holds (see `name_place`), and the person's role when it was
    given."""

    rule: Rule
    place: str = ""
    role: str = "user"


class StandingRules(Struct, frozen=True, kw_only=True):
    """One account's rules: the document `standing:<account>`."""

    rules: tuple[StandingRule, ...] = ()


def name_place(where: Conversation) -> str:
    """Return the place where a rule given there holds: "" for all private chats, otherwise the
    group's address."""
    return "" if where.private else replace(where, thread="", person="").id


async def read_rules(
    directory: Directory, accounts: Iterable[str], where: Conversation
) -> tuple[StandingRule, ...]:
    """Return the rules of a person's accounts that hold there. StoreFailed."""
    place, found = name_place(where), list[StandingRule]()
    for account in sorted(accounts):
        known, _ = await load_document(directory, _name(account), StandingRules)
        found += (one for one in (known.rules if known else ()) if one.place == place)
    return tuple(found)


def list_heeded(rules: Iterable[StandingRule], role: str) -> tuple[Rule, ...]:
    """Return the rules that still hold for a person of this role; none for an unknown role."""
    ranks: dict[str, int] = {str(name): rank for name, rank in RANK.items()}
    held = ranks.get(role, -1)
    return tuple(one.rule for one in rules if held >= ranks.get(one.role, len(ranks)))


async def add_rules(
    directory: Directory, account: str, rules: Iterable[Rule], where: Conversation, role: str
) -> None:
    """Store rules of the account; a second time changes nothing. StoreFailed."""
    new = tuple(StandingRule(rule=one, place=name_place(where), role=role) for one in rules)
    marks = {_mark(one) for one in new}
    await _change(
        directory,
        account,
        lambda known: (*(one for one in known if _mark(one) not in marks), *new)[-MAX_RULES:],
    )


async def drop_rule(directory: Directory, rule: Rule, where: Conversation) -> None:
    """Take a rule back. StoreFailed."""
    mark = _mark(StandingRule(rule=rule, place=name_place(where)))
    await _change(
        directory, rule.person, lambda known: tuple(one for one in known if _mark(one) != mark)
    )


async def drop_all(directory: Directory, account: str) -> None:
    """End all rules of an account, as of who was put out. StoreFailed."""
    await directory.put(_name(account), None)


async def _change(
    directory: Directory,
    account: str,
    change: Callable[[tuple[StandingRule, ...]], tuple[StandingRule, ...]],
) -> None:
    while True:  # until there was no concurrent write
        known, body = await load_document(directory, _name(account), StandingRules)
        rules = change(known.rules if known else ())
        encoded = msgspec.json.encode(StandingRules(rules=rules))
        if await directory.put(_name(account), encoded, body or b""):
            return


def _name(account: str) -> str:
    return f"standing:{account}"


def _mark(one: StandingRule) -> tuple[str, str, str]:
    """Return the identity of a rule within an account."""
    return one.place, one.rule.tool, one.rule.pattern


def drop_unheeded(row: ConversationRow, conversation: str) -> ConversationRow:
    """The conversation's row without rules that are not heeded any more; the log names them."""
    rules = row.settings.rules
    kept = tuple(rule for rule in rules if rule.pattern not in UNHEEDED)
    if len(kept) == len(rules):
        return row
    for rule in rules:
        if rule not in kept:
            _log_dropped(rule, conversation)
    return replace(row, settings=replace(row.settings, rules=kept))


def _log_dropped(rule: Rule, conversation: str) -> None:
    log.warning(
        "rule_unheeded",
        extra={"conversation": conversation, "tool": rule.tool, "pattern": rule.pattern},
    )
