"""Serves apps that run in sandboxes to people, at an origin of its own.

A link is valid once, for half an hour: it sets a cookie of this origin, which identifies later
requests. It is redeemed by a form on the link's page, since chats fetch links by themselves.
Requests are forwarded to the server in the sandbox; the gateway's own cookies neither reach it nor
are set by it. The app sees its own address as host, origin and referrer. Other visitors are told to
open the link in the chat. Apps share this origin one after the other: a browser's data of the
previous one are cleared when the next is opened, and none may have a worker that outlives its page.
Servers of the gateway can be mounted beside it (`mount`).

A web socket, by which development servers reload a page, passes the same guard, and is refused to
pages of other origins, whose requests a browser would let read the answer.

Links and cookies survive a restart (`book.py`). Apps do not: a visitor has one restarted, where
that is allowed (`again.py`), or reads that it ended and how to have it back.
"""

import asyncio
import contextlib
import html
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, urlsplit, urlunsplit
from weakref import WeakValueDictionary

from agent_core import ambient
from agent_core.errors import NothingRuns, NotShown, ToolFailed
from agent_core.phrases import Phrase, phrase
from agent_core.sandboxes.link import Streams
from agent_core.sandboxes.previews.again import StartsAgain, start_nothing
from agent_core.sandboxes.previews.book import OpenPreview, PreviewBook
from agent_core.tools.web.connections import Connections
from agent_core.tools.web.proxy import join_streams

SECONDS = 20.0
"""Seconds for a request's head."""
QUIET = 1_800.0
"""Seconds without data after which a connection is closed."""
MAX_VISITS = 256
"""Connections at once, each with one of its own to the app, that leave files to the gateway."""
MAX_SOCKETS = 100
"""Web sockets at once."""
COOKIE = "turnkeeper_preview"
OURS = "turnkeeper"
"""Cookies of this beginning are never the app's."""
_HOP = ("connection", "keep-alive", "proxy-connection", "te", "trailer", "host", "upgrade")
_PAGE = (
    '<!doctype html><html lang="{language}"><meta charset=utf-8>'
    '<meta name=viewport content="width=device-width"><title>{title}</title>{inside}'
)
_OPENS = (
    "<form method=post><button>{open}</button></form><script>document.forms[0].submit()</script>"
)
Connect = Callable[[Path, int], Awaitable[Streams]]
Speak = Callable[[Phrase, str], tuple[str, str]]
"""Returns the language, and a phrase in it, for a browser with this Accept-Language."""


def speak_english(said: Phrase, accepted: str) -> tuple[str, str]:
    """The agent's own words."""
    return "en", str(said)


Header = tuple[str, str]


class _Refused(Exception):
    """A request leads nowhere; the text says why."""

    def __init__(self, status: str, why: Phrase) -> None:
        super().__init__(str(why))
        self.status, self.why = status, why


class PreviewServer:
    """Listens at `host` from the first link on. `port`: 0 for any; `public`: the address by which
    people reach it from elsewhere, "" for this machine alone; `home`: where links are stored, None
    for memory alone; `again`: restarts apps after a restart of the gateway; `speak`: texts for
    people."""

    def __init__(  # noqa: PLR0913 - an argument for each difference between the tiers
        self,
        connect: Connect,
        port: int = 0,
        public: str = "",
        host: str = "127.0.0.1",
        *,
        home: Path | None = None,
        again: StartsAgain = start_nothing,
        speak: Speak = speak_english,
    ) -> None:
        self._connect, self._host, self._port = connect, host, port
        self._public = public.rstrip("/")
        self._connections = Connections(self._answer, MAX_VISITS)
        self._book, self._again, self._speak = PreviewBook(home), again, speak
        self._starting = WeakValueDictionary[Path, asyncio.Lock]()
        self._mounts: dict[str, int] = {}
        self._sockets = 0

    @property
    def is_public(self) -> bool:
        """People reach it from other machines."""
        return bool(self._public)

    async def listen(self) -> None:
        """Listen at the configured port, or at the one of earlier links, so that these explain
        themselves. OSError if the configured port is taken."""
        await asyncio.to_thread(self._book.load)
        if self._port or self._book.port:
            await self._find_base()

    async def open(self, workspace: Path, port: int, start: str = "") -> str:
        """Return a link to the server at `port` of this workspace's sandbox, which the command
        `start` restarts. OSError if listening or storing the link fails."""
        base = await self._find_base()
        word = await self._book.add(workspace, port, start, self._connections.port)
        return f"{base}/open/{word}"

    async def let_lie(self, workspace: Path) -> None:
        """Never restart the processes of this workspace, as a person stopped them."""
        with contextlib.suppress(OSError):  # kept until the process ends
            await self._book.let_lie(workspace)

    async def mount(self, name: str, port: int) -> str:
        """Show the server at `port` of loopback under `/name/`, to everybody; return its address.
        OSError as above."""
        base = await self._find_base()
        self._mounts[name] = port
        return f"{base}/{name}"

    def unmount(self, name: str) -> None:
        """Remove this mount."""
        self._mounts.pop(name, None)

    async def close(self) -> None:
        """Stop listening; later visitors may find the next process."""
        self._mounts.clear()
        await self._connections.close()

    async def _find_base(self) -> str:
        if not self._connections.port:
            try:
                await self._connections.listen(self._port or self._book.port, self._host)
            except OSError:
                if self._port:
                    raise
                await self._connections.listen(0, self._host)  # old links are lost with their port
        return self._public or f"http://127.0.0.1:{self._connections.port}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with ambient.limit(SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self._connections.note_head()
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        words, headers = first.split(" "), [_split_header(line) for line in lines]
        if len(words) != 3 or not words[1].startswith("/"):
            return await _send_page(writer, "400 Bad Request", "This is no request.")
        if not self._is_ours(_find(headers, "host")):
            return await _send_page(
                writer, "421 Misdirected Request", "This is not the preview's name."
            )
        accepted = _find(headers, "accept-language")
        if words[1].startswith("/open/"):
            word = words[1].removeprefix("/open/")
            return await self._begin(writer, word, accepted, takes=words[0] == "POST")
        upgrade = _asks_for_socket(headers)
        origin = _find(headers, "origin")
        if upgrade and origin and not self._is_ours(_split_url(origin).netloc):
            return await _send_page(writer, "403 Forbidden", "This is another site's page.")
        if upgrade and self._sockets >= MAX_SOCKETS:
            return await _send_page(writer, "503 Service Unavailable", "Too many are open.")
        self._sockets += upgrade
        try:
            port, far = await self._reach(words[1], headers)
            await self._forward((reader, writer), far, first, headers, port)
        except _Refused as error:
            await self._refuse(writer, error.status, error.why, accepted)
        finally:
            self._sockets -= upgrade

    async def _forward(
        self, near: Streams, far: Streams, first: str, headers: list[Header], port: int
    ) -> None:
        """Forward a request to the server at `port`, and its answer."""
        inner = [(name, self._localize(name, value, port)) for name, value in headers]
        try:
            far[1].write(_rewrite_request(first, inner, port, upgrade=_asks_for_socket(headers)))
            if not await join_streams(near, far, partial(_rewrite_answer, port=port), QUIET):
                raise _Refused("502 Bad Gateway", phrase("preview_silent"))
        finally:
            far[1].close()

    def _localize(self, name: str, value: str, port: int) -> str:
        """Replace this origin by the server's own in headers that a server compares with its
        host."""
        parts = _split_url(value) if name.lower() in ("origin", "referer") else None
        if parts is None or not self._is_ours(parts.netloc):
            return value
        return urlunsplit(parts._replace(scheme="http", netloc=f"localhost:{port}"))

    async def _reach(self, path: str, headers: list[Header]) -> tuple[int, Streams]:
        """The server that the request is for, and its port. _Refused."""
        if (mounted := self._mounts.get(path.split("/")[1].partition("?")[0])) is not None:
            return mounted, await asyncio.open_connection("127.0.0.1", mounted)
        preview = await self._book.use(_read_cookie(headers))
        if preview is None:
            raise _Refused("403 Forbidden", phrase("preview_closed"))
        if _find(headers, "service-worker"):
            raise _Refused("403 Forbidden", phrase("preview_silent"))
        workspace = self._book.find(preview)
        try:
            return preview.port, await self._find_server(preview, workspace)
        except NotShown as error:
            raise _Refused("502 Bad Gateway", error.said) from None
        except ToolFailed:
            raise _Refused("502 Bad Gateway", phrase("preview_silent")) from None

    async def _find_server(self, preview: OpenPreview, workspace: Path) -> Streams:
        """Connect to it; if its sandbox is gone, restart it first, once for all visitors. A failed
        restart is not repeated while its sandbox exists."""
        lock = self._starting.setdefault(workspace, asyncio.Lock())
        if not lock.locked():
            with contextlib.suppress(NothingRuns):
                return await self._connect(workspace, preview.port)
        async with lock:
            with contextlib.suppress(NothingRuns):  # another visitor has started it
                return await self._connect(workspace, preview.port)
            if preview.start:
                await self._again(workspace, preview.start)
            return await self._connect(workspace, preview.port)

    async def _refuse(
        self, writer: asyncio.StreamWriter, status: str, why: Phrase, accepted: str
    ) -> None:
        newest = self._speak(phrase("preview_newest"), accepted)[1]
        said = (self._speak(why, accepted)[1], newest)
        inside = "".join(f"<p>{html.escape(one)}</p>" for one in said)
        await _send_page(writer, status, self._make_page(inside, accepted))

    def _make_page(self, inside: str, accepted: str) -> str:
        language, title = self._speak(phrase("preview_title"), accepted)
        language, title = html.escape(language), html.escape(title)
        return _PAGE.format(language=language, title=title, inside=inside)

    async def _begin(
        self, writer: asyncio.StreamWriter, word: str, accepted: str, *, takes: bool
    ) -> None:
        """Show the form that redeems a link, or redeem it: once."""
        if not takes and self._book.has_link(word):
            _, label = self._speak(phrase("preview_open"), accepted)
            inside = _OPENS.format(open=html.escape(label))
            return await _send_page(writer, "200 OK", self._make_page(inside, accepted))
        try:
            secret = await self._book.take(word) if takes else ""
        except OSError:
            why = phrase("preview_not_kept")
            return await self._refuse(writer, "503 Service Unavailable", why, accepted)
        if not secret:
            return await self._refuse(writer, "403 Forbidden", phrase("preview_old"), accepted)
        secure = "; Secure" if self._public.startswith("https:") else ""
        head = (
            "HTTP/1.1 303 See Other\r\nLocation: /\r\nContent-Length: 0\r\n"
            "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n"
            'Clear-Site-Data: "cache", "storage"\r\n'
            f"Set-Cookie: {COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/{secure}\r\n\r\n"
        )
        writer.write(head.encode())
        return await writer.drain()

    def _is_ours(self, host: str) -> bool:
        """A name that only this server has: another's, which leads here, is a trick."""
        names = {f"{name}:{self._connections.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        return host.lower() in names | {urlsplit(self._public).netloc.lower()} - {""}


def _asks_for_socket(headers: list[Header]) -> bool:
    return (
        "upgrade" in _find(headers, "connection").lower()
        and _find(headers, "upgrade").lower() == "websocket"
    )


def _split_header(line: str) -> Header:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _find(headers: list[Header], name: str) -> str:
    return next((value for known, value in headers if known.lower() == name), "")


def _list_cookies(headers: list[Header]) -> list[tuple[str, str]]:
    cookies = []
    for name, value in headers:
        if name.lower() == "cookie":
            cookies += [one.strip().partition("=")[::2] for one in value.split(";")]
    return cookies


def _read_cookie(headers: list[Header]) -> str:
    return next((value for name, value in _list_cookies(headers) if name == COOKIE), "")


def _rewrite_request(first: str, headers: list[Header], port: int, *, upgrade: bool) -> bytes:
    """Rewrite a request for the app's server: its own host name, and none of the gateway's
    cookies."""
    kept = [one for one in headers if one[0].lower() not in (*_HOP, "cookie")]
    kept.append(("Host", f"localhost:{port}"))
    if cookies := [one for one in _list_cookies(headers) if not one[0].startswith(OURS)]:
        kept.append(("Cookie", "; ".join(f"{name}={value}" for name, value in cookies)))
    if upgrade:
        kept += (("Connection", "Upgrade"), ("Upgrade", _find(headers, "upgrade")))
    else:
        kept.append(("Connection", "close"))
    text = "".join(f"{name}: {value}\r\n" for name, value in kept)
    return f"{first}\r\n{text}\r\n".encode("latin-1")


def _rewrite_answer(head: bytes, port: int) -> bytes:
    """Rewrite a response for the browser: no cookie in the gateway's name, one response a
    connection, and a redirection to the server's own address stays at this origin."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    switches = first[9:12] == b"101"
    kept = []
    for line in lines:
        name, _, value = line.partition(b":")
        known = name.strip().lower()
        if known == b"set-cookie" and value.strip().lower().startswith(OURS.encode()):
            continue
        if not switches and known in (b"connection", b"keep-alive"):
            continue
        kept.append(_keep_here(value.strip(), port) if known == b"location" else line)
    if not switches:
        kept.append(b"Connection: close")
    return b"\r\n".join((first, *kept, b"", b""))


def _keep_here(location: bytes, port: int) -> bytes:
    parts = _split_url(location.decode("latin-1"))
    own = {f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")}
    if parts.scheme == "http" and parts.netloc.lower() in own:
        path = "/" + urlunsplit(("", "", *parts[2:])).lstrip("/")
        location = path.encode("latin-1")
    return b"Location: " + location


def _split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


async def _send_page(writer: asyncio.StreamWriter, status: str, page: str) -> None:
    body = page.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
    more = "Cache-Control: no-store\r\nConnection: close\r\n"
    with contextlib.suppress(OSError):
        writer.write(f"{head}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
