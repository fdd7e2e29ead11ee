"""Finds secrets by what precedes them: a table's header, a manifest's kind, a statement's names."""

import re
from collections.abc import Iterator

from agent_core.guardrails.named.secret_manifests import (
    MANIFEST_SIGNS,
    find_manifest_secrets,
    find_open_manifest,
)
from agent_core.guardrails.named.secret_statements import (
    find_open_statement,
    find_statement_secrets,
)
from agent_core.guardrails.named.secret_tables import (
    COLUMN_SIGNS,
    find_open_table,
    find_table_secrets,
)
from agent_core.guardrails.sign_search import has_any

STATEMENT_SIGNS = ("nsert into", "NSERT INTO", "nsert ignore into", "NSERT IGNORE INTO")
"""One of these occurs in each statement."""
_WORDS = ("insert into", "insert ignore into")
BEGUN_WORDS = re.compile(
    rf"(?<!\w)(?:{'|'.join('(?:'.join(one) + ')?' * (len(one) - 1) for one in _WORDS)})\Z", re.I
)
"""Matches an end that may become a statement's first words."""
MAX_WORDS = max(map(len, _WORDS))
LINE_SIGNS = ("\n", "\t", "|", ",", ";", '"', "'", *MANIFEST_SIGNS, *STATEMENT_SIGNS)
"""One of these occurs in each longer beginning."""
TELLING = re.compile("|".join((*COLUMN_SIGNS, *MANIFEST_SIGNS)), re.IGNORECASE)
"""Occurs in the line of a table or a manifest that tells, if there are several."""


def find_line_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each."""
    if has_any(STATEMENT_SIGNS, text):
        yield from find_statement_secrets(text)
    yield from find_table_secrets(text)
    if has_any(MANIFEST_SIGNS, text):
        yield from find_manifest_secrets(text)


def find_open_lines(text: str) -> int:
    """Return where begins what may tell more about the text that follows `text`."""
    at = find_open_table(text)
    if has_any(STATEMENT_SIGNS, text):
        at = min(at, find_open_statement(text))
    if has_any(MANIFEST_SIGNS, text):
        at = min(at, find_open_manifest(text))
    return at
