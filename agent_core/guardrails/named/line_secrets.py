"""Finds secrets by what precedes them: a table's header, a manifest's kind, a statement's names."""

import re
from collections.abc import Iterator

from agent_core.guardrails.named.secret_manifests import (
    MANIFEST_SIGNS,
    find_manifest_secrets,
    find_open_manifest,
)
from agent_core.guardrails.named.secret_statements import (
    STATEMENT_SIGNS,
    find_open_statement,
    find_statement_secrets,
)
from agent_core.guardrails.named.secret_tables import (
    COLUMN_SIGNS,
    find_open_table,
    find_table_secrets,
)

_LINE_SIGNS = ("\n", "|", ",", ";", '"', "'", *MANIFEST_SIGNS)
"""One of these occurs in each beginning of a table or a manifest."""
_TELLING = re.compile("|".join((*COLUMN_SIGNS, *MANIFEST_SIGNS)), re.IGNORECASE)
"""Occurs in their line that tells."""


def find_line_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each."""
    if _has_any(STATEMENT_SIGNS, text):
        yield from find_statement_secrets(text)
    if "\n" in text and _TELLING.search(text):
        yield from find_table_secrets(text)
        if _has_any(MANIFEST_SIGNS, text):
            yield from find_manifest_secrets(text)


def find_open_lines(text: str) -> int:
    """Return where begins what may tell more about the text that follows `text`."""
    at = find_open_statement(text)
    if _has_any(_LINE_SIGNS, text):
        at = min(at, find_open_table(text))
    if _has_any(MANIFEST_SIGNS, text):
        at = min(at, find_open_manifest(text))
    return at


def _has_any(signs: tuple[str, ...], text: str) -> bool:
    return any(map(text.__contains__, signs))
