"""The page as a person uses it: a real browser, the real API, a FakeDesk behind it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    MessageReceived,
    StopPressed,
    read_conversation,
)
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Notice,
    ProposalLine,
    Reply,
    Said,
    ToolLine,
)
from tests.fakes.browser import MISSING, browse, find
from tests.fakes.web_server import ANSWER, SHOTS, activity, approval, opened, serve

pytestmark = [
    pytest.mark.skipif(not find() and os.environ.get("CI") != "true", reason=MISSING),
    pytest.mark.timeout(120),
]
XSS = """<script>window.__x=1</script><img src=x onerror="window.__x=2">

![p](https://evil.invalid/p.png) [a](javascript:window.__x=3) <svg onload="window.__x=4">
"""


async def test_a_conversation_from_the_first_word_to_the_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        await page.until("!document.querySelector('#empty').hidden")
        await room.shoot("empty")
        await room.write("How is the weather in Berlin?")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert said.text == "How is the weather in Berlin?"
        await room.shows("#pending .said", "Waits for its turn")
        desk.show(room.where, Said(name="owner", text=said.text), "said")
        await room.shows("#log .said", "Berlin")
        await page.until("!document.querySelector('#pending').childElementCount")
        desk.room(room.where).state = "running"
        desk.show(room.where, activity(), "activity")
        await page.until("!document.querySelector('#stop').hidden")
        desk.grow(room.where, "Berlin is **2")
        desk.grow(room.where, "Berlin is **2 °C**")
        await room.shows(".growing", "Berlin is **2 °C**")
        await room.shoot("growing")
        desk.room(room.where).state = "idle"
        desk.show(room.where, Reply(text=ANSWER), "reply")
        await room.shows("#log .reply strong", "2 °C")
        await page.until("document.querySelector('#stop').hidden")
        assert await room.texts(".growing") == []
        assert await room.texts(".line .mark-of") == ["☑", "✕", "◐", "☐"]
        await page.click(".activity summary")
        await page.until("document.querySelector('.activity details').open")
        desk.show(room.where, activity("Now the list."), "activity")
        await room.shows(".activity", "Now the list.")
        await page.until("document.querySelector('.activity details').open")
        await room.shows("#list a[aria-current]", "weather in Berlin")
        await page.go(f"{room.server.url}/#c1")
        await page.call("Page.reload")
        await room.shows("#log .reply strong", "2 °C")
        assert await page.js("location.hash") == "#c1"


async def test_cards_are_answered_by_mouse_and_keyboard(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        desk.show(room.where, approval(), "ask")
        await room.shows(".card.open pre", "rm -r build/")
        await room.shows(".card.open .risk", "High risk")
        await page.click(".card .reason summary")
        await page.click(".card .reason textarea")
        await page.type("looks fine")
        desk.show(room.where, msgspec.structs.replace(approval(), rule="Just this once"), "ask")
        await room.shows(".card.open", "Just this once")
        await page.until("document.activeElement.dataset.keep === 'reason'")
        assert await page.js("document.querySelector('.card .reason textarea').value")
        await page.click(".card .good")
        press = await room.next()
        assert isinstance(press, ButtonPressed)
        assert (press.token, press.text) == ("q:a1:once", "looks fine")
        await page.until("document.querySelector('.card .bad').disabled")
        where = read_conversation(room.where)
        await room.server.adapter.tell(where, press.press, "Somebody was faster.")
        await room.shows("#toast", "Somebody was faster.")
        desk.show(room.where, approval("approved"), "ask")
        await room.shows(".card.approved .outcome", "Approved once by owner")
        assert await room.texts(".card button") == []

        choices = (Button(label="Train", token="q:c:1"), Button(label="Plane", token="q:c:2"))
        desk.show(room.where, ChoiceCard(question="c", text="**How**?", buttons=choices), "choice")
        await room.shows(".card.choice strong", "How")
        await page.js("document.querySelector('.card.choice button:nth-child(2)').focus()")
        await page.press("Enter", 13)
        press = await room.next()
        assert isinstance(press, ButtonPressed)
        assert press.token == "q:c:2"

        desk.show(room.where, FormCard(question="f", text="Which day?", token="q:f:x"), "form")
        await page.click(".card.form textarea")
        await page.type("On Monday")
        await page.press("Enter", 13)
        form = await room.next()
        assert isinstance(form, FormSubmitted)
        assert (form.token, form.text) == ("q:f:x", "On Monday")
        answered = FormCard(
            question="f", text="Which day?", token="q:f:x", state="answered", outcome="On Monday"
        )
        desk.show(room.where, answered, "form")
        await room.shows(".card.answered .outcome", "On Monday")


async def test_stop_commands_and_a_message_that_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        desk.room(room.where).state = "running"
        desk.show(room.where, Said(name="owner", text="Count to a million"), "said")
        desk.grow(room.where, "1, 2, 3")
        await room.write("And backwards")
        assert isinstance(await room.next(), MessageReceived)
        await room.shows("#pending", "And backwards")
        await page.click("#stop")
        assert isinstance(await room.next(), StopPressed)
        desk.room(room.where).state = "idle"
        stopped = Reply(text="1, 2, 3", state="stopped", note="Stopped by owner.")
        desk.show(room.where, stopped, "reply")
        await room.shows(".reply .note", "Stopped by owner.")
        await room.write("/jobs pause 3")
        command = await room.next()
        assert isinstance(command, CommandGiven)
        assert (command.name, command.arguments) == ("jobs", "pause 3")
        desk.failing = True
        await room.write("Does not fit on the disk")
        await room.shows("#toast", "Nothing was done")
        assert await page.js("document.querySelector('#text').value") == "Does not fit on the disk"
        room.page.errors.clear()  # the browser notes the 503


async def test_hostile_markdown_does_nothing_in_a_browser(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        desk.show(room.where, Said(name="<b>", text=XSS), "said")
        desk.grow(room.where, XSS)
        await room.shows(".growing", "<script>")
        desk.show(room.where, Reply(text=XSS), "reply")
        desk.show(room.where, Notice(text=XSS, tone="error"), "notice")
        line = ToolLine(call_id='"><x>', tool=XSS, summary=XSS, state="done", output=XSS)
        desk.show(room.where, Activity(lines=(line,), words=XSS), "activity")
        evil = ProposalLine(tool=XSS, arguments=XSS, reason=XSS, risk="low", detail=XSS)
        button = Button(label=XSS, token=XSS)
        card = ApprovalCard(question=XSS, asker=XSS, proposals=(evil,), buttons=(button,))
        desk.show(room.where, card, "card")
        desk.show(room.where, FormCard(question="f", text=XSS, token="q:f:x"), "form")
        await room.shows(".card.form", "<script>")
        assert await page.js("typeof window.__x") == "undefined"
        assert await page.js("document.querySelectorAll('#main img, #main script').length") == 0
        hrefs = await page.js("[...document.querySelectorAll('#log a')].map((one) => one.href)")
        assert set(hrefs) == {"https://evil.invalid/p.png"}  # type: ignore[call-overload]


async def test_a_lost_connection_comes_back_with_what_was_missed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        desk.show(room.where, Notice(text="before"), "n1")
        await room.shows(".notice", "before")
        await page.call("Network.emulateNetworkConditions", offline=True, latency=0,
                        downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
        room.server.adapter._streams.close()
        await room.shows("#banner", "Connection lost")
        await room.shoot("lost")
        desk.show(room.where, Notice(text="meanwhile"), "n2")
        await page.call("Network.emulateNetworkConditions", offline=False, latency=0,
                        downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
        await room.shows(".notice", "meanwhile")
        await page.until("document.querySelector('#banner').hidden")
        assert await room.texts(".notice") == ["before\n", "meanwhile\n"]
        room.page.errors.clear()  # the browser notes each failed attempt


async def test_conversations_are_apart_and_listed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        desk.show(room.where, Said(name="owner", text="The first one"), "said")
        await room.shows("#log", "The first one")
        await page.click("#new")
        await page.until("location.hash !== '#c1' && !document.querySelector('#empty').hidden")
        assert await room.texts("#log .said") == []
        await page.until("document.activeElement.id === 'text'")
        await room.write("Another")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert said.conversation.id != room.where
        desk.show(said.conversation.id, Said(name="owner", text="Another"), "said")
        await room.shows("#list", "The first one")
        await page.click("#list a[href='#c1']")
        await room.shows("#log", "The first one")
        assert await room.texts("#log .said") == ["owner: The first one"]


async def test_on_a_phone_nothing_sticks_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        sizes: tuple[tuple[str, Callable[[], tuple[int, int, str]]], ...] = (
            ("wide-light", lambda: (1200, 860, "light")),
            ("wide-dark", lambda: (1200, 860, "dark")),
            ("phone-light", lambda: (390, 800, "light")),
            ("phone-dark", lambda: (390, 800, "dark")),
        )
        desk.show(room.where, Said(name="owner", text="How is the weather in Berlin and Oslo, and can you "
                                   "release the site?"), "said")  # fmt: skip
        desk.show(room.where, activity(), "activity")
        desk.show(room.where, Reply(text=ANSWER + "\n\n" + "x" * 300), "reply")
        desk.show(room.where, Notice(text="The demo model answers: it is scripted."), "notice")
        desk.show(room.where, approval(), "ask")
        desk.show(room.where, approval("approved"), "asked")
        await room.shows(".card", "Approved once")
        for name, look in sizes:
            await page.look(*look())
            await page.js("new Promise((done) => setTimeout(done, 60))")
            for at, top in (("end", "scroll.scrollHeight"), ("top", "0")):
                await page.js(f"scroll.scrollTop = {top}")
                await room.shoot(f"{name}-{at}")
            width = await page.js("document.documentElement.scrollWidth - innerWidth")
            inner = await page.js("scroll.scrollWidth - scroll.clientWidth")
            assert (width, inner) == (0, 0), name
        await page.click("#menu")
        await page.until("document.querySelector('#menu').ariaExpanded === 'true'")
        await page.js("new Promise((done) => setTimeout(done, 250))")
        await room.shoot("phone-menu")
        await page.press("Escape", 27)
        await page.until("document.querySelector('#shade').hidden")


async def test_the_page_signs_in_by_link_and_says_when_it_cannot(tmp_path: Path) -> None:
    async with serve(tmp_path) as server, browse() as page:
        await page.look(900, 600)
        await page.go(server.url)
        await page.until("document.body.textContent.includes('turnkeeper link')")
        if SHOTS:
            await page.shoot(Path(SHOTS) / "signin.png")
        await page.go(f"{server.url}/signin/{server.gate.issue('ann')}")
        await page.until("location.pathname === '/' && document.querySelector('#person')")
        await page.until("document.querySelector('#person').textContent.includes('ann')")
        assert await page.js("document.cookie") == "", "no script reads the session"
        await page.go(f"{server.url}/signin/used")
        await page.until("document.body.textContent.includes('This link is over')")


async def test_reading_above_is_not_disturbed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        desk, page = room.server.desk, room.page
        for number in range(150):
            desk.show(room.where, Notice(text=f"word {number}"), f"n{number}")
        await room.shows(".notice", "word 149")
        await page.until("scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 2")
        await page.js("scroll.scrollTop = 700")
        await page.until("!document.querySelector('#down').hidden")
        desk.show(room.where, Reply(text="# End"), "reply")
        await room.shows("h1", "End")
        assert await page.js("scroll.scrollTop") == 700
        await page.click("#down")
        await page.until("document.querySelector('#down').hidden")
        await page.call("Page.reload")
        await page.until("source && source.readyState === 1")
        assert len(await room.texts(".notice")) == 99
        await page.js("document.querySelector('#earlier').click()")
        await page.until("document.querySelectorAll('.notice').length === 150")
        first = await room.texts(".notice")
        assert first == [f"word {number}\n" for number in range(150)]
        assert cast(float, await page.js("scroll.scrollTop")) > 500, "what was read stays in place"


async def test_a_file_is_attached_and_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    async with opened(tmp_path / "files") as room:
        page = room.page
        await page.call("DOM.enable")
        root = await page.call("DOM.getDocument")
        node = await page.call("DOM.querySelector", nodeId=root["root"]["nodeId"], selector="#file")  # type: ignore[index]
        await page.call("DOM.setFileInputFiles", files=[str(tmp_path / "notes.txt")],
                        nodeId=node["nodeId"])  # fmt: skip
        await room.shows("#files", "notes.txt ✕")
        await room.write("Read this")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert [one.name for one in said.attachments] == ["notes.txt"]


def test_the_page_is_small_and_has_nothing_inline() -> None:
    static = Path(__file__).parents[2] / "adapters" / "web" / "static"
    parts = {path.name: path.read_text() for path in static.iterdir()}
    assert sum(len(parts[name]) for name in ("index.html", "page.js", "page.css")) < 60_000
    assert "<style" not in parts["index.html"]
    assert "style=" not in parts["index.html"]
    assert parts["index.html"].count("<script") == parts["index.html"].count("<script src=") == 1
    assert parts["page.js"].count("innerHTML") == 1
