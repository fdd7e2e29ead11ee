"""A workspace's own part of the browser: tabs, cookies and downloads that no other one sees."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.text import file_name
from agent_core.tools import paths
from agent_core.tools.browser.elements import Elements
from agent_core.tools.browser.memory import RememberedPage

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Frame, Page, Request

WIDTH, HEIGHT = 1280, 800
MAX_TABS = 8
MAX_NOTES = 10
MAX_DOWNLOAD = 100_000_000
MAX_DOWNLOADS = 20
QUIET = 0.3
"""Seconds in which an action's consequences have to begin."""
SECONDS = 15.0
"""Seconds for a page to load, and for a page to answer a question about itself."""
SHOT = 5_000.0
"""Milliseconds for a screenshot."""
T = TypeVar("T")
BUSY = "The page does not answer: a script of it is busy. Open another page."
PLACE = "downloads"
NO_WAY_OUT = "for (const n of ['RTCPeerConnection','webkitRTCPeerConnection','WebTransport']) delete window[n];"  # noqa: E501
"""Features that could bypass the proxy; the browser's flags bar them as well."""


class BrowserSession:
    """Tabs of one workspace; one action at a time (`lock`). `inside` makes the part for pages of
    servers in its sandbox, on demand."""

    def __init__(
        self,
        context: "BrowserContext",
        workspace: Path,
        inside: Callable[[], Awaitable["BrowserContext"]],
    ) -> None:
        self.context = context
        self._make_inside = inside
        self._inside: BrowserContext | None = None
        self.workspace = workspace
        self.secret = ambient.secret_id()
        self.lock = asyncio.Lock()
        self.notes: list[str] = []
        """Events since the model was last told."""
        self.downloads = 0
        self.tab = 0
        self._elements: dict[Page, Elements] = {}
        self._moved, self._setting_off = asyncio.Event(), asyncio.Event()
        self._watch(context)

    @property
    def pages(self) -> "list[Page]":
        """The tabs, in the order in which they were opened."""
        return list(self._elements)

    @property
    def page(self) -> "Page":
        """The current tab."""
        pages = self.pages
        if not pages:
            raise ToolFailed("No tab is open. Open one with go_to_url.")
        self.tab = max(0, min(self.tab, len(pages) - 1))
        return pages[self.tab]

    @property
    def elements(self) -> Elements:
        """The elements seen on the current page."""
        return self._elements[self.page]

    def remember(self) -> RememberedPage:
        """Return what to remember of it when it is gone."""
        if not self.pages:
            return RememberedPage()
        labels = {str(one.number): one.label for one in self.elements.seen.values()}
        return RememberedPage(url=self.page.url, labels=labels)

    async def open(self, *, inside: bool = False) -> "Page":
        """A new tab, which is worked in from now on; `inside`: for pages of the sandbox."""
        if len(self.pages) >= MAX_TABS:
            raise ToolFailed(f"{MAX_TABS} tabs are open. Close one first.")
        if inside and self._inside is None:
            self._inside = await self._make_inside()
            self._watch(self._inside)
        context = self._inside if inside else self.context
        assert context is not None
        page = await context.new_page()
        self.tab = self.pages.index(page)
        return page

    def is_inside(self, page: "Page") -> bool:
        """Return True for a tab that is only for pages of the sandbox."""
        return page.context is self._inside

    async def close(self) -> None:
        """Close all tabs, and forget their data."""
        for context in filter(None, (self._inside, self.context)):
            await context.close()

    def begin(self) -> None:
        """Begin an action: watch its consequences."""
        self._moved.clear()
        self._setting_off.clear()

    @property
    def moving(self) -> bool:
        """The action set something off."""
        return self._setting_off.is_set()

    async def settle(self) -> None:
        """Wait until the action's consequences are there."""
        try:
            async with ambient.limit(QUIET):
                await self._setting_off.wait()
        except TimeoutError:
            return
        try:
            async with ambient.limit(SECONDS):
                await self._moved.wait()
                await self.page.wait_for_load_state("domcontentloaded")
        except TimeoutError:
            self.notes.append("The page is still loading.")

    async def ask_page(self, question: Awaitable[T]) -> T:
        """Return a page's answer about itself; ToolFailed without one."""
        try:
            async with ambient.limit(SECONDS):
                return await question
        except TimeoutError:
            raise ToolFailed(BUSY) from None

    async def take_screenshot(self, quality: int) -> bytes:
        """Return a JPEG of the visible part; b"" if the page has nothing to show now."""
        from playwright.async_api import Error

        try:
            return await self.page.screenshot(type="jpeg", quality=quality, timeout=SHOT)
        except (Error, ToolFailed):
            return b""

    def _watch(self, context: "BrowserContext") -> None:
        context.set_default_timeout(SECONDS * 1000)
        context.on("page", self._on_page)
        context.on("page", self._limit_tabs)

    def _on_page(self, page: "Page") -> None:
        """A tab, opened by us or by a page."""
        if self._elements:
            self.note("There is a new tab.")
        self._elements[page] = Elements()
        page.on("request", self._on_request)
        page.on("framenavigated", self._on_navigation)
        page.on("dialog", self._answer_dialog)
        page.on("download", self._on_download)
        page.on("close", self._on_close)

    async def _limit_tabs(self, page: "Page") -> None:
        """Limit the number of tabs that pages open."""
        from playwright.async_api import Error

        if len(self.pages) > MAX_TABS:
            with contextlib.suppress(Error):
                await page.close()
            self.note("A page wanted to open too many tabs; the last ones were closed.")

    def _on_request(self, request: "Request") -> None:
        if request.is_navigation_request() and request.frame.parent_frame is None:
            self._setting_off.set()

    def _on_navigation(self, frame: "Frame") -> None:
        if frame.parent_frame is None:
            self._setting_off.set()
            self._moved.set()

    def _on_close(self, page: "Page") -> None:
        self._elements.pop(page, None)

    async def _answer_dialog(self, dialog: "Dialog") -> None:
        from playwright.async_api import Error

        said, leaves = " ".join(dialog.message.split())[:300], dialog.type == "beforeunload"
        if not leaves:
            self.note(f"The page showed a {dialog.type}, which was dismissed: {said}")
        with contextlib.suppress(Error):  # the page was closed with it
            await (dialog.accept() if leaves else dialog.dismiss())

    async def _on_download(self, download: "Download") -> None:
        """Save a download in the workspace without overwriting."""
        from playwright.async_api import Error

        self.downloads += 1
        self._setting_off.set()
        try:
            if self.downloads > MAX_DOWNLOADS:
                await download.cancel()
                raise ToolFailed(f"There were {MAX_DOWNLOADS} already.")
            kept = await asyncio.to_thread(
                _keep, self.workspace, await download.path(), download.suggested_filename
            )
            self.note(f"Downloaded into the workspace: {kept}")
        except ToolFailed as error:
            self.note(f"A download was not kept. {error}")
        except Exception as error:  # noqa: BLE001  # boundary: pages may send anything
            self.note(f"A download failed: {type(error).__name__}.")
        finally:
            self._moved.set()
            with contextlib.suppress(Error):
                await download.delete()

    def note(self, text: str) -> None:
        """Add a note to the next result."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)


def _keep(workspace: Path, source: Path, suggested: str) -> str:
    """Copy a download to a free name below `downloads/`; its path."""
    place = Path(os.path.realpath(source.parent))
    with paths.open_plain(place, place / source.name) as data:  # a browser may create a link there
        if os.fstat(data.fileno()).st_size > MAX_DOWNLOAD:
            raise ToolFailed(f"It is larger than {MAX_DOWNLOAD // 1_000_000} MB.")
        if why := paths.why_refused(f"{PLACE}/{file_name(suggested)}", write=True):
            raise ToolFailed(why)
        return paths.add(workspace, PLACE, suggested, data)
