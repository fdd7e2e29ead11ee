"""Names and words from right to left within our sentences, and on the cards that draw them."""

import json
from collections.abc import Callable

import msgspec
import pytest

from adapters.calls import describe_call
from adapters.discord import render as discord
from adapters.slack import render as slack
from adapters.telegram import render as telegram
from adapters.web.render import draw
from gateway.ports import Shown
from gateway.texts import say
from gateway.texts.call_lines import summarize_call
from gateway.texts.isolation import CLOSES, OPENS, isolate
from gateway.texts.signs import visible
from gateway.views import ApprovalCard, ProposalLine, View


def draw_on_the_page(view: View) -> str:
    shown = Shown(rev=1, turn="t", name="n", position=1, at=0.0, view=view)
    return msgspec.json.encode(draw(shown)).decode()


DRAW: dict[str, Callable[[View], str]] = {
    "telegram": lambda view: b"".join(telegram.render(view)).decode(),
    "telegram rich": lambda view: b"".join(telegram.render(view, rich=True)).decode(),
    "discord": lambda view: b"".join(discord.render(view)).decode(),
    "slack": lambda view: b"".join(slack.render(view)).decode(),
    "web": draw_on_the_page,
}


def test_a_name_from_right_to_left_is_kept_to_itself() -> None:
    said = say("approved", "fr", name="דנה לוי", when="12:05")
    assert said == f"Autorisé une fois par {OPENS}דנה לוי{CLOSES}, 12:05."
    assert OPENS not in say("approved", "ru", name="Анна", when="12:05")
    assert OPENS not in say("memory_several", "fr", found="1. דנה\n2. לוי")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        ("Zoë\u202eklaw", "Zoë\\u202eklaw"),  # an override, and half an isolate, turn the rest
        ("דנה\u2069 x", f"{OPENS}דנה\\u2069 x{CLOSES}"),
        (f"x{OPENS}y", "x\\u2068y"),
        (f"{OPENS}y{CLOSES}", "\\u2068y\\u2069"),  # keeps nothing to itself: it hides itself
        (f"{OPENS}דנה{CLOSES}", f"{OPENS}דנה{CLOSES}"),  # said once before
        (f"{OPENS}דנה{CLOSES} ב", f"{OPENS}דנה ב{CLOSES}"),
        ("דנה\nלוי", "דנה\nלוי"),  # each line is a paragraph of its own
    ],
)
def test_an_isolate_is_whole_and_all_else_that_turns_is_shown(name: str, shown: str) -> None:
    assert isolate(name) == shown
    assert isolate(shown) == shown
    if "\n" not in name:
        assert visible(shown) == shown  # a card that draws our sentence shows no codes of ours


def test_what_will_run_shows_isolates_as_codes() -> None:
    command = f"rm {OPENS}קובץ{CLOSES}"
    assert visible(command) == command
    assert visible(command, exact=True) == "rm \\u2068קובץ\\u2069"
    line = summarize_call("run_command", json.dumps({"command": command}))
    assert line == f"Run a command: {OPENS}rm \\u2068קובץ\\u2069{CLOSES}"
    asked = ProposalLine(
        tool="run_command", arguments=json.dumps({"command": command}), reason="", risk="low"
    )
    described = describe_call(asked, "")
    assert described.body == "rm \\u2068קובץ\\u2069"
    assert "U+2068" in " ".join(described.warnings)


@pytest.mark.parametrize("surface", DRAW)
def test_a_decided_card_tells_who_decided_without_codes(surface: str) -> None:
    outcome = say("approved", "", name="דנה לוי", when="12:05")
    proposal = ProposalLine(tool="run_command", arguments='{"command":"ls"}', reason="", risk="low")
    card = ApprovalCard(
        question="q", proposals=(proposal,), state="approved", outcome=outcome, asker="דנה"
    )
    drawn = DRAW[surface](card).replace("\\u2068", OPENS).replace("\\u2069", CLOSES)
    assert "\\\\u206" not in drawn
    assert f"{OPENS}דנה לוי{CLOSES}" in drawn
