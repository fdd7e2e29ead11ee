"""Rules that people's answers stored: which of them are heeded, and for whom."""

import logging

from msgspec.structs import replace

from gateway.store.rows import ConversationRow, Rule

log = logging.getLogger("turnkeeper.standing")

UNHEEDED = frozenset(("risk:medium", "risk:high"))
"""Patterns of an older version that covered more than its cards said."""


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
