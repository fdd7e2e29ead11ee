"""The web adapter on a free loopback port with a FakeBackend behind it, and an open page of it."""

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import ClientSession, web

from adapters.web.adapter import WebAdapter
from adapters.web.gate import RequestGate
from adapters.web.jobs import job_routes
from adapters.web.sessions import SessionBook
from gateway.messages import Inbound
from gateway.views import Activity, ApprovalCard, Button, ProposalLine, ToolLine
from tests.fakes.browser import Page, browse
from tests.fakes.job_backend import FakeJobBackend
from tests.fakes.ports import free_port
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_backend import FakeBackend

SECRET = b"0123456789abcdef0123456789abcdef"
TOKEN = "the-api-token-of-the-page"


class DocumentShelf:
    """adapters.web.sessions.SignInDocuments in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self._kept.get(key)

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        if expected is not None and self._kept.get(key, b"") != expected:
            return False
        if body is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = body
        return True

    async def keys(self, prefix: str) -> tuple[str, ...]:
        return tuple(key for key in self._kept if key.startswith(prefix))


@dataclasses.dataclass(kw_only=True)
class WebServer:
    """Where it listens, what is behind it, and `http`, a client that is signed in as the owner."""

    url: str
    port: int
    backend: FakeBackend
    jobs: FakeJobBackend
    gate: RequestGate
    adapter: WebAdapter
    http: ClientSession
    outputs: Path

    async def sign_in(self, person: str) -> dict[str, str]:
        """The headers of somebody who is signed in, with our own Origin."""
        cookie = await self.gate.begin_session(person)
        return {"Cookie": f"{self.gate.cookie}={cookie}", "Origin": self.url}

    def address(self, chat: str, person: str = "owner") -> str:
        return f"web:local::{person}~{chat}::p"


@contextlib.asynccontextmanager
async def serve(
    folder: Path,
    *,
    backend: FakeBackend | None = None,
    names: tuple[str, ...] = (),
    token: str | None = TOKEN,
) -> AsyncIterator[WebServer]:
    """Serve until the block ends."""
    port = free_port()
    backend = backend or FakeBackend()
    gate = RequestGate(
        SECRET, SessionBook(DocumentShelf()), "127.0.0.1", port, names=names, api_token=token
    )
    outputs = folder / "outputs"
    adapter = WebAdapter(backend, gate, folder / "uploads", outputs)
    app = web.Application()
    jobs = FakeJobBackend()
    app.add_routes([*adapter.routes, *job_routes(jobs, gate)])
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    url = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {TOKEN}"} if token else {"Origin": url}
    try:
        async with ClientSession(url, headers=headers) as http:
            yield WebServer(
                url=url,
                port=port,
                backend=backend,
                jobs=jobs,
                gate=gate,
                adapter=adapter,
                http=http,
                outputs=outputs,
            )
    finally:
        await runner.cleanup()


LIVE = "document.body.dataset.live === 'on'"
"""The page hears of what happens."""
WIDE = (1200, 860, "light")
SHOTS = os.environ.get("PAGE_SHOTS", "")
"""A folder to keep screenshots in, for people to look at."""

ANSWER = """Berlin is **2 °C** and clear; Oslo has snow.

| City | Now | Tomorrow |
|------|----:|---------:|
| Berlin | 2 °C | 5 °C |
| Oslo | −6 °C | −4 °C |

1. Take the *early* train, `ICE 1234`.
2. Pack a coat.

```python
for city in cities:
    print(city, weather(city))
```

More in [the forecast](https://example.org/weather)."""


@dataclasses.dataclass(kw_only=True)
class Room:
    """An open page in one conversation."""

    page: Page
    server: WebServer
    where: str
    came: "asyncio.Queue[Inbound]"

    async def texts(self, selector: str) -> list[str]:
        found = await self.page.js(
            f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)"
        )
        assert isinstance(found, list)
        return found

    async def shows(self, selector: str, text: str) -> None:
        await self.page.until(
            f"[...document.querySelectorAll({selector!r})].some("
            f"(one) => one.textContent.includes({text!r}))"
        )

    async def write(self, text: str) -> None:
        await self.page.click("#text")
        await self.page.type(text)
        await self.page.press("Enter", 13)

    async def next(self) -> Inbound:
        async with asyncio.timeout(PATIENCE):
            return await self.came.get()

    async def shoot(self, name: str) -> None:
        if SHOTS:
            await self.page.shoot(Path(SHOTS) / f"{name}.png")


@contextlib.asynccontextmanager
async def opened(
    folder: Path, chat: str = "c1", language: str = "en", look: tuple[int, int, str] = WIDE
) -> AsyncIterator[Room]:
    came: asyncio.Queue[Inbound] = asyncio.Queue()
    async with serve(folder, token=None) as server, browse() as page:
        server.backend.on_accept = came.put_nowait
        await page.speak(language)
        await page.look(*look)
        cookie = await server.gate.begin_session("owner", "Chrome, Linux")
        await page.call("Network.setCookie", name=server.gate.cookie, value=cookie, url=server.url)
        await page.go(f"{server.url}/#c={chat}")
        await page.until(LIVE)
        yield Room(page=page, server=server, where=server.address(chat), came=came)
        assert page.errors == []
        own = (server.url, f"blob:{server.url}", "data:")
        foreign = [url for url in page.requests if not url.startswith(own)]
        assert [url for url in foreign if url != "about:blank"] == []


def approval(state: str = "open") -> ApprovalCard:
    proposal = ProposalLine(
        tool="run_command",
        arguments='{\n  "command": "rm -r build/ && make release",\n  "folder": "/srv/site"\n}',
        reason="The old build is in the way of the release that you asked for.",
        risk="high",
        detail="Changes files outside of the sandbox.",
    )
    if state != "open":
        return ApprovalCard(
            question="a1",
            asker="Ann",
            proposals=(proposal,),
            state="approved",
            outcome="Approved once by owner, 14:02",
        )
    buttons = (
        Button(label="Approve once", token="q:a1:once", style="good"),
        Button(label="Approve in this conversation", token="q:a1:conversation"),
        Button(label="Deny", token="q:a1:deny", style="bad"),
    )
    return ApprovalCard(question="a1", asker="Ann", proposals=(proposal,), buttons=buttons)


def activity(words: str = "I look at both cities first.") -> Activity:
    lines = (
        ToolLine(call_id="1", tool="web_search", summary="weather Berlin Oslo", state="done",
                 output="3 results\n1. Berlin, 2 °C\n2. Oslo, −6 °C"),
        ToolLine(call_id="2", tool="read_page", summary="example.org/weather", state="failed",
                 output="The page did not answer in 20 s."),
        ToolLine(call_id="3", tool="read_page", summary="weather.example", state="running"),
        ToolLine(call_id="4", tool="write_file", summary="packing-list.md", state="waiting"),
    )  # fmt: skip
    return Activity(lines=lines, words=words)
