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
from adapters.telegram.payloads import write_moments
from adapters.telegram.render import render as render_telegram
from agent_core.text import clean
from cron.timetable import Times
from gateway.command_texts import OwnText, drop_marks, write_commands
from gateway.jobs_port import Job
from gateway.messages import Sender
from gateway.moment_texts import MARKS, Moment, has_moment, mark_moment, split_moments
from gateway.ports import Overview, OverviewEntry
from gateway.texts import say
from gateway.texts.runs import describe_due
from gateway.views import (
    ApprovalCard,
    ChoiceCard,
    Notice,
    PlanView,
    ProposalLine,
    ReportView,
    View,
)

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
    for write in (discord.write_in_payload, slack.write_in_payload, write_moments):
        for kind in ("markdown", "text", 10):
            block = {"type": kind, ("content" if kind == 10 else "text"): f"a{MARKED[start:end]}"}
            for place in ("blocks", "rich_message"):
                shown = write(msgspec.json.encode({place: [block]})).decode()
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
    PlanView(title="Hosts", steps=(), state="done", outcome=f"Approved by Ann, {MARKED}."),
    ReportView(title="Hosts", text="*Two* are open.", note=f"Due {MARKED}"),
    Notice(text=f"**Last**: {MARKED}: `done`"),
)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_each_platform_writes_it_in_its_own_way(view: View) -> None:
    on_discord = b"".join(render_discord(view)).decode()
    assert f"<t:{AT}:f>" in on_discord and WORDS not in on_discord
    on_slack = b"".join(render_slack(view)).decode()
    assert f'"type":"date","timestamp":{AT}' in on_slack or f"<!date^{AT}^" in on_slack
    on_telegram = b"".join(render_telegram(view)).decode()
    rich_telegram = b"".join(render_telegram(view, rich=True)).decode()
    for shown in (on_telegram, rich_telegram):
        assert f'"unix_time":{AT},"date_time_format":"Dt"' in shown and WORDS in shown
    for shown in (on_discord, on_slack, on_telegram, rich_telegram):
        assert not MARKS.search(shown)


@given(st.text("a🦊 @*", max_size=9), st.text("b🦊 @*", max_size=9), st.booleans())
def test_on_telegram_entities_stay_on_their_words(before: str, after: str, bold: bool) -> None:
    marks = "**" if bold else ""
    text = f"x{before} {marks}y {MARKED} {MARKED}z{marks} {after} @someone `{MARKED}`"
    for payload in render_telegram(Notice(text=text)):
        made = msgspec.json.decode(payload)
        units = made["text"].encode("utf-16-le")
        shown = [
            (
                one["type"],
                units[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"),
            )
            for one in made["entities"]
        ]
        assert [words for kind, words in shown if kind == "date_time"] == [WORDS, WORDS]
        assert ("code", WORDS) in shown and ("code", "@someone") in shown
        if "*" not in before + after:
            assert (("bold", f"y {WORDS} {WORDS}z") in shown) is bold


def test_slack_says_it_in_words_where_it_reads_no_markup() -> None:
    (payload,) = render_slack(ChoiceCard(question="q", text=f"Next: {MARKED}"))
    assert msgspec.json.decode(payload)["text"] == f"Next: {WORDS}"
    table = f"| Next | {MARKED} |\n**a *b* c** {MARKED}\n- {MARKED}"
    (payload,) = render_slack(Notice(text=table))
    assert '"date"' not in payload.decode() and payload.decode().count(WORDS) == 6
    (payload,) = render_slack(ReportView(title="", text="a", note=f"*Due* {MARKED}"))
    assert "<!date" not in payload.decode() and f"*Due* {WORDS}" in payload.decode()


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


def test_a_job_that_runs_once_names_a_moment_and_no_other_zone() -> None:
    job = Job(
        id="a", owner=Sender(platform="telegram", id="1"), conversation="c", title="T", prompt="p",
        schedule="at 2026-09-21 15:33", zone="Europe/Berlin", made=0.0,
    )  # fmt: skip
    words = describe_due(Times(), job, "")
    assert [one for one in split_moments(words) if isinstance(one, Moment)] == [
        Moment(at=1_789_997_580, words="2026-09-21 15:33 Europe/Berlin")
    ]
    assert words.count("Europe/Berlin") == 1
    daily = Job(
        **{name: getattr(job, name) for name in job.__struct_fields__} | {"schedule": "33 15 * * *"}
    )
    assert describe_due(Times(), daily, "") == "At 15:33 (Europe/Berlin)"
    assert describe_due(Times(), daily, "", zoned=False) == "At 15:33"
