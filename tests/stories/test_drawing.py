"""The drawings of the platforms' messages hold what the messages hold, where it can be seen."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from adapters.discord.render import render as of_discord
from adapters.slack.render import render as of_slack
from adapters.telegram.render import render as of_telegram
from gateway.views import Button, ChoiceCard, FormCard, Notice, PlanStep, PlanView, ReplyView, View
from tests.fakes import discord_server, slack_server, telegram_wire
from tests.fakes.browser import browse
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.web_server import activity, approval
from tests.stories.drawing import discord, slack, telegram
from tests.stories.drawing.markup import Json
from tests.stories.drawing.screens import sheet
from tests.stories.rig import labels as telegram_labels
from tests.stories.surfaces.discord import read

pytestmark = NEEDS_CHROMIUM

HOSTILE = "</div></section><script>document.title = 'ran'</script><img src=x onerror=alert(1)>"
ANSWER = f"Two **hosts** & 3 < 4\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n\n```\nx = 1\n```\n{HOSTILE}"
STEPS = (
    PlanStep(id="a", text="Find the hosts", state="done", note="3 found", skip=""),
    PlanStep(id="b", text=f"Compare {HOSTILE}", state="running", skip="p:t:skip:b"),
    PlanStep(id="c", text="Old mirror", state="skipped"),
    PlanStep(id="d", text="Tell 🦊 them", state="failed"),
)
STOP = Button(label="Stop", token="p:t:stop:", style="bad")
MANY = tuple(Button(label=f"Day {n}", token=f"q:c:{n}") for n in range(7))
VIEWS: tuple[View, ...] = (
    ReplyView(text=ANSWER, note="Stopped here."),
    activity(),
    PlanView(title="Hosts", steps=STEPS, buttons=(STOP,)),
    approval(),
    approval("approved"),
    ChoiceCard(question="c", text="Which **day**?", buttons=MANY),
    FormCard(question="f", text="Which way?", token="q:f:text"),
    Notice(text=f"It broke: {HOSTILE}", tone="error"),
)
Message = tuple[str, str, Sequence[str]]
"""A message as it is drawn, what one reads in it, and the labels of what can be pressed."""


def on_telegram(payload: Json) -> Message:
    one = telegram_wire.content(payload)
    keys = telegram_labels(one) if "inline_keyboard" in one.get("reply_markup", {}) else []
    return telegram.message(one) + telegram.asked(one), one["text"], keys


def on_discord(payload: Json) -> Message:
    return discord.message(payload, {}), read(payload), discord_server.labels(payload)


def on_slack(payload: Json) -> Message:
    options = [e["text"]["text"] for one in slack_server.elements(payload) for e in _each(one)]
    return slack.message(payload), slack_server.shown(payload), options


def _each(element: Json) -> list[Json]:
    return element.get("options") or [element]


def drawn(
    render: Callable[[View], tuple[bytes, ...]], put: Callable[[Json], Message]
) -> Iterator[Message]:
    return (put(json.loads(payload)) for view in VIEWS for payload in render(view))


def bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


SEEN = """(() => {
  document.querySelectorAll('details').forEach((one) => (one.open = true));
  const screen = document.querySelector('.screen'), edge = screen.getBoundingClientRect();
  const keys = [...document.querySelectorAll('.key, .button, .option')];
  const out = [...screen.querySelectorAll('*')].filter((one) => {
    const at = one.getBoundingClientRect();
    return at.width && (at.left < edge.left || at.right > edge.right + 1); });
  return { text: screen.innerText, keys: keys.map((one) => one.innerText), title: document.title,
    out: out.map((one) => one.outerHTML.slice(0, 80)),
    foreign: document.querySelectorAll('script, img, section section').length }; })()"""


async def test_all_texts_and_buttons_are_in_sight(tmp_path: Path) -> None:
    platforms = {
        "telegram": [
            *drawn(of_telegram, on_telegram),
            *drawn(lambda view: of_telegram(view, rich=True), on_telegram),
        ],
        "discord": [*drawn(of_discord, on_discord)],
        "slack": [*drawn(of_slack, on_slack)],
    }
    async with browse() as tab:
        for on, messages in platforms.items():
            assert len(messages) >= len(VIEWS)
            file = tmp_path / f"{on}.html"
            file.write_text(sheet(on, [("all", "".join(html for html, _, _ in messages))]))
            await tab.look(700, 900)
            await tab.go(file.as_uri())
            seen = await tab.js(SEEN)
            assert isinstance(seen, dict)
            whole = bare(seen["text"])
            for _, text, _ in messages:
                for line in text.split("\n"):
                    assert bare(line) in whole, f"{on}: {line}"
            assert seen["keys"] == [key for _, _, keys in messages for key in keys], on
            assert (seen["out"], seen["foreign"], seen["title"]) == ([], 0, ""), on
        assert tab.errors == []
