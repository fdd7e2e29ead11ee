"""The preview: an origin of its own before a server in a sandbox, for who has the link."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.phrases import Phrase
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.docker.tier import find_docker
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import Running
from agent_core.sandboxes.previews import server
from agent_core.sandboxes.previews.server import COOKIE, PreviewServer
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.web import proxy
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import make_sandboxes
from tests.fakes.waiting import PATIENCE, until

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
        self.pool, self.place, self.port = pool, place, port
        self.preview = PreviewServer(pool.connect)
        self.app: Running

    async def wait(self) -> None:
        """Wait until it answers."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return (await self.pool.connect(self.place, self.port))[1].close()
                except ToolFailed:
                    await asyncio.sleep(0.05)

    async def link(self) -> str:
        return await self.preview.open(self.place, self.port)


@pytest.fixture
async def site(tier: BwrapTier | UnsafeTier, tmp_path: Path) -> AsyncIterator[Site]:
    pool, port = make_sandboxes(tier), free_port()
    (tmp_path / "app.py").write_text(APP)
    await pool.start(f"python3 app.py {port}", tmp_path, 60)
    site = Site(pool, tmp_path, port)
    await site.wait()
    yield site
    await site.preview.close()


@pytest.mark.parametrize(
    "tier",
    [
        pytest.param(BwrapTier(), marks=NEEDS_BWRAP),
        pytest.param(LandlockTier(), marks=(NEEDS_LANDLOCK, pytest.mark.slow)),
        pytest.param("docker", marks=pytest.mark.slow),
    ],
    ids=["bwrap", "landlock", "docker"],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_a_server_at_either_localhost_is_reached(
    tier: Tier | str, host: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if isinstance(tier, str):
        tier = await find_docker(request.getfixturevalue("docker_engine"))
    pool, port = make_sandboxes(tier), free_port()
    family = "AF_INET6" if host == "::1" else "AF_INET"
    server_at = f"socket.create_server(('{host}', {port}), family=socket.{family})"
    program = f"import socket\ns = {server_at}\nprint('up', flush=True)\n"
    (tmp_path / "app.py").write_text(f"{program}s.accept()[0].send(b'hello')")
    server = await pool.start("python3 app.py", tmp_path, 60)
    async with asyncio.timeout(PATIENCE):
        while "up" not in server.output():
            assert server.done is None, server.output()
            await asyncio.sleep(0.05)
        reader, writer = await pool.connect(tmp_path, port)
        assert await reader.readexactly(5) == b"hello"
    writer.close()


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
            (taken,) = answer.history
            assert taken.headers["Clear-Site-Data"] == '"cache", "storage"'
        async with person.get(f"{base}/sw.js", headers={"Service-Worker": "script"}) as answer:
            assert answer.status == 403, "a worker would look at what is opened here next"
        async with person.get(f"{base}/a/b?c=d") as answer:
            text = await answer.text()
            assert text == f"/a/b?c=d localhost:{site.port} cart=3", "its own cookies, none of ours"
        async with person.post(f"{base}/x", data=b"y" * 500_000) as answer:
            assert await answer.read() == b"y" * 500_000
        names = {cookie.key for cookie in person.cookie_jar}
        assert names == {COOKIE, "cart"}, "the app sets no cookie in our name"
    async with browser() as other, other.post(link) as answer:
        assert answer.status == 403 and "already used" in await answer.text()


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
    base, moment = link.partition("/open/")[0], ambient.now()
    async with browser() as person:
        async with person.post(link) as answer:
            assert answer.status == 200
        monkeypatch.setattr(ambient, "now", lambda: moment + 1_700)
        async with person.get(base) as answer:
            assert answer.status == 200, "used, it stays"
        monkeypatch.setattr(ambient, "now", lambda: moment + 1_900)
        async with person.post(second) as answer:
            assert answer.status == 403
        async with person.get(base) as answer:
            assert answer.status == 200
        monkeypatch.setattr(ambient, "now", lambda: moment + 3_800)
        async with person.get(base) as answer:
            assert answer.status == 403


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_a_server_that_is_gone_is_told(site: Site) -> None:
    link = await site.preview.open(site.place, free_port())
    async with browser() as person, person.post(link) as answer:
        assert answer.status == 502 and "Nothing answers" in await answer.text()


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_what_was_stopped_says_so_and_begins_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await site.link()
    site.pool._retire(*site.pool._places)
    made: list[Path] = []
    monkeypatch.setattr(site.pool._tier, "open", lambda place, *_: made.append(place))
    async with browser() as person, person.post(link) as answer:
        assert answer.status == 502 and "30 minutes after its last use" in await answer.text()
    assert made == []


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_a_server_of_ours_is_shown_beside_until_it_is_taken_away(site: Site) -> None:
    base = await site.preview.mount("ours", site.port)
    async with browser() as anybody:
        async with anybody.get(f"{base}/x?y") as answer:
            assert (await answer.text()).startswith("/ours/x?y localhost:")
        async with anybody.get(f"{base}s/x") as answer:
            assert answer.status == 403
        site.preview.unmount("ours")
        async with anybody.get(f"{base}/x") as answer:
            assert answer.status == 403


async def test_a_port_that_was_set_answers_before_the_first_link(tmp_path: Path) -> None:
    port = free_port()
    preview = PreviewServer(make_sandboxes(UnsafeTier()).connect, port, f"http://127.0.0.1:{port}")
    await preview.listen()
    async with browser() as person, person.get(f"http://127.0.0.1:{port}/open/old") as answer:
        assert answer.status == 403 and "has expired" in await answer.text()
    await preview.close()


async def test_it_listens_where_it_is_told_to_and_answers_to_its_names_alone() -> None:
    port = free_port()
    public = "https://preview.example.org"
    preview = PreviewServer(make_sandboxes(UnsafeTier()).connect, port, public, "127.0.0.2")
    await preview.listen()
    async with browser() as person:
        names = {"preview.example.org": 403, f"127.0.0.1:{port}": 403, "127.0.0.2": 421}
        for name, status in names.items():
            at, headers = f"http://127.0.0.2:{port}/open/x", {"Host": name}
            async with person.get(at, headers=headers) as answer:
                assert answer.status == status, name
    await preview.close()


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


@pytest.mark.parametrize("tier", [UnsafeTier()])
async def test_people_read_it_in_the_language_of_their_browser(site: Site) -> None:
    def speak(said: Phrase, accepted: str) -> tuple[str, str]:
        return accepted, f"{accepted}:<{said.key}>"

    site.preview = PreviewServer(site.pool.connect, speak=speak)
    link = await site.link()
    try:
        async with browser() as person:
            async with person.get(link, headers={"Accept-Language": "xy"}) as answer:
                text = await answer.text()
                assert '<html lang="xy">' in text and "xy:&lt;preview_open&gt;</button>" in text
            async with person.get(f"{link}x", headers={"Accept-Language": "x<y"}) as answer:
                text = await answer.text()
                assert answer.status == 403 and "x<y" not in text
                assert text.count("x&lt;y:&lt;preview_") == 3
            base = link.partition("/open/")[0]
            async with person.get(base, headers={"Accept-Language": "xy"}) as answer:
                assert "xy:&lt;preview_closed&gt;" in await answer.text()
    finally:
        await site.preview.close()


SOCKETS = """
import asyncio, sys
from aiohttp import web
async def serve(request):
    if request.path == "/moved":
        raise web.HTTPFound(f"http://{request.headers['Host']}/there?x=1")
    if request.headers.get("Upgrade") != "websocket":
        return web.json_response({k: request.headers.get(k) for k in ("Origin", "Referer", "Host")})
    socket = web.WebSocketResponse(protocols=("vite-hmr",))
    await socket.prepare(request)
    await socket.send_json({k: request.headers.get(k) for k in ("Origin", "Cookie", "Host")})
    async for said in socket:
        await (socket.send_bytes if said.type == web.WSMsgType.BINARY else socket.send_str)(said.data)
    return socket
app = web.Application()
app.router.add_route("*", "/{path:.*}", serve)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""


@pytest.fixture
async def live(tier: BwrapTier | UnsafeTier, tmp_path: Path) -> AsyncIterator[Site]:
    """An app with web sockets, by the Python of these tests."""
    pool, port = make_sandboxes(tier), free_port()
    (tmp_path / "app.py").write_text(SOCKETS)
    site = Site(pool, tmp_path, port)
    site.app = await pool.start(f"{sys.executable} app.py {port}", tmp_path, 60)
    await site.wait()
    yield site
    await site.preview.close()


in_the_open = pytest.mark.parametrize("tier", [UnsafeTier()])


@asynccontextmanager
async def visit(site: Site) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    link = await site.link()
    async with browser() as person:
        async with person.post(link) as answer:
            assert answer.status == 200
        yield person, link.partition("/open/")[0]


@in_the_open
async def test_a_web_socket_reaches_the_app_as_from_its_own_page(live: Site) -> None:
    async with visit(live) as (person, base):
        own = f"http://localhost:{live.port}"
        async with person.ws_connect(base, origin=base, protocols=("vite-hmr",)) as socket:
            head = await socket.receive_json()
            assert head == {"Origin": own, "Cookie": None, "Host": f"localhost:{live.port}"}
            assert socket.protocol == "vite-hmr"
            await socket.send_str("héllo")
            assert await socket.receive_str() == "héllo"
            await socket.send_bytes(b"x" * 1_000_000)
            assert await socket.receive_bytes() == b"x" * 1_000_000
        headers = {"Origin": base, "Referer": f"{base}/a?b"}
        async with person.post(base, headers=headers) as answer:
            said = await answer.json()
        assert said == {"Origin": own, "Referer": f"{own}/a?b", "Host": f"localhost:{live.port}"}
        headers = {"Origin": "https://other.example", "Referer": "http://[x"}
        async with person.post(base, headers=headers) as answer:
            said = await answer.json()
        assert (said["Origin"], said["Referer"]) == tuple(headers.values())
        async with person.get(f"{base}/moved", allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/there?x=1"


@in_the_open
@pytest.mark.parametrize(
    ("origin", "cookie", "status"),
    [
        ("{base}", "none", 403),
        ("{base}", f"{COOKIE}=guess", 403),
        ("https://other.example", "", 403),
        ("http://127.0.0.1:1", "", 403),
        ("null", "", 403),
        ("http://[x", "", 403),
        ("", "", 101),
        ("{base}", "", 101),
    ],
)
async def test_a_web_socket_passes_the_guard_of_any_request_and_that_of_its_page(
    live: Site, origin: str, cookie: str, status: int
) -> None:
    async with visit(live) as (person, base), browser() as stranger:
        headers = {"Origin": origin.format(base=base)} if origin else {}
        headers |= {"Cookie": cookie} if cookie else {}
        try:
            asks = stranger if cookie else person
            async with asks.ws_connect(base, headers=headers) as socket:
                got = 101
                await socket.receive_json()
        except aiohttp.WSServerHandshakeError as error:
            got = error.status
    assert got == status


@in_the_open
@pytest.mark.parametrize("end", ["app", "halt", "sandbox", "preview", "quiet", "much"])
async def test_a_web_socket_is_closed(
    live: Site, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if end == "quiet":
        monkeypatch.setattr(server, "QUIET", 0.3)
    if end == "much":
        monkeypatch.setattr(proxy, "MAX_CARRIED", 100_000)
    async with visit(live) as (person, base), person.ws_connect(base, origin=base) as socket:
        await socket.receive_json()
        if end == "app":
            live.app.kill()
        elif end == "halt":
            live.pool.halt(live.place)
        elif end == "sandbox":
            live.pool._retire(*live.pool._places)
        elif end == "preview":
            await live.preview.close()
        elif end == "much":
            await socket.send_bytes(b"x" * 200_000)
        async with asyncio.timeout(PATIENCE):
            said = await socket.receive()
        assert said.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


@in_the_open
async def test_so_many_web_sockets_are_open_at_once(
    live: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_SOCKETS", 1)
    async with visit(live) as (person, base):
        async with person.ws_connect(base) as socket:
            await socket.receive_json()
            with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                await person.ws_connect(base)
            async with person.get(base) as answer:
                assert answer.status == 200, "requests are no sockets"
        await until(lambda: not live.preview._sockets)
        async with person.ws_connect(base) as socket:
            await socket.receive_json()
