"""How the page looks in its states: pictures of them, no fault that axe knows, and the first paint.

PAGE_SHOTS=docs keeps the pictures in that folder; otherwise nothing is written.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from gateway.views import (
    Button,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    Notice,
    PlanStep,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
)
from tests.adapters.web_rig import faults, fits, media, plan, settle
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.web_server import ANSWER, Room, activity, approval, opened

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
]
WIDE, PHONE = (1200, 860), (320, 700)


def fill(room: Room) -> None:
    """A conversation with every kind of view in it."""
    backend, where = room.server.backend, room.where
    backend.room("web:local::owner~c2::p").title = "A parcel that did not arrive"
    backend.stand("web:local::owner~c3::p", "waiting")
    backend.room("web:local::owner~c3::p").title = "Book the train to Oslo"
    question = "How is the weather in Berlin and Oslo, and can you release the site?"
    backend.show(where, SaidView(name="owner", text=question), "said")
    backend.show(where, activity(), "activity")
    backend.show(where, plan(), "plan")
    backend.show(where, media(room), "media")
    backend.show(where, ReplyView(text=ANSWER, note="Stopped here."), "reply")
    report = ReportView(title="Every morning", text="Two deliveries are **late**.", note="Job 3")
    backend.show(where, report, "report")
    backend.show(where, Notice(text="The demo model answers: it is scripted."), "notice")
    backend.show(where, Notice(text="The disk is almost full.", tone="warning"), "warning")
    backend.show(where, Notice(text="The model did not answer.", tone="error"), "error")
    choices = (Button(label="Train", token="q:c:1"), Button(label="Plane", token="q:c:2"))
    backend.show(
        where, ChoiceCard(question="c", text="How do you travel?", buttons=choices), "choice"
    )
    backend.show(where, FormCard(question="f", text="Which day?", token="q:f:x"), "form")
    backend.show(where, approval("approved"), "asked")
    backend.show(where, approval(), "ask")
    backend.stand(where, "waiting")


async def drawn(room: Room) -> None:
    await room.shows(".card.approval.open", "rm -r build/")
    await room.page.js("document.querySelector('.picture').scrollIntoView()")
    await room.page.until("[...document.images].every((one) => one.complete && one.naturalWidth)")
    await room.page.js("document.fonts.ready.then(() => true)")


async def scroll(room: Room, selector: str) -> None:
    await room.page.js(f"document.querySelector({selector!r}).scrollIntoView()")
    await settle(room)


async def test_pictures_of_its_states(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        await settle(room)
        await room.shoot("page-empty")
        fill(room)
        await drawn(room)
        await scroll(room, ".said")
        await room.shoot("page")
        await scroll(room, ".card.plan")
        await room.shoot("page-plan")
        await scroll(room, ".card.approved")
        await room.shoot("page-approval")
        for scheme in ("dark",):
            await room.page.look(*WIDE, scheme)
            await scroll(room, ".said")
            await room.shoot("page-dark")
        await fits(room)
        await room.page.look(390, 800)
        await scroll(room, ".card.plan")
        await fits(room)
        await room.shoot("page-phone")
        await room.page.click("#text")
        await room.page.type("/")
        await room.shows("#palette", "/mode")
        await room.shoot("page-palette")


async def test_at_320_pixels_all_is_in_reach(tmp_path: Path) -> None:
    async with opened(tmp_path, look=(*PHONE, "light")) as room:
        fill(room)
        await drawn(room)
        long = "x" * 300
        step = PlanStep(id="1", text=long, note=long)
        room.server.backend.show(room.where, SaidView(name="o", text=long), "said2")
        room.server.backend.show(room.where, PlanView(title=long, steps=(step,)), "plan2")
        room.server.backend.show(
            room.where, ReplyView(text=f"`{long}`\n\n```\n{long}\n```"), "reply2"
        )
        file = MediaFile(ref="o1/x", name=f"{long}.zip", mime="application/zip", size=1)
        room.server.backend.show(room.where, Media(files=(file,), caption=long), "media2")
        await room.shows(".media", ".zip")
        await fits(room)
        small = await room.page.js(
            "[...document.querySelectorAll('button, #list a, .download, #text')].filter((one) => "
            "one.checkVisibility({visibilityProperty: true})).map((one) => [one.textContent || one.id, "
            "one.getBoundingClientRect().height, one.className]).filter((one) => one[1] < 43.5 && "
            "one[2] !== 'copy')"
        )
        assert small == []
        await room.page.click("#menu")
        await settle(room)
        await fits(room)
        await room.page.press("Escape", 27)
        await room.page.until("document.querySelector('#shade').hidden")
        assert await room.page.js("document.activeElement.id") == "menu"


async def test_on_a_small_phone_an_empty_conversation_begins_with_its_heading(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, language="de", look=(320, 560, "light")) as room:
        await room.page.until("!document.querySelector('#empty').hidden")
        await settle(room)
        await fits(room)
        top = "document.querySelector('#empty h2').getBoundingClientRect().top"
        assert cast(float, await room.page.js(top)) > 50
        assert await room.page.js("document.querySelector('#down').hidden")


async def test_on_a_german_phone_words_stay_whole(tmp_path: Path) -> None:
    async with opened(tmp_path, language="de", look=(390, 844, "light")) as room:
        page, backend = room.page, room.server.backend
        heads = "".join(f"| Spalte{n} " for n in range(9)) + "|\n" + "|---" * 9 + "|\n"
        backend.show(room.where, replace(activity(), language="de"), "activity")
        backend.show(room.where, ReplyView(text=f"{heads}\n![Katze](https://e.org/x.png)"), "reply")
        backend.stand(room.where, "running")
        await room.shows(".reply", "Katze")
        await page.until("!document.querySelector('#stop').hidden")
        await settle(room)
        await fits(room)
        heights = "['.html th', '#text'].map((one) => document.querySelector(one).clientHeight)"
        assert all(height < 50 for height in cast(list[int], await page.js(heights)))
        assert await page.js("((one) => one.scrollWidth > one.clientWidth)"
                             "(document.querySelector('.html table'))")  # fmt: skip
        stop = "((one) => [one.textContent, one.offsetWidth])(document.querySelector('#stop'))"
        assert await page.js(stop) == ["Anhalten", 44]
        lines = (
            "[...document.querySelectorAll('.activity summary')]"
            ".map((one) => [one.textContent, one.offsetHeight >= 44])"
        )
        assert await page.js(lines) == [
            ["☑Im Netz suchen: weather Berlin Oslo", True],
            ["✕Eine Seite lesen: example.org/weather (fehlgeschlagen)", True],
        ]
        before = "getComputedStyle(document.querySelector('a.image'), '::before').content"
        assert await page.js(before) == '"Bild: "'


async def test_the_first_paint_comes_within_300_ms(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        fill(room)
        times = [math.inf]
        while min(times) >= 300 and len(times) < 20:  # another program may have the processors
            await room.page.call("Page.reload")
            await room.page.until("performance.getEntriesByName('first-contentful-paint').length")
            code = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            times.append(cast(float, await room.page.js(code)))
        assert min(times) < 300, times
        sizes = "performance.getEntriesByType('resource').map((one) => one.name)"
        names = cast(Sequence[str], await room.page.js(sizes))
        assert all(name.startswith((room.server.url, "data:")) for name in names)


@pytest.mark.pick("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE])
async def test_axe_finds_nothing_serious(
    axe: str, scheme: str, size: tuple[int, int], tmp_path: Path
) -> None:
    async with opened(tmp_path, look=(*size, scheme)) as room:
        assert await faults(room, axe) == [], "empty"
        fill(room)
        await drawn(room)
        assert await faults(room, axe) == [], "with all kinds of views"
        await room.page.click("#text")
        await room.page.type("/")
        await room.shows("#palette", "/mode")
        assert await faults(room, axe) == [], "with the palette"
        long = replace(approval().proposals[0], arguments="\n".join(map(str, range(40))))
        room.server.backend.show(room.where, replace(approval(), proposals=(long,)), "ask2")
        await room.shows(".card", "18 more lines")
        if size == PHONE:
            await room.page.click("#menu")
        assert await faults(room, axe) == [], "with the menu and a folded approval"


async def test_on_a_phone_a_conversation_is_deleted_by_a_bin_and_not_by_a_cross(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, look=(390, 844, "dark")) as room:
        fill(room)
        await drawn(room)
        await room.page.until("!document.querySelector('#manage').hidden")
        for name, said, drawn_as in (
            ("rename", "Rename", "M4 20h4"),
            ("discard", "Delete", "M4 7h16"),
        ):
            seen = await room.page.js(
                f"((one) => [one.textContent, one.title, one.querySelector('path').getAttribute('d'),"
                " one.querySelector('svg').getBoundingClientRect().width,"
                " getComputedStyle(one, '::before').content, one.getBoundingClientRect().height])"
                f"(document.getElementById('{name}'))"
            )
            assert isinstance(seen, list)
            assert seen[:2] == [said, said] and seen[2].startswith(drawn_as)
            assert seen[3] > 15 and seen[4] == "none" and seen[5] >= 43.5
        width = await room.page.js("document.querySelector('#title').clientWidth")
        assert cast(int, width) > 140, "what it is about has room, and the state is a dot"
        state = "((one) => [one.textContent, one.getBoundingClientRect().width])(document.querySelector('#state'))"
        assert await room.page.js(state) == ["Waiting for you", 8]
        await room.page.look(*WIDE)
        shown = "[...document.querySelectorAll('#manage svg')].map((one) => one.getBoundingClientRect().width)"
        assert await room.page.js(shown) == [0, 0], "where there is room, words say it"


async def test_on_a_phone_what_one_said_has_room_around_it_while_it_is_worked_at(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, look=(390, 844, "light")) as room:
        room.server.backend.show(room.where, SaidView(name="owner", text="Run it"), "said")
        room.server.backend.stand(room.where, "running")
        room.server.backend.show(room.where, activity(), "activity")
        await room.shows("#log .activity", "")
        await room.page.until("document.querySelector('#log').dataset.state === 'running'")
        below = await room.page.js(
            "((one) => { const words = document.createRange();"
            "words.selectNodeContents([...one.childNodes].find((node) => node.nodeType === 3));"
            "return one.getBoundingClientRect().bottom - words.getBoundingClientRect().bottom; })"
            "(document.querySelector('#log .said'))"
        )
        assert isinstance(below, float | int) and below > 8


JOB = """**New job: Open incidents**
At 09:00, Monday through Friday (Europe/Berlin)
**Next**: Mon 3 March, 09:00
**Report**: in this chat
**Task**: List the *open* incidents, and **never**: the closed ones."""


async def test_the_facts_of_a_job_stand_in_two_columns(tmp_path: Path) -> None:
    async with opened(tmp_path, look=(*WIDE, "light")) as room:
        buttons = (Button(label="Confirm", token="q:c:1", style="good"),)
        room.server.backend.show(
            room.where, ChoiceCard(question="c", text=JOB, buttons=buttons), "c"
        )
        await room.shows(".card .facts", "in this chat")
        assert await room.texts(".card dt") == ["Next", "Report", "Task"]
        assert (await room.texts(".card dd"))[
            2
        ] == "List the open incidents, and never: the closed ones."
        (heading,) = await room.texts(".card .html > p")
        assert heading.split("\n") == JOB.replace("**", "").split("\n")[:2]
        left = "[...document.querySelectorAll('.card dd')].map((one) => one.offsetLeft)"
        assert len(set(cast(list[int], await room.page.js(left)))) == 1, "one below another"
        await fits(room)
        await room.shoot("page-job")
        await room.page.look(320, 700)
        await fits(room)


CODE = """```py
@cached
def look(name: str) -> int:  # who <b>knows</b>
    return f"<script>{name}</script>" and 42
```

```sql
SELECT name FROM people WHERE age > 30 -- all
```

```klingon
nuqneH
```"""


@pytest.mark.pick("code")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_code_has_colours_that_all_can_read(tmp_path: Path, scheme: str, axe: str) -> None:
    async with opened(tmp_path, look=(*WIDE, scheme)) as room:
        room.server.backend.show(room.where, ReplyView(text=CODE), "reply")
        await room.page.until("document.querySelectorAll('.hl-keyword').length >= 4")
        shown = await room.page.js(
            "[...document.querySelectorAll('pre')].map((one) => one.textContent.trim())"
        )
        blocks = [one.split("\n", 1)[1].rstrip("\n`") for one in CODE.split("```")[1::2]]
        named = "[...document.querySelectorAll('.code')].map((one) => one.dataset.language)"
        assert await room.page.js(named) == ["py", "sql", "klingon"]
        assert shown == blocks, "the words stay as they are"
        assert await room.page.js("document.querySelectorAll('pre b, pre script').length") == 0
        seen = "[...document.querySelectorAll('.copy')].map((one) => getComputedStyle(one).opacity)"
        assert await room.page.js(seen) == ["1"] * len(blocks), "also where nothing points at it"
        assert await faults(room, axe) == []
        await room.shoot(f"page-code-{scheme}")
