"""Each route of the gateway's HTTP server against what a page of another site can have a browser
send with the cookie of who is signed in. The routes are the router's own: a new one is tried too."""

import itertools
import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from msgspec import Struct

from tests.fakes.browser import browse
from tests.fakes.web_pages import served
from tests.sampling import dice
from tests.stories.rig import Rig

EVIL = "http://evil.example"
OPEN = {
    ("GET", "/healthz"): 200,
    ("GET", "/readyz"): 200,
    ("GET", "/metrics"): 200,
    ("POST", "/hooks/{name}"): 401,
    ("POST", "/telegram/webhook"): 401,
    ("POST", "/slack/events"): 401,
}
"""Routes for which no cookie counts, and what a stranger is answered there."""
BODIES = {
    "": b"",
    "application/x-www-form-urlencoded": b"text=hi&token=q%3Ax%3Aonce",
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nhi',
    "text/plain": b'{"text": "hi", "key": "k1", "x": "="}',
    "application/json": b'{"text": "hi", "key": "k2"}',
}
READS = (("no-cors", "image"), ("no-cors", "script"), ("cors", "empty"), ("websocket", "empty"),
         ("navigate", "iframe"), ("navigate", "object"), ("same-origin", "worker"))  # fmt: skip


class Sent(Struct, frozen=True, kw_only=True):
    """A request without its path."""

    headers: Mapping[str, str]
    body: bytes = b""


def list_writes(own: str) -> Iterator[Sent]:
    """What makes a browser send another method than GET: it always says the origin by one of the
    two headers, and its own name of the host where that was led here (DNS rebinding)."""
    port = urlsplit(own).port
    origins = (EVIL, "null", f"http://127.0.0.1:{int(port or 0) ^ 1}", f"http://localhost:{port}",
               f"https://127.0.0.1:{int(port or 0) ^ 1}", "http://127.0.0.1", "")  # fmt: skip
    for origin, site, (kind, body) in itertools.product(
        origins, ("", "cross-site", "same-site"), BODIES.items()
    ):
        if not origin and not site:
            continue
        modes = (("navigate", "document"), ("navigate", "iframe"), ("no-cors", "empty"))
        for mode, dest in (*modes, ("cors", "empty")) if site else (("", ""),):
            said = {"Origin": origin, "Sec-Fetch-Site": site, "Content-Type": kind}
            said |= {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            yield Sent(headers={name: value for name, value in said.items() if value}, body=body)
    yield from list_rebound(port)


def list_reads(own: str) -> Iterator[Sent]:
    """What makes a browser send GET, but for leading somebody here: pictures, scripts, frames,
    EventSource and WebSocket, by a browser of today or one that says the origin alone."""
    port = urlsplit(own).port
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    for site, (mode, dest) in itertools.product(("cross-site", "same-site"), READS):
        for origin in (EVIL, f"http://127.0.0.1:{int(port or 0) ^ 1}", "null", ""):
            said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
            said |= ({"Origin": origin} if origin else {}) | (
                upgrade if mode == "websocket" else {}
            )
            yield Sent(headers=said)
    for origin in (EVIL, "null", f"http://localhost:{port}"):
        yield Sent(headers={"Origin": origin, "Accept": "text/event-stream"})
    yield from list_rebound(port)


def list_rebound(port: int | None) -> Iterator[Sent]:
    for name in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}"):
        for site in ("", "same-origin", "none"):
            said = {"Host": name, "Origin": f"http://{name}", "Sec-Fetch-Site": site}
            yield Sent(headers={key: value for key, value in said.items() if value})


@pytest.fixture
async def routes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Method, pattern and an address of each route of a gateway that has started."""
    apps: list[web.Application] = []
    runner = web.AppRunner

    def note(app: web.Application, *args: object, **named: object) -> web.AppRunner:
        apps.append(app)
        return runner(app, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(web, "AppRunner", note)
    await rig.start()
    found = []
    for route in apps[0].router.routes():
        info = route.resource.get_info() if route.resource is not None else {}
        pattern = info.get("path") or info["formatter"]
        filled = pattern.format_map(_Fills()) if "{" in pattern else pattern
        found.append((route.method, pattern, filled))
    return found


class _Fills(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "run" if name == "action" else "x"


async def send(
    http: aiohttp.ClientSession, rig: Rig, method: str, path: str, sent: Sent
) -> tuple[int, Mapping[str, str]]:
    url = f"{rig.url.rstrip('/')}{path}"
    made = http.request(method, url, headers=sent.headers, data=sent.body, allow_redirects=False)
    async with made as answer:
        return answer.status, answer.headers


def choose(sent: Iterator[Sent], count: int, *names: object) -> list[Sent]:
    found = list(sent)
    return found if count >= len(found) else dice(*names).sample(found, count)


async def try_all(rig: Rig, routes: list[tuple[str, str, str]], each: int) -> None:
    name, value = await rig.sign_in()
    own = rig.url.rstrip("/")
    async with aiohttp.ClientSession(headers={"Cookie": f"{name}={value}"}) as http:
        for method, pattern, path in routes:
            writes = method not in ("GET", "HEAD")
            for sent in choose((list_writes if writes else list_reads)(own), each, pattern):
                status, headers = await send(http, rig, method, path, sent)
                allowed = OPEN.get(("GET" if method == "HEAD" else method, pattern), 403)
                assert status in (allowed, 403), (method, pattern, sent, status)
                told = [one for one in headers if one.startswith("Access-Control")]
                assert "Set-Cookie" not in headers and not told, (method, pattern, sent)
            asks = {"Origin": EVIL, "Access-Control-Request-Method": method}
            status, headers = await send(http, rig, "OPTIONS", path, Sent(headers=asks))
            assert status == 405 and "Access-Control-Allow-Origin" not in headers
        for what in ("sessions", "conversations", "jobs"):
            async with http.get(f"{rig.url}api/{what}") as answer:
                found = (await answer.json())[what]
            assert len(found) == (what == "sessions"), "nothing began, and nobody is signed out"
        for method, pattern, path in routes:  # what our own page sends reaches each of them
            if (method, pattern) in OPEN or path.endswith("/events") or "signout" in path:
                continue
            said = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
            said |= {"Origin": own} if method not in ("GET", "HEAD") else {}
            status, _ = await send(http, rig, method, path, Sent(headers=said, body=b"{}"))
            assert status != 403, (method, pattern)


async def test_no_page_of_another_site_reaches_a_route(
    rig: Rig, routes: list[tuple[str, str, str]]
) -> None:
    assert len(routes) > 30
    await try_all(rig, routes, 2)


@pytest.mark.slow
async def test_no_page_of_another_site_reaches_a_route_in_any_way(
    rig: Rig, routes: list[tuple[str, str, str]]
) -> None:
    await try_all(rig, routes, 10_000)


async def test_a_link_that_another_site_leads_to_signs_in_by_a_press(rig: Rig) -> None:
    await rig.start()
    at = Sent(headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
                       "Sec-Fetch-Dest": "document"})  # fmt: skip
    path = rig.link.removeprefix(rig.url.rstrip("/"))
    async with aiohttp.ClientSession() as http:
        status, headers = await send(http, rig, "GET", path, at)
        assert status == 200 and "Set-Cookie" not in headers
        assert headers["Referrer-Policy"] == "same-origin", "else the press would say no origin"
        press = Sent(headers={"Origin": rig.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"})
        status, headers = await send(http, rig, "POST", path, press)
        assert status == 200 and "SameSite=Strict" in headers["Set-Cookie"]
        assert (await send(http, rig, "POST", path, press))[0] == 401, "once"


TRY = """async ([own, routes]) => {
  const read = [], kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];
  const until = (node, ...names) => new Promise((done) => {
    setTimeout(done, 1500);
    names.forEach((name) => node.addEventListener(name, done));
  });
  const add = (tag, fields, ...names) => {
    const node = Object.assign(document.createElement(tag), fields);
    document.body.append(node);
    return until(node, "load", "error", ...names).then(() => node);
  };
  const body = JSON.stringify({ text: "hi", key: "k", token: "x", name: "x" });
  const send = async (url, how) => {
    const said = await fetch(url, { credentials: "include", ...how }).catch(() => null);
    if (said && said.type !== "opaque" && said.type !== "opaqueredirect") read.push([how, url, said.status]);
  };
  const post = async (url, enctype) => {
    const name = `f${Math.random()}`, frame = add("iframe", { name });
    const form = Object.assign(document.createElement("form"), { method: "post", action: url, enctype, target: name });
    form.append(Object.assign(document.createElement("input"), { name: '{"text": "hi", "key": "k", "x": "', value: '"}' }));
    document.body.append(form);
    await frame;
    const done = until(document.getElementsByName(name)[0], "load");
    form.submit();
    await done;
    if (document.getElementsByName(name)[0].contentDocument?.body?.innerText) read.push(["frame", url]);
  };
  await Promise.all(routes.map(async ([method, path]) => {
    const url = own + path;
    if (method === "GET") {
      const frame = add("iframe", { src: url });
      await Promise.all([
        frame.then((one) => one.contentDocument?.body?.innerText && read.push(["frame", url])),
        add("img", { src: url }).then((one) => one.naturalWidth && read.push(["img", url])),
        add("script", { src: url }), add("object", { data: url }), add("link", { rel: "stylesheet", href: url }),
        add("audio", { src: url, preload: "auto" }, "loadeddata"), add("embed", { src: url }),
        send(url, { mode: "cors" }), send(url, { mode: "no-cors" }), send(url, { redirect: "manual" }),
        until(new EventSource(url, { withCredentials: true }), "error", "message", "view"),
        until(new WebSocket(url.replace("http", "ws")), "error", "open"),
      ]);
    } else {
      await Promise.all([
        ...kinds.map((kind) => send(url, { method, mode: "no-cors", body: new Blob([body], { type: kind }) })),
        ...kinds.map((kind) => send(url, { method, mode: "cors", body: new Blob([body], { type: kind }) })),
        send(url, { method, headers: { "Content-Type": "application/json" }, body }),
        send(url, { method: "POST", mode: "no-cors", body, keepalive: true }),
        ...kinds.map((kind) => post(url, kind)),
      ]);
      navigator.sendBeacon(url, new Blob([body], { type: "text/plain" }));
    }
  }));
  return read;
}"""
"""What a page of another origin can have a browser do with each route; what it could read of it."""


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_no_page_in_a_browser_changes_or_reads_anything(
    rig: Rig, routes: list[tuple[str, str, str]], host: str
) -> None:
    """Of another port, which is of the same site: the browser sends the cookie; and of another."""
    async with browse() as page, served() as site:
        evil = site.put("/evil", "Evil", "evil").replace("127.0.0.1", host)
        await page.go(rig.link)
        await page.until("document.querySelector('#text') !== null")
        own = rig.url.rstrip("/")
        await page.go(evil)
        tried = sorted({(way, path) for way, _, path in routes if way in ("GET", "POST", "DELETE")})
        for at in range(0, len(tried), 8):
            said = await page.js(f"({TRY})({json.dumps([own, tried[at : at + 8]])})")
            assert said == [], "a page of another origin read that"
        sent = {urlsplit(one).path for one in page.requests if one.startswith(own)}
        assert {urlsplit(path).path for _, path in tried} <= sent
        for way, path in tried:
            if way == "POST" and "signin" not in path:  # the whole window
                await page.go(evil)
                form = (
                    f"<form method=post action={own}{path} enctype=text/plain><input name=a></form>"
                )
                await page.js(f"document.body.innerHTML = `{form}`; document.forms[0].submit()")
                await page.until(f"location.href.startsWith({own!r}) || document.title !== ''")
        await page.go(own)
        for what in ("sessions", "conversations", "jobs"):
            code = (
                f"fetch('/api/{what}').then((one) => one.json()).then((one) => one.{what}.length)"
            )
            assert await page.js(code) == (what == "sessions"), what
