"""Moments in texts: what they are without their marks, and as each platform writes them."""

import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord import moments as discord
from adapters.discord.render import render as render_discord
from adapters.slack import moments as slack
from adapters.slack.home import home
from adapters.slack.render import render as render_slack
from adapters.telegram.render import render as render_telegram
from agent_core.text import clean
from gateway.command_texts import OwnText, drop_marks, write_commands
from gateway.moment_texts import MARKS, Moment, has_moment, mark_moment, split_moments
from gateway.ports import Overview, OverviewEntry
from gateway.texts import say
from gateway.views import ApprovalCard, ChoiceCard, Notice, ProposalLine, View

AT = 1_790_000_000
WORDS = "2026-09-21 15:33 Europe/Berlin"
MARKED = mark_moment(AT, WORDS)


@given(st.floats(0, 99_999_999_999), st.text(string.printable[:95], min_size=1, max_size=40))
def test_without_marks_a_moment_is_its_words(at: float, words: str) -> None:
    text = f"Next: {mark_moment(at, words)}."
    assert has_moment(text)
    assert drop_marks(text) == write_commands(text) == clean(text) == f"Next: {words}."
    assert split_moments(text) == ("Next: ", Moment(at=int(at), words=words), ".")


@given(st.integers(0, len(MARKED)), st.integers(0, len(MARKED)))
def test_of_what_was_cut_no_mark_is_left(start: int, end: int) -> None:
    for write in (discord.write_in_payload, slack.write_in_payload):
        for kind in ("markdown", "text", 10):
            block = {"type": kind, ("content" if kind == 10 else "text"): f"a{MARKED[start:end]}"}
            shown = write(msgspec.json.encode({"blocks": [block]})).decode()
            assert not MARKS.search(shown) and "\\ufd" not in shown.lower()


def test_nobody_else_writes_one() -> None:
    forged = say("jobs_next", "", times=MARKED)
    assert not has_moment(forged) and WORDS in forged
    assert has_moment(say("jobs_next", "", times=OwnText(MARKED)))


VIEWS: tuple[View, ...] = (
    Notice(text=f"Next: {MARKED}, and so on"),
    ChoiceCard(question="q", text=f"**Job**\nNext: {MARKED}"),
    ApprovalCard(
        question="q", asker="Ann", state="approved", outcome=f"Approved by Ann, {MARKED}",
        proposals=(ProposalLine(tool="run", arguments="{}", reason="", risk="low"),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_each_platform_writes_it_in_its_own_way(view: View) -> None:
    on_discord = b"".join(render_discord(view)).decode()
    assert f"<t:{AT}:f>" in on_discord and WORDS not in on_discord
    on_slack = b"".join(render_slack(view)).decode()
    assert f'"type":"date","timestamp":{AT}' in on_slack
    on_telegram = msgspec.json.encode(render_telegram(view)).decode()
    assert str(AT) not in on_telegram
    for shown in (on_discord, on_slack, on_telegram):
        assert not MARKS.search(shown)


def test_slack_says_it_in_words_where_it_reads_no_markup() -> None:
    (payload,) = render_slack(ChoiceCard(question="q", text=f"Next: {MARKED}"))
    assert msgspec.json.decode(payload)["text"] == f"Next: {WORDS}"
    table = f"| Next | {MARKED} |\n**bold** {MARKED}\n- {MARKED}"
    (payload,) = render_slack(Notice(text=table))
    assert '"date"' not in payload.decode() and payload.decode().count(WORDS) == 6


def test_on_slack_the_lines_around_stay_markdown() -> None:
    (payload,) = render_slack(Notice(text=f"**Job**\nNext: {MARKED}, {MARKED}.\n\n*Also*"))
    above, line, below = msgspec.json.decode(payload)["blocks"]
    assert (above["text"], below["text"]) == ("**Job**", "*Also*")
    runs = line["elements"][0]["elements"]
    assert [one["type"] for one in runs] == ["text", "date", "text", "date", "text"]
    many = "\n".join(["*a*", f"Next: {MARKED}"] * 40)
    (payload,) = render_slack(Notice(text=many))
    assert len(msgspec.json.decode(payload)["blocks"]) == 1 and WORDS in payload.decode()


def test_slacks_home_has_each_readers_time() -> None:
    entry = OverviewEntry(text=f"1. Report\nNext: {MARKED}", conversation="slack:a::b:")
    (_, line) = home(Overview(jobs=(entry,)), "")["blocks"]  # type: ignore[misc]
    (words, date) = line["elements"][0]["elements"]
    assert words["text"] == "1. Report\nNext: "
    assert (date["type"], date["timestamp"], date["fallback"]) == ("date", AT, WORDS)
