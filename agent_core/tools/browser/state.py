"""The browser's state for the model after each call: its page, the usable elements, and a
screenshot. The page's words are a stranger's, and marked so."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_core.context.stranger_marks import mark_strangers
from agent_core.errors import ToolFailed
from agent_core.messages import Browsed, GivenFile, Picture, ToolOutput
from agent_core.tools import paths
from agent_core.tools.browser.acts import name_page
from agent_core.tools.browser.session import HEIGHT, BrowserSession
from agent_core.tools.contract import ToolContext
from agent_core.tools.web import pages
from agent_core.tools.web.port import Fetched
from agent_core.tools.web.tools import WEB

QUALITY = 70
MAX_SHOTS = 100
"""Screenshots kept in a workspace; those shown stay with their conversation in any case."""
CONTENT = 7_000
"""Characters of a page's text in one result."""
MAX_URL = 500
_SCROLL = "() => [Math.round(scrollY), document.documentElement.scrollHeight]"

Keep = Callable[[Path, str], GivenFile]


class BrowserResult(Struct, frozen=True, kw_only=True):
    """One call's result so far: our own words, and strangers'."""

    action: str
    said: str
    content: str = ""


async def output(
    told: BrowserResult, session: BrowserSession, context: ToolContext, keep: Keep
) -> ToolOutput:
    """Return the result with the state of the current page."""
    notes, session.notes = session.notes, []
    where = name_page(session.page.url) if session.pages else "no page"
    head = f"[browser {told.action} at {where}]"
    if not session.pages:
        text = "\n".join((head, told.said, mark_untrusted(notes), "No tab is open."))
        return ToolOutput(text=text, browsed=Browsed(action=told.action))
    content = [f"Content:\n{told.content}"] if told.content else []
    lines = [*notes, *await _state(session), *content]  # text from the page comes last
    shot = await session.take_screenshot(QUALITY)
    words = f"{head}\n{told.said}\n{mark_untrusted(lines)}"
    browsed = Browsed(action=told.action, url=session.page.url[:MAX_URL])
    if not shot:
        return ToolOutput(text=words, browsed=browsed)
    picture = await asyncio.to_thread(_keep_shot, shot, context, keep)
    text = f"{words}\n(screenshot: {picture.path})"
    return ToolOutput(text=text, pictures=(picture,), browsed=browsed)


async def content(session: BrowserSession, offset: int) -> str:
    """The text of the page, from a character on."""
    page = session.page
    html = await session.ask_page(page.content())
    try:
        found = await pages.read(_Open(page.url, html), page.url)
        text = found.text
    except ToolFailed:
        text = str(await session.ask_page(page.evaluate("() => document.body?.innerText || ''")))
    part = text[offset : offset + CONTENT]
    last = offset + len(part)
    more = f"\n[Characters {offset} to {last} of {len(text)}.]" if last < len(text) else ""
    return f"{part}{more}" if part else "(no text)"


def mark_untrusted(lines: list[str]) -> str:
    """Put strangers' words between marks that they cannot forge."""
    return mark_strangers(WEB, lines) if any(lines) else ""


class _Open:
    """The browser's current page, as if it had been fetched."""

    def __init__(self, url: str, html: str) -> None:
        self._found = Fetched(url=url, mime="text/html", charset="utf-8", body=html.encode())

    async def get(self, url: str, stay: bool = False) -> Fetched:
        """Return the current page."""
        return self._found


async def _state(session: BrowserSession) -> list[str]:
    from playwright.async_api import Error

    page = session.page
    await session.ask_page(session.elements.look(page))
    try:
        top, height = await session.ask_page(page.evaluate(_SCROLL))
        title = " ".join((await session.ask_page(page.title())).split())[:200]
    except Error:
        top, height, title = 0, 0, "(the page is just changing)"
    tabs = session.pages
    others = [f"Tab {n}: {tab.url[:MAX_URL]}" for n, tab in enumerate(tabs) if n != session.tab]
    left = session.elements.left
    return [
        f"URL: {page.url[:MAX_URL]}",
        f"Title: {title}",
        f"Tab {session.tab} of {len(tabs)}",
        *others,
        f"Scrolled to {top} of {height} px, of which {HEIGHT} are in sight",
        "Elements:" if session.elements.seen else "No elements that can be used.",
        *(one.line for one in session.elements.seen.values()),
        *([f"({left} more are not listed)"] if left else []),
    ]


def _keep_shot(shot: bytes, context: ToolContext, keep: Keep) -> Picture:
    """The picture as a file of the workspace's own folder, and its copy."""
    stem = "".join(c if c.isalnum() else "-" for c in context.key)[-60:].strip("-")
    path = paths.put_output(context.workspace, f"{stem}.jpg", shot)
    _thin_out(context.workspace, (Path(os.path.realpath(context.workspace)) / path).parent)
    return Picture(
        ref=keep(context.workspace, path).ref, path=path, mime="image/jpeg", size=len(shot)
    )


def _thin_out(workspace: Path, folder: Path) -> None:
    """The oldest pictures make room."""
    shots = [one for one in paths.list_names(workspace, folder) if one.endswith(".jpg")]
    if len(shots) <= MAX_SHOTS:
        return
    infos = {one: paths.status(workspace, folder / one) for one in shots}
    ages = {one: info.st_mtime for one, info in infos.items() if info is not None}
    for old in sorted(ages, key=lambda one: ages[one])[: len(shots) - MAX_SHOTS]:
        with contextlib.suppress(ToolFailed, OSError):  # a command of the workspace was faster
            paths.remove(workspace, folder / old)
