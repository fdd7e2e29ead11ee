"""The page in each language, and what people write from right to left in it."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.web.words import WORDS
from gateway.texts import Key, say
from gateway.views import Activity, Button, PlanStep, PlanView, ReplyView, SaidView, ToolLine
from tests.adapters.web_rig import GIVE_FILES, fits
from tests.fakes.web_server import approval, opened

HEBREW = "שלום לך, קובץ a.txt מוכן."


@pytest.mark.pick("page in a language")
@pytest.mark.parametrize("code", [one for one in WORDS.list_codes() if one not in ("en", "de")])
async def test_every_word_is_of_the_language(tmp_path: Path, code: str) -> None:
    place = {"zh": "zh-CN", "pt": "pt-BR", "es": "es-419"}.get(code, code)
    async with opened(tmp_path, language=place, look=(320, 700, "light")) as room:
        backend, page = room.server.backend, room.page
        assert await page.js("document.documentElement.lang") == code
        await room.shows("#empty", WORDS.say("empty_title", code))
        labels: tuple[Key, ...] = ("approve_once", "approve_conversation", "approve_always", "deny")
        buttons = tuple(
            Button(label=say(one, code), token=f"q:a1:{n}") for n, one in enumerate(labels)
        )
        backend.show(room.where, replace(approval(), buttons=buttons), "ask")
        await room.shows(".card h2", say("ask_one", code))
        steps = tuple(
            PlanStep(id=str(n), text=f"{n}", state="done" if n < 2 else "pending") for n in range(5)
        )
        backend.show(room.where, PlanView(title="P", steps=steps), "plan")
        await room.shows(".plan .faint", WORDS.say("progress", code, done=2, all=5))
        backend.show(room.where, ReplyView(text="![x](https://e.org/x.png)"), "reply")
        await room.shows(".reply", "x")
        before = "getComputedStyle(document.querySelector('a.image'), '::before').content"
        assert await page.js(before) == f'"{WORDS.say("image", code)}"'
        await fits(room)
        await room.shoot(f"language-{code}")
        assert await page.js("document.querySelector('#text').clientHeight < 50")
        bare = "[...document.querySelectorAll('body *')].flatMap((one) => [...one.childNodes])"
        bare += ".filter((one) => one.nodeType === 3 && /[{}|]/.test(one.data)).length"
        assert await page.js(bare) == 0  # no place and no form is left


async def test_what_runs_from_right_to_left_is_shown_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        backend, page = room.server.backend, room.page
        backend.show(room.where, SaidView(name="Ann", text=HEBREW), "said")
        await room.shows(".said", "a.txt")
        direction = "getComputedStyle(document.querySelector(%r)).direction"
        assert await page.js(direction % ".said") == "rtl"
        backend.show(room.where, SaidView(name="דנה", text="All in English."), "said")
        await room.shows(".said", "All in English.")
        assert await page.js(direction % ".said") == "ltr"
        assert await page.js(direction % "#text") == "ltr"
        await page.js(f"document.querySelector('#text').value = {HEBREW!r}")
        assert await page.js(direction % "#text") == "rtl"


async def test_a_block_of_an_answer_runs_as_its_own_words_do(tmp_path: Path) -> None:
    text = f"{HEBREW}\n\n- {HEBREW}\n\nIn English.\n\n```\nls שלום\n```"
    async with opened(tmp_path) as room:
        room.server.backend.show(room.where, ReplyView(text=text), "reply")
        await room.shows(".reply", "In English.")
        code = "[...document.querySelectorAll('.reply :is(p, ul, pre)')]"
        code += ".map((one) => `${one.localName} ${getComputedStyle(one).direction}`)"
        found = await room.page.js(code)
        assert found == ["p rtl", "ul rtl", "p ltr", "pre ltr"]
        await room.shoot("language-right-to-left")


async def test_a_name_does_not_turn_our_words_round(tmp_path: Path) -> None:
    """`Requested by דנה` stays to be read as it was written, and so does a line of a tool."""
    async with opened(tmp_path) as room:
        backend = room.server.backend
        backend.show(room.where, replace(approval(), asker="דנה"), "ask")
        await room.shows(".card .faint", "Requested by \u2068דנה\u2069")
        line = ToolLine(call_id="c1", tool="Read a file", summary="שלום.txt", state="failed")
        backend.show(room.where, Activity(lines=(line,)), "lines")
        await room.shows(".activity bdi", "שלום.txt")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("שלום.txt", "\u2068שלום.txt\u2069"),
        ("a\u202etxt.exe", "a\\u202etxt.exe"),
        ("\u2067a\u2066.txt", "\\u2067a\\u2066.txt"),
        ("א\u2069\u202e.txt", "\u2068א\\u2069\\u202e.txt\u2069"),
    ],
)
async def test_the_name_of_a_file_does_not_either(name: str, shown: str, tmp_path: Path) -> None:
    """Before it is sent: the page tells of it by itself."""
    async with opened(tmp_path) as room:
        await room.page.js(f"{GIVE_FILES}('drop', {json.dumps([[name, 0]])})")
        await room.shows("#toast", f"{shown} is empty")
        await room.page.js(f"{GIVE_FILES}('drop', {json.dumps([[name, 3]])})")
        await room.page.until("document.querySelectorAll('#files li.ready').length === 1")
        assert await room.texts("#files .name") == [shown]


@pytest.mark.parametrize(
    ("title", "shown", "isolated"),
    [
        ("a\u202egnp.exe", "a\\u202egnp.exe", "a\\u202egnp.exe"),
        ("שלום", "שלום", "\u2068שלום\u2069"),
    ],
)
async def test_nor_does_a_title(title: str, shown: str, isolated: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        room.server.backend.show(room.where, SaidView(name="Dana", text=title), "said")
        await room.shows("#title", shown)
        await room.shows("#list", shown)
        assert await room.page.js("document.title") == f"{isolated} · Turnkeeper"
        await room.page.click("#rename")
        assert await room.page.js("document.querySelector('#title input').value") == shown
