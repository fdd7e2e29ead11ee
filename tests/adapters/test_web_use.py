"""Using the page: by keyboard, by files, in German, over reloads; and what hostile views do."""

import base64
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from adapters.web.words import WORDS
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    StopPressed,
    read_conversation,
)
from gateway.texts import say
from gateway.views import (
    Activity,
    Media,
    MediaFile,
    Notice,
    PlanStep,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
)
from tests.adapters.web_rig import GIVE_FILES, chart, fits, media, plan, press, value
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.web_server import LIVE, Room, approval, opened
from tests.sampling import dice

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
    pytest.mark.pick("the page in use", 7),
]
XSS = """<script>window.__x=1</script><img src=x onerror="window.__x=2">
![p](https://evil.invalid/p.png) [a](javascript:window.__x=3) <svg onload="window.__x=4">"""


async def test_the_browsers_time_zone_goes_with_what_is_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        for zone in ("Asia/Tokyo", "America/Lima"):  # a person travels
            await room.page.call("Emulation.setTimezoneOverride", timezoneId=zone)
            await room.write("hello")
            said = await room.next()
            assert isinstance(said, MessageReceived) and said.sender.zone == zone


async def test_a_private_word_reaches_the_tab_that_pressed_alone(tmp_path: Path) -> None:
    chance = dice("presses of tabs")
    async with opened(tmp_path) as room:
        where = read_conversation(room.where)
        await room.page.js(
            "window.__told = []; new MutationObserver(() => window.__told.push("
            "document.querySelector('#toast').textContent)).observe("
            "document.querySelector('#toast'), { childList: true })"
        )
        own = list[str]()
        for n in range(12):
            key = f"of another tab {n}"
            if chance.random() < 0.5 or n == 11:
                await room.page.click("#model")
                given = await room.next()
                assert isinstance(given, CommandGiven)
                key = given.message
                own.append(f"word {n}.")
            await room.server.adapter.tell(where, key, f"word {n}.")
        await room.shows("#toast", "word 11.")
        told = cast(list[str], await room.page.js("window.__told"))
        assert [one for one in told if one] == own


async def test_the_models_are_one_press_away(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        await room.page.type("half a thought")
        await room.page.click("#model")
        given = await room.next()
        assert isinstance(given, CommandGiven) and (given.name, given.arguments) == ("model", "")
        assert await value(room) == "half a thought"
        await room.page.look(390, 844)
        width = "document.querySelector('#model').getBoundingClientRect().width"
        assert await room.page.js(width) == 44, "on a phone too"


async def test_an_example_is_sent_by_one_press_and_leaves_a_draft_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, look=(390, 844, "light")) as room:
        for name in ("try_plan", "try_approval", "try_job"):
            await room.page.until("!document.querySelector('#empty').hidden")
            await fits(room)
            await room.page.click("#text")
            await room.page.type("half a thought")
            await room.page.click(f"[data-say='{WORDS.say(name)}']")
            said = await room.next()
            assert isinstance(said, MessageReceived) and said.text == WORDS.say(name)
            assert await value(room) == "half a thought"
            await room.page.click("#menu")
            await room.page.click("#new")


async def test_a_command_in_a_text_is_a_button(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, ReplyView(text=say("memory_usage")), "reply")
        await room.shows(".reply", "Write /memory, /memory forget")
        assert await room.texts(".reply .html button") == [], "a model makes none"
        backend.show(room.where, Notice(text=say("memory_usage")), "notice")
        await room.shows(".notice .command", "/memory")
        written = ["/memory", "/memory forget", "/memory clear", "/memory off", "/memory on"]
        assert await room.texts(".notice .command") == written
        await page.click("#text")
        await page.type("the cat")
        await page.click(".notice .command:nth-of-type(4)")
        given = await room.next()
        assert isinstance(given, CommandGiven)
        assert (given.name, given.arguments) == ("memory", "off")
        assert await value(room) == "the cat", "what one writes stays"
        await page.click(".notice .command:nth-of-type(2)")
        await page.until("document.activeElement.id === 'text'")
        assert await value(room) == "/memory forget the cat"
        await page.click(".notice .command:nth-of-type(3)")
        assert await value(room) == "/memory clear "
        await press(room, "Enter")
        given = await room.next()
        assert isinstance(given, CommandGiven) and given.arguments == "clear"


async def test_commands_are_chosen_by_keyboard_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page = room.page
        await page.until("document.activeElement.id === 'text'")
        await page.type("/mo")
        await room.shows("#palette", "/model")
        assert await room.texts("#palette b") == ["/mode", "/model"]
        await press(room, "ArrowDown")
        selected = "document.querySelector('#palette [aria-selected=true]')"
        assert await page.js(f"{selected}.textContent.startsWith('/model')")
        active = "document.querySelector('#text').getAttribute('aria-activedescendant')"
        assert await page.js(active) == await page.js(f"{selected}.id") == "command-model"
        await press(room, "ArrowDown", "Enter")
        assert await value(room) == "/mode "
        await room.shows("#palette", "/mode queue")
        assert await page.js(f"{selected} === null"), "Enter gives the command as it is"
        await page.type("s")
        await page.until("document.querySelectorAll('#palette [role=option]').length === 1")
        assert await page.js(active) == "command-mode-steer"
        await press(room, "Enter")
        assert await value(room) == "/mode steer "
        await page.until("document.querySelector('#palette').hidden")
        await press(room, "Enter")
        given = await room.next()
        assert isinstance(given, CommandGiven)
        assert (given.name, given.arguments) == ("mode", "steer")
        await page.type("/st")
        await room.shows("#palette", "/stop")
        await press(room, "Escape")
        await page.until("document.querySelector('#palette').hidden")
        assert await value(room) == "/st"
        await page.type("OP")
        await room.shows("#palette", "/stop")
        await press(room, "Enter")  # it is whole: nothing is left to complete
        stop = await room.next()
        assert isinstance(stop, CommandGiven) and stop.name.lower() == "stop"


async def test_a_command_that_is_written_in_full_width_is_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        await room.page.until("document.activeElement.id === 'text'")
        for text, arguments in (("／ｍｏｄｅ\u3000queue", "queue"), ("/mode\u00a0steer", "steer")):
            await room.page.type(text)
            await press(room, "Escape", "Enter")
            given = await room.next()
            assert isinstance(given, CommandGiven)
            assert (given.name, given.arguments) == ("mode", arguments)


async def test_the_conversation_and_the_draft_outlive_a_reload(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page = room.page
        await page.type("half a thought")
        await page.click("#new")
        await page.until("location.hash !== '#c=c1'")
        await page.until("document.querySelector('#text').value === ''")
        await page.js("history.back()")
        await page.until("document.querySelector('#text').value === 'half a thought'")
        await page.go(f"{room.server.url}/")
        await page.until("location.hash === '#c=c1'")
        await page.until(LIVE)
        assert await value(room) == "half a thought"
        await page.click("#text")
        await press(room, "Enter")
        assert isinstance(await room.next(), MessageReceived)
        await page.call("Page.reload")
        await page.until(LIVE)
        assert await value(room) == ""


async def test_a_chosen_appearance_is_remembered(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page, ground = room.page, "getComputedStyle(document.body).backgroundColor"
        light = await page.js(ground)
        await page.click("#theme")
        await room.shows("#theme", "light")
        await page.click("#theme")
        await room.shows("#theme", "dark")
        dark = await page.js(ground)
        assert dark != light
        await page.call("Page.reload")
        await page.until(LIVE)
        assert await page.js(ground) == dark
        await page.click("#theme")
        await room.shows("#theme", "system")
        assert await page.js(ground) == light


async def test_search_finds_by_words_and_keyboard(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.server.address("c2"), SaidView(name="o", text="A parcel"), "said")
        backend.show(room.server.address("c2"), ReplyView(text="It waits in Cologne"), "reply")
        backend.show(room.where, SaidView(name="o", text="The weather"), "said")
        backend.stand(room.where, "running")
        await room.shows("#list", "The weather")
        await page.click("#search")
        await page.type("cologne")
        await page.until("document.querySelectorAll('#list a').length === 1")
        await press(room, "ArrowDown", "Enter")
        await room.shows("#log", "It waits in Cologne")
        await page.click("#search")
        await page.type("xyz")
        await room.shows("#none", "Nothing found")
        await press(room, "Escape")
        await page.until("document.querySelectorAll('#list a').length === 2")


async def test_search_shows_the_line_and_leads_to_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page, there = room.server.backend, room.page, room.server.address("c2")
        backend.show(there, SaidView(name="o", text="A parcel"), "said")
        line = f"{'far ' * 40}it waits in **Cologne** <b>and</b> in (Bonn), Cologne again. {'so ' * 60}"
        backend.show(there, ReplyView(text=f"First line\n\n{line}"), "reply")
        for n in range(150):
            backend.show(there, ReplyView(text=f"{n}\n\nsomething else"), f"reply{n}")
        backend.show(room.where, SaidView(name="o", text="The weather"), "said")
        await page.click("#search")
        await page.type("cologne (bonn")
        await page.until("document.querySelectorAll('#list a').length === 1")
        await room.shows(
            "#list small", "it waits in **Cologne** <b>and</b> in (Bonn), Cologne again"
        )
        marks = "[...document.querySelectorAll('#list mark')].map((one) => one.textContent)"
        assert await page.js(marks) == ["Cologne", "Bonn", "Cologne"]
        assert await page.js("document.querySelector('#list small').textContent.length") <= 142
        await fits(room)
        await room.shoot("page-search")
        await press(room, "ArrowDown", "Enter")
        await room.shows(".found", "it waits in Cologne")
        top = "document.querySelector('.found').getBoundingClientRect().top"
        assert 0 < cast(float, await page.js(top)) < 860


async def test_a_waiting_message_is_edited_and_withdrawn(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page = room.page
        room.server.backend.stand(room.where, "running")
        await room.write("frist")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        await room.shows("#pending .later", "Pending")
        await page.click("#pending .link")
        await page.until("document.activeElement.matches('#pending textarea')")
        await page.js("document.activeElement.select()")
        await page.type("first")
        await press(room, "Enter")
        edit = await room.next()
        assert isinstance(edit, MessageEdited)
        assert (edit.message, edit.text) == (said.message, "first")
        await room.shows("#pending .said", "first")
        await page.click("#pending .link + .link")
        deleted = await room.next()
        assert isinstance(deleted, MessageDeleted)
        await page.until("!document.querySelector('#pending').childElementCount")


async def test_a_waiting_messages_buttons_stay_while_other_things_are_drawn(tmp_path: Path) -> None:
    """One that were drawn anew between its press and its release would not be pressed."""
    async with opened(tmp_path) as room:
        backend = room.server.backend
        backend.stand(room.where, "running")
        await room.write("first")
        assert isinstance(await room.next(), MessageReceived)
        await room.shows("#pending .later", "Pending")
        await room.page.js("document.querySelector('#pending .link').dataset.pressed = 'yes'")
        backend.show(room.where, ReportView(title="Every day", text="Fine", note="Job 3"), "report")
        await room.shows(".report", "Fine")
        assert await room.texts("#pending [data-pressed]") == ["Edit"]


async def test_plans_pictures_and_reports_are_drawn(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, plan(), "plan")
        backend.show(room.where, media(room), "media")
        backend.show(
            room.where, ReportView(title="Every day", text="**Fine**", note="Job 3"), "report"
        )
        await room.shows(".report strong", "Fine")
        assert await room.texts(".plan .mark-of") == ["☑", "☑", "◐", "☐", "–"]
        assert await page.js("document.querySelector('.plan progress').value") == 2
        await page.until("document.querySelector('.media img').naturalWidth === 360")
        assert await page.js("document.querySelector('.media img').alt") == "Visitors by day.png"
        assert await room.texts(".media .download .name") == ["visitors.csv"]
        size = "fetch(document.querySelector('.download').href).then((one) => one.text())"
        assert await page.js(size) == "a,b\n1,2\n"
        await page.click(".plan .buttons button:nth-child(1)")
        pressed = await room.next()
        assert isinstance(pressed, ButtonPressed)
        assert pressed.token == "q:p:skip"


async def test_a_long_call_shows_head_and_tail_and_all_of_it_in_details(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        from msgspec.structs import replace

        command = "\\n".join(f"line {n}" for n in range(40))
        long = replace(approval().proposals[0], arguments=f'{{"command": "{command}"}}')
        card = replace(approval(), proposals=(long,))
        room.server.backend.show(room.where, card, "ask")
        await room.shows(".card", "18 more lines")
        shown, _ = await room.texts(".card pre")
        assert shown.startswith("line 0") and shown.endswith("line 39")
        await room.page.click(".card .proposal summary")
        room.server.backend.show(room.where, replace(card, rule="only this"), "ask")
        await room.shows(".card", "only this")
        await room.page.until("document.querySelector('.card .proposal details').open")
        assert "line 20" in (await room.texts(".card pre"))[1]


async def test_files_are_dropped_pasted_removed_and_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page = room.page
        await page.js(f"{GIVE_FILES}('dragenter', [['a.txt', 3]])")
        await page.until("!document.querySelector('#drop').hidden")
        await page.js(f"{GIVE_FILES}('drop', [['a.txt', 3], ['b.txt', 4]])")
        await page.until("document.querySelector('#drop').hidden")
        await page.until("document.querySelectorAll('#files li.ready').length === 2")
        await page.js(f"{GIVE_FILES}('paste', [['shot.png', 5]])")
        await page.until("document.querySelectorAll('#files li.ready').length === 3")
        await page.js(f"{GIVE_FILES}('drop', [['huge.bin', 26 * 1024 * 1024]])")
        await room.shows("#toast", "huge.bin is larger than 25 MB")
        await page.js(f"{GIVE_FILES}('drop', [['none.txt', 0]])")
        await room.shows("#toast", "none.txt is empty")
        await page.click("#files li:nth-child(2) button")
        assert await room.texts("#files .name") == ["a.txt", "shot.png"]
        await page.click("#text")
        await press(room, "Enter")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert [one.name for one in said.attachments] == ["a.txt", "shot.png"]
        assert await room.texts("#files li") == []
        await room.shows("#pending .said", "shot.png")


async def test_a_picture_is_seen_before_it_is_sent(tmp_path: Path) -> None:
    async with opened(tmp_path, look=(390, 844, "dark")) as room:
        png = base64.b64encode(chart()).decode()
        paste = (
            f"(() => {{ const bytes = Uint8Array.from(atob('{png}'), (one) => one.charCodeAt(0));"
            "const all = new DataTransfer();"
            "all.items.add(new File([bytes], 'chart.png', {type: 'image/png'}));"
            "document.querySelector('#text').dispatchEvent(new ClipboardEvent('paste',"
            "{clipboardData: all, bubbles: true, cancelable: true})); })()"
        )
        await room.page.js(paste)
        await room.page.until("document.querySelector('#files img')?.naturalWidth === 360")
        await room.page.until("document.querySelectorAll('#files li.ready').length === 1")
        await fits(room)
        await room.page.click("#text")
        await press(room, "Enter")
        assert isinstance(await room.next(), MessageReceived)
        assert await room.page.js("document.querySelectorAll('#files img').length") == 0


async def test_in_german_every_word_is(tmp_path: Path) -> None:
    async with opened(tmp_path, language="de") as room:
        backend, page = room.server.backend, room.page
        assert await page.js("document.documentElement.lang") == "de"
        await room.shows("#empty", "Was kann ich für Sie tun?")
        backend.show(room.where, approval(), "ask")
        await room.shows(".card h2", "Darf das laufen?")
        await room.shows(".card .risk", "hohes Risiko")
        file = MediaFile(ref="o1/a.md", name="a.md", mime="text/markdown", size=449)
        backend.show(room.where, Media(files=(file,)), "media")
        await room.shows(".download small", "449 Byte")
        backend.stand(room.where, "waiting")
        await room.shows("#state", "Wartet auf Sie")
        await room.write("hallo")
        said = await room.next()
        assert isinstance(said, MessageReceived)
        assert said.sender.language == "de"


async def test_hostile_plans_files_and_titles_do_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.room(room.where).title = XSS
        step = PlanStep(id=XSS, text=XSS, note=XSS)
        backend.show(room.where, PlanView(title=XSS, steps=(step,), outcome=XSS), "plan")
        files = tuple(
            MediaFile(ref=ref, name=XSS, mime=mime, size=449)
            for ref, mime in (
                ("../../x", "text/html"),
                ("javascript:1", XSS),
                ("//evil", "image/png"),
            )
        )
        backend.show(room.where, Media(files=files, caption=XSS), "media")
        backend.show(room.where, ReportView(title=XSS, text=XSS, note=XSS), "report")
        await room.shows(".report", "<script>")
        await room.shows(".download small", "449 bytes")
        await room.shows("#title", "<script>")
        await room.shows("#list", "<script>")
        assert await page.js("typeof window.__x") == "undefined"
        code = (
            "[...document.querySelectorAll('#log a, #log img')].map((one) => one.href || one.src)"
        )
        found = await page.js(code)
        assert isinstance(found, list)
        own = f"{room.server.url}/api/conversations/c1/files/"
        found = [url for url in found if url]
        assert all(url.startswith((own, "https://evil.invalid/p.png")) for url in found), found
        assert len([url for url in found if url.startswith(own)]) == 1
        page.errors.clear()  # the picture that is none


async def test_a_finished_answer_is_read_out_and_a_growing_one_is_not(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.stand(room.where, "running")
        backend.grow(room.where, "one")
        await room.shows(".growing", "one")
        live = "document.querySelector('.growing').getAttribute('aria-live')"
        assert await page.js(live) == "off"
        await page.js(
            "window.said = []; new MutationObserver((all) => all.forEach((one) => one.addedNodes"
            ".forEach((node) => said.push(node.className)))).observe(document.querySelector('#log'),"
            " {childList: true})"
        )
        backend.show(room.where, ReplyView(text="one two"), "reply")
        await room.shows("article.reply", "one two")
        assert await page.js("said") == ["reply"]
        assert await page.js("document.querySelector('#log').getAttribute('aria-live')") == "polite"


async def test_what_a_command_writes_is_seen_while_it_runs(tmp_path: Path) -> None:
    """As text, its end only, also when another line is added; then its line holds the whole."""

    def lines(*states: str, output: str = "") -> Activity:
        return Activity(
            lines=tuple(
                ToolLine(call_id=f"c{n}", tool="bash", summary="make", state=state, output=output)  # type: ignore[arg-type]
                for n, state in enumerate(states, 1)
            )
        )

    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.stand(room.where, "running")
        backend.show(room.where, lines("running"), "activity")
        await room.shows(".activity li.running", "make")
        backend.print(room.where, "c1", "x" * 5_000 + "\n")
        backend.print(room.where, "c1", XSS)
        await room.shows(".live-out", "evil.invalid")
        written = await page.js("document.querySelector('.live-out').textContent")
        assert isinstance(written, str) and len(written) == 2_000 and written.endswith(XSS)
        assert await page.js("window.__x === undefined") is True
        backend.show(room.where, lines("running", "running"), "activity")
        await room.shows(".activity li:nth-child(2)", "make")
        assert await page.js("document.querySelectorAll('.live-out').length") == 1
        backend.print(room.where, "none", "of nobody")
        backend.show(room.where, lines("done", "running", output="all of it"), "activity")
        await room.shows(".activity li.done", "make")
        assert await page.js("document.querySelectorAll('.live-out').length") == 0


# ---- keys ------------------------------------------------------------------------------------


FOCUS = "document.activeElement"


async def leave_field(room: Room) -> None:
    await room.page.js("document.activeElement.blur()")


@pytest.mark.parametrize(("key", "code", "token"), [("a", 65, "once"), ("d", 68, "deny")])
async def test_a_and_d_decide_the_only_card_that_waits(
    tmp_path: Path, key: str, code: int, token: str
) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, approval(), "ask")
        await room.shows(".card.open", "rm -r build/")
        await page.click("#text")
        await page.type(key)  # whoever types decides nothing
        assert await value(room) == key
        await leave_field(room)
        await page.press(key, code)
        press = await room.next()
        assert isinstance(press, ButtonPressed) and press.token == f"q:a1:{token}"
        backend.show(room.where, approval("approved"), "ask")
        await room.shows(".card.approved", "Approved once by owner")
        await page.until(f"{FOCUS}.matches('.card.approved summary')")  # where it was


async def test_the_keys_that_decide_can_be_switched_off(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, approval(), "ask")
        await room.shows(".card.open", "rm -r build/")
        await page.click("#keys")
        await room.shows("#keys", "off")
        await page.call("Page.reload")
        await page.until(LIVE)
        await room.shows(".card.open", "rm -r build/")
        await leave_field(room)
        await page.press("a", 65)
        await page.click("#keys")
        await room.shows("#keys", "on")
        await leave_field(room)
        await page.press("d", 68)
        press = await room.next()
        assert isinstance(press, ButtonPressed) and press.token == "q:a1:deny"


async def test_of_several_cards_the_one_in_focus_is_decided(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        for name in ("a1", "a2"):
            card = approval()
            buttons = tuple(
                replace(one, token=one.token.replace("a1", name)) for one in card.buttons
            )
            backend.show(room.where, replace(card, question=name, buttons=buttons), name)
        await page.until("document.querySelectorAll('.card.open').length === 2")
        await leave_field(room)
        await page.press("a", 65)  # which one?
        await page.js("document.querySelectorAll('.card.open .reason summary')[1].focus()")
        await page.press("a", 65)
        press = await room.next()
        assert isinstance(press, ButtonPressed) and press.token == "q:a2:once"


async def test_a_refused_press_leaves_the_focus_on_its_button(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, approval(), "ask")
        await room.shows(".card.open", "rm -r build/")
        await page.js("document.querySelector('.card .good').focus()")
        await page.press("Enter", 13)
        press = await room.next()
        assert isinstance(press, ButtonPressed)
        backend.show(room.where, replace(approval(), rule="Just this once"), "ask")
        await room.shows(".card.open", "Just this once")
        await page.until(f"{FOCUS}.matches('.card .good')")


async def test_escape_closes_a_note(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        room.server.backend.show(room.where, approval(), "ask")
        await room.shows(".card.open", "rm -r build/")
        await room.page.click(".card .reason summary")
        await room.page.click(".card .reason textarea")
        await press(room, "Escape")
        await room.page.until("!document.querySelector('.card .reason details').open")
        await room.page.until(f"{FOCUS}.matches('.card .reason summary')")


async def test_escape_in_the_empty_field_stops_what_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        await page.click("#text")
        backend.stand(room.where, "waiting")
        await page.until("document.querySelector('#log').dataset.state === 'waiting'")
        await press(room, "Escape")  # what waits for a decision is withdrawn by no slip
        backend.stand(room.where, "running")
        await page.until("document.querySelector('#log').dataset.state === 'running'")
        await page.type("/x")
        await press(room, "Escape")  # nor is anything stopped while somebody writes
        await page.js("document.querySelector('#text').value = ''")
        await press(room, "Escape")
        assert isinstance(await room.next(), StopPressed)
        assert room.came.empty(), "once"


async def test_up_in_the_empty_field_takes_up_the_last_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, SaidView(name="owner", text="Count to ten"), "said")
        await room.shows(".said", "Count to ten")
        await page.click("#text")
        await page.type("x")
        await press(room, "ArrowUp")
        assert await page.js("document.querySelector('.rewrite')") is None
        await page.js("document.querySelector('#text').value = ''")
        await press(room, "ArrowUp")
        await page.until(f"{FOCUS}.matches('.rewrite textarea')")
        assert await page.js(f"{FOCUS}.value") == "Count to ten"
        await press(room, "Escape")
        await page.until(f"{FOCUS}.id === 'text'")
