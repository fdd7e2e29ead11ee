"""The sources of a research: found, read once each, and counted once where they say the same."""

import asyncio
import hashlib
import re
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.guardrails.redaction import Hides
from agent_core.handoffs.artifacts import Artifact
from agent_core.messages import ToolCall
from agent_core.scope import Scope
from agent_core.tools.files import read_text
from agent_core.tools.web import pages
from agent_core.tools.web.port import Hit, Web

HITS = 8
"""Results of one search."""
TEXT = 20_000
"""Characters of a source that are kept, quoted from and shown to the model."""
MAX_FILE = 3 * TEXT
"""Characters of a file that was handed over."""
AT_ONCE = 6
LIMIT = 40.0
"""Seconds for one search, and for one source to be read."""
ALIKE = 0.8
"""Share of the word groups of the shorter of two texts that makes them the same."""
WORDS = 1_000
"""Words of a text that are compared."""

_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|ref|ref_src|igshid")


class SourcePage(Struct, frozen=True, kw_only=True):
    """A page that was read, or a part of a file of the workspace: `url` is its path then."""

    url: str
    title: str
    text: str
    is_file: bool = False


class Skipped(Struct, frozen=True, kw_only=True):
    """A page that is no source, or a failed search (`what` is its query), with the reason."""

    what: str
    why: str


async def search(scope: Scope, web: Web, queries: Iterable[str]) -> tuple[list[Hit], list[Skipped]]:
    """Return the hits of all queries: the best of each first. Each query runs once in the turn's
    life."""

    async def search_one(query: str, branch: Scope) -> tuple[list[Hit], list[Skipped]]:
        async def run(_: str) -> str:
            return msgspec.json.encode(await web.search.find(query, HITS)).decode()

        call = _call("web_search", "query", query)
        result = await branch.tool(call, "pure", run, LIMIT)
        if result.error:
            return [], [Skipped(what=query, why=result.content)]
        return msgspec.json.decode(result.content, type=list[Hit]), []

    branches = {f"search-{digest_of(query)}": partial(search_one, query) for query in queries}
    done = (await scope.parallel(branches)).values()
    ranked = (hits[n] for n in range(HITS) for hits, _ in done if n < len(hits))
    return list(ranked), [failed for _, failures in done for failed in failures]


async def read(scope: Scope, web: Web, hits: Iterable[Hit]) -> list[SourcePage | Skipped]:
    """Read the pages, at once; in the order of `hits`. Each is fetched once in the turn's life."""

    async def read_one(hit: Hit, branch: Scope) -> SourcePage | Skipped:
        async def run(_: str) -> str:
            page = await pages.read(web.fetch, hit.url, links=False)
            if len(page.text.split()) < 20:
                raise ToolFailed("The page holds next to no text.")
            source = SourcePage(url=page.url, title=hit.title or page.title, text=page.text[:TEXT])
            return msgspec.json.encode(source).decode()

        result = await branch.tool(_call("read_page", "url", hit.url), "pure", run, LIMIT)
        if result.error:
            return Skipped(what=hit.url, why=result.content)
        return msgspec.json.decode(result.content, type=SourcePage)

    branches = {f"read-{digest_of(hit.url)}": partial(read_one, hit) for hit in hits}
    return list((await scope.parallel(branches)).values())


async def read_files(
    scope: Scope, workspace: Path, files: Iterable[Artifact], hides: Hides | None
) -> list[SourcePage | Skipped]:
    """Read files that were handed over, at once: a long one is several sources. Each is read once
    in the turn's life."""

    async def read_one(path: str, branch: Scope) -> list[SourcePage | Skipped]:
        async def run(_: str) -> str:
            text = await asyncio.to_thread(read_text, path, workspace, MAX_FILE + 1)
            if not text.strip():
                raise ToolFailed("The file holds no text.")
            return hides().with_shapes().hide(text) if hides is not None else text

        result = await branch.tool(_call("read_file", "path", path), "pure", run, LIMIT)
        if result.error:
            return [Skipped(what=path, why=result.content)]
        return _split(path, result.content)

    branches = {f"file-{digest_of(one.path)}": partial(read_one, one.path) for one in files}
    return [one for parts in (await scope.parallel(branches)).values() for one in parts]


def _split(path: str, text: str) -> list[SourcePage | Skipped]:
    parts: list[SourcePage | Skipped] = []
    for n, begins in enumerate(range(0, min(len(text), MAX_FILE), TEXT), 1):
        name = f"{path} ({n})" if len(text) > TEXT else path
        part = text[begins : min(begins + TEXT, MAX_FILE)]
        parts.append(SourcePage(url=name, title=name, text=part, is_file=True))
    if len(text) > MAX_FILE:
        why = f"Only its first {MAX_FILE:,} characters were read."
        parts.append(Skipped(what=path, why=why))
    return parts


def canonicalize(url: str) -> str:
    """The same for URLs that lead to the same page: without scheme, www, tracking, fragment."""
    parts = urlsplit(url)
    asked = [pair for pair in parse_qsl(parts.query) if not _TRACKING.fullmatch(pair[0])]
    host = (parts.hostname or "").removeprefix("www.")
    port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    return f"{host}{port}{parts.path.rstrip('/')}?{urlencode(sorted(asked))}"


def drop_seen(hits: Iterable[Hit], seen: set[str]) -> list[Hit]:
    """Return those whose page is not in `seen`, and add them to it."""
    new = []
    for hit in hits:
        try:
            page = canonicalize(hit.url)
        except ValueError:
            continue
        if page not in seen:
            seen.add(page)
            new.append(hit)
    return new


class Sources:
    """The sources taken so far, without duplicates."""

    def __init__(self) -> None:
        self._rows: list[tuple[SourcePage, frozenset[str]]] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def pages(self) -> tuple[SourcePage, ...]:
        """The sources in the order in which they were taken."""
        return tuple(source for source, _ in self._rows)

    def take(self, source: SourcePage) -> SourcePage | None:
        """Add a source. If it is known, or another says nearly the same, return that one
        instead."""
        page, groups = _identify(source), _groups(source.text)
        for known, said in self._rows:
            least = min(len(said), len(groups))
            if _identify(known) == page or len(said & groups) >= ALIKE * least:
                return known
        self._rows.append((source, groups))
        return None


def _identify(source: SourcePage) -> str:
    return f"file:{source.url}" if source.is_file else canonicalize(source.url)


def _groups(text: str) -> frozenset[str]:
    """The groups of five words that follow each other at its beginning."""
    words = [found[0] for found in islice(re.finditer(r"\w+", text.casefold()), WORDS)]
    return frozenset(" ".join(words[n : n + 5]) for n in range(max(1, len(words) - 4)))


def _call(tool: str, name: str, value: str) -> ToolCall:
    arguments = msgspec.json.encode({name: value}).decode()
    return ToolCall(id=f"{tool}-{digest_of(value)}", name=tool, arguments=arguments)


def digest_of(text: str) -> str:
    """A short name for `text` that keys may hold."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
