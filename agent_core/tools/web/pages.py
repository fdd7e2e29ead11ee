"""Pages as text: the content of a fetched page, without navigation and the like."""

import asyncio
import re

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools.web.port import Fetch, Fetched

MARKUP = ("text/html", "application/xhtml+xml")
MAX_TEXT = 400_000
"""Characters of a page that are kept at all."""


class WebPage(Struct, frozen=True, kw_only=True):
    """A page as text. `text` is Markdown, without links' targets if `plain` was requested. `moved`:
    the URL on another host to which it moved."""

    url: str
    title: str
    text: str
    moved: str = ""


async def read(fetch: Fetch, url: str, links: bool = True, stay: bool = False) -> WebPage:
    """The page at `url`; ToolFailed if it cannot be read or holds no text."""
    found = await fetch.get(url, stay)
    if found.moved:
        return WebPage(url=found.url, title="", text="", moved=found.moved)
    if found.mime in MARKUP:
        title, text = await asyncio.to_thread(_extract, found, links)
    else:
        title, text = "", _decode_body(found)
    if not text.strip():
        raise ToolFailed(f"{found.url} holds no text that can be read; it may need a browser.")
    return WebPage(url=found.url, title=title or found.url, text=_tidy(text)[:MAX_TEXT])


def _extract(found: Fetched, links: bool) -> tuple[str, str]:
    """Title and main text of a web page. Imported here: it is large, and seldom needed."""
    import trafilatura

    content = _decode_body(found) if found.charset else found.body
    try:
        about = trafilatura.extract_metadata(content, default_url=found.url)
        text = trafilatura.extract(
            content,
            url=found.url,
            output_format="markdown",
            include_links=links,
            include_tables=True,
            include_comments=False,
            favor_recall=True,
        )
    except Exception as error:  # boundary: hostile markup may break any parser
        raise ToolFailed(f"{found.url} cannot be parsed: {type(error).__name__}.") from error
    title = (about.title or "") if about is not None else ""
    return " ".join(title.split())[:200], text or ""


def _decode_body(found: Fetched) -> str:
    try:
        return found.body.decode(found.charset or "utf-8", "replace")
    except LookupError:
        return found.body.decode("utf-8", "replace")


def _tidy(text: str) -> str:
    """Remove control characters and repeated empty lines."""
    plain = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", "", text.replace("\r\n", "\n"))
    return re.sub(r"\n{3,}", "\n\n", plain).strip()
