"""What holds for every view: the schema, the limits, and that no word is lost."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.calls import describe_call
from adapters.telegram import answers
from adapters.telegram.render import render
from gateway.views import ApprovalCard, PlanView, ProposalLine, ReplyView, ReportView, View
from tests.adapters.telegram_views import VIEWS, WIDE, texts
from tests.fakes.telegram_schema import check_payload
from tests.fakes.telegram_wire import bare
from tests.sampling import examples

Json = dict[str, Any]
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def payloads(view: View, rich: bool) -> list[Json]:
    return [msgspec.json.decode(one) for one in render(view, rich=rich)]


def every_view_is_taken(view: View, rich: bool) -> None:
    rendered = payloads(view, rich)
    for payload in rendered:
        assert check_payload(payload) == []
        assert "text" not in payload or payload["link_preview_options"] == {"is_disabled": True}
        assert "rich_message" not in payload or payload["rich_message"]["skip_entity_detection"]
    assert render(view, rich=rich) == render(view, rich=rich)
    if not rich:
        assert not any("rich_message" in payload for payload in rendered)
    if isinstance(view, PlanView):
        assert len(rendered) == 1
        shown = [payload.get("reply_markup") for payload in rendered if view.buttons]
        assert all(shown)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(VIEWS, st.booleans())
def test_every_view_is_what_telegram_takes(view: View, rich: bool) -> None:
    every_view_is_taken(view, rich)


@pytest.mark.slow
@settings(max_examples=6_000, deadline=None, suppress_health_check=SLOW)
@given(VIEWS, st.booleans())
def test_thousands_of_views_are_what_telegram_takes(view: View, rich: bool) -> None:
    every_view_is_taken(view, rich)


EDGES = (
    WIDE,
    "> " * 20 + "deep",
    "- " * 20 + "deep",
    "a\n\n" * 600,
    "- a\n" * 600,
    "|a|\n|-|\n" + "|x|\n" * 600,
    "**" + "*" * 3 + "x" + "*" * 5,
    "x" * 39_000,
)


@pytest.mark.pick("what is over a limit", 6)
@pytest.mark.parametrize("text", EDGES)
@pytest.mark.parametrize("rich", [True, False])
def test_what_is_over_a_limit_degrades(text: str, rich: bool) -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    for view in (
        ReportView(title="T", text=text),
        ReplyView(text=table + text),
        ReplyView(text=text + "\n\n" + table),
    ):
        every_view_is_taken(view, rich)


# ---- no word is lost -----------------------------------------------------------------------

WORD = re.compile(r"w\d+e")


def shown(view: View, rich: bool) -> Iterator[str]:
    """The texts of a view's messages, in order; of a file the file."""
    for payload in payloads(view, rich):
        if files := payload.get("files"):
            yield from (source["text"] for source in files.values())
        elif "rich_message" in payload:
            yield bare(payload["rich_message"]["blocks"])
        else:
            yield payload["text"]


def paragraphs(draw_from: list[str]) -> st.SearchStrategy[str]:
    """Markdown in whose every piece stand words that are never the same twice."""

    def numbered(pieces: list[str]) -> str:
        count = iter(range(1_000_000))
        return "".join(re.sub("W", lambda _: f"w{next(count)}e", piece) for piece in pieces)

    return st.lists(st.sampled_from(draw_from), min_size=1, max_size=60).map(numbered)


LONG = paragraphs(
    [
        "W W W. **W W** W `W` W.\n\n" * 12,
        "# W\n\n",
        "- W\n- W **W**\n  - W\n\n",
        "```py\n" + "W = W(W)\n" * 60 + "```\n\n",
        "| W | W |\n|---|---|\n" + "| W | W `W` |\n" * 25 + "\n",
        "> W W\n> W\n\n",
        "W " * 200 + "\n\n",
    ]
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(LONG, st.booleans(), st.booleans())
def test_the_parts_of_an_answer_are_the_answer(text: str, rich: bool, as_report: bool) -> None:
    view = ReportView(title="Title", text=text) if as_report else ReplyView(text=text)
    parts = list(shown(view, rich))
    wanted = WORD.findall(text)
    if any("files" in payload for payload in payloads(view, rich)):
        beginning, file = parts[:-1], parts[-1]
        assert file == text
        assert len(beginning) == answers.BEGINNING
        found = [word for part in beginning for word in dict.fromkeys(WORD.findall(part))]
        assert wanted[: len(set(found))] == list(dict.fromkeys(found))
        return
    assert len(parts) <= answers.MAX_MESSAGES
    headers = set(WORD.findall("\n".join(re.findall(r"^\|.*\n\|---", text, re.MULTILINE))))
    words = [word for part in parts for word in WORD.findall(part)]
    again = [word for n, word in enumerate(words) if word in words[:n]]
    assert list(dict.fromkeys(words)) == wanted
    assert set(again) <= headers, "only a table's header may come again"
    assert "```" not in "".join(parts), "each part closes its fences"


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(
    st.sampled_from(["cmd", "command"]), st.lists(texts(20), min_size=1, max_size=3), st.booleans()
)
def test_an_approval_shows_all_arguments(name: str, arguments: list[str], rich: bool) -> None:
    lines = tuple(
        ProposalLine(
            tool="shell",
            arguments=msgspec.json.encode({name: one}).decode(),
            reason="",
            risk="low",
        )
        for one in arguments
    )
    view = ApprovalCard(question="1", asker="", proposals=lines)
    whole = "".join("".join(shown(view, rich)).split())
    for line in lines:
        called = describe_call(line, "")
        assert "".join((called.whole or called.body).split()) in whole
