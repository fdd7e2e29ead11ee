"""The browser through the whole gateway: a page is found, a form filled after a person's word, each
screenshot is before the model's eyes; and what is left when the gateway dies in the middle."""

import asyncio
import base64
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent_core.tools.browser import chromium
from gateway.services.vault import Vault
from gateway.wiring.agent_default import TurnkeeperAgent
from tests.agent_core.events_rig import BROWSED, journaled
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.model_steps import Step
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import can_make_groups
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_pages import Answer, WebPages, served
from tests.stories.pictures_rig import shown
from tests.stories.research_rig import web_of
from tests.stories.rig import ADMIN, PERSON, Rig, labels

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(120),
    pytest.mark.pick("stories of the browser", 5),
]
FORM = (
    "<title>Order</title><form action='/done'><label>Name <input name=n></label>"
    "<button>Send it</button></form>"
)


@pytest.fixture
async def site() -> AsyncIterator[WebPages]:
    async with served() as pages:
        pages.pages["/form"] = Answer(FORM)
        pages.found.append("/form")
        pages.put("/done", "Thanks", "It was ordered.", found=False)
        yield pages


def use(action: str, **given: object) -> Call:
    return Call("browser_use", json.dumps({"action": action} | given))


def on(label: str, action: str, **given: object) -> Step:
    """An action on the element that the model was told of under this label."""

    def step(body: Json) -> Call:
        told = "\n".join(str(message["content"]) for message in body["messages"])
        return use(action, index=int(re.findall(rf"\[(\d+)\] {label}", told)[-1]), **given)

    return step


async def asked(rig: Rig, words: str) -> Json:
    """The card that asks this."""
    await rig.until(lambda: rig.cards() and words in rig.cards()[-1]["text"], words)
    return rig.cards()[-1]


def browser(rig: Rig) -> object:
    """The conversation's part of the browser, None if it has none."""
    agent = rig.host.services.agent
    assert isinstance(agent, TurnkeeperAgent)
    return agent._browser.at_work(rig.workspace())


async def ready(rig: Rig, site: WebPages) -> None:
    await rig.start(**web_of(site))
    rig.telegram.say(PERSON, "/mode browser")
    await rig.shows("Profile: browser")
    await rig.quiet()


async def test_a_page_is_found_and_a_form_is_sent_after_a_persons_word(
    rig: Rig, site: WebPages
) -> None:
    rig.model.script(
        use("web_search", query="tea"),
        use("go_to_url", url=f"{site.url}/form"),
        on("text field “Name”", "input_text", text="Ann"),
        on("button “Send it”", "click_element"),
        use("extract_content"),
        Call("browser_get_stream_url"),
        Say("It is ordered."),
    )
    await ready(rig, site)
    rig.telegram.say(PERSON, "order tea")
    rig.press(await asked(rig, "web_search"), "Approve")
    card = await asked(rig, "go_to_url")
    assert any("lways" in label for label in labels(card)), "looking can be allowed for good"
    rig.press(card, "Approve")
    card = await asked(rig, f"Type “Ann” into [1] text field “Name” on {site.url}/form")
    assert not any("lways" in label for label in labels(card)), "each touch is a question"
    rig.press(card, "Approve")
    card = await asked(rig, f"Click [2] button “Send it” on {site.url}/form")
    assert site.fetched["/done"] == 0
    rig.press(card, "Approve")
    await rig.shows("It is ordered.")
    await rig.quiet()
    assert site.fetched["/done"] == 1
    assert [len(shown(rig, n)) for n in range(-7, 0)] == [0, 0, 1, 2, 3, 4, 4]
    assert all(picture.startswith(b"\xff\xd8\xff") for picture in shown(rig))
    said = rig.seen(role="tool")
    assert "It was ordered." in said[4] and f"URL: {site.url}/done?n=Ann" in said[3]
    assert said[5].startswith("Watch the browser, as long as it is open: http://127.0.0.1:")
    bodies = [request.body["messages"] for request in rig.model.requests[-7:]]
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert after[: len(before)] == before, "nothing of a request is rewritten"
    assert journaled(rig) >= BROWSED
    card = await rig.shows("The browser can be watched while it is open.")
    assert f"gateway's machine: {said[5].rpartition(' ')[2]}" in card["text"]
    assert not card.get("reply_markup")


async def test_the_browser_is_watched_by_a_button(rig: Rig, site: WebPages) -> None:
    port = free_port()
    origin = {"PREVIEW_PORT": str(port), "PREVIEW_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    rig.model.script(
        use("go_to_url", url=f"{site.url}/form"), Call("browser_get_stream_url"), Say("Look.")
    )
    await rig.start(**web_of(site), **origin)
    rig.telegram.say(PERSON, "/mode browser")
    await rig.shows("Profile: browser")
    rig.telegram.say(PERSON, "show me")
    rig.press(await asked(rig, "go_to_url"), "Approve")
    await rig.shows("Look.")
    await rig.quiet()
    card = await rig.shows("The browser can be watched while it is open.")
    ((button,),) = card["reply_markup"]["inline_keyboard"]
    assert button["url"].startswith(f"http://127.0.0.1:{port}/turnkeeper-watch/")
    async with aiohttp.ClientSession() as anybody:
        async with anybody.get(button["url"]) as page:
            assert page.status == 200 and "You can watch" in await page.text()
            assert "Set-Cookie" not in page.headers
        async with anybody.ws_connect(f"{button['url']}/live") as socket:
            assert (await socket.receive_bytes(timeout=PATIENCE))[:3] == b"\xff\xd8\xff"
        async with anybody.get(f"{button['url']}x") as page:
            assert page.status == 404


async def test_a_kill_while_it_clicks_and_what_the_model_is_told(rig: Rig, site: WebPages) -> None:
    site.pages["/done"].held = asyncio.Event()
    rig.model.script(
        use("go_to_url", url=f"{site.url}/form"),
        on("button “Send it”", "click_element"),
        use("extract_content"),
        use("go_to_url", url=f"{site.url}/form"),
        Say("Please look whether it came."),
    )
    await ready(rig, site)
    rig.telegram.say(PERSON, "order tea")
    rig.press(await asked(rig, "go_to_url"), "Approve")
    rig.press(await asked(rig, "Click [2]"), "Approve")
    await rig.until(lambda: site.fetched["/done"] == 1)
    await rig.crash()
    site.pages["/done"].held.set()
    await rig.start(**web_of(site))
    await rig.until(lambda: len(rig.cards()) == 1 and "go_to_url" in rig.cards()[0]["text"])
    rig.press(rig.cards()[0], "Approve")
    await rig.shows("Please look whether it came.")
    await rig.quiet()
    _, clicked, looked, opened = rig.seen(role="tool")
    assert clicked.startswith("Outcome unknown")
    assert f"It was at {site.url}/form" in looked and "nothing was done" in looked
    assert "The browser is a new one" in opened and "Title: Order" in opened
    assert site.fetched["/done"] == 1, "nothing is clicked twice"


@pytest.mark.slow
async def test_an_approval_outlives_the_browser_and_nothing_is_clicked(
    rig: Rig, site: WebPages
) -> None:
    rig.model.script(
        use("go_to_url", url=f"{site.url}/form"),
        on("button “Send it”", "click_element"),
        Say("The browser was closed."),
    )
    await ready(rig, site)
    rig.telegram.say(PERSON, "order tea")
    rig.press(await asked(rig, "go_to_url"), "Approve")
    await asked(rig, "Click [2]")
    await rig.crash()
    await rig.start(**web_of(site))
    rig.press(await asked(rig, "Click [2]"), "Approve")
    await rig.shows("The browser was closed.")
    await rig.quiet()
    assert f"It was at {site.url}/form" in rig.seen(role="tool")[-1]
    assert site.fetched["/done"] == 0


async def test_stop_closes_it(rig: Rig, site: WebPages) -> None:
    site.pages["/done"].held = asyncio.Event()
    rig.model.script(use("go_to_url", url=f"{site.url}/done"))
    await ready(rig, site)
    rig.telegram.say(PERSON, "order tea")
    rig.press(await asked(rig, "go_to_url"), "Approve")
    await rig.until(lambda: site.fetched["/done"] == 1)
    assert browser(rig) is not None
    rig.telegram.say(PERSON, "/stop")
    await rig.until(lambda: browser(rig) is None)
    site.pages["/done"].held.set()
    await rig.quiet()


async def test_a_picture_is_looked_at_by_the_model_that_can_see(rig: Rig, site: WebPages) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    site.pages["/dot.png"] = Answer(pixel, mime="image/png")

    def look(**given: str) -> Call:
        return Call("analyze_image", json.dumps({"question": "what is it?"} | given))

    rig.model.script(
        look(path="a.png"), Say("A dot."), look(path="a.txt"), look(path="../a"),
        look(url=f"{site.url}/dot.png"), Say("hush-12345: A web dot."), look(url=f"{site.url}/form"), Say("Dots."),
    )  # fmt: skip
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(rig.where().id, "SEEN_TOKEN", "hush-12345")
    await rig.start(**web_of(site), AUXILIARY_VISION="openai/eyes")
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "a.png").write_bytes(pixel)
    (rig.workspace() / "a.txt").write_text("words")
    rig.telegram.say(PERSON, "/mode browser")
    await rig.shows("Profile: browser")
    rig.telegram.say(PERSON, "look at them")
    rig.press(await asked(rig, "dot.png"), "Approve")
    await rig.until(lambda: "/form" in str(rig.cards()[-1:]))
    rig.press(rig.cards()[-1], "Approve")
    await rig.shows("Dots.")
    await rig.quiet()
    seen = [one for one in range(len(rig.model.requests)) if shown(rig, one)]
    assert [rig.model.requests[n].body["model"] for n in seen] == ["eyes", "eyes"]
    assert all(shown(rig, n) == [pixel] and "what is it?" in str(rig.seen(n)) for n in seen)
    first, words, outside, web, page = rig.seen(role="tool")
    assert (
        first.endswith("\nA dot.") and "never instructions" in first and web.endswith("A web dot.")
    )
    assert web.endswith("[SEEN_TOKEN]: A web dot."), "a secret that a picture showed"
    assert "a.txt is no picture" in words and "leaves the workspace" in outside
    assert "only pictures can be read" in page


ENCLOSED = "The browser runs in its own sandbox."
BESIDE = "The browser runs outside it, on the"


def hide_bubblewrap(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """All programs of this machine are found but this one."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            if program.name != "bwrap" and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    patch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("tier", "without", "where"),
    [
        pytest.param("bwrap", "", ENCLOSED, marks=NEEDS_BWRAP),
        pytest.param("landlock", "", ENCLOSED, marks=(NEEDS_LANDLOCK, NEEDS_BWRAP)),
        pytest.param("landlock", "bwrap", BESIDE, marks=NEEDS_LANDLOCK),
        pytest.param("landlock", "chromium", "", marks=(NEEDS_LANDLOCK, NEEDS_BWRAP)),
    ],
)
async def test_it_is_told_where_the_browser_runs(
    tier: str, without: str, where: str, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sandbox of its own wherever bubblewrap works, whatever tier commands have."""
    if without == "bwrap":
        hide_bubblewrap(tmp_path, monkeypatch)
    elif without:
        monkeypatch.setattr(chromium, "NAMES", ("no-such-browser",))
    await rig.start(SANDBOX_PROVIDER=tier)
    rig.telegram.say(ADMIN, "/status")
    said = json.dumps(await rig.shows(f"Sandbox: {tier}", ADMIN))
    assert where in said and ("The browser" in said) == bool(where)
    limits = "The kernel enforces its limits" if can_make_groups() else "Its limits are watched"
    assert limits in said
    agent = rig.host.services.agent
    assert isinstance(agent, TurnkeeperAgent)
    assert agent._browser.encloses == (without != "bwrap")
