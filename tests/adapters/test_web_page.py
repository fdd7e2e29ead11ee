"""The page as a person uses it: a real browser, the real API, a FakeBackend behind it."""

import re
from pathlib import Path
from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from adapters.web import words
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    MessageReceived,
    StopPressed,
    read_conversation,
)
from gateway.moment_texts import mark_moment
from gateway.texts import say
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Notice,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
)
from tests.adapters.web_rig import faults
from tests.fakes.browser import browse
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.web_server import ANSWER, LIVE, WIDE, activity, approval, opened, serve

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
    pytest.mark.pick("the page", 7),
]
XSS = """<script>window.__x=1</script><img src=x onerror="window.__x=2">

![p](https://evil.invalid/p.png) [a](javascript:window.__x=3) <svg onload="window.__x=4">
"""


async def test_a_conversation_from_the_first_word_to_the_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        await page.until("!document.querySelector('#empty').hidden")
        await room.write("How is the weather in Berlin?")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert said.text == "How is the weather in Berlin?"
        await room.shows("#pending .later", "Pending")
        backend.show(room.where, SaidView(name="owner", text=said.text), "said")
        await room.shows("#log .said", "Berlin")
        await page.until("!document.querySelector('#pending').childElementCount")
        backend.stand(room.where, "running")
        backend.show(room.where, activity(), "activity")
        await page.until("!document.querySelector('#stop').hidden")
        backend.grow(room.where, "Berlin is **2")
        backend.grow(room.where, "Berlin is **2 °C**")
        await room.shows(".growing", "Berlin is **2 °C**")
        grown = "Berlin 🎉 is **2 °C**\n\n```\nx = 1\n```\n\nAnd **then"
        backend.grow(room.where, grown)
        await room.shows(".growing .finished strong", "2 °C")
        await room.shows(".growing .finished pre", "x = 1")
        assert await room.texts(".growing > span") == ["And **then"]
        backend.grow(room.where, f"{grown}** more\n\n- a\n\nLast")
        await room.shows(".growing .finished", "then more")
        apart = (
            "[...document.querySelectorAll('.growing .html')].map((one, n, all) => all[n + 1] &&"
        )
        apart += " all[n + 1].getBoundingClientRect().top - one.lastElementChild.getBoundingClientRect().bottom)"
        gaps = cast(list[float | None], await page.js(apart))
        assert all(gap == 12 for gap in gaps[:-1]) and len(gaps) > 1, "as in the finished answer"
        assert await room.texts(".growing .finished strong") == ["2 °C", "then"]
        assert await room.texts(".growing > span") == ["Last"]
        backend.stand(room.where, "idle")
        backend.show(room.where, ReplyView(text=ANSWER), "reply")
        await room.shows("#log .reply strong", "2 °C")
        await page.until("document.querySelector('#stop').hidden")
        assert await room.texts(".growing") == []
        assert await room.texts(".line .mark-of") == ["☑", "✕", "◐", "☐"]
        await page.click(".activity summary")
        await page.until("document.querySelector('.activity details').open")
        backend.show(room.where, activity("Now the list."), "activity")
        await room.shows(".activity", "Now the list.")
        await page.until("document.querySelector('.activity details').open")
        await room.shows("#list a[aria-current]", "weather in Berlin")
        await page.go(f"{room.server.url}/#c=c1")
        await page.call("Page.reload")
        await room.shows("#log .reply strong", "2 °C")
        assert await page.js("location.hash") == "#c=c1"


async def test_cards_are_answered_by_mouse_and_keyboard(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, approval(), "ask")
        await room.shows(".card.open pre", "rm -r build/")
        await room.shows(".card.open .risk", "high risk")
        await page.click(".card .reason summary")
        await page.click(".card .reason textarea")
        await page.type("looks fine")
        backend.show(room.where, msgspec.structs.replace(approval(), rule="Just this once"), "ask")
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
        await page.until("!document.querySelector('.card .bad').disabled")
        backend.show(room.where, approval("approved"), "ask")
        await room.shows(".card.approved .outcome", "Approved once by owner")
        assert await room.texts(".card button") == []

        choices = (Button(label="Train", token="q:c:1"), Button(label="Plane", token="q:c:2"))
        backend.show(
            room.where, ChoiceCard(question="c", text="**How**?", buttons=choices), "choice"
        )
        await room.shows(".card.choice strong", "How")
        await page.js("document.querySelector('.card.choice button:nth-child(2)').focus()")
        await page.press("Enter", 13)
        press = await room.next()
        assert isinstance(press, ButtonPressed)
        assert press.token == "q:c:2"

        backend.show(room.where, FormCard(question="f", text="Which day?", token="q:f:x"), "form")
        await page.click(".card.form textarea")
        await page.type("On Monday")
        await page.press("Enter", 13)
        form = await room.next()
        assert isinstance(form, FormSubmitted)
        assert (form.token, form.text) == ("q:f:x", "On Monday")
        answered = FormCard(
            question="f", text="Which day?", token="q:f:x", state="answered", outcome="On Monday"
        )
        backend.show(room.where, answered, "form")
        await room.shows(".card.answered .outcome", "On Monday")


async def test_stop_commands_and_a_message_that_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.stand(room.where, "running")
        backend.show(room.where, SaidView(name="owner", text="Count to a million"), "said")
        backend.grow(room.where, "1, 2, 3")
        await room.write("And backwards")
        assert isinstance(await room.next(), MessageReceived)
        await room.shows("#pending", "And backwards")
        await page.until("!document.querySelector('#stop').hidden")
        await page.click("#stop")
        assert isinstance(await room.next(), StopPressed)
        backend.stand(room.where, "idle")
        stopped = ReplyView(text="1, 2, 3", state="stopped", note="Stopped by owner.")
        backend.show(room.where, stopped, "reply")
        await room.shows(".reply .note", "Stopped by owner.")
        await room.write("/jobs pause 3")
        command = await room.next()
        assert isinstance(command, CommandGiven)
        assert (command.name, command.arguments) == ("jobs", "pause 3")
        backend.failing = True
        await room.write("Does not fit on the disk")
        await room.shows("#toast", "Nothing was done")
        assert await page.js("document.querySelector('#text').value") == "Does not fit on the disk"
        room.page.errors.clear()  # the browser notes the 503


async def test_hostile_markdown_does_nothing_in_a_browser(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.stand(room.where, "running")
        backend.show(room.where, SaidView(name="<b>", text=XSS), "said")
        backend.grow(room.where, XSS)
        await room.shows(".growing", "<script>")
        backend.show(room.where, ReplyView(text=XSS), "reply")
        backend.show(room.where, Notice(text=XSS, tone="error"), "notice")
        line = ToolLine(call_id='"><x>', tool=XSS, summary=XSS, state="done", output=XSS)
        backend.show(room.where, Activity(lines=(line,), words=XSS), "activity")
        evil = ProposalLine(tool=XSS, arguments=XSS, reason=XSS, risk="low", detail=XSS)
        button = Button(label=XSS, token=XSS)
        card = ApprovalCard(question=XSS, asker=XSS, proposals=(evil,), buttons=(button,))
        backend.show(room.where, card, "card")
        backend.show(room.where, FormCard(question="f", text=XSS, token="q:f:x"), "form")
        await room.shows(".card.form", "<script>")
        assert await page.js("typeof window.__x") == "undefined"
        assert await page.js("document.querySelectorAll('#main img, #main script').length") == 0
        hrefs = await page.js("[...document.querySelectorAll('#log a')].map((one) => one.href)")
        assert set(hrefs) == {"https://evil.invalid/p.png"}  # type: ignore[call-overload]


async def test_a_lost_connection_comes_back_with_what_was_missed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, Notice(text="before"), "n1")
        await room.shows(".notice", "before")
        await page.call("Network.emulateNetworkConditions", offline=True, latency=0,
                        downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
        room.server.adapter._streams.close()
        await room.shows("#banner", "Connection lost")
        backend.show(room.where, Notice(text="meanwhile"), "n2")
        await page.call("Network.emulateNetworkConditions", offline=False, latency=0,
                        downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
        await room.shows(".notice", "meanwhile")
        await page.until("document.querySelector('#banner').hidden")
        assert await room.texts(".notice") == ["before\n", "meanwhile\n"]
        room.page.errors.clear()  # the browser notes each failed attempt


async def test_conversations_are_apart_and_listed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, SaidView(name="owner", text="The first one"), "said")
        await room.shows("#log", "The first one")
        await page.click("#new")
        await page.until("location.hash !== '#c=c1' && !document.querySelector('#empty').hidden")
        assert await room.texts("#log .said") == []
        await page.until("document.activeElement.id === 'text'")
        await room.write("Another")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert said.conversation.id != room.where
        backend.show(said.conversation.id, SaidView(name="owner", text="Another"), "said")
        await room.shows("#list", "The first one")
        await room.shows("#list", "Another")  # or it moves away from under the pointer
        await page.click("#list a[href='#c=c1']")
        await room.shows("#log", "The first one")
        assert await room.texts("#log .said") == ["owner: The first one"]


async def test_on_a_phone_nothing_sticks_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, SaidView(name="owner", text="How is the weather in Berlin and Oslo, and can you "
                                   "release the site?"), "said")  # fmt: skip
        backend.show(room.where, activity(), "activity")
        backend.show(room.where, ReplyView(text=ANSWER + "\n\n" + "x" * 300), "reply")
        backend.show(room.where, Notice(text="The demo model answers: it is scripted."), "notice")
        backend.show(room.where, approval(), "ask")
        backend.show(room.where, approval("approved"), "asked")
        await room.shows(".card", "Approved once")
        for width in (1200, 760, 390, 320):
            await page.look(width, 800)
            over = await page.js(
                "[document.documentElement, document.querySelector('#scroll')]"
                ".map((one) => one.scrollWidth - one.clientWidth)"
            )
            assert over == [0, 0], width
        gone = "getComputedStyle(document.querySelector('#side')).visibility === 'hidden'"
        await page.until(gone)  # it slides away
        await page.click("#menu")
        await page.until("document.querySelector('#menu').ariaExpanded === 'true'")
        await page.press("Escape", 27)
        await page.until("document.querySelector('#shade').hidden")


async def test_the_page_signs_in_by_link_and_says_when_it_cannot(tmp_path: Path) -> None:
    async with serve(tmp_path) as server, browse() as page:
        await page.look(900, 600)
        await page.go(server.url)
        await page.until("document.body.textContent.includes('turnkeeper link')")
        await page.go(f"{server.url}/signin/{server.gate.issue('ann')}")
        await page.until("location.pathname === '/' && document.querySelector('#person')")
        await page.until("document.querySelector('#person').textContent.includes('ann')")
        assert await page.js("document.cookie") == "", "no script reads the session"
        await page.go(f"{server.url}/signin/used")
        await page.until("document.body.textContent.includes('This link has expired')")


@pytest.mark.parametrize("look", [WIDE, (390, 800, "light")])
async def test_a_person_looks_where_they_are_signed_in_and_signs_out(
    tmp_path: Path, axe: str, look: tuple[int, int, str]
) -> None:
    async with opened(tmp_path, look=look) as room:
        page, book = room.page, room.server.gate.book
        await book.begin("owner", "Safari, iPhone", 60)
        if look is not WIDE:
            await page.click("#menu")
        await page.js("document.querySelector('#sessions').click()")
        await room.shows("#signins h3", "Chrome, Linux")
        assert await room.texts("#signins h3") == ["Safari, iPhone", "Chrome, Linux"]
        assert await room.texts("#signins .risk") == ["this browser"]
        assert await room.texts("#signins li button") == ["End", "Sign out"]
        assert await faults(room, axe) == []
        await room.shoot(f"sessions-{look[0]}")
        await page.click("#signins li:first-child button")
        await room.shows("#signins-told", "Safari, iPhone is signed out.")
        await room.shows("#signins li:only-child h3", "Chrome, Linux")
        await page.click("#signins li button")
        await page.until("document.body.textContent.includes('turnkeeper link')")
        assert await book.find("owner") == ()


async def test_reading_above_is_not_disturbed(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        for number in range(150):
            backend.show(room.where, Notice(text=f"word {number}"), f"n{number}")
        await room.shows(".notice", "word 149")
        await page.until(
            "document.querySelector('#scroll').scrollHeight - document.querySelector('#scroll').scrollTop - document.querySelector('#scroll').clientHeight < 2"
        )
        await page.js("document.querySelector('#scroll').scrollTop = 700")
        await page.until("!document.querySelector('#down').hidden")
        backend.show(room.where, ReplyView(text="# End"), "reply")
        await room.shows("h1", "End")
        assert await page.js("document.querySelector('#scroll').scrollTop") == 700
        await page.click("#down")
        await page.until("document.querySelector('#down').hidden")
        await page.call("Page.reload")
        await page.until(LIVE)
        assert len(await room.texts(".notice")) == 99
        await page.js("document.querySelector('#earlier').click()")
        await page.until("document.querySelectorAll('.notice').length === 150")
        first = await room.texts(".notice")
        assert first == [f"word {number}\n" for number in range(150)]
        assert cast(float, await page.js("document.querySelector('#scroll').scrollTop")) > 500, (
            "what was read stays in place"
        )


async def test_a_file_is_attached_and_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    async with opened(tmp_path / "files") as room:
        page = room.page
        await page.call("DOM.enable")
        root = await page.call("DOM.getDocument")
        node = await page.call("DOM.querySelector", nodeId=root["root"]["nodeId"], selector="#file")  # type: ignore[index]
        await page.call("DOM.setFileInputFiles", files=[str(tmp_path / "notes.txt")],
                        nodeId=node["nodeId"])  # fmt: skip
        await room.shows("#files li.ready", "notes.txt")
        await room.write("Read this")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert [one.name for one in said.attachments] == ["notes.txt"]


def test_the_page_is_small_and_has_nothing_inline() -> None:
    static = Path(__file__).parents[2] / "adapters" / "web" / "static"
    assets = [path for path in static.iterdir() if path.suffix in (".js", ".css")]
    index = words.page("de")
    assert sum(path.stat().st_size for path in assets) + len(index.encode()) < 150_000
    assert "<style" not in index
    assert not re.search(r"\s(?:style|on\w+)=", index)
    assert index.count("<script") == index.count("<script src=") == 2
    code = "".join(path.read_text() for path in assets if path.suffix == ".js")
    assert code.count("innerHTML") == 1
    assert set(re.findall(r"https?://[^\"]*", code)) == {"http://www.w3.org/2000/svg"}, (
        "a name alone"
    )
    assert all(path.read_text().count("\n") <= 400 for path in assets)


def test_the_page_is_whole_in_every_language() -> None:
    static = Path(__file__).parents[2] / "adapters" / "web" / "static"
    code = "".join(path.read_text() for path in static.glob("*.js"))
    known = words.ENGLISH.keys() | set(words.CARDS)
    assert set(re.findall(r"""say\("(\w+)\"""", code)) <= known
    for language in words.WORDS.list_codes():
        page = words.page(language)
        assert "{{" not in page and f'<html lang="{language}">' in page
    used = code + words.PAGE.read_text()
    notes = ("sign_in", "server_", "link_over", "enter", "slow_down", "signed_in", "open_chat")
    families = ("theme_", "keys_", "step_", "line_", "gone_")
    unused = [
        key
        for key in words.ENGLISH
        if f'"{key}"' not in used
        and f"{{{{{key}}}}}" not in used
        and not key.startswith((*notes, *families))
    ]
    assert [key for key in unused if key not in ("running", "waiting")] == []


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de-AT"),
        ("it, en;q=0.5, de;q=0.7", "de"),
        ("fr, en;q=0.5, de;q=0.7", "fr"),
        ("es-419,es;q=0.9", "es-419"),
        ("fil", ""),
        ("it", ""),
        ("", ""),
        ("en;q=0,de;q=0.1", "de"),
        ("en;q=nan, ;;,de;q=", "de"),
        ("x" * 100_000, ""),
    ],
)
def test_the_language_is_the_best_liked_one_that_we_speak(accepted: str, language: str) -> None:
    assert words.choose_language(accepted) == language


async def test_moments_stand_in_the_readers_own_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        await page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
        at = 1_790_000_000
        zoned, bare = (mark_moment(at, f"2026-09-21 14:13{zone}") for zone in (" UTC", ""))
        decided = replace(approval("approved"), outcome=f"Approved by Ann, {zoned}.")
        backend.show(room.where, decided, "asked")
        backend.show(room.where, Notice(text=f"**Next**: {bare}, {zoned}"), "notice")
        report = ReportView(title="Hosts", text="2026-09-21 it was", note=f"Due {zoned}")
        backend.show(room.where, report, "report")
        await room.shows(".report .note", "11:13")
        told = ".approval summary, .notice, .report .note"
        shown = [text.strip().replace("\u202f", " ") for text in await room.texts(told)]
        here = "Sep 21, 2026, 11:13 PM"
        assert shown[0].endswith(f"Approved by Ann, {here}.")
        assert shown[1:] == [f"Next: {here}, {here}", f"Due {here}"]
        times = "[...document.querySelectorAll('time')].map((one) => [one.dateTime, one.title])"
        found = cast(list[list[str]], await page.js(times))
        assert {at for at, _ in found} == {"2026-09-21T14:13:20.000Z"}
        assert {title for _, title in found} == {"2026-09-21 14:13", "2026-09-21 14:13 UTC"}
        assert "2026-09-21 it was" in (await room.texts(".report"))[0]


async def test_a_card_that_asked_nothing_says_only_what_became_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        gone = ChoiceCard(question="", text="Incidents was deleted.", buttons=(), state="cancelled")
        room.server.backend.show(room.where, gone, "jobs")
        asked = ChoiceCard(question="q", text="Which way?", buttons=(), state="cancelled")
        room.server.backend.show(room.where, asked, "asked")
        await room.shows(".choice", "Which way?")
        assert [text.split() for text in await room.texts(".choice")] == [
            ["Incidents", "was", "deleted."],
            ["Which", "way?", *say("cancelled").split()],
        ]
