"""Jobs at the page: read, run, paused, edited and deleted, by keyboard and on a phone, in German."""

from pathlib import Path

import pytest

from gateway.messages import ButtonPressed
from gateway.views import Button, ChoiceCard
from tests.adapters.web_rig import faults, press, settle, value
from tests.fakes.job_backend import job, some
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.web_server import Room, opened

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
]
SMALL = """[...document.querySelectorAll('#agenda button')].map((one) => [one.textContent,
one.getBoundingClientRect().height]).filter((one) => one[1] < 43.5)"""
OVER = """[...document.querySelectorAll('#agenda, #agenda-list, #agenda-list > li')].map((one) =>
one.scrollWidth - one.clientWidth).filter(Boolean)"""


async def agenda(room: Room) -> None:
    """The dialog, with three jobs."""
    for one, runs in some():
        room.server.jobs.put(one, *runs)
    await room.page.click("#jobs")
    await room.shows("#agenda h3", "Open incidents")
    await settle(room)


def button(job: str, name: str) -> str:
    return f'[data-keep="{job} {name}"]'


async def focused(room: Room, job: str, name: str) -> None:
    await room.page.until(f"document.activeElement.dataset.keep === '{job} {name}'")


async def test_read_run_paused_edited_and_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        page, backend = room.page, room.server.jobs
        before = [url for url in page.requests if url.endswith("/jobs.js")]
        await agenda(room)
        assert before == [], "loaded when it is asked for"
        assert await room.texts("#agenda h3") == [one.title for one, _ in some()]
        await room.shows(".job.active p", "Next: Mon, Mar 3, 09:00 · Tue, Mar 4, 09:00")
        await room.shows(".job p", "Last: Fri, Feb 28, 09:00: done, $0.01")
        await room.shows(".job.paused p.bad", "The model could not be reached.")
        assert await room.texts(".job .means") == ["Uses: model pro, profile research, tools safe"]
        assert await page.js("document.activeElement.id") == "agenda-title"
        await page.click(button("j1", "turn"))
        await room.shows("#agenda-told", "Open incidents is paused.")
        await room.shows(button("j1", "turn"), "Resume")
        await focused(room, "j1", "turn")
        await press(room, "Enter")
        await room.shows("#agenda-told", "Open incidents is resumed.")
        await room.shows(button("j1", "turn"), "Pause")
        await focused(room, "j1", "turn")
        await press(room, "Tab", "Tab", "Enter")
        await room.shows(".runs .out", "The second is older.")
        await focused(room, "j1", "history")
        assert await page.js("document.activeElement.ariaExpanded") == "true"
        await room.shows(".runs small", "Not delivered to slack:T1:C1: is gone")
        await room.shoot("page-jobs")
        await page.click(button("j2", "history"))
        await room.shows(".runs small", "openai rejected the API key (401).")
        await page.click(button("j3", "run"))
        await room.shows(".job p", "running")
        await page.click(button("j3", "delete"))
        await room.shows(button("j3", "delete"), "Delete permanently")
        assert ("j3", "delete") not in backend.acts, "the first press only asks"
        await page.click(button("j3", "run"))
        await room.shows(button("j3", "delete"), "Delete")
        await page.until(
            f"document.querySelector('{button('j3', 'delete')}').textContent === 'Delete'"
        )
        for _ in range(2):
            await page.click(button("j3", "delete"))
            await room.shows("#agenda-told", "<b>Deployments</b>")
        await room.shows("#agenda-told", "was deleted")
        await page.until("document.querySelectorAll('.job').length === 2")
        assert backend.acts == [
            ("j1", "pause"), ("j1", "resume"), ("j3", "run"), ("j3", "run"), ("j3", "delete"),
        ]  # fmt: skip
        await page.click(button("j1", "edit"))
        await page.until("document.activeElement.name === 'title'")
        await page.js("document.querySelector('form [name=model]').value = 'nope'")
        await page.js("document.querySelector('form [name=tools]').value = ''")
        await page.click(".job form button[type=submit]")
        await room.shows("#agenda-told", "nope: no such provider")
        page.errors.clear()  # the browser notes the 400
        await page.js("document.querySelector('form [name=model]').value = 'max'")
        await room.shoot("page-jobs-edit")
        await page.click(".job form button[type=submit]")
        await room.shows("#agenda-told", "Open incidents was changed.")
        await room.shows(".job .means", "Uses: model max, profile research")
        assert backend.acts[-1] == ("j1", "edit ['model', 'tools']")
        await focused(room, "j1", "edit")
        await press(room, "Enter")
        await page.until("document.activeElement.name === 'title'")
        await press(room, "Escape")
        await focused(room, "j1", "edit")
        assert await page.js("document.querySelector('#agenda').open"), "it leaves the form alone"
        await page.click(button("j1", "edit"))
        await page.until("document.activeElement.name === 'title'")
        await page.click(".job form .buttons button:nth-child(2)")
        await page.until("!document.querySelector('#agenda').open")
        assert await value(room) == "Change the job Open incidents: "
        assert await page.js("document.activeElement.id") == "text"


async def test_the_buttons_of_a_jobs_card_can_be_pressed_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        buttons = (Button(label="Pause", token="j:j1:pause:"), Button(label="Delete", token="j:d"))
        card = ChoiceCard(question="", text="Open incidents, active", buttons=buttons)
        room.server.backend.show(room.where, card, "job-1")
        await room.shows(".card.choice", "Open incidents")
        for _ in range(2):
            await room.page.click(".card.choice .buttons button")
            pressed = await room.next()
            assert isinstance(pressed, ButtonPressed) and pressed.token == "j:j1:pause:"
            await room.page.until("!document.querySelector('.card.choice button').disabled")


async def test_what_is_so_already_is_told_in_ones_own_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_it_so(*_: object) -> bool:
        return False

    async with opened(tmp_path, language="de") as room:
        await agenda(room)
        monkeypatch.setattr(room.server.jobs, "act", find_it_so)
        await room.page.click(button("j1", "run"))
        await room.shows("#agenda-told", "Nichts geändert: Open incidents läuft schon")
        room.page.errors.clear()  # the browser notes each answer that is no success


async def test_on_a_phone_in_german_and_without_jobs(tmp_path: Path) -> None:
    async with opened(tmp_path, language="de", look=(320, 700, "dark")) as room:
        page = room.page
        await page.click("#menu")
        await settle(room)
        await agenda(room)
        await page.click(button("j1", "history"))
        await room.shows(".runs .out", "Two are open.")
        assert await page.js(SMALL) == [] and await page.js(OVER) == []
        await room.shows(".job.paused .risk", "pausiert")
        await room.shoot("page-jobs-phone")
        await page.click(button("j1", "edit"))
        await room.shows(".job form label", "Titel")
        await room.shows(".job form .buttons", "Speichern")
        assert await page.js(SMALL) == [] and await page.js(OVER) == []
        await press(room, "Escape")
        await focused(room, "j1", "edit")
        await press(room, "Escape")
        await page.until("!document.querySelector('#agenda').open")
        assert not await page.js("document.body.classList.contains('menu')")
        room.server.jobs.kept.clear()
        await page.click("#menu")
        await settle(room)
        await page.click("#jobs")
        await room.shows("#agenda-list", "Hier sind keine Aufträge von Ihnen.")


@pytest.mark.slow  # a browser of its own, and the package from npm
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_jobs(axe: str, scheme: str, tmp_path: Path) -> None:
    async with opened(tmp_path, look=(1200, 860, scheme)) as room:
        await agenda(room)
        await room.page.click(button("j2", "history"))
        await room.shows(".runs small", "openai rejected the API key (401).")
        await room.page.click(button("j1", "edit"))
        await room.shows(".job form label", "Title")
        assert await faults(room, axe) == []


async def test_a_title_does_not_turn_round(tmp_path: Path) -> None:
    async with opened(tmp_path) as room:
        room.server.jobs.put(job("j1", "a\u202egnp.exe"))
        await room.page.click("#jobs")
        await room.shows("#agenda h3", "a\\u202egnp.exe")
