"""Finds secrets by what lines before them tell: the header of a table, the kind of a manifest."""

import re
from collections.abc import Iterator

from agent_core.guardrails.named.secret_manifests import (
    MANIFEST_SIGNS,
    find_manifest_secrets,
    find_open_manifest,
)
from agent_core.guardrails.named.secret_tables import (
    COLUMN_SIGNS,
    find_open_table,
    find_table_secrets,
)

LINE_SIGNS = ("\n", "|", ",", ";", '"', "'", *MANIFEST_SIGNS)
"""One of these occurs in each beginning of such lines."""
TELLING = re.compile("|".join((*COLUMN_SIGNS, *MANIFEST_SIGNS)), re.IGNORECASE)
"""Occurs in the line that tells."""


def find_line_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each in a text of several lines."""
    yield from find_table_secrets(text)
    if any(map(text.__contains__, MANIFEST_SIGNS)):
        yield from find_manifest_secrets(text)


def find_open_lines(text: str) -> int:
    """Return where the lines begin that may tell more about those that follow `text`."""
    at = find_open_table(text)
    if any(map(text.__contains__, MANIFEST_SIGNS)):
        return min(at, find_open_manifest(text))
    return at
