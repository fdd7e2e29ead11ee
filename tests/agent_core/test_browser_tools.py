"""The browser's tools in a real Chromium: what they do, what a page cannot do to anybody, and that
nothing of the browser is left."""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from pydantic import ValidationError

from agent_core.context.record_events import events_of
from agent_core.errors import ToolFailed
from agent_core.events import BrowserMoved, BrowserShown
from agent_core.journal import Outcome, ToolFinished
from agent_core.messages import Browsed, ToolOutput
from agent_core.policy import Situation
from agent_core.tools.browser import chromium, enclosure, state
from agent_core.tools.browser import session as session_module
from agent_core.tools.browser.acts import Act
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.bubblewrap_walls import BubblewrapWalls
from agent_core.tools.browser.container_walls import ContainerWalls
from agent_core.tools.browser.enclosure import Walls
from agent_core.tools.browser.session import MAX_TABS, _keep
from agent_core.tools.browser.tools import PressKeyArguments, Works, browser_tools
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.facts import judge_call
from agent_core.tools.send import FileStore
from agent_core.tools.web import proxy as proxy_module
from agent_core.tools.web.port import Hit
from agent_core.tools.web.proxy import GuardedProxy, _resolve
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM
from tests.fakes.sandboxes import find_browser_tier
from tests.fakes.web_pages import Answer, WebPages, served

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0
pytestmark = [pytest.mark.timeout(120), pytest.mark.pick("tools of the browser", 11)]
FORM = (
    "<title>Order</title><h1>Order</h1><form action='/done'><label>Name <input name=n></label>"
    "<input type=password placeholder=Pin name=p>"
    "<select name=size aria-label=Size><option>small<option>large</select>"
    "<button>Send it</button></form><a href='/leave' target=_blank>More</a><div style='height:3000px'>"
    "</div><p>At the very end</p><a href='/file' download>A file</a>"
    "<div><template shadowrootmode=open><button>Deep</button></template></div>"
)


class Found:
    """A search that always finds the same."""

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        return (Hit(url="http://a.example/", title=f"About {query}"),)


class Hand:
    """Uses the tools as a turn does, in one workspace."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser = browser
        self.kept = FileStore(folder / "kept")
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        works = Works(browser=browser, search=Found(), keep=self.kept.keep)
        self.tools = {tool.name: tool for tool in browser_tools(works)}
        self._keys = itertools.count(1)
        self.last = ToolOutput(text="")

    async def do(self, name: str, **given: object) -> str:
        """What the tool says, or why it does not."""
        tool = self.tools[name]
        context = ToolContext(
            workspace=self.workspace, key=f"turn/{next(self._keys)}", limit=30, output=print
        )
        try:
            gave = await tool.call(tool.arguments(**given), context)
        except ToolFailed as error:
            return f"failed: {error}"
        self.last = gave if isinstance(gave, ToolOutput) else ToolOutput(text=gave)
        return self.last.text

    async def use(self, action: str, **given: object) -> str:
        return await self.do("browser_use", action=action, **given)

    def number(self, label: str) -> int:
        """Of an element that was told of."""
        line = next(row for row in self.last.text.splitlines() if label in row and row[0] == "[")
        return int(line[1 : line.index("]")])


@pytest.fixture
async def site() -> AsyncIterator[WebPages]:
    async with served() as pages:
        pages.pages["/form"] = Answer(FORM)
        pages.put("/done", "Thanks", "It was ordered.")
        pages.put("/leave", "Other", "Another page.")
        headers = {"Content-Disposition": 'attachment; filename="../../price list.csv"'}
        pages.pages["/file"] = Answer("a,b", mime="text/csv", headers=headers)
        yield pages


WHERE = pytest.mark.parametrize(
    "encloses", [False, pytest.param(True, marks=NEEDS_BWRAP)], ids=["here", "enclosed"]
)


@pytest.fixture(
    params=[
        "here",
        pytest.param("bwrap", marks=NEEDS_BWRAP),
        pytest.param("docker", marks=pytest.mark.slow),
    ]
)
async def hand(
    site: WebPages, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Hand]:
    allowed = frozenset({site.place})
    walls: Walls | None = None
    if request.param == "bwrap":
        walls = BubblewrapWalls()
    elif request.param == "docker":
        walls = ContainerWalls(await find_browser_tier(request))
    home = tmp_path / ("browser" * 16)  # of a longer path than a socket's address may be
    async with Browser(home, allowed, resolved, walls=walls) as browser:
        yield Hand(browser, tmp_path)


async def resolved(host: str, port: int) -> list[str]:
    """Names as a hostile server of names has them."""
    return ["127.0.0.1"] if host.endswith(".example") else await _resolve(host, port)


async def until(met: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.01)


# ---- what they do ------------------------------------------------------------------------


@NEEDS_CHROMIUM
async def test_a_form_is_found_filled_and_sent(hand: Hand, site: WebPages) -> None:
    assert "No page is open" in await hand.do("browser_screenshot")
    said = await hand.use("go_to_url", url=f"{site.url}/form")
    assert said.startswith(f"[browser go_to_url at {site.place}]\nOpened {site.url}/form.")
    assert "data written by strangers" in said and "Title: Order" in said
    assert "Scrolled to 0 of 3" in said and "A file” (out of sight)" in said
    assert "button “Deep”" in said, "within a component of the page"
    (shot,) = hand.last.pictures
    assert hand.kept.read(shot.ref).startswith(b"\xff\xd8\xff") and shot.mime == "image/jpeg"
    assert (hand.workspace / shot.path).read_bytes() == hand.kept.read(shot.ref)
    assert "= Ann" in await hand.use("input_text", index=hand.number("“Name”"), text="Ann")
    pin = hand.number("password field “Pin”")
    said = await hand.do("browser_type", index=pin, text="s3cret")
    assert "= ••••" in said and "s3cret" not in said
    size = hand.number("“Size”")
    assert "Option: small\nOption: large" in await hand.use("get_dropdown_options", index=size)
    assert "= large" in await hand.use("select_dropdown_option", index=size, text="large")
    assert "Scrolled to 0" not in await hand.use("scroll_to_text", text="At the very end")
    said = await hand.use("click_element", index=hand.number("A file"))
    async with asyncio.timeout(PATIENCE):
        while "Downloaded into the workspace: downloads/" not in said:
            said = await hand.do("browser_screenshot")
    (kept,) = (hand.workspace / "downloads").iterdir()
    assert kept.name.endswith("price list.csv") and kept.read_text() == "a,b"
    await hand.do("browser_scroll", direction="up", amount=9_000)
    more = hand.number("“More”")
    await hand.use("click_element", index=more)
    await until(lambda: len(hand.browser.at_work(hand.workspace).context.pages) == 2)  # type: ignore[union-attr]
    assert "Tab 1: " in await hand.do("browser_screenshot")
    assert f"URL: {site.url}/leave" in await hand.use("switch_tab", tab=1)
    assert "Tab 0 of 1" in await hand.use("close_tab")
    assert "URL: " + site.url + "/done?n=Ann&p=s3cret&size=large" in await hand.do(
        "browser_click", index=hand.number("“Send it”")
    )
    assert "It was ordered." in await hand.use("extract_content")
    assert f"no element [{more}]" in await hand.use("click_element", index=more)
    assert "Title: Order" in await hand.use("go_back")
    assert "no earlier page" in await hand.use("go_back")
    assert site.fetched["/done"] == 1
    assert "About tea" in await hand.use("web_search", query="tea")


@NEEDS_CHROMIUM
async def test_what_was_approved_is_what_is_touched(
    hand: Hand, site: WebPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label is part of the approval, and the page's place is; both are looked at again."""
    swap = "<script>setLabel=(t)=>document.querySelector('button').innerText=t</script>"
    site.pages["/swap"] = Answer(f"<button onclick='document.title=1'>Keep</button>{swap}")
    await hand.use("go_to_url", url=f"{site.url}/swap")
    click = hand.tools["browser_click"]
    arguments = click.arguments(index=1)
    assert click.preview is not None and click.bind is not None
    assert (
        str(click.preview(arguments, hand.workspace))
        == f"Click [1] button “Keep” on {site.url}/swap"
    )
    bound = click.bind(arguments, hand.workspace)
    session = hand.browser.at_work(hand.workspace)
    assert session is not None
    await session.page.evaluate("setLabel('Delete')")
    assert "is now button “Delete”, it was button “Keep”" in await hand.do("browser_click", index=1)
    assert await session.page.title() == "" and click.bind(arguments, hand.workspace) == bound
    await hand.do("browser_screenshot")
    assert click.bind(arguments, hand.workspace) != bound, "another label is another call"
    site.pages["/busy"] = Answer("<button onclick='for(;;);'>Go</button>")
    await hand.use("go_to_url", url=f"{site.url}/busy")
    session.context.set_default_timeout(500)
    monkeypatch.setattr(session_module, "SECONDS", 0.5)
    go = hand.number("“Go”")
    assert "may or may not have taken effect" in await hand.do("browser_click", index=go)
    busy = asyncio.ensure_future(session.page.evaluate("for(;;);"))  # whether or not it was clicked
    said = await hand.do("browser_scroll")
    assert "The page does not answer" in said
    busy.cancel()


def test_an_action_needs_what_it_works_on() -> None:
    for action in ("go_to_url", "click_element", "send_keys", "switch_tab", "web_search"):
        with pytest.raises(ValidationError, match=f"{action} needs"):
            Act.model_validate({"action": action})
    assert Act.model_validate({"action": "switch_tab", "tab": 0}).tab == 0
    actions = Act.model_json_schema()["properties"]["action"]["enum"]
    assert len(actions) == 16


@pytest.mark.parametrize("encloses", [True, False])
def test_the_tool_says_where_the_browser_runs(encloses: bool, tmp_path: Path) -> None:
    browser = Browser(tmp_path, walls=BubblewrapWalls() if encloses else None)
    works = Works(browser=browser, search=Found(), keep=FileStore(tmp_path).keep)
    about = {tool.name: tool.description for tool in browser_tools(works)}
    for name in ("browser_use", "sandbox_browser"):
        assert ("in a sandbox of its own" in about[name]) == encloses
        assert ("outside of the sandbox" in about[name]) == (not encloses)


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    works = Works(browser=Browser(tmp_path), search=Found(), keep=FileStore(tmp_path).keep)
    return {tool.name: tool for tool in browser_tools(works)}


@pytest.mark.parametrize(
    ("name", "given", "ruling", "always"),
    [
        ("browser_use", {"action": "go_to_url", "url": "https://a.org/x"}, "ask", "pages of a.org"),
        ("browser_navigate", {"url": "http://a.org:81/"}, "ask", "pages of a.org:81"),
        ("browser_use", {"action": "web_search", "query": "q"}, "ask", "any web search"),
        ("browser_use", {"action": "click_element", "index": 1}, "ask", ""),
        ("browser_type", {"index": 1, "text": "t"}, "ask", ""),
        ("browser_press_key", {"key": "Enter"}, "ask", ""),
        ("sandbox_browser", {"action": "send_keys", "keys": "Enter"}, "ask", ""),
        ("sandbox_browser", {"action": "extract_content"}, "allow", ""),
        ("browser_use", {"action": "scroll_down"}, "allow", ""),
        ("browser_scroll", {"direction": "up"}, "allow", ""),
        ("browser_screenshot", {}, "allow", ""),
        ("browser_get_stream_url", {}, "allow", ""),
    ],
)
def test_looking_is_free_and_touching_is_asked(
    tools: dict[str, Tool], name: str, given: dict[str, object], ruling: str, always: str
) -> None:
    arguments = tools[name].arguments(**given)
    verdict = judge_call(tools[name], arguments, "d", Situation(mode="auto", person="p"))
    assert (verdict.ruling, verdict.always) == (ruling, always)


def test_touching_is_never_made_twice(tools: dict[str, Tool]) -> None:
    effects = {name for name, tool in tools.items() if tool.repetition == "effect"}
    touching = {"browser_click", "browser_type", "browser_press_key"}
    assert effects == touching | {"browser_use", "sandbox_browser"}


def test_its_events(tools: dict[str, Tool]) -> None:
    def ended(name: str, browsed: Browsed | None, outcome: Outcome = "ok") -> Any:
        record = {"key": "k", "call_id": "c", "digest": "", "content": "[browser go_back at a.org]"}
        finished = ToolFinished(name=name, browsed=browsed, outcome=outcome, **record)
        return events_of(finished)[0]

    went = Browsed(action="go_back", url="https://a.org/x")
    moved = BrowserMoved(call_id="c", action="go_back", url="https://a.org/x")
    assert ended("browser_use", went) == moved == ended("sandbox_browser", went)
    assert ended("browser_use", went, "failed") != moved
    assert ended("browser_use", None) != moved, "what a result says is not read back"
    shown = BrowserShown(call_id="c", url="http://127.0.0.1:1/s")
    assert ended("browser_get_stream_url", Browsed(url="http://127.0.0.1:1/s")) == shown


# ---- what a page cannot do ---------------------------------------------------------------


class Inside(asyncio.DatagramProtocol):
    """Somebody on loopback whom no page may reach: counts whoever comes."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.port = 0

    def datagram_received(self, data: bytes, address: object) -> None:
        self.came.append(data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.append(await reader.read(200))
        writer.close()


@pytest.fixture
async def inside() -> AsyncIterator[Inside]:
    made = Inside()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    datagrams, _ = await loop.create_datagram_endpoint(
        lambda: made, local_addr=("127.0.0.1", made.port)
    )
    yield made
    datagrams.close()
    server.close()


HOSTILE = """<title>trying</title><iframe src="{at}/frame"></iframe><img src="{at}/image">
<iframe src="http://inside.example:{port}/named"></iframe><iframe id="f" srcdoc="x"></iframe>
<a href="file:///etc/passwd">local</a><a href="data:text/html,<title>data</title>">written</a>
<script>
const tries = [];
const ends = (make) => new Promise((done) => {{ try {{
  Promise.resolve(make(done)).catch(done); }} catch (e) {{ done(e); }} }});
for (const to of ['127.0.0.1', 'localhost', '[::1]', 'inside.example', '0x7f000001'])
  tries.push(fetch('http://' + to + ':{port}/fetch', {{mode: 'no-cors'}}).catch((e) => e),
    ends((done) => {{ const s = new WebSocket('ws://' + to + ':{port}/socket');
      s.onerror = s.onclose = done; s.onopen = () => s.send('x'); }}));
tries.push(ends((done) => {{ navigator.sendBeacon('{at}/beacon', 'x'); done(); }}));
const ices = {{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}};
const realms = [window, document.getElementById('f').contentWindow];
for (const realm of realms) tries.push(ends(async (done) => {{
  const rtc = new realm.RTCPeerConnection(ices);
  rtc.onicegatheringstatechange = () => rtc.iceGatheringState === 'complete' && done();
  rtc.createDataChannel('x'); await rtc.setLocalDescription(await rtc.createOffer()); }}));
tries.push(ends((done) => new WebTransport('https://127.0.0.1:{port}/t').closed.then(done, done)));
for (let n = 0; n < 30; n++) window.open('about:blank');
window.open('{at}/popup'); window.open('file:///etc/passwd');
Promise.allSettled(tries).then(() => {{ document.title = 'tried ' + tries.length; }});
</script>"""


@NEEDS_CHROMIUM
async def test_no_page_reaches_what_is_inside(hand: Hand, site: WebPages, inside: Inside) -> None:
    at = f"http://127.0.0.1:{inside.port}"
    site.pages["/bad"] = Answer(HOSTILE.format(at=at, port=inside.port))
    for n, place in enumerate((f"{at}/moved", "file:///etc/passwd", "data:text/html,x")):
        site.pages[f"/away{n}"] = Answer(status=302, headers={"Location": place})
    said = await hand.use("go_to_url", url=f"{site.url}/bad")
    async with asyncio.timeout(PATIENCE):
        while "Title: tried 14" not in said:
            said = await hand.use("wait", seconds=0)
    assert inside.came == []
    session = hand.browser.at_work(hand.workspace)
    assert session is not None
    await until(lambda: len(session.context.pages) <= MAX_TABS)
    for label in ("“local”", "“written”"):
        said = await hand.use("click_element", index=hand.number(label))
        assert f"URL: {site.url}/bad" in said
    barred = "leads to an address that is not public"
    hostile = (at, f"http://inside.example:{inside.port}/", f"{site.url}/away0")
    for url in hostile:
        said = await hand.use("go_to_url", url=url)
        assert (
            said.startswith("failed")
            and barred in said
            or barred in await hand.use("extract_content")
        )
    for url in (f"{site.url}/away1", f"{site.url}/away2"):
        assert (await hand.use("go_to_url", url=url)).startswith("failed")
    for url in ("file:///etc/passwd", "data:text/html,x", "chrome://settings", "about:blank"):
        assert "is not opened. Only http" in await hand.use("open_tab", url=url)
    assert inside.came == []


async def test_the_proxy_connects_to_what_it_looked_up(inside: Inside) -> None:
    """Asked once for each connection; nothing looks the name up a second time."""
    asked: list[str] = []

    async def flips(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) > 1 else ["10.0.0.1", "127.0.0.1", "::1"]

    proxy = GuardedProxy(frozenset({f"mine.example:{inside.port}"}), flips)
    url = await proxy.open()
    async with aiohttp.ClientSession() as session:
        for n in range(2):
            place = f"http://flips.example:{inside.port}/{n}"
            async with session.get(place, proxy=url) as answer:
                assert answer.status == 403 and "not public" in await answer.text()
            assert "not public" in proxy.why_barred(place)
    assert asked == ["flips.example"] * 2 and inside.came == []
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    writer.write(f"CONNECT mine.example:{inside.port} HTTP/1.1\r\n\r\n".encode())
    assert b"200" in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"hello")
    await until(lambda: inside.came == [b"hello"])
    await proxy.close()
    assert await reader.read() == b""
    writer.close()


async def test_a_web_request_is_carried_as_it_is(site: WebPages) -> None:
    proxy = GuardedProxy(frozenset({site.place}))
    url = await proxy.open()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{site.url}/form?a=1", proxy=url) as answer:
            assert await answer.text() == FORM and answer.headers["Connection"] == "close"
        query = {"query": "q", "numResults": 1}
        async with session.post(f"{site.url}/search", json=query, proxy=url) as answer:
            assert answer.status == 200 and site.asked == [("exa", "q")]
    await proxy.close()


async def test_who_speaks_no_http_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "SECONDS", 3_600.0)
    proxy = GuardedProxy(frozenset())
    port = int((await proxy.open()).rpartition(":")[2])
    try:
        for words in (b"\x05\x01\x00", b"\x16\x03\x01"):  # SOCKS, TLS
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(words)
            async with asyncio.timeout(PATIENCE):
                assert await reader.read() == b""
            writer.close()
    finally:
        await proxy.close()


def test_a_download_stays_in_its_folder(tmp_path: Path) -> None:
    source, workspace = tmp_path / "source", tmp_path / "workspace"
    source.write_text("new")
    for name, kept in (
        ("a.txt", "a.txt"), ("a.txt", "a-2.txt"), ("../../b", "b"), ("..", "file"), ("", "file-2"),
    ):  # fmt: skip
        assert _keep(workspace, source, name) == f"downloads/{kept}"
    with pytest.raises(ToolFailed, match="secret file"):
        _keep(workspace, source, "id_rsa")
    other = tmp_path / "other"
    (other / "x").mkdir(parents=True)
    (other / "downloads").symlink_to(tmp_path)
    with pytest.raises(ToolFailed):
        _keep(other, source, "c")
    assert not (tmp_path / "c").exists()


# ---- its life ----------------------------------------------------------------------------


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def environment(process: psutil.Process) -> set[str]:
    with contextlib.suppress(psutil.Error):  # it just ended
        return set(process.environ())
    return set()


def leads(process: psutil.Process) -> bool:
    """It is the browser itself, not one of those that it starts."""
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        return words[0].endswith("/chromium") and "--type=" not in str(words)
    return False


def runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def over(processes: list[psutil.Process]) -> bool:
    return not any(map(runs, processes))


@NEEDS_CHROMIUM
async def test_one_browser_with_a_session_for_each_workspace(
    site: WebPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "s3cret")
    site.pages["/cookie"] = Answer("x", headers={"Set-Cookie": "who=ann; Path=/"})
    site.pages["/who"] = Answer(
        "<body><script>document.body.append('(' + document.cookie + ')')</script>"
    )
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        place.mkdir()
    before = set(below(os.getpid()))
    async with Browser(tmp_path / "browser", frozenset({site.place})) as browser:
        ann, bob = (Hand(browser, place) for place in places)
        await ann.do("browser_navigate", url=f"{site.url}/cookie")
        started = [p for p in below(os.getpid()) if p not in before]
        await ann.do("browser_navigate", url=f"{site.url}/who")
        assert "(who=ann)" in await ann.use("extract_content")
        await bob.do("browser_navigate", url=f"{site.url}/who")
        assert "()" in await bob.use("extract_content"), "a session of its own"
        (main,) = filter(leads, started)
        assert environment(main) >= {"LANG", "HOME"}
        assert not any("A_SECRET" in environment(p) for p in main.children(recursive=True))
        assert "A_SECRET" not in environment(main)
        await watched(bob)
        bind = ann.tools["browser_press_key"].bind
        assert bind is not None
        bound = bind(PressKeyArguments(key="Enter"), ann.workspace)
        browser.halt(ann.workspace)
        await until(lambda: browser.at_work(ann.workspace) is None)
        assert site.place in bound == bind(PressKeyArguments(key="Enter"), ann.workspace), (
            "known still"
        )
        said = await ann.do("browser_click", index=1)
        assert "The browser was closed" in said and f"It was at {site.url}/who" in said
        said = await ann.do("browser_navigate", url=f"{site.url}/form")
        assert (
            f"The browser is a new one: earlier tabs and sign-ins are gone. It was at {site.url}/who"
            in said
        )
        assert "Title: Order" in said
        (main,) = filter(leads, started)
        main.kill()
        await until(lambda: browser.at_work(ann.workspace) is None)
        assert "nothing was done" in await bob.do("browser_press_key", key="Enter")
        assert "Title: Order" in await bob.do("browser_navigate", url=f"{site.url}/form")
        await until(lambda: over(started))
        started = [p for p in below(os.getpid()) if p not in before]
        assert any(map(leads, started))
        browser._idle = 0.0
        assert "Title: Order" in await bob.do("browser_screenshot")
        await until(lambda: over(started))
    assert "shut down" in await bob.do("browser_navigate", url=f"{site.url}/form")


async def watched(hand: Hand) -> None:
    """The stream shows what changes, takes no orders, and is known to nobody else."""
    link = (await hand.do("browser_get_stream_url")).rpartition(" ")[2]
    async with aiohttp.ClientSession() as session:
        async with session.get(link) as page:
            assert (
                page.status == 200
                and "default-src 'none'" in page.headers["Content-Security-Policy"]
            )
        async with session.get(link[:-1] + ("a" if link[-1] != "a" else "b")) as page:
            assert page.status == 404
        async with session.ws_connect(link + "/live") as socket:
            first = await socket.receive_bytes(timeout=PATIENCE)
            await hand.do("browser_navigate", url=link.rpartition("/")[0])
            second = await socket.receive_bytes(timeout=PATIENCE)
            assert first[:3] == second[:3] == b"\xff\xd8\xff" and first != second


LIFE = """
import asyncio, sys
from pathlib import Path
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.bubblewrap_walls import BubblewrapWalls

async def live():
    walls = BubblewrapWalls() if sys.argv[2] == "True" else None
    async with Browser(Path(sys.argv[1]), walls=walls) as browser:
        async with browser.session(Path(sys.argv[1]) / "w") as session:
            await session.open()
            print("open", flush=True)
            await asyncio.Event().wait()

asyncio.run(live())
"""


@pytest.mark.pick("a browser that outlives its gateway")
@NEEDS_CHROMIUM
@WHERE
@pytest.mark.parametrize("hangs", [False, True])
async def test_it_never_outlives_the_gateway(hangs: bool, encloses: bool, tmp_path: Path) -> None:
    """Also where it hangs, and its driver is killed too."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LIFE, str(tmp_path), str(encloses)),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stdout.readline() == b"open\n"
    left = below(process.pid)
    (main,) = filter(leads, left)
    (driver,) = (one for one in left if "run-driver" in one.cmdline())
    if hangs:
        main.suspend()
    process.send_signal(signal.SIGKILL)
    if hangs:
        driver.kill()
    await process.wait()
    await until(lambda: over(left))


@NEEDS_CHROMIUM
@NEEDS_BWRAP
async def test_an_enclosed_browser_has_nothing_of_the_machine(tmp_path: Path) -> None:
    before = set(below(os.getpid()))  # other tests' browsers
    walls = BubblewrapWalls()
    async with Browser(tmp_path / "browser", walls=walls) as browser, browser.session(tmp_path):
        started = (one for one in below(os.getpid()) if one not in before)
        own = [one for one in started if "chromium" in one.name()]
        assert own
        pid = next(one.pid for one in own if "--headless" in one.cmdline())
        for kind in ("net", "pid", "mnt", "ipc"):
            assert os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        devices = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
        assert [one.split(":")[0].strip() for one in devices] == ["lo"]
        if os.geteuid() == 0:
            assert {one.uids().real for one in own} == {enclosure.USER}
            assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
        root = Path(f"/proc/{pid}/root")
        held = {str(one) for one in (root / tmp_path.relative_to("/")).rglob("*")}
        assert held == {str(root / (tmp_path / name).relative_to("/")) for name in (
            "browser", "browser/downloads")}  # fmt: skip
        assert not list((root / "home").iterdir())
        outside = ("root", "var", "srv", "etc/passwd", "etc/shadow")
        assert [one for one in outside if (root / one).exists()] == []


@NEEDS_CHROMIUM
@NEEDS_BWRAP
async def test_one_that_takes_too_much_memory_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enclosure, "MEMORY", 40 << 20)
    before = set(below(os.getpid()))
    async with Browser(tmp_path / "browser", walls=BubblewrapWalls()) as browser:
        hand = Hand(browser, tmp_path)
        said = await hand.do("browser_navigate", url="http://a.example/")
        if "did not start" not in said:  # it was quicker than the watch
            await until(lambda: browser.at_work(hand.workspace) is None)
        await until(lambda: over([one for one in below(os.getpid()) if one not in before]))


@NEEDS_CHROMIUM
async def test_one_that_ends_while_it_begins_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = chromium.start

    async def begin_and_end(*given: Any) -> Any:
        driven = await begin(*given)
        await driven.browser.close()
        return driven

    monkeypatch.setattr(chromium, "start", begin_and_end)
    async with Browser(tmp_path / "browser") as browser:
        said = await Hand(browser, tmp_path).do("browser_navigate", url="http://a.example/")
    assert "did not start" in said


def test_what_a_browser_plants_among_downloads_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("root's")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "planted").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic"):
        _keep(tmp_path / "workspace", tmp_path / "planted", "a.txt")
    with pytest.raises(ToolFailed, match="is no file"):
        _keep(tmp_path / "workspace", tmp_path / "pipe", "a.txt")
    assert not list((tmp_path / "workspace").iterdir())


@NEEDS_CHROMIUM
@WHERE
async def test_neither_driver_nor_browser_knows_the_environment(
    encloses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-the-gateways")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:word@127.0.0.1:1")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    home = tmp_path / "browser"
    walls = BubblewrapWalls() if encloses else None
    async with Browser(home, walls=walls) as browser, browser.session(tmp_path):
        alive = below(os.getpid())
        drivers = [one for one in alive if "run-driver" in one.cmdline()]
        assert len(drivers) == 1 and any(map(leads, alive))
        given = [environment(one) for one in alive]
        own = drivers[0].environ()
    assert not any(env & {"OPENAI_API_KEY", "HTTPS_PROXY"} for env in given)
    assert own["PLAYWRIGHT_BROWSERS_PATH"] == str(tmp_path)
    assert own["PATH"] == os.environ["PATH"] and own.keys() <= {
        *("PATH", "HOME", "LANG", "TMPDIR", "PLAYWRIGHT_BROWSERS_PATH"),
        *("PW_LANG_NAME", "PW_LANG_NAME_VERSION", "PW_CLI_DISPLAY_VERSION"),
    }


async def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Browser(tmp_path / "browser") as browser:
        hand = Hand(browser, tmp_path)
        monkeypatch.setattr(chromium, "NAMES", ("no-such-browser",))
        assert "Install Chromium" in chromium.find_missing()
        assert "Install Chromium" in await hand.do("browser_navigate", url="http://a.example/")
        monkeypatch.setattr(chromium, "NAMES", ("sh",))
        monkeypatch.setitem(sys.modules, "playwright.async_api", None)
        said = await hand.do("browser_navigate", url="http://a.example/")
        assert "turnkeeper[browser]" in said and not chromium.find_missing()
        monkeypatch.setitem(sys.modules, "playwright", None)
        assert "turnkeeper[browser]" in chromium.find_missing()


def test_the_driver_is_imported_when_a_browser_is_wanted() -> None:
    words = "import sys, gateway.wiring.toolkit; sys.exit('playwright' in sys.modules)"
    assert subprocess.run((sys.executable, "-c", words), cwd=ROOT, timeout=60).returncode == 0


def test_old_pictures_make_room(tmp_path: Path) -> None:
    for n in range(state.MAX_SHOTS + 3):
        (tmp_path / f"{n}.jpg").write_bytes(b"")
        os.utime(tmp_path / f"{n}.jpg", (n, n))
    (tmp_path / "kept.txt").write_text("")
    state._thin_out(tmp_path, tmp_path.resolve())
    left = {one.name for one in tmp_path.iterdir()}
    assert len(left) == state.MAX_SHOTS + 1 and "kept.txt" in left
    assert not left & {"0.jpg", "1.jpg", "2.jpg"}
