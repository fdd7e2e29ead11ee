"""The page in a real browser against the real gateway: what a person sees and does there."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from adapters.web.stream import HEARTBEAT
from gateway.ports import Standing
from gateway.wiring.web_backend import GatewayBackend
from tests.fakes.browser import Page, browse
from tests.fakes.model_server import Call, Calls, Fail, Halted, Say, Slow
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.pictures import PNG
from tests.fakes.ports import free_port
from tests.fakes.web_server import LIVE
from tests.stories.rig import PATIENCE, Rig, living, write

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
]
XSS = """<script>window.__x=1</script><img src=x onerror="window.__x=2">

![p](https://evil.invalid/p.png) [a](javascript:window.__x=3) <svg onload="window.__x=4">
<iframe src="https://evil.invalid"></iframe> **end**"""

HOLD = """(() => {
  const real = window.fetch; let open;
  const gate = new Promise((done) => { open = done; });
  window.fetch = async (...of) => {
    const answer = await real(...of), body = await answer.text();
    await gate;
    return new Response(body || null, answer);
  };
  window.release = () => {
    window.fetch = real;
    open();
    return new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done))));
  };
})()"""
"""What the page asks for from now on is answered once `release()` is called."""


class Tab:
    """The page as its person uses it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def texts(self, selector: str) -> list[str]:
        code = f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)"
        found = await self.page.js(code)
        assert isinstance(found, list)
        return found

    async def shows(self, selector: str, text: str) -> None:
        some = f"[...document.querySelectorAll({selector!r})]"
        await self.page.until(f"{some}.some((one) => one.textContent.includes({text!r}))", PATIENCE)

    async def reads(self, selector: str, *texts: str) -> None:
        """Until these are the texts there; what folds away does so a moment after its reason."""
        some = f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)"
        await self.page.until(
            f"JSON.stringify({some}) === {json.dumps(json.dumps(texts, ensure_ascii=False, separators=(',', ':')))}"
        )

    async def write(self, text: str) -> None:
        await self.page.click("#text")
        await self.page.type(text)
        await self.page.press("Enter", 13)

    async def click(self, selector: str, label: str) -> None:
        """The button of this label."""
        some = f"[...document.querySelectorAll({selector!r})]"
        await self.page.js(f"{some}.find((one) => one.textContent.includes({label!r})).click()")

    async def idle(self) -> None:
        """By what the session tells: well before the next look without news."""
        await self.page.until("document.querySelector('#stop').hidden", HEARTBEAT / 2)


def alone(port: int) -> dict[str, str]:
    return {"TELEGRAM_BOT_TOKEN": "", "TURNKEEPER_PORT": str(port)}


@contextlib.asynccontextmanager
async def opened(folder: Path, language: str = "en") -> AsyncIterator[tuple[Rig, Tab, int]]:
    """A gateway with nothing but its page, the page, and the port they share."""
    port = free_port()
    async with living(folder) as rig:
        await rig.start(**alone(port))
        async with browse() as page:
            await page.speak(language)
            await page.look(1200, 860)
            await page.go(rig.link)
            await page.until("document.querySelector('#person')?.textContent.includes('owner')")
            await page.go(f"{rig.url}#c=c1")
            await page.until(LIVE)
            yield rig, Tab(page), port
            own = (rig.url, f"blob:{rig.url}", "data:", "about:")
            foreign = [url for url in page.requests if not url.startswith(own)]
            assert foreign == []


async def test_what_waits_elsewhere_stands_above_the_list_and_in_the_title(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        rig.model.script(Call("run_command", json.dumps({"command": "make deploy"})), Say("Ran"))
        await tab.write("Deploy")
        await tab.shows(".card.open pre", "make deploy")
        await tab.click("#new", "")
        await tab.shows("#waits a", "make deploy")
        await tab.page.until("document.title.startsWith('(1) ')")
        assert await tab.page.js("document.getElementById('menu').dataset.count") == "1"
        await tab.click("#waits a", "")
        await tab.shows(".card.open pre", "make deploy")
        await tab.click(".card.open button", "Approve once")
        await tab.shows("#log article.reply", "Ran")
        await tab.page.until("document.getElementById('waits').hidden")
        await tab.page.until("!document.title.startsWith('(')")


async def test_a_day_at_the_page(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        page = tab.page
        # send and stream
        rig.model.script(Slow(0.03, "Berlin is **2 degrees** and " + "clear " * 30 + "tonight"))
        await tab.write("How is the weather?")
        await tab.shows("#log .said", "How is the weather?")
        await tab.shows(".growing", "clear clear")
        await tab.shows("#log article.reply", "tonight")
        assert await tab.texts("#log article.reply strong") == ["2 degrees"]
        await tab.idle()
        assert await tab.texts(".growing") == []
        # tools
        rig.model.script(
            Halted(write("a.txt", "hello", text="I write the file now and look at it.")),
            Call("list_files"),
            Say("Written"),
        )
        await tab.write("Write a file")
        await tab.shows(".growing", "I write the file")
        await page.js("window.old = true")
        await page.call("Page.reload")
        await page.until("!window.old")
        await tab.shows(".growing", "I write the file")  # though no further word came
        rig.model.midway.set()
        await tab.shows("#log article.reply", "Written")
        assert await tab.texts(".line b") == ["Write a file:", "List files"]
        assert await tab.texts(".line .mark-of") == ["☑", "☑"]
        # an approval, with a reason for the denial
        command = json.dumps({"command": "echo ran > ran.txt"})
        rig.model.script(
            Call("run_command", command), Say("Not run"), Call("run_command", command), Say("Ran")
        )
        await tab.write("Run it")
        await tab.shows(".card.open pre", "echo ran > ran.txt")
        await page.click(".card.open .reason summary")
        await page.click(".card.open .reason textarea")
        await page.type("another time")
        await tab.click(".card.open button", "Deny")
        await tab.shows("#log article.reply", "Not run")
        await tab.shows(".card.denied .outcome", "another time")
        assert "another time" in rig.seen(role="tool")[-1]
        await tab.write("Run it now")
        await tab.shows(".card.open pre", "echo ran > ran.txt")
        assert not list(rig.home.glob("workspaces/*/ran.txt"))
        await tab.click(".card.open button", "Approve once")
        await tab.shows("#log article.reply", "Ran")
        await tab.shows(".card.approved .outcome", "Approved once by")
        assert list(rig.home.glob("workspaces/*/ran.txt"))
        # a choice and a form
        choice = json.dumps({"question": "Which way?", "options": ["Train", "Plane"]})
        form = json.dumps({"question": "Which day?"})
        rig.model.script(Call("ask_user", choice), Call("ask_user", form), Say("Booked"))
        await tab.write("Book it")
        await tab.shows(".card.choice", "Which way?")
        await tab.click(".card.choice button", "Plane")
        await tab.shows(".card.form.open", "Which day?")
        await page.click(".card.form.open textarea")
        await page.type("On Monday")
        await page.press("Enter", 13)
        await tab.shows("#log article.reply", "Booked")
        assert rig.seen(role="tool")[-2:] == ["Plane", "On Monday"]
        # a reload shows all of it again
        await tab.idle()
        before = await tab.texts("#log > *")
        assert len(before) > 10
        await page.call("Page.reload")
        await tab.shows("#log article.reply", "Booked")
        assert await tab.texts("#log > *") == before
        assert page.errors == []


async def test_stop_and_a_message_that_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        rig.model.script(Slow(0.02, "word " * 1000), Say("the second answer"))
        await tab.write("Count")
        await tab.shows(".growing", "word word")
        await tab.write("And then?")
        await tab.shows("#pending .said", "And then?")
        await tab.page.click("#stop")
        await tab.shows(".reply + .notice", "Stopped here.")
        await tab.shows("#log article.reply", "the second answer")
        await tab.idle()
        assert await tab.texts("#pending .said") == []
        assert rig.model.dropped == 1
        assert tab.page.errors == []


async def test_messages_during_a_turn_are_changed_withdrawn_steered_and_interrupt(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        page = tab.page
        # a message that waits is edited, another one withdrawn
        rig.model.script(Slow(0.02, "word " * 1000), Say("the second answer"))
        await tab.write("Count")
        await tab.shows(".growing", "word word")
        await tab.write("And tehn?")
        await tab.shows("#pending .later", "Pending")
        await tab.write("Never mind")
        await tab.shows("#pending .said", "Never mind")
        await page.js(HOLD)
        await page.click("#pending .later:nth-child(2) .link + .link")
        await page.until("document.querySelectorAll('#pending .later').length === 1", PATIENCE)
        await page.click("#pending .link")
        await page.until("document.activeElement.matches('#pending textarea')")
        await page.js("release()")  # its answer comes later than the news of it
        assert await page.js("document.activeElement.matches('#pending textarea')")
        await page.js("document.activeElement.select()")
        await page.type("And then?")
        await page.press("Enter", 13)
        await tab.shows("#pending .said", "And then?")
        await page.click("#stop")
        await tab.shows("#log article.reply", "the second answer")
        await tab.idle()
        assert [text.removeprefix("owner: ") for text in await tab.texts("#log .said")] == [
            "Count",
            "And then?",
        ]
        # interrupt: a newer message ends the turn
        await tab.write("/mode interrupt")
        await tab.shows("#log .notice", "stops me, and I answer that message")
        rig.model.script(Slow(0.02, "long " * 1000), Say("the newer answer"))
        await tab.write("Tell me everything")
        await tab.shows(".growing", "long long")
        await tab.write("Only the end")
        await tab.shows(".reply .note", "a newer message arrived")
        await tab.shows("#log article.reply", "the newer answer")
        await tab.idle()
        # steer: it joins the turn after its tool calls
        await tab.write("/mode steer")
        await tab.shows("#log .notice", "are taken into account at once")
        gate = rig.model.gate = asyncio.Event()
        rig.model.script(Calls([Call("list_files")]), Say("with a coat"))
        await tab.write("What do I pack?")
        await rig.model.wait_inflight(1, PATIENCE)
        await tab.write("It is cold")
        await tab.shows("#pending .later", "It is cold")
        gate.set()
        rig.model.gate = None
        await tab.shows("#log article.reply", "with a coat")
        await tab.idle()
        assert any("It is cold" in one for one in rig.seen(role="user"))
        said = await tab.texts("#log .said")
        assert said[-2:] == ["owner: What do I pack?", "owner: It is cold"]
        assert await tab.texts("#pending .said") == []
        assert page.errors == []


async def test_two_questions_wait_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        command = json.dumps({"command": "echo one > one.txt"})
        choice = json.dumps({"question": "Which way?", "options": ["Train", "Plane"]})
        rig.model.script(Call("run_command", command), Call("ask_user", choice))
        await tab.write("Run the first")
        await tab.shows(".card.approval.open", "echo one")
        await tab.write("Ask me something")
        await tab.shows(".card.choice.open", "Which way?")
        assert len(await tab.texts(".card.open")) == 2
        rig.model.script(Say("by plane"))
        await tab.click(".card.choice.open button", "Plane")
        await tab.shows("#log article.reply", "by plane")
        assert len(await tab.texts(".card.open")) == 1
        rig.model.script(Say("ran it"))
        await tab.click(".card.open button", "Approve once")
        await tab.shows("#log article.reply", "ran it")
        await tab.idle()
        assert list(rig.home.glob("workspaces/*/one.txt"))
        assert tab.page.errors == []


async def test_an_upload_a_long_answer_and_the_search(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        page = tab.page
        await page.js(
            "(() => { const all = new DataTransfer(); all.items.add(new File(['hello'], 'a.txt'));"
            "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: all, bubbles: true,"
            "cancelable: true})); })()"
        )
        await tab.shows("#files li.ready", "a.txt")
        long = "\n\n".join(f"Paragraph {n} of it." for n in range(1500)) + "\n\nThe very end."
        rig.model.script(Say(long))
        await tab.write("Read the file")
        await tab.shows("#log article.reply", "The very end.")
        await tab.idle()
        assert "incoming/a.txt" in rig.seen(role="user")[-1]
        (kept,) = rig.home.glob("workspaces/*/incoming/a.txt")
        assert kept.read_text() == "hello"
        assert len(await tab.texts("#log article.reply p")) == 1501
        # it is found by its words from another conversation
        await page.click("#new")
        await page.until("location.hash !== '#c=c1'")
        await page.click("#search")
        await page.type("PARAGRAPH 1499")
        await tab.shows("#list a", "Read the file")
        await page.click("#list a")
        await tab.shows("#log article.reply", "The very end.")
        assert page.errors == []


async def test_the_gateway_speaks_the_language_of_the_page(tmp_path: Path) -> None:
    async with opened(tmp_path, "de-AT") as (rig, tab, _):
        await tab.page.click("#text")
        await tab.page.type("/")
        await tab.shows("#palette", "/permissions")
        assert "/start" not in await tab.texts("#palette b")
        await tab.page.type("mode steer")
        await tab.page.press("Enter", 13)
        await tab.shows("#log .notice", "beachte ich sofort")
        rig.model.script(Call("run_command", '{"command": "echo ran > ran.txt"}'), Say("Erledigt"))
        await tab.write("Bitte ausführen")
        await tab.shows(".card.open h2", "Darf das laufen?")
        assert (await tab.texts(".card.open .buttons button"))[0] == "Einmal erlauben"
        await tab.click(".card.open .buttons button", "Einmal erlauben")
        await tab.shows(".card.approved .outcome", "Einmal erlaubt von")
        await tab.shows("#log article.reply", "Erledigt")
        await tab.idle()
        assert tab.page.errors == []


async def test_a_restart_of_the_gateway(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, port):
        page = tab.page
        rig.model.script(Call("run_command", '{"command": "echo ran > ran.txt"}'), Say("Ran"))
        await tab.write("Run it")
        await tab.shows(".card.open pre", "echo ran")
        await rig.crash()
        await tab.shows("#banner", "Connection lost")
        await rig.start(**alone(port))
        await page.until("document.querySelector('#banner').hidden", PATIENCE)
        assert len(await tab.texts(".card.open")) == 1, "what waited waits, once"
        await tab.click(".card.open button", "Approve once")
        await tab.shows("#log article.reply", "Ran")
        assert list(rig.home.glob("workspaces/*/ran.txt"))
        # in the middle of an answer
        gate = rig.model.gate = asyncio.Event()
        await tab.write("hello")
        await rig.model.wait_inflight(1, PATIENCE)
        await rig.crash()
        gate.set()
        rig.model.gate = None
        await rig.start(**alone(port))
        await tab.shows("#log article.reply", "ack hello")
        await tab.idle()
        assert len(await tab.texts("#log .said")) == 2
        assert len(await tab.texts("#log article.reply")) == 2
        # a well meant end and start: the stream goes on where it was
        rig.model.script(Say("after it"))
        await rig.stop()
        await tab.shows("#banner", "Reconnecting")
        await rig.start(**alone(port))
        await page.until("document.querySelector('#banner').hidden", PATIENCE)
        await tab.write("and now")
        await tab.shows("#log article.reply", "after it")
        assert len(await tab.texts("#log article.reply")) == 3


async def test_what_a_hostile_model_says_does_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        evil = json.dumps({"question": XSS, "options": [XSS, "b"]})
        rig.model.script(
            Call("write_file", json.dumps({"path": "x<img src=x onerror='window.__x=5'>.txt",
                                           "content": XSS}), text=XSS),
            Call("ask_user", evil), Say(XSS, words=3),
        )  # fmt: skip
        await tab.write(XSS.replace("\n", " "))
        await tab.shows(".card.choice", "<script>")
        await tab.page.js("document.querySelector('.card.choice button').click()")
        await tab.shows("#log article.reply strong", "end")
        await tab.idle()
        page = tab.page
        assert await page.js("typeof window.__x") == "undefined"
        evil_nodes = "#main img, #main script, #main iframe, #log svg:not(.acts svg)"
        assert await page.js(f"document.querySelectorAll('{evil_nodes}').length") == 0
        hrefs = await page.js("[...document.querySelectorAll('#log a')].map((one) => one.href)")
        seen = {"https://evil.invalid/p.png", "https://evil.invalid/"}  # both are to be read there
        assert set(hrefs) <= seen  # type: ignore[call-overload]
        assert page.errors == []


async def test_other_sites_and_names_are_refused(tmp_path: Path) -> None:
    async with living(tmp_path) as rig:
        await rig.start(**alone(0))
        own = rig.url.rstrip("/")
        async with ClientSession() as http:
            signed = {"Cookie": "=".join(await rig.sign_in())}
            url = f"{rig.url}api/conversations/one/messages"

            async def status(method: str = "POST", **headers: str) -> int:
                body = {"json": {"text": "hello"}} if method == "POST" else {}
                at = url if method == "POST" else f"{rig.url}api/conversations"
                async with http.request(method, at, headers=signed | headers, **body) as answer:
                    return answer.status

            for origin in ("https://evil.invalid", "null", f"{own}.evil.invalid", "file://"):
                assert await status(Origin=origin) == 403, origin
                assert await status("GET", Origin=origin) == 403, origin
            for host in ("evil.invalid", f"evil.invalid:{own.rpartition(':')[2]}", "127.0.0.1:1"):
                assert await status(Host=host, Origin=f"http://{host}") == 403, host
                assert await status("GET", Host=host) == 403, host
            assert await status() == 403, "a POST that does not say where it comes from"
            assert rig.model.requests == []
            assert await status(Origin=own) == 202
        await rig.until(lambda: rig.model.requests)
        await rig.quiet()


async def test_an_answer_is_asked_again_and_a_message_in_other_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        page = tab.page
        rig.model.script(write("a.txt", "bad"), Say("A **bad** poem."))
        await tab.write("Write a poem")
        await tab.shows("#log > article.reply", "bad")
        await tab.idle()
        (made,) = rig.home.glob("workspaces/*/a.txt")
        await page.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
        await page.click("#log > .reply .take")
        await page.until(
            "navigator.clipboard.readText().then((t) => t === 'A **bad** poem.', () => false)"
        )
        rig.model.script(Say("A good poem."))
        await page.click("#log > .reply .again")
        await tab.shows("#log > article.reply", "A good poem.")
        await tab.idle()
        assert not made.exists(), "what the first one wrote went with it"
        await tab.reads("#log > .said", "owner: Write a poem")
        await tab.reads(".gone > summary", "Replaced: Write a poem")
        assert "bad" in str(await tab.texts(".gone article.reply"))
        rig.model.script(Say("A short one."))
        await page.click("#log > .said .edit_asked")
        await page.until("document.activeElement.value === 'Write a poem'")
        await page.js("document.activeElement.select()")
        await page.type("Write a short poem")
        await tab.click(".rewrite button", "Send")
        await tab.shows("#log > article.reply", "A short one.")
        await tab.idle()
        await tab.reads("#log > .said", "owner: Write a short poem")
        await page.until("document.querySelectorAll('.gone').length === 2")
        assert rig.seen(role="user") == ["Write a short poem"]
        before = await tab.texts("#log > *")
        await page.call("Page.reload")
        await page.until(LIVE)
        await tab.shows("#log > article.reply", "A short one.")
        assert await tab.texts("#log > *") == before
        rig.model.script(Fail(401))
        await tab.write("And a song")
        await tab.shows("#log > .notice.error", "rejected the API key")
        rig.model.script(Say("La la."))
        await tab.click(".notice button", "Retry")
        await tab.shows("#log > article.reply", "La la.")
        await tab.idle()
        assert await tab.texts("#log > .notice") == [], "it is folded away with its turn"
        assert page.errors == []


async def test_a_picture_that_is_sent_is_seen(tmp_path: Path) -> None:
    data = base64.b64encode(PNG).decode()
    async with opened(tmp_path) as (rig, tab, _):
        await tab.page.js(
            f"(() => {{ const all = new DataTransfer(), data = Uint8Array.from(atob({data!r}), "
            "(one) => one.charCodeAt(0)); all.items.add(new File([data], 'dot.png', "
            "{ type: 'image/png' })); const field = document.querySelector('#file'); "
            "field.files = all.files; field.dispatchEvent(new Event('change')); })()"
        )
        await tab.shows("#files li.ready", "dot.png")
        rig.model.script(Say("A dot."))
        await tab.write("What is it?")
        await tab.shows("#log article.reply", "A dot.")
        image = "document.querySelector('#log .said .sent img')"
        await tab.page.until(f"{image}?.complete && {image}.naturalWidth > 0")
        (said,) = await tab.texts("#log .said")
        assert "What is it?" in said and "[" not in said
        assert tab.page.errors == []


async def test_the_header_names_the_model_that_answers(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        rig.model.models = ["fake-model", "fake-large"]
        assert await tab.texts("#model") == ["openai/fake-model"]
        await tab.write("/model openai/fake-large")
        await tab.shows("#model", "openai/fake-large")
        said = "document.querySelector('#model').ariaLabel"
        assert await tab.page.js(said) == "Model: openai/fake-large"
        await tab.click("#new", "")
        await tab.reads("#model", "openai/fake-model")
        await tab.page.go(f"{rig.url}#c=c1")
        await tab.shows("#model", "openai/fake-large")


async def test_a_conversation_is_named_and_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path) as (rig, tab, _):
        page = tab.page
        assert await page.js("document.querySelector('#manage').hidden")
        rig.model.script(write("note.txt", "kept?"), Say("Written."))
        await tab.write("Write a note")
        await tab.shows("#log article.reply, .card", "")
        if await tab.texts(".card.approval button"):
            await page.click(".card.approval .buttons button")
        await tab.shows("#log article.reply", "Written.")
        await tab.idle()
        await page.click("#rename")
        await page.js("document.querySelector('#title input').value = 'My notes'")
        await page.js(
            "document.querySelector('#title input').dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))"
        )
        await tab.shows("#title", "My notes")
        await tab.shows("#list a", "My notes")
        await tab.idle()
        assert list(rig.home.glob("workspaces/*/note.txt"))
        await page.click("#discard")
        await tab.shows("#toast", "Press again")
        await page.click("#discard")
        await page.until("!location.hash.endsWith('c=c1')", PATIENCE)
        await page.until("!document.querySelector('#list').textContent.includes('My notes')")
        assert not list(rig.home.glob("workspaces/*/note.txt")), "its files went along"
        await page.go(f"{rig.url}#c=c1")
        await page.until("!document.querySelector('#empty').hidden", PATIENCE)
        assert await tab.texts("#log article.reply") == []
        assert tab.page.errors == []


async def test_what_has_a_name_can_be_renamed_whatever_came_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of a short turn may be read before its messages are, and not change any more."""

    async def read_standing(backend: GatewayBackend, conversation: str) -> Standing:
        return Standing(title="Always", state="idle", waiting=(), model="m")

    monkeypatch.setattr(GatewayBackend, "read_standing", read_standing)
    async with opened(tmp_path) as (_, tab, _):
        await tab.write("hello")
        await tab.shows("#log article.reply", "ack hello")
        await tab.page.until("!document.getElementById('manage').hidden")


@pytest.mark.pick("a conversation is deleted", 1)
async def test_one_press_deletes_nothing_wherever_it_is(tmp_path: Path) -> None:
    """A press here and one in another conversation are no second press."""
    async with opened(tmp_path) as (rig, tab, _):
        for name in ("c1", "c2"):
            await tab.page.go(f"{rig.url}#c={name}")
            await tab.page.until(LIVE)
            await tab.write(f"I am in {name} now.")
            await tab.shows("#log article.reply", f"ack I am in {name}")
            await rig.quiet()
        await tab.page.click("#discard")
        await tab.shows("#toast", "Press again")
        await tab.page.js("document.querySelector('#toast').textContent = ''")
        await tab.click("#list a", "in c1")
        await tab.shows("#log article.reply", "ack I am in c1")
        await tab.page.click("#discard")
        await tab.shows("#toast", "Press again")
        await tab.page.click("#discard")
        await tab.page.until("!document.querySelector('#list').textContent.includes('in c1')")
        assert "in c2" in "".join(await tab.texts("#list a"))
        assert tab.page.errors == []


@pytest.mark.pick("a conversation is deleted", 1)
async def test_what_is_deleted_elsewhere_is_not_shown_any_more(tmp_path: Path) -> None:
    """Another tab deletes what this one shows; what is written here then is answered here."""
    async with opened(tmp_path) as (rig, tab, _):
        for word in ("this", "that"):
            await tab.write(f"Do you remember {word}?")
            await tab.shows("#log article.reply", f"ack Do you remember {word}")
            await rig.quiet()
        gone = "fetch('/api/conversations/c1', {method: 'DELETE'}).then((one) => one.status)"
        await tab.page.js(gone)
        await tab.shows("#toast", "This conversation was deleted.")
        await tab.page.until("!document.querySelector('#empty').hidden")
        assert await tab.texts("#log > *") == []
        await tab.page.until(LIVE)
        await tab.write("And what now?")
        await tab.shows("#log article.reply", "ack And what now?")
        assert len(await tab.texts("#log article.reply")) == 1
        assert tab.page.errors == []
