"""Marks around a server's words."""

from collections.abc import Iterable

from agent_core.context.stranger_marks import mark_strangers


def mark_untrusted(server: str, lines: Iterable[str]) -> str:
    """Put the server's `lines` between marks that they cannot forge."""
    return mark_strangers(f"the server {server}", lines, "the server")
