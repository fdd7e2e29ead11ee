"""The tools web_search and read_page. Their results are strangers' words, and marked so."""

from functools import partial
from urllib.parse import urlsplit

from msgspec.structs import replace
from pydantic import BaseModel, Field

from agent_core.context.stranger_marks import mark_strangers
from agent_core.errors import ToolFailed
from agent_core.orchestration.brief import Brief, Hands
from agent_core.phrases import Phrase, phrase
from agent_core.scope import Scope
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.turn.tool import TurnTool
from agent_core.tools.web import pages
from agent_core.tools.web.addresses import Unreachable, read_url
from agent_core.tools.web.condensing import ReadExtract, condense, mark, read_extract
from agent_core.tools.web.fetch import Fetcher
from agent_core.tools.web.port import Web
from agent_core.tools.web.search import search_of
from agent_core.tools.web.settings import WebSettings

PAGE = 9_000
"""Characters of a page in one result: less than what the toolbox would cut."""
WEB = "the web"
"""The source of its words in their marks."""


class WebSearchArguments(BaseModel):
    """Arguments of web_search."""

    query: str = Field(min_length=1, max_length=400)
    count: int = Field(default=8, ge=1, le=20)


class ReadPageArguments(BaseModel):
    """Arguments of read_page."""

    url: str = Field(min_length=1)
    offset: int = Field(default=0, ge=0, description="First character.")
    about: str = Field(default="", description="Only this of a long page.")


def web_of(settings: WebSettings) -> Web:
    """The web as the settings say."""
    return Web(search=search_of(settings), fetch=Fetcher(settings.allowed))


def web_tools(web: Web) -> tuple[Tool, ...]:
    """The two tools over `web`."""
    return _search_tool(web), _read_tool(web)


def _search_tool(web: Web) -> Tool:
    async def find(wanted: WebSearchArguments, context: ToolContext) -> str:
        hits = await web.search.find(wanted.query, wanted.count)
        if not hits:
            return "Nothing was found. Try other words."
        rows = (f"{n}. {hit.title}\n{hit.url}\n{hit.snippet}" for n, hit in enumerate(hits, 1))
        return mark_strangers(WEB, ["\n\n".join(rows)])

    return Tool(
        name="web_search",
        description="Search the web, for read_page.",
        arguments=WebSearchArguments,
        repetition="pure",
        access="network",
        call=find,
        rule=lambda arguments: phrase("covers_search"),
    )


def _read_tool(web: Web) -> Tool:
    async def read(wanted: ReadPageArguments, context: ToolContext) -> str:
        page = await pages.read(web.fetch, wanted.url, stay=True)
        if page.moved:
            return _tell_moved(page.url, page.moved)
        return _render_page(page, wanted.offset)

    async def extract(wanted: ReadPageArguments, scope: Scope, brief: Brief, hands: Hands) -> str:
        fetch = partial(pages.read, web.fetch, wanted.url, stay=True)
        page = await read_extract(scope, brief, hands, fetch, wanted.offset)
        if page.why:
            raise ToolFailed(page.why)
        if page.moved:
            return _tell_moved(page.url, page.moved)
        told = ""
        if len(page.text) > PAGE:
            told = await condense(scope, brief, hands, page.text, wanted.about)
        if not told:
            whole = pages.WebPage(url=page.url, title=page.title, text=page.text)
            return await mark(scope, hands, _render_piece(whole, wanted.offset, page.whole))
        return await mark(scope, hands, _render_extract(page, told, wanted.offset))

    return TurnTool(
        name="read_page",
        description="Read a web page as markdown, a long one by offset.",
        arguments=ReadPageArguments,
        repetition="pure",
        access="network",
        call=read,
        run_in_turn=extract,
        works_by_turn=lambda wanted: bool(wanted.about.strip()),
        rule=host_rule,
    )


def host_rule(wanted: ReadPageArguments) -> str | Phrase:
    """Return the rule that covers a page: those of its host, with the same port."""
    try:
        target = read_url(wanted.url)
    except Unreachable:
        return ""
    usual = 443 if urlsplit(target.url).scheme.lower() == "https" else 80
    place = target.host if target.port == usual else target.place
    return phrase("covers_pages", place=place)


def _tell_moved(url: str, moved: str) -> str:
    return f"{url} has moved to another host: {moved}\nRead that if it is wanted."


def _render_page(page: pages.WebPage, offset: int) -> str:
    piece = replace(page, text=page.text[offset : offset + PAGE])
    return _render_piece(piece, offset, len(page.text))


def _render_piece(page: pages.WebPage, offset: int, whole: int) -> str:
    """A page of which `page.text` begins at `offset` of `whole` characters."""
    text = page.text[:PAGE]
    if not text:
        raise ToolFailed(f"{page.url} has only {whole:,} characters.")
    last = offset + len(text)
    more = f"\n[Characters {offset} to {last} of {whole}. For more: offset={last}.]"
    head = f"{page.title}\n{page.url}\n\n" if offset == 0 else ""
    return f"{mark_strangers(WEB, [head + text])}{more if last < whole else ''}"


def _render_extract(page: ReadExtract, told: str, offset: int) -> str:
    """Render a model's extract of a page."""
    last = offset + len(page.text)
    more = f" Nothing behind it was read: offset={last} goes on." if last < page.whole else ""
    note = f"[A model's extract of characters {offset} to {last} of {page.whole}.{more}]"
    words = mark_strangers(WEB, [f"{page.title}\n{page.url}\n\n{told}"])
    return f"{words}\n{note}"
