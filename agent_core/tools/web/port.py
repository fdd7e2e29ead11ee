"""The web as the agent knows it: what finds, what fetches, and what they give. Imports no
client."""

from typing import Protocol

from msgspec import Struct


class Hit(Struct, frozen=True, kw_only=True):
    """One thing that was found."""

    url: str
    title: str
    snippet: str = ""


class Search(Protocol):
    """A provider of search results."""

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        """At most `count` hits, best first; ToolFailed with the reason."""


class Fetched(Struct, frozen=True, kw_only=True):
    """What stood at `url`, where the redirects ended. `mime` without parameters, `charset` as the
    server named it. `moved`: the URL on another host that was not followed."""

    url: str
    mime: str
    charset: str
    body: bytes
    moved: str = ""


class Fetch(Protocol):
    """Reads a public URL."""

    async def get(self, url: str, stay: bool = False) -> Fetched:
        """What stands there; ToolFailed with the reason."""


class Web(Struct, frozen=True, kw_only=True):
    """The web as the agent reaches it."""

    search: Search
    fetch: Fetch
