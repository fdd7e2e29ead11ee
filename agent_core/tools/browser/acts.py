"""The sixteen actions of the browser, and their meaning for whoever decides about them."""

from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.phrases import Phrase, phrase
from agent_core.tools.browser.session import BrowserSession
from agent_core.tools.browser.ways import BrowserWays
from agent_core.tools.web.addresses import Unreachable, read_url

Action = Literal[
    "go_to_url", "click_element", "input_text", "scroll_down", "scroll_up", "scroll_to_text",
    "send_keys", "get_dropdown_options", "select_dropdown_option", "go_back", "web_search", "wait",
    "extract_content", "switch_tab", "open_tab", "close_tab",
]  # fmt: skip
TOUCHES = frozenset({"click_element", "input_text", "send_keys", "select_dropdown_option"})
"""Actions that change the page, and may so have effects elsewhere."""
TRAVELS = frozenset({"go_to_url", "open_tab"})
_NEEDS: dict[Action, tuple[str, ...]] = {
    "go_to_url": ("url",),
    "open_tab": ("url",),
    "click_element": ("index",),
    "input_text": ("index",),
    "get_dropdown_options": ("index",),
    "select_dropdown_option": ("index", "text"),
    "scroll_to_text": ("text",),
    "send_keys": ("keys",),
    "web_search": ("query",),
    "switch_tab": ("tab",),
}
MAX_OPTIONS = 100
UNSURE = (
    "It did not come to an end: {why}. It may or may not have taken effect. Look before you do it "
    "again."
)
EMPTY = "about:blank"
"""The address of a new tab."""


class Act(BaseModel):
    """An act in the browser, and the arguments of browser_use: an action, and its parameters."""

    action: Action
    url: str = Field(default="", max_length=4_000)
    index: int | None = Field(default=None, ge=1, description="Number of an element.")
    text: str = Field(default="", max_length=10_000, description="To type, choose or scroll to.")
    keys: str = Field(default="", max_length=100, description="As in Enter or Control+a.")
    amount: int = Field(default=600, ge=1, le=20_000, description="Pixels to scroll.")
    tab: int | None = Field(default=None, ge=0)
    query: str = Field(default="", max_length=400)
    goal: str = Field(default="", max_length=1_000, description="What to extract content for.")
    offset: int = Field(default=0, ge=0, description="First character of the content.")
    seconds: float = Field(default=3, ge=0, le=30)

    @model_validator(mode="after")
    def _check_whole(self) -> "Act":
        lacking = [
            name for name in _NEEDS.get(self.action, ()) if getattr(self, name) in ("", None)
        ]
        if lacking:
            raise ValueError(f"{self.action} needs {' and '.join(lacking)}")
        return self

    @property
    def looks(self) -> bool:
        """True if it only looks at what is open."""
        return self.action not in TOUCHES | TRAVELS | {"web_search"}


async def do(act: Act, session: BrowserSession, ways: BrowserWays) -> str:
    """Perform it; describe it in words of ours. Words of the page go to the session's notes. Raises
    ToolFailed, and the driver's Error if the page refuses."""
    match act.action:
        case "go_to_url" | "open_tab":
            return await _travel(act, session, ways)
        case "scroll_down" | "scroll_up":
            way = act.amount if act.action == "scroll_down" else -act.amount
            await session.ask_page(session.page.evaluate("(y) => window.scrollBy(0, y)", way))
            return f"Scrolled {'down' if way > 0 else 'up'} by {act.amount} px."
        case "scroll_to_text":
            return await _scroll_to(act.text, session)
        case "go_back":
            return await _go_back(session)
        case "wait":
            await ambient.wait(act.seconds)
            return f"Waited {act.seconds:g} s."
        case "switch_tab" | "close_tab":
            return await _tab(act, session)
        case "get_dropdown_options":
            return await _options(act, session)
        case "extract_content":
            return "Read the page."
        case _:
            return await _touch(act, session)


async def _travel(act: Act, session: BrowserSession, ways: BrowserWays) -> str:
    from playwright.async_api import Error

    try:
        target = read_url(act.url)
    except Unreachable as error:
        raise ToolFailed(f"{act.url} is not opened. {error}") from None
    inside, new = ways.is_inside(target), act.action == "open_tab" or not session.pages
    if new or session.is_inside(session.page) != inside:
        page = await session.open(inside=inside)
    else:
        page = session.page
    downloads = session.downloads
    session.begin()
    try:
        answer = await page.goto(target.url, wait_until="domcontentloaded")
    except Error as error:
        if session.downloads > downloads or "Download is starting" in error.message:
            await session.settle()
            return f"{target.url} is a download."
        why = ways.why_barred(session.workspace, target.url) or shorten_message(error.message)
        raise ToolFailed(f"{target.url} is not opened. {why}") from None
    why = ways.why_barred(session.workspace, page.url)
    if answer is not None and answer.status == 403 and why:
        await page.goto(EMPTY)
        raise ToolFailed(f"{target.url} is not opened. {why}")
    bad = answer is not None and answer.status >= 400
    return f"Opened {target.url}." + (f" It answered {answer.status}." if bad and answer else "")


async def _touch(act: Act, session: BrowserSession) -> str:
    from playwright.async_api import TimeoutError as TooLong

    doing, said = await _prepare_act(act, session)
    session.begin()
    try:
        await doing()
    except TooLong as error:
        if not session.moving:
            raise ToolFailed(UNSURE.format(why=shorten_message(error.message))) from None
        session.note("The page is still loading.")  # it was done, and its effect takes long
        return said
    await session.settle()
    return said


async def _prepare_act(
    act: Act, session: BrowserSession
) -> tuple[Callable[[], Awaitable[object]], str]:
    """Prepare it, once it is known to be possible: return the act and its description."""
    if act.action == "send_keys":
        return (lambda: session.page.keyboard.press(act.keys)), f"Pressed {act.keys}."
    element = await session.elements.find(act.index or 0)
    match act.action:
        case "click_element":
            return element.click, f"Clicked [{act.index}]."
        case "select_dropdown_option":
            said = f"Chose “{act.text}” in [{act.index}]."
            return (lambda: element.select_option(label=act.text)), said
        case _:
            return (lambda: element.fill(act.text)), f"Typed into [{act.index}]."


async def _go_back(session: BrowserSession) -> str:
    page, before = session.page, session.page.url
    answer = await page.go_back(wait_until="domcontentloaded")
    if answer is None and page.url in (before, EMPTY):
        if page.url != before:
            await page.go_forward(wait_until="domcontentloaded")
        raise ToolFailed("There is no earlier page in this tab.")
    return "Went back."


async def _scroll_to(text: str, session: BrowserSession) -> str:
    from playwright.async_api import Error

    try:
        await session.page.get_by_text(text).first.scroll_into_view_if_needed(timeout=3_000)
    except Error:
        raise ToolFailed(f"The text {text!r} is not on the page.") from None
    return f"Scrolled to {text!r}."


async def _tab(act: Act, session: BrowserSession) -> str:
    pages = session.pages
    number = session.tab if act.tab is None else act.tab
    if number >= len(pages):
        raise ToolFailed(f"There is no tab {number}.")
    if act.action == "close_tab":
        await pages[number].close()
        return f"Closed tab {number}."
    session.tab = number
    await pages[number].bring_to_front()
    return f"Tab {number} is in front."


async def _options(act: Act, session: BrowserSession) -> str:
    element = await session.elements.find(act.index or 0)
    script = "(e) => e.tagName === 'SELECT' ? [...e.options].map((o) => o.text.trim()) : null"
    options = await session.ask_page(element.evaluate(script))
    if not isinstance(options, list):
        raise ToolFailed(f"[{act.index}] is no list of options.")
    for option in options[:MAX_OPTIONS]:
        session.notes.append(f"Option: {' '.join(str(option).split())[:200]}")
    return f"[{act.index}] has {len(options)} options."


def shorten_message(message: str) -> str:
    """Return the driver's message about a failure, without its log."""
    return " ".join(message.split("Call log:")[0].split())[:300]


def name_page(url: str) -> str:
    """The place of a page, as a person reads it."""
    try:
        return read_url(url).place
    except Unreachable:
        return "no page"


def preview(act: Act, url: str, labels: dict[str, str]) -> str | Phrase:
    """Describe the effect of a touch for the person who is asked; "" for other actions."""
    page = url[:200] or phrase("does_nowhere")
    label = labels.get(str(act.index)) or phrase("does_nothing")
    match act.action:
        case "click_element":
            return phrase("does_click", n=str(act.index), label=label, page=page)
        case "input_text":
            return phrase("does_type", text=str(act.text), n=str(act.index), label=label, page=page)
        case "select_dropdown_option":
            n = str(act.index)
            return phrase("does_choose", text=str(act.text), n=n, label=label, page=page)
        case "send_keys":
            return phrase("does_press", keys=str(act.keys), page=page)
        case _:
            return ""
