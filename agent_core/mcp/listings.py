"""Reads a server's lists page by page, cleaned so that one invalid entry does not lose the others.

The SDK refuses a whole list for one entry. Invalid entries are removed before it parses the list.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from agent_core.mcp.deep_json import count_levels

if TYPE_CHECKING:
    from typing import Self

    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

log = logging.getLogger("turnkeeper.mcp")

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
"""The methods that return entries, by the result's key."""
MAX_NAME, MAX_WHY = 100, 200
"""Maximum characters of the note about an entry left out."""
MAX_LEVELS = 100
"""Levels of an entry; what reads it later is recursive."""
DEEP = f"nested more than {MAX_LEVELS} levels deep"
MAX_ENTRIES = 1_000
"""Maximum entries of a faulty list, each of which is checked."""
MAX_TOLD = 20
"""Maximum notes of one connection."""
Said: TypeAlias = "SessionMessage | Exception"
MAX_PAGES = 50
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
    while len(pages) < MAX_PAGES and (cursor := pages[-1].next_cursor) and cursor not in known:
        known.add(cursor)
        pages.append(await ask(cursor))
    return pages


class ListCleaner:
    """Removes invalid entries from the lists of one connection, and notes them. `version` returns
    the protocol's version in use."""

    def __init__(self, server: str, version: Callable[[], str]) -> None:
        self._server, self._version = server, version
        self.left_out: dict[str, str] = {}
        """The reason, by kind and name of the entry."""

    @asynccontextmanager
    async def wrap(self, transport: "Transport") -> "AsyncIterator[TransportStreams]":
        """Wrap `transport` so that its lists are clean."""
        async with transport as (reads, writes):
            yield _CleanStream(reads, self._clean), writes

    def _clean(self, said: "Said") -> "Said":
        from mcp_types import JSONRPCResponse

        if isinstance(said, Exception) or not isinstance(said.message, JSONRPCResponse):
            return said
        result = said.message.result
        for key, method in METHODS.items():
            entries = result.get(key)
            if not isinstance(entries, list):
                continue
            if not any(map(_find_depth, entries)) and not self._find_fault(method, result):
                continue
            if not self._find_fault(method, {**result, key: []}):
                result[key] = self._choose(key, entries[:MAX_ENTRIES], result)
        return said

    def _choose(self, key: str, entries: list[object], result: dict[str, object]) -> list[object]:
        """Return the valid entries."""
        good = []
        for entry in entries:
            only = {**result, key: [entry]}
            if why := _find_depth(entry) or self._find_fault(METHODS[key], only):
                self._note(key, entry, why)
            else:
                good.append(entry)
        return good

    def _find_fault(self, method: str, result: dict[str, object]) -> str:
        from mcp_types.methods import parse_server_result
        from pydantic import ValidationError

        try:
            parse_server_result(method, self._version(), result)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            at = ".".join(map(str, first["loc"][2:]))
            return f"{at or 'it'}: {first['msg']}"[:MAX_WHY]
        except (KeyError, ValueError):  # a version for the SDK to judge
            return ""
        return ""

    def _note(self, key: str, entry: object, why: str) -> None:
        name = entry.get("name") if isinstance(entry, dict) else None
        kind = key.removesuffix("s")
        words = " ".join(name.split()) if isinstance(name, str) else "(unnamed)"
        what = f"{kind} {words[:MAX_NAME]}"
        if what in self.left_out or len(self.left_out) >= MAX_TOLD:
            return
        self.left_out[what] = why
        log.warning("mcp_left_out", extra={"server": self._server, "what": what, "why": why})


def _find_depth(entry: object) -> str:
    return DEEP if count_levels(entry) > MAX_LEVELS else ""


class _CleanStream:
    """`inner`, each message of which passes through `clean`."""

    def __init__(self, inner: "ReadStream[Said]", clean: "Callable[[Said], Said]") -> None:
        self._inner, self._clean = inner, clean

    @property
    def last_context(self) -> object:
        """The sender's context, as the SDK looks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> "Said":
        return self._clean(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "Self":
        return self

    async def __anext__(self) -> "Said":
        return self._clean(await anext(self._inner))

    async def __aenter__(self) -> "Self":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
