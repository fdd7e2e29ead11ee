"""Growing answers: what is shown at each word costs as much after a book as after a page."""

import time
from collections.abc import Callable

import pytest

from adapters import text, written
from adapters.discord.render import render as render_discord
from adapters.slack.render import render as render_slack
from adapters.telegram import answers
from adapters.telegram.entities import LIMIT, Marked, convert_part
from adapters.telegram.render import render as render_telegram
from adapters.telegram.render import render_draft
from adapters.text import measure_utf16
from gateway.views import ReplyView, ReportView, View

Render = Callable[[View], tuple[bytes, ...]]
RENDERERS: dict[str, Render] = {
    "telegram": render_telegram,
    "telegram rich": lambda view: render_telegram(view, rich=True),
    "discord": render_discord,
    "slack": render_slack,
}
WORDS = "The **quick** brown fox `jumps` over the [lazy](https://x.example/a) dog, 20 €. "
KINDS = {
    "paragraphs": f"{WORDS * 3}\n\n",
    "one line": WORDS,
    "list": f"- {WORDS}\n",
    "code": "    def f():\n        pass\n\n",
    "table": "| one | two |\n",
    "quote": f"> {WORDS}\n",
    "marks": "words ``` in a line of ~~~ marks\n\n",
    "code in code": "````\n```\n````\n\n",
    "word": "a",
    "emoji": "🎉",
}


def make(kind: str, length: int) -> str:
    unit = KINDS[kind]
    head = {"code": "```python\n", "table": "| a | b |\n| - | - |\n"}.get(kind, "Here it is:\n\n")
    return head + unit * (length // len(unit))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("surface", RENDERERS)
def test_what_is_shown_is_as_if_all_of_it_was_read(
    surface: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = ReplyView(text=make(kind, 60_000), state="streaming")
    shown = RENDERERS[surface](view)
    for module in (text, written):
        monkeypatch.setattr(module, "AHEAD", 1_000)
    assert shown == RENDERERS[surface](view)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("surface", [*RENDERERS, "telegram draft"])
def test_a_book_costs_what_a_page_does(surface: str, kind: str) -> None:
    def spend(length: int) -> float:
        words = make(kind, length)
        began = time.process_time()
        if surface == "telegram draft":
            render_draft(words)
        else:
            RENDERERS[surface](ReplyView(text=words, state="streaming"))
        return time.process_time() - began

    spend(100_000)
    page = min(spend(100_000) for _ in range(3))
    most = 15 if kind == "code in code" else 3  # each fence is read
    assert spend(1_000_000) < most * page + 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_shows_the_end(kind: str) -> None:
    """In a message of its own, as code where it is in a block of code."""
    for length in range(30_000, 60_000, 3_333):
        words = f"{make(kind, length)}\n\nthe end"
        draft = render_draft(words)
        shown = str(draft["text"])
        assert shown.endswith("the end") and measure_utf16(shown) <= LIMIT
        entities = draft.get("entities", [])
        assert isinstance(entities, list)
        if kind not in ("table", "code in code"):
            assert any(one["type"] == "pre" for one in entities) == (kind == "code")


@pytest.mark.parametrize("is_report", [False, True])
def test_of_an_answer_that_comes_as_a_file_little_is_converted(
    is_report: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = 0

    def count(part: str) -> list[Marked]:
        nonlocal converted
        converted += 1
        return convert_part(part)

    monkeypatch.setattr(answers, "convert_part", count)
    words = make("paragraphs", 400_000)
    report, reply = ReportView(text=words, title=""), ReplyView(text=words, state="final")
    assert len(render_telegram(report if is_report else reply)) == 2
    assert converted <= answers.MAX_MESSAGES + 3
