"""Chromium over its DevTools protocol: enough to use a page as a person does."""

import asyncio
import atexit
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import aiohttp

from tests.fakes.waiting import PATIENCE

MISSING = "no browser: install the Debian package `chromium`"
Reply = dict[str, object]


def find() -> str | None:
    """The browser's path, None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One tab. `requests` are the addresses it asked for, `errors` what it complained about."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._socket = socket
        self._ids = itertools.count(1)
        self._calls: dict[int, asyncio.Future[Reply]] = {}
        self._session = self._context = ""

    async def read(self) -> None:
        """Receive until the browser ends."""
        async for message in self._socket:
            data = json.loads(message.data)
            call = self._calls.get(data.get("id"))
            if call is not None and not call.done():
                call.set_result(data)
            elif data.get("method") == "Network.requestWillBeSent":
                self.requests.append(data["params"]["request"]["url"])
            elif data.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(data["params"]["exceptionDetails"]))
            elif data.get("method") == "Log.entryAdded":
                entry = data["params"]["entry"]
                if entry["level"] == "error":
                    self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    async def start(self) -> None:
        context = await self.call("Target.createBrowserContext", disposeOnDetach=True)
        self._context = cast(str, context["browserContextId"])
        target = await self.call(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = cast(str, attached["sessionId"])
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def close(self) -> None:
        """Close the tab and forget what it kept."""
        self._session = ""
        with contextlib.suppress(RuntimeError, TimeoutError, ConnectionError):
            await self.call("Target.disposeBrowserContext", browserContextId=self._context)

    async def call(self, method: str, **params: object) -> Reply:
        number = next(self._ids)
        self._calls[number] = asyncio.get_running_loop().create_future()
        order: Reply = {"id": number, "method": method, "params": params}
        if self._session:
            order["sessionId"] = self._session
        try:
            await self._socket.send_json(order)
            async with asyncio.timeout(PATIENCE):
                data = await self._wait(number)
        finally:
            del self._calls[number]  # an answer that comes too late is for nobody
        if "error" in data:
            raise RuntimeError(f"{method}: {data['error']}")
        return cast(Reply, data["result"])

    async def _wait(self, number: int) -> Reply:
        return await self._calls[number]

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def js(self, code: str) -> object:
        """The value of `code`; promises are awaited."""
        done = await self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in done:
            raise RuntimeError(f"{code}: {done['exceptionDetails']}")
        return cast(Reply, done["result"]).get("value")

    async def until(self, code: str, seconds: float = PATIENCE) -> None:
        """Wait until `code` is true in the page."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    with contextlib.suppress(RuntimeError):  # the page may just be changing
                        if await self.js(f"Boolean({code})"):
                            return
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"never true: {code}; complaints: {self.errors}") from None

    async def click(self, selector: str) -> None:
        """A real mouse click in the middle of the element; once more where the page changed below
        the mouse meanwhile, as people do."""
        heard = (
            "window.hit = false; document.addEventListener('click', (event) => {"
            f"window.hit = Boolean(event.target.closest?.({json.dumps(selector)})); }},"
            "{capture: true, once: true})"
        )
        async with asyncio.timeout(PATIENCE):
            hit: object = False
            while hit is False:  # a page that goes on to another one knows nothing of it
                await self.js(heard)
                await self._press_mouse(selector)
                hit = await self.js("window.hit")

    async def _press_mouse(self, selector: str) -> None:
        found = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{found}?.getBoundingClientRect().width > 0")
        where = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        before, spot = None, await self.js(where)
        while spot != before:  # what moves is pressed in one place and let go in another
            await asyncio.sleep(0.02)
            before, spot = spot, await self.js(where)
        x, y = cast(list[float], spot)
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: int) -> None:
        """A key by its name and Windows key code."""
        text = "\r" if key == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    async def look(self, width: int, height: int, scheme: str = "light") -> None:
        """The window's size, and the person's light or dark."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        wish = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=wish)

    async def speak(self, language: str) -> None:
        """The person's language."""
        agent = await self.js("navigator.userAgent")
        await self.call("Network.setUserAgentOverride", userAgent=agent, acceptLanguage=language)

    async def shoot(self, path: Path) -> None:
        shot = await self.call("Page.captureScreenshot", format="png")
        data = base64.b64decode(cast(str, shot["data"]))
        await asyncio.to_thread(path.write_bytes, data)


class Chromium:
    """One browser for all tests of a process: started with the first tab, ended by `end`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._profile = ""

    async def open(self) -> str:
        """Its address for the DevTools protocol."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._start()
        return await _address(Path(self._profile) / "DevToolsActivePort")

    def _start(self) -> None:
        path = find()
        if path is None:
            raise RuntimeError(MISSING)
        atexit.register(self.end)
        self._profile = tempfile.mkdtemp(prefix="tk-browser-")
        self._process = subprocess.Popen(
            [
                path, "--headless=new", "--no-sandbox", "--remote-debugging-port=0",
                "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--no-proxy-server", "--mute-audio", f"--user-data-dir={self._profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def end(self) -> None:
        """Kill it with all its processes, and remove what it wrote."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            shutil.rmtree(self._profile, ignore_errors=True)
        self._process = None


chromium = Chromium()


@contextlib.asynccontextmanager
async def browse() -> AsyncIterator[Page]:
    """A tab with cookies and storage of its own, closed with the block."""
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(await chromium.open(), max_msg_size=0) as socket:
            page = Page(socket)
            async with asyncio.TaskGroup() as group:
                reader = group.create_task(page.read())
                await page.start()
                try:
                    yield page
                finally:
                    await page.close()
                    reader.cancel()


async def _address(file: Path) -> str:
    async with asyncio.timeout(PATIENCE):
        while True:
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            await asyncio.sleep(0.05)
