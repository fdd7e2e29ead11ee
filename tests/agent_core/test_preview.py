"""The preview: an origin of its own before a server in a sandbox, for who has the link."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent_core.sandboxes import preview as module
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.preview import COOKIE, PreviewServer
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import make_sandboxes
from tests.fakes.waiting import PATIENCE

APP = """
import http.server, sys
class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"{self.path} {self.headers['Host']} {self.headers['Cookie']}".encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "turnkeeper_session=stolen; Path=/")
        self.send_header("Set-Cookie", "cart=3; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
"""
both = pytest.mark.parametrize(
    "tier", [pytest.param(BwrapTier(), marks=NEEDS_BWRAP), UnsafeTier()], ids=["bwrap", "unsafe"]
)


class Site:
    """A sandbox with a server in it, and the preview before it."""

    def __init__(self, pool: SandboxPool, place: Path, port: int) -> None:
        self.place, self.port = place, port
        self.preview = PreviewServer(pool.connect)

    async def link(self) -> str:
        return await self.preview.open(self.place, self.port)


@pytest.fixture
async def site(tier: BwrapTier | UnsafeTier, tmp_path: Path) -> AsyncIterator[Site]:
    pool, port = make_sandboxes(tier), free_port()
    (tmp_path / "app.py").write_text(APP)
    await pool.start(f"python3 app.py {port}", tmp_path, 60)
    site = Site(pool, tmp_path, port)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                (await pool.connect(tmp_path, port))[1].close()
                break
            except module.ToolFailed:
                await asyncio.sleep(0.05)
    yield site
    await site.preview.close()


def browser() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


@both
async def test_who_has_the_link_sees_the_app(site: Site) -> None:
    link = await site.link()
    base = link.partition("/open/")[0]
    async with browser() as person:
        async with person.get(link) as answer:
            assert "Open the preview" in await answer.text(), (
                "a chat that looks at it takes nothing"
            )
        async with person.post(link) as answer:
            assert (await answer.text()).startswith("/ localhost:")
        async with person.get(f"{base}/a/b?c=d") as answer:
            text = await answer.text()
            assert text == f"/a/b?c=d localhost:{site.port} cart=3", "its own cookies, none of ours"
        async with person.post(f"{base}/x", data=b"y" * 500_000) as answer:
            assert await answer.read() == b"y" * 500_000
        names = {cookie.key for cookie in person.cookie_jar}
        assert names == {COOKIE, "cart"}, "the app sets no cookie in our name"
    async with browser() as other, other.post(link) as answer:
        assert answer.status == 403 and "opened before" in await answer.text()


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_who_has_not_sees_nothing(site: Site) -> None:
    base = (await site.link()).partition("/open/")[0]
    async with browser() as stranger:
        for path in ("/", "/open/guess", "/open/", "/../x"):
            async with stranger.get(f"{base}{path}") as answer:
                assert answer.status == 403 and "localhost" not in await answer.text()
        async with stranger.get(base, headers={"Cookie": f"{COOKIE}=guess"}) as answer:
            assert answer.status == 403
        link = await site.link()
        async with stranger.get(link, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 421, "a name that was made to lead here"
        async with stranger.post(link) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_links_and_cookies_grow_old(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    link, second = await site.link(), await site.link()
    base, moment = link.partition("/open/")[0], module.ambient.monotonic()
    async with browser() as person:
        async with person.post(link) as answer:
            assert answer.status == 200
        monkeypatch.setattr(module.ambient, "monotonic", lambda: moment + 1_700)
        async with person.get(base) as answer:
            assert answer.status == 200, "used, it stays"
        async with person.post(second) as answer:
            assert answer.status == 403
        monkeypatch.setattr(module.ambient, "monotonic", lambda: moment + 3_600)
        async with person.get(base) as answer:
            assert answer.status == 403


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_a_server_that_is_gone_is_told(site: Site) -> None:
    link = await site.preview.open(site.place, free_port())
    async with browser() as person, person.post(link) as answer:
        assert answer.status == 502 and "Nothing answers" in await answer.text()


@pytest.mark.parametrize("tier", [UnsafeTier()])
@pytest.mark.parametrize(
    "sent", [b"GET\r\n\r\n", b"GET x HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"\0\xff\r\n\r\n"]
)
async def test_what_is_no_request_is_refused(site: Site, sent: bytes) -> None:
    await site.link()
    port = int((await site.link()).split(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()
