"""Lists of servers that come in pages."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

PAGES = 50
"""Maximum pages of a list; some never end."""


class Page(Protocol):
    """A part of a list. `next_cursor` leads to the next one."""

    @property
    def next_cursor(self) -> str | None: ...


Some = TypeVar("Some", bound=Page)


async def read_pages(ask: Callable[[str | None], Awaitable[Some]]) -> list[Some]:
    """Return all pages; `ask` requests the one that a cursor leads to, None for the first."""
    pages = [await ask(None)]
    known: set[str] = set()
    while len(pages) < PAGES and (cursor := pages[-1].next_cursor) and cursor not in known:
        known.add(cursor)
        pages.append(await ask(cursor))
    return pages
