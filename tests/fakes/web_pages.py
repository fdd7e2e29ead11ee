"""A little web on loopback: pages, redirects, and the search providers' protocols in front of it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


def html(title: str, *paragraphs: str) -> str:
    """A page as they are: what matters between what does not."""
    body = "".join(f"<p>{one}</p>" for one in paragraphs)
    return (
        f"<html><head><title>{title}</title></head><body><nav><a href='/'>Home</a> Menu</nav>"
        f"<article><h1>{title}</h1>{body}</article><footer>Imprint</footer></body></html>"
    )


@dataclass(slots=True)
class Answer:
    body: str | bytes = ""
    status: int = 200
    mime: str = "text/html"
    headers: dict[str, str] = field(default_factory=dict)
    held: asyncio.Event | None = None
    """Answers when it is set."""


class WebPages:
    """`pages`: path -> what stands there. `results`: part of a query -> paths found; else all
    of `found`. `key`: what the providers want to see."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.results: dict[str, list[str]] = {}
        self.found: list[str] = []
        self.key = ""
        self.status = 200
        """What the search answers; other than 200: with nothing."""
        self.asked: list[tuple[str, str]] = []
        """(provider, query) of each search."""
        self.fetched: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.url = ""
        self._runner: web.AppRunner | None = None

    @property
    def place(self) -> str:
        """host:port, for WEB_ALLOWED_HOSTS."""
        return self.url.removeprefix("http://")

    def put(self, path: str, title: str, *paragraphs: str, found: bool = True) -> str:
        """A page, which searches find; its URL."""
        self.pages[path] = Answer(html(title, *paragraphs))
        if found:
            self.found.append(path)
        return self.url + path

    async def start(self) -> str:
        app = web.Application()
        app.router.add_get("/search", self._searxng)
        app.router.add_post("/search", self._posted)
        app.router.add_get("/res/v1/web/search", self._brave)
        app.router.add_get("/{path:.*}", self._page)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.url

    async def close(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def _hits(self, provider: str, query: str) -> list[tuple[str, str]]:
        self.asked.append((provider, query))
        paths = next((p for part, p in self.results.items() if part in query), self.found)
        urls = [path if "://" in path else self.url + path for path in paths]
        return [(url, f"About {url.rpartition('/')[2]}") for url in urls]

    async def _searxng(self, request: web.Request) -> web.Response:
        assert request.query["format"] == "json"
        rows = [
            {"url": url, "title": title, "content": "a snippet"}
            for url, title in self._hits("searxng", request.query["q"])
        ]
        return web.json_response({"results": rows}, status=self.status)

    async def _posted(self, request: web.Request) -> web.Response:
        body: Json = await request.json()
        exa = "numResults" in body
        given = request.headers.get("x-api-key" if exa else "Authorization", "")
        if given.removeprefix("Bearer ") != self.key:
            return web.json_response({"error": "no such key"}, status=401)
        text = "text" if exa else "content"
        rows = [
            {"url": url, "title": title, text: "a snippet"}
            for url, title in self._hits("exa" if exa else "tavily", body["query"])
        ]
        return web.json_response({"results": rows}, status=self.status)

    async def _brave(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Subscription-Token") != self.key:
            return web.json_response({}, status=403)
        rows = [
            {"url": url, "title": title, "description": "a snippet"}
            for url, title in self._hits("brave", request.query["q"])
        ]
        return web.json_response({"web": {"results": rows}}, status=self.status)

    async def _page(self, request: web.Request) -> web.Response:
        self.fetched[request.path] += 1
        self.agents.add(request.headers.get("User-Agent", ""))
        page = self.pages.get(request.path, Answer("<p>nothing here</p>", 404))
        body = page.body.encode() if isinstance(page.body, str) else page.body
        if page.held is not None:
            await page.held.wait()
        headers = {"Content-Type": page.mime} | page.headers
        return web.Response(body=body, status=page.status, headers=headers)


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[WebPages]:
    pages = WebPages()
    await pages.start()
    try:
        yield pages
    finally:
        await pages.close()
