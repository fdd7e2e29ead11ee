"""The browser looks at what runs in the sandbox of the same conversation, whatever tier that has; no
page of the web gets there, and no page there gets to the web."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.monty.tier import find_monty
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.tier import Tier
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.bubblewrap_walls import BubblewrapWalls
from agent_core.tools.browser.container_walls import ContainerWalls
from agent_core.tools.browser.enclosure import Walls
from agent_core.tools.browser.tools import Works, browser_tools
from agent_core.tools.contract import ToolContext
from agent_core.tools.send import FileStore
from tests.fakes.e2b_server import KEY, serve_e2b
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import find_browser_tier, find_tier, make_sandboxes
from tests.fakes.web_pages import Answer, WebPages, served

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
    pytest.mark.pick("browser beside sandboxes"),
]
PORT = free_port()
"""Free on this machine, so that an answer there is the sandbox's."""
SERVER = f"""
import http.server, json, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("asked.txt", "a") as log:
            log.write(self.path + "\\n")
        page = pathlib.Path("page.html").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *said): pass
http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), Handler).serve_forever()
"""
START = f"""
nohup python3 server.py >server.log 2>&1 &
for _ in $(seq 100); do
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {PORT}))' 2>/dev/null && break
sleep 0.1; done
"""
PAGE = (
    "<title>Cups</title><h1>Three cups</h1><button onclick=\"document.title='Four'\">More</button>"
    "<img src='{web}/carried?three'><script>fetch('{web}/carried?cups');"
    "new WebSocket('{web}/carried'.replace('http', 'ws'))</script><a href='{web}/form'>Out</a>"
)
HOSTILE = (
    "<title>Tea</title><p id=said>…</p><img src='http://localhost:{port}/stolen'>"
    "<iframe src='http://127.0.0.1:{port}/stolen'></iframe><a href='http://localhost:{port}/led'>In</a>"
    "<script>fetch('http://localhost:{port}/stolen').catch(() => said.textContent = 'tried')</script>"
)


@pytest.fixture
async def site() -> AsyncIterator[WebPages]:
    async with served() as pages:
        pages.put("/form", "A form", "Of the web.")
        pages.put("/carried", "Carried", "Away.")
        yield pages


@pytest.fixture(
    params=[
        pytest.param("bwrap", marks=NEEDS_BWRAP),
        pytest.param("landlock", marks=(NEEDS_LANDLOCK, pytest.mark.slow)),
        pytest.param("docker", marks=pytest.mark.slow),
        pytest.param("e2b", marks=pytest.mark.slow),
    ]
)
async def pool(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SandboxPool]:
    if request.param == "docker":
        yield make_sandboxes(await find_browser_tier(request))
        return
    if request.param != "e2b":
        yield make_sandboxes(await find_tier(request))
        return
    from agent_core.sandboxes.e2b.tier import E2BTier

    async with serve_e2b(tmp_path / "e2b") as server:
        access = E2BAccess(api_key=KEY, api_url=server.url, sandbox_url=server.url)
        made = make_sandboxes(E2BTier(access))
        yield made
        await made.close()


class Looker:
    """Uses browser_use beside a workspace's sandbox."""

    def __init__(self, browser: Browser, pool: SandboxPool, folder: Path) -> None:
        self.pool, self.workspace = pool, folder / "workspace"
        self.workspace.mkdir()
        keep = FileStore(folder / "kept").keep
        self._tool = browser_tools(Works(browser=browser, search=None, keep=keep))[0]  # type: ignore[arg-type]
        self._calls = 0

    async def run(self, command: str) -> str:
        return (await self.pool.run(command, self.workspace, 60, lambda _: None)).output

    async def use(self, action: str, **given: object) -> str:
        self._calls += 1
        key = f"turn/{self._calls}"
        context = ToolContext(workspace=self.workspace, key=key, limit=30, output=print)
        arguments = self._tool.arguments.model_validate({"action": action, **given})
        try:
            gave = await self._tool.call(arguments, context)
        except ToolFailed as error:
            return f"failed: {error}"
        return gave if isinstance(gave, str) else gave.text


@pytest.fixture
async def looker(
    pool: SandboxPool, site: WebPages, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Looker]:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    walls: Walls | None = BubblewrapWalls()
    if pool.name == "docker":
        walls = ContainerWalls(await find_browser_tier(request))
    elif pool.name == "landlock":
        walls = None  # once beside a browser that has no sandbox of its own
    async with Browser(
        tmp_path / "browser",
        frozenset({find_web(site).removeprefix("http://")}),
        resolve,
        connect=pool.connect,
        walls=walls,
    ) as browser:
        yield Looker(browser, pool, tmp_path)


def find_web(site: WebPages) -> str:
    """The site as it is called in the web."""
    return f"http://web.example:{site.place.rpartition(':')[2]}"


async def test_a_server_in_the_background_is_seen_and_worked_with(
    looker: Looker, site: WebPages
) -> None:
    at, place = f"http://localhost:{PORT}/", looker.workspace
    assert "failed: " in (none := await looker.use("go_to_url", url=at))
    assert "Nothing runs in the sandbox. Start the server" in none
    (place / "server.py").write_text(SERVER)
    (place / "page.html").write_text(PAGE.format(web=find_web(site)))
    await looker.run(START)
    said = await looker.use("go_to_url", url=at)
    assert "Title: Cups" in said and "button “More”" in said
    assert "Title: Four" in await looker.use("click_element", index=1)
    said = await looker.use("click_element", index=2)
    assert site.fetched["/form"] == site.fetched["/carried"] == 0, "a page here stays here"
    said = await looker.use("go_to_url", url=f"http://127.0.0.1:{PORT + 1}/")
    assert "Nothing answers at port" in said
    said = await looker.use("go_to_url", url=f"{find_web(site)}/form")
    assert "Title: A form" in said and "Tab 1 of 2" in said, "the web has tabs of its own"


async def test_no_page_of_the_web_reaches_it(looker: Looker, site: WebPages) -> None:
    (looker.workspace / "server.py").write_text(SERVER)
    (looker.workspace / "page.html").write_text("<title>Cups</title>")
    site.pages["/hostile"] = Answer(HOSTILE.format(port=PORT))
    await looker.run(START)
    said = await looker.use("go_to_url", url=f"{find_web(site)}/hostile")
    assert "Title: Tea" in said
    assert "tried" in await looker.use("extract_content")
    await looker.use("click_element", index=1)
    assert (await looker.run("cat asked.txt 2>/dev/null")).strip() == ""
    await looker.use("go_to_url", url=f"http://localhost:{PORT}/mine")
    assert (await looker.run("cat asked.txt")).split()[0] == "/mine"


@pytest.mark.parametrize("tier", [BwrapTier(), find_monty()], ids=lambda one: one.name)
def test_the_tool_says_what_it_reaches(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    browser = Browser(tmp_path, connect=pool.connect if pool.serves else None)
    works = Works(browser=browser, search=None, keep=FileStore(tmp_path).keep)  # type: ignore[arg-type]
    about = browser_tools(works)[0].description
    assert ("http://localhost:PORT" in about) == pool.serves == (tier.name != "monty")
    assert ("reaches nothing that runs in the sandbox" in about) != pool.serves
    assert json.dumps(about).isascii()


async def test_what_runs_no_servers_says_so(tmp_path: Path) -> None:
    """A supervisor of this machine must not be asked for a port of this machine."""
    pool = make_sandboxes(find_monty())
    with pytest.raises(ToolFailed, match="runs no servers"):
        await pool.connect(tmp_path, PORT)
