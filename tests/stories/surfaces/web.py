"""The person at the page: the HTTP API and its event stream, and in words what the page draws of
them (`adapters/web/static/views.js`)."""

import asyncio
import contextlib
import html
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar
from yarl import URL

from adapters.web.api import STATIC
from adapters.web.words import WORDS
from gateway.texts import say as text_of
from tests.fakes.ports import free_port
from tests.fakes.telegram_wire import Json
from tests.stories.rig import PATIENCE, Rig
from tests.stories.surfaces.surface import Surface, indented

CHAT = "/api/conversations/c1"
SCRIPT = (STATIC / "views.js").read_text()


def _marks(name: str) -> dict[str, str]:
    (table,) = re.findall(rf"const {name} = {{(.*)}};", SCRIPT)
    return dict(re.findall(r'(\w+): "(.)"', table))


MARKS, CARDS = _marks("MARKS"), _marks("CARDS")
WORDED = re.findall(r'"(\w+)"', re.findall(r"const WORDED = \[(.*)\];", SCRIPT)[0])
"""The page's own."""
TAG = re.compile(r"<[^>]+>")
NUMBERED = re.compile(r"<ol>(.*?)</ol>", re.DOTALL)

BUTTONED = ("plan", "notice", "activity")
"""Kinds of views that have no state, and may bear buttons."""


class Web(Surface):
    """The owner of the machine, with one page open."""

    name = "web"

    def __init__(self, rig: Rig, language: str = "en", crash_at: str = "") -> None:
        super().__init__(rig, language, crash_at)
        self._words = WORDS.read(language)
        self._settings: dict[str, str] = {}
        self._exit = contextlib.AsyncExitStack()
        self._up = asyncio.Event()
        self._changed = asyncio.Event()
        self._views: dict[tuple[str, str], Json] = {}
        self._growing: dict[str, str] = {}
        self._standing: Json = {"state": "idle", "waiting": []}
        self._told: list[str] = []
        self._rev = 0
        self._keys = 0

    async def open(self, **settings: str) -> None:
        alone = {"TELEGRAM_BOT_TOKEN": "", "TURNKEEPER_PORT": str(free_port())}
        self._settings = alone | settings
        await self.rig.start(**self._settings)
        url = self.rig.url.rstrip("/")
        headers = {"Origin": url, "Accept-Language": self.language, "X-Time-Zone": self.zone}
        made = ClientSession(
            url, headers=headers, cookie_jar=CookieJar(unsafe=True), timeout=ClientTimeout(None),
            read_bufsize=1 << 22,
        )  # fmt: skip
        self._http = await self._exit.enter_async_context(made)
        async with self._http.get(self.rig.link) as page:
            assert page.status == 200
        self._up.set()
        self._reader = asyncio.create_task(self._read())

    def cookie(self) -> tuple[str, str]:
        """The name and value of the person's cookie."""
        ((name, morsel),) = self._http.cookie_jar.filter_cookies(URL(self.rig.url)).items()
        return name, morsel.value

    async def restart(self) -> None:
        self._up.clear()
        await self.rig.crash()
        self._growing.clear()
        await self.rig.start(**self._settings)
        self._up.set()

    async def close(self) -> None:
        self._reader.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        finally:
            await self._exit.aclose()

    # ---- what a person does --------------------------------------------------------------

    async def say(self, text: str, files: Sequence[tuple[str, bytes]] = ()) -> str:
        kept = []
        for name, data in files:
            async with self._http.post("/api/uploads", params={"name": name}, data=data) as answer:
                assert answer.status == 201, await answer.text()
                kept.append((await answer.json())["ref"])
        return await self._post("messages", text=text, attachments=kept)

    async def command(self, text: str) -> None:
        name, _, arguments = text.removeprefix("/").partition(" ")
        await self._post("commands", name=name, arguments=arguments)

    async def press(self, label: str, text: str = "") -> None:
        tokens = [
            button["token"]
            for view in self._bearing()
            for button in view.get("buttons", ())
            if button["label"] == label
        ]
        await self._post("answers", token=tokens[-1], text=text)

    async def told(self, text: str) -> None:
        """Until a private word says so; it is done with then."""
        await self._wait(lambda: any(text in one for one in self._told))
        self._told.clear()

    def link(self, label: str) -> str:
        buttons = [one for view in self._bearing() for one in view.get("buttons", ())]
        return next(str(one["url"]) for one in buttons if one["label"] == label)

    async def deny(self, reason: str) -> None:
        (card,) = [view for view in self._cards() if view["kind"] == "approval"]
        token = next(one["token"] for one in card["buttons"] if one.get("style") == "bad")
        await self._post("answers", token=token, text=reason)

    async def fill_in(self, text: str) -> None:
        (form,) = [view for view in self._cards() if view["kind"] == "form"]
        await self._post("answers", token=form["token"], text=text)

    async def write_own(self, text: str) -> None:
        (card,) = [view for view in self._cards() if view["kind"] == "choice"]
        await self._post("answers", token=card["token"], text=text)

    async def edit(self, message: str, text: str) -> None:
        async with self._http.put(f"{CHAT}/messages/{message}", json={"text": text}) as answer:
            assert answer.status == 202, await answer.text()
        await self._wait(lambda: any(one["text"] == text for one in self._standing["waiting"]))

    async def withdraw(self, message: str) -> None:
        """Take a message back that waits."""
        async with self._http.delete(f"{CHAT}/messages/{message}") as answer:
            assert answer.status == 202, await answer.text()
        await self._wait(lambda: message not in self._waiting())

    async def stop(self) -> None:
        await self._post("stop")

    async def remove(self) -> None:
        """Delete the conversation, as in another tab."""
        async with self._http.delete(CHAT) as answer:
            assert answer.status == 200, await answer.text()

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """While it is open, nothing is heard of the conversation."""
        self._reader.cancel()
        await asyncio.wait({self._reader})
        yield
        self._reader = asyncio.create_task(self._read())

    # ---- what a person sees --------------------------------------------------------------

    async def shows(self, text: str) -> None:
        await self._wait(lambda: any(text in words for words in self._answers()))

    async def card(self, text: str) -> None:
        await self._wait(lambda: any(text in words for words in self._answers("open")))

    async def grows(self, text: str) -> None:
        await self._wait(lambda: any(text in grown for grown in self._growing.values()))

    async def waits(self, message: str) -> None:
        await self._wait(lambda: message in self._waiting())

    def hold_sends(self) -> None:
        pass

    async def sends(self, text: str) -> None:
        await self.shows(text)

    def let_sends_go(self) -> None:
        pass

    def screen(self) -> list[str]:
        return self._screen(self._views, self._standing)

    async def settle(self) -> None:
        """A reload of the page shows the same; no press was refused."""
        await super().settle()
        assert not any(self._told)
        async with self._http.get(CHAT, params={"limit": "500"}) as answer:
            page = await answer.json()
        views = {(one["turn"], one["name"]): one for one in page["views"]}
        reloaded = self._screen(views, page)
        try:
            await self._wait(lambda: self.screen() == reloaded)
        except TimeoutError:
            assert self.screen() == reloaded, "a reload shows something else"

    # ---- the stream ----------------------------------------------------------------------

    async def _read(self) -> None:
        """As a browser does: comes back with the id of its last event."""
        while True:
            await self._up.wait()
            headers = {"Last-Event-ID": str(self._rev)}
            with contextlib.suppress(ClientError, ConnectionError):
                async with self._http.get(f"{CHAT}/events", headers=headers) as answer:
                    name = ""
                    async for raw in answer.content:
                        field, _, value = raw.decode().rstrip("\n").partition(": ")
                        if field == "event":
                            name = value
                        elif field == "data":
                            self._take(name, json.loads(value))
            await asyncio.sleep(0.02)

    def _take(self, name: str, data: Json) -> None:
        match name:
            case "view":
                assert data["rev"] > self._rev, "a view came twice"
                self._rev = data["rev"]
                self._views[data["turn"], data["name"]] = data
                if data["view"]["kind"] == "reply":
                    self._growing.pop(data["turn"], None)
            case "growing":
                known = self._growing.get(data["turn"], "") if data["more"] else ""
                self._growing[data["turn"]] = known + data["text"]
            case "standing":
                self._standing = data
            case "removed":
                self._views.clear()
                self._growing.clear()
                self._rev = 0
            case "told":
                self._told.append(data["text"])
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not met():
                await self._changed.wait()

    async def _post(self, what: str, **body: object) -> str:
        self._keys += 1
        key = f"k{self._keys}"
        async with self._http.post(f"{CHAT}/{what}", json=body | {"key": key}) as answer:
            assert answer.status == 202, await answer.text()
        return key

    # ---- drawing -------------------------------------------------------------------------

    def _waiting(self) -> list[str]:
        return [one["message"] for one in self._standing["waiting"]]

    def _cards(self) -> list[Json]:
        """Open ones, oldest first."""
        views = sorted(self._views.values(), key=lambda one: one["position"])
        return [one["view"] for one in views if one["view"].get("state") == "open"]

    def _bearing(self) -> list[Json]:
        """What bears buttons: open cards, and plans."""
        views = sorted(self._views.values(), key=lambda one: one["position"])
        kinds = (one["view"] for one in views)
        return [v for v in kinds if v.get("state") == "open" or v["kind"] in BUTTONED]

    def _answers(self, state: str = "") -> Iterator[str]:
        for one in self._views.values():
            if one["view"]["kind"] != "said" and state in ("", one["view"].get("state")):
                yield "\n".join(self._draw(one))

    def _screen(self, views: dict[tuple[str, str], Json], standing: Json) -> list[str]:
        lines = []
        for one in sorted(views.values(), key=lambda one: one["position"]):
            view = one["view"]
            who = view["name"] if view["kind"] == "said" else "bot"
            shown = [line for line in self._draw(one) if line]
            lines.append(f"{who}: " + "\n".join(shown))
        for one in standing["waiting"]:
            words = "\n".join([one["text"], *one["files"]])
            lines.append(f"{one['name']}: {words} ({self._words['waits']})")
        return lines

    def _draw(self, shown: Json) -> Iterator[str]:
        view, words = shown["view"], _plain(shown["html"])
        is_open = view.get("state") == "open"
        match view["kind"]:
            case "said":
                yield view["text"]
            case "activity":
                yield words
                for line in view["lines"]:
                    state = line["state"]
                    word = text_of(f"line_{state}", self.language) if state in WORDED else ""  # type: ignore[arg-type]
                    about = f"{MARKS[state]} {line['tool']} {line['summary']}".strip()
                    yield f"{about} ({word})" if word else about
                    yield indented(line["output"]) if line.get("output") else ""
                yield indented(view["note"]) if view["note"] else ""
            case "approval":
                if decided := shown.get("decided"):
                    yield decided["what"]
                else:
                    yield from self._approval(view, shown["calls"])
            case "plan":
                yield from self._plan(view)
            case "media":
                for file in view["files"]:
                    yield f"[{file['name']}, {file['size']} bytes]"
                yield words
            case _:
                yield view.get("title", "")
                mark = "✕ " if view.get("tone") == "error" else ""  # a colour of its own there
                yield mark + (words or view.get("text", ""))
                yield view.get("note", "")
        if (is_open or view["kind"] in BUTTONED) and view.get("buttons"):
            yield " ".join(f"[{one['label']}]" for one in view["buttons"])
        if is_open and view["kind"] == "form":
            yield f"[{text_of('your_answer', self.language)}: ____] [{self._words['answer']}]"
        if outcome := view.get("outcome"):
            bare = view["kind"] in ("approval", "plan")
            yield outcome if bare else f"{CARDS[view['state']]} {outcome}"

    def _plan(self, view: Json) -> Iterator[str]:
        over = sum(step["state"] == "done" for step in view["steps"])
        mark = MARKS.get(view["state"]) or CARDS.get(view["state"]) or "◐"
        yield f"{mark} {view['title']} {over}/{len(view['steps'])}"
        for n, step in enumerate(view["steps"], 1):
            note = f" ({step['note']})" if step.get("note") else ""
            yield f"{MARKS[step['state']]} {n}. {step['text']}{note}"

    def _approval(self, view: Json, calls: list[Json]) -> Iterator[str]:
        many = len(view["proposals"])
        heading = text_of("ask_one" if many == 1 else "ask_many", self.language, n=many)
        yield f"{CARDS[view['state']]} {heading}"
        yield text_of("asked_by", self.language, name=view["asker"])
        for one, call in zip(view["proposals"], calls, strict=True):
            risk = text_of(f"risk_{one['risk']}", self.language)  # type: ignore[arg-type]
            yield f"{call['title']}, {risk}"
            yield one["reason"]
            yield from (f"{name}: {value}" for name, value in call["facts"])
            yield call["body"]
            yield from (f"⚠ {warning}" for warning in call["warnings"])
            yield call["notes"]
        rule, here = view.get("rule", ""), view.get("here", "")
        if rule == here != "":
            yield text_of("both_cover", self.language, rule=rule)
        else:
            yield text_of("here_covers", self.language, rule=here) if here else ""
            yield text_of("always_covers", self.language, rule=rule) if rule else ""
        yield f"[{self._words['add_reason']}: ____]"


def _numbered(items: str) -> str:
    count = itertools.count(1)
    return re.sub("<li>", lambda _: f"<li>{next(count)}. ", items)


def _plain(markup: str) -> str:
    """HTML as one reads it."""
    markup = NUMBERED.sub(lambda found: _numbered(found[1]), markup)
    lines = html.unescape(TAG.sub("", markup)).split("\n")
    return "\n".join(line for line in lines if line.strip())
