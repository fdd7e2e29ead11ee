"""Web search: one question, several providers, the same answer.

Without a key DuckDuckGo and others are asked by ddgs. The providers' addresses come from the
operator's settings, so the guard does not apply to them.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.models.streamed_http import read_json
from agent_core.tools.web.port import Hit, Search
from agent_core.tools.web.settings import WebSettings

SECONDS = 20.0
MAX_BYTES = 8_000_000
"""Bytes of a provider's answer: hits with their texts have a tenth of it."""
SNIPPET = 400
TITLE = 200


class _Keyed(Struct, frozen=True, kw_only=True):
    """One question to a provider with a JSON body or a URL's query."""

    name: str
    url: str
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    body: Mapping[str, object] | None = None
    inside: tuple[str, ...] = ("results",)
    snippet: str = "content"


class JsonSearch:
    """Tavily, Brave, Exa or a SearXNG of one's own."""

    def __init__(self, settings: WebSettings) -> None:
        self._settings = settings

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        """Return at most `count` hits."""
        asked = _question(self._settings, query, count)
        try:
            async with ambient.limit(SECONDS), aiohttp.ClientSession() as session:
                answer = await _answer(session, asked)
        except TimeoutError:
            raise ToolFailed(f"{asked.name} gave no answer within {SECONDS:g} s.") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ToolFailed(f"{asked.name} cannot be reached: {type(error).__name__}.") from None
        for name in asked.inside:
            answer = answer.get(name) if isinstance(answer, dict) else None
        return _read_hits(answer, ("url", "title", asked.snippet), count)


class KeylessSearch:
    """Search engines that are asked as a browser does; they may refuse at any time."""

    def __init__(self, backend: str = "auto") -> None:
        self._backend = backend

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        """Return at most `count` hits. ddgs is imported and asked in a thread, as it blocks."""
        return await asyncio.to_thread(self._find, query, count)

    def _find(self, query: str, count: int) -> tuple[Hit, ...]:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException

        try:
            rows = DDGS(timeout=10).text(query, max_results=count, backend=self._backend)
        except RatelimitException:
            mend = "Set a key (TAVILY_API_KEY, BRAVE_API_KEY, EXA_API_KEY) or SEARXNG_URL."
            raise ToolFailed(f"The search engines want no more questions for now. {mend}") from None
        except DDGSException as error:
            if "No results" in str(error):
                return ()
            raise ToolFailed(f"The search gave nothing: {error}.") from None
        except Exception as error:  # boundary: it scrapes several third-party pages
            raise ToolFailed(f"The search failed: {type(error).__name__}.") from error
        return _read_hits(rows, ("href", "title", "body"), count)


def search_of(settings: WebSettings) -> Search:
    """The provider that the settings choose."""
    return KeylessSearch() if settings.provider == "ddgs" else JsonSearch(settings)


def _question(settings: WebSettings, query: str, count: int) -> _Keyed:
    key, url = settings.key, settings.url
    match settings.provider:
        case "tavily":
            body: dict[str, object] = {"query": query, "max_results": count}
            headers = {"Authorization": f"Bearer {key}"}
            return _Keyed(name="Tavily", url=f"{url}/search", headers=headers, body=body)
        case "exa":
            contents = {"text": {"maxCharacters": SNIPPET}}
            body = {"query": query, "numResults": count, "contents": contents}
            headers = {"x-api-key": key}
            return _Keyed(
                name="Exa", url=f"{url}/search", headers=headers, body=body, snippet="text"
            )
        case "brave":
            return _Keyed(
                name="Brave",
                url=f"{url}/res/v1/web/search",
                headers={"X-Subscription-Token": key},
                query={"q": query, "count": str(min(count, 20))},
                inside=("web", "results"),
                snippet="description",
            )
        case _:
            asked = {"q": query, "format": "json"}
            return _Keyed(name="SearXNG", url=f"{url}/search", query=asked)


async def _answer(session: aiohttp.ClientSession, asked: _Keyed) -> object:
    """Return the answer, following no redirect, which would take the key along."""
    if asked.body is None:
        call = session.get(
            asked.url, params=asked.query, headers=asked.headers, allow_redirects=False
        )
    else:
        call = session.post(
            asked.url, json=asked.body, headers=asked.headers, allow_redirects=False
        )
    async with call as answer:
        if answer.status in (401, 403):
            mend = "Turn its JSON format on." if asked.name == "SearXNG" else "Check its key."
            raise ToolFailed(f"{asked.name} refused the question ({answer.status}). {mend}")
        if answer.status in (402, 429):
            raise ToolFailed(f"{asked.name} wants no more questions for now ({answer.status}).")
        if answer.status != 200:
            raise ToolFailed(f"{asked.name} answered {answer.status}.")
        return await read_json(answer, MAX_BYTES)


def _read_hits(rows: object, names: tuple[str, str, str], count: int) -> tuple[Hit, ...]:
    if not isinstance(rows, list):
        raise ToolFailed("The search gave an answer that cannot be read.")
    url, title, snippet = names
    found = []
    for row in rows:
        if isinstance(row, dict) and str(row.get(url) or "").startswith(("http://", "https://")):
            said = " ".join(str(row.get(snippet) or "").split())[:SNIPPET]
            name = " ".join(str(row.get(title) or row[url]).split())[:TITLE]
            found.append(Hit(url=str(row[url]), title=name, snippet=said))
    return tuple(found[:count])
