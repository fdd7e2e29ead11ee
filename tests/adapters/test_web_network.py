"""The page over a network that goes away, and beside tabs that do something too."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from gateway.messages import MessageReceived
from gateway.ports import WaitingCard
from gateway.views import Notice
from tests.adapters.web_rig import press
from tests.fakes.browser import Page
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_server import LIVE, Room, opened, serve

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
    pytest.mark.pick("the page and its network", 2),
]


async def open_quickly(room: Room) -> None:
    """The page anew, its clock's rounds fifty times as often."""
    quick = "const real = setInterval; window.setInterval = (act, ms) => real(act, ms / 50);"
    await room.page.call("Page.addScriptToEvaluateOnNewDocument", source=quick)
    await room.page.call("Page.reload")
    await room.page.until(LIVE)


async def test_a_stream_that_gives_no_sign_of_life_is_begun_anew(tmp_path: Path) -> None:
    """A network that went away without a word breaks nothing that the browser sees."""

    def begun() -> int:
        return sum("/events?" in url for url in room.page.requests)

    async with opened(tmp_path) as room:
        await open_quickly(room)
        count = begun()
        await room.page.js("(() => { const now = Date.now; Date.now = () => now() + 60000; })()")
        async with asyncio.timeout(PATIENCE):
            while begun() == count:
                await asyncio.sleep(0.02)
        await room.page.until(LIVE)


async def test_the_title_of_a_tab_in_the_back_counts_what_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        await open_quickly(room)
        hidden = "Object.defineProperty(document, 'hidden', {get: () => true})"
        await room.page.js(f"{hidden} && document.dispatchEvent(new Event('visibilitychange'))")
        await room.page.until("document.body.dataset.live === ''")
        there = room.server.address("c2")
        room.server.backend.cards.append(WaitingCard(conversation=there, text="Deploy?", since=1.0))
        await room.page.until("document.title.startsWith('(1) ')")


async def test_a_file_that_was_cut_off_on_its_way_stays_to_be_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page = room.page
        offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await page.call("Network.emulateNetworkConditions", offline=True, **offline)
        drop = "const all = new DataTransfer(); all.items.add(new File(['abc'], 'a.txt'));"
        drop += "document.dispatchEvent(new DragEvent('drop', {dataTransfer: all}));"
        await page.js(f"(() => {{ {drop} }})()")
        await room.shows("#toast", "a.txt did not arrive.")
        await room.write("What is in it?")
        await room.shows("#toast", "a.txt did not arrive.")
        assert await page.js("document.querySelector('#text').value") == "What is in it?"
        await page.call("Network.emulateNetworkConditions", offline=False, **offline)
        await page.click("#files .anew")
        await page.until("document.querySelectorAll('#files li.ready').length === 1")
        assert await room.texts("#files .anew") == []
        await press(room, "Enter")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert [one.name for one in said.attachments] == ["a.txt"]
        page.errors.clear()  # the browser notes each failed attempt


async def test_a_long_conversation_is_read_to_its_first_word_and_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        for number in range(2_310):
            room.server.backend.show(room.where, Notice(text=f"word {number}."), f"n{number}")
        await room.page.call("Page.reload")
        await room.shows(".notice", "word 2309.")
        assert len(await room.texts(".notice")) == 100
        while not await room.page.js("document.querySelector('#earlier').hidden"):
            count = len(await room.texts(".notice"))
            await room.page.click("#earlier")
            await room.page.until(f"document.querySelectorAll('.notice').length > {count}")
            await room.page.until("!document.querySelector('#log').ariaBusy")
        words = [text.strip() for text in await room.texts(".notice")]
        assert words == [f"word {number}." for number in range(2_310)]
        room.server.backend.show(room.where, Notice(text="And on."), "last")
        await room.shows(".notice", "And on.")


async def test_many_events_at_once_are_laid_out_once_for_a_frame(tmp_path: Path) -> None:
    """A layout for each of them would take time by the square of the conversation's length."""

    async def count_layouts(page: Page) -> float:
        found = await page.call("Performance.getMetrics")
        metrics = cast(list[dict[str, object]], found["metrics"])
        return next(cast(float, one["value"]) for one in metrics if one["name"] == "LayoutCount")

    async with opened(tmp_path) as room:
        page = room.page
        await page.call("Performance.enable")
        await page.js(
            "frames = 0; (function count() { frames++; requestAnimationFrame(count); })()"
        )
        before = await count_layouts(page)
        for number in range(1_000):
            room.server.backend.show(room.where, Notice(text=f"word {number}."), f"n{number}")
        await room.shows(".notice", "word 999.")
        frames = await page.js("frames")
        assert isinstance(frames, int)
        assert await count_layouts(page) - before <= frames + 50
        top = "scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 2"
        await page.until(f"((scroll) => {top})(document.querySelector('#scroll'))")


async def test_what_came_while_a_tab_was_in_the_back_is_all_there(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, Notice(text="word 0."), "n0")
        await room.shows(".notice", "word 0.")
        hide = "Object.defineProperty(document, 'hidden', {get: () => %s, configurable: true})"
        hide += " && document.dispatchEvent(new Event('visibilitychange'))"
        await page.js(hide % "true")
        await page.until("document.body.dataset.live === ''")
        for number in range(1, 230):
            backend.show(room.where, Notice(text=f"word {number}."), f"n{number}")
        await page.js(hide % "false")
        await page.until("document.querySelectorAll('.notice').length === 230")
        words = [text.strip() for text in await room.texts(".notice")]
        assert words == [f"word {number}." for number in range(230)]


@pytest.mark.parametrize("begun_anew", [False, True])
async def test_a_reader_of_what_is_nowhere_any_more_is_told(
    tmp_path: Path, begun_anew: bool
) -> None:
    """Its conversation was removed while it was away; another one may have begun in its place."""
    async with serve(tmp_path) as server:
        where = server.address("c1")
        if begun_anew:
            server.backend.show(where, Notice(text="new"), "n1")
        path = "/api/conversations/c1/events?after=7"
        async with asyncio.timeout(PATIENCE), server.http.get(path) as answer:
            await answer.content.readuntil(b"event: removed\n")
            if begun_anew:
                await answer.content.readuntil(b"id: 1\nevent: view\n")
