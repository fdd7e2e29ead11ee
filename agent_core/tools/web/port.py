"""The ports to the web: search, fetch, and their results. Imports no client."""

from typing import Protocol

from msgspec import Struct


class Hit(Struct, frozen=True, kw_only=True):
    """One search result."""

    url: str
    title: str
    snippet: str = ""


class Search(Protocol):
    """A provider of search results."""

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        """Return at most `count` hits, best first; ToolFailed with the reason."""


class Fetched(Struct, frozen=True, kw_only=True):
    """The content of `url`, after redirects. `mime` without parameters, `charset` as the server
    named it. `moved`: the URL on another host that was not followed."""

    url: str
    mime: str
    charset: str
    body: bytes
    moved: str = ""


class Fetch(Protocol):
    """Reads a public URL."""

    async def get(self, url: str, stay: bool = False) -> Fetched:
        """Return its content; ToolFailed with the reason."""


class Web(Struct, frozen=True, kw_only=True):
    """The web as the agent reaches it."""

    search: Search
    fetch: Fetch
