"""Views as Slack shows them: some by heart, and all within its types and limits."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from adapters.slack.markup import disarm, make_readable
from adapters.slack.render import render
from adapters.text import MAX_BEGINNING
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    Media,
    MediaFile,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    ToolLine,
    View,
)
from tests.adapters.telegram_views import VIEWS
from tests.attacks.exfil_grammar import ANSWERS
from tests.fakes.slack_schema import check_chunk, check_message, check_previews
from tests.fakes.slack_server import elements, labels, shown
from tests.sampling import examples

Json = dict[str, Any]
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def payloads(view: View) -> list[Json]:
    return [msgspec.json.decode(one) for one in render(view)]


def every_view_is_taken(view: View) -> None:
    rendered = payloads(view)
    for payload in rendered:
        if "files" in payload:
            assert 1 <= len(payload["files"]) <= 10 and len(payload["text"]) <= 16_000
        else:
            assert set(payload) - {"stream", "session"} == {"text", "blocks"} and payload["blocks"]
            assert check_message(payload) == []
            for chunk in payload.get("stream", {}).get("chunks", ()):
                assert check_chunk(chunk) == []
    assert render(view) == render(view)
    if isinstance(view, PlanView):
        assert len(rendered) == 1
        assert len(elements(rendered[0])) == len(view.buttons)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_every_view_is_what_slack_takes(view: View) -> None:
    every_view_is_taken(view)


@pytest.mark.slow
@settings(max_examples=2_500, deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_thousands_of_views_are_what_slack_takes(view: View) -> None:
    every_view_is_taken(view)


def test_the_official_types_are_held_against_it() -> None:
    wrong = {"type": "task_card", "task_id": "1", "title": "x", "status": "half done"}
    assert any("half done" in one for one in check_message({"text": "x", "blocks": [wrong]}))
    unknown = {"type": "markdown", "text": "x", "colour": "red"}
    assert len(check_message({"text": "x", "blocks": [unknown]})) == 2


def test_a_plan_is_a_plan_block_with_its_buttons() -> None:
    steps = (
        PlanStep(id="a", text="Find **it**", state="done", note="3 hosts"),
        PlanStep(id="b", text="Compare", state="running"),
        PlanStep(id="c", text="Write", state="failed"),
        PlanStep(id="d", text="Send <!here>", state="skipped"),
        PlanStep(id="e", text="Rest"),
    )
    stop = Button(label="Stop", token="p:t:stop:", style="bad")
    (message,) = payloads(PlanView(title="Hosts", steps=steps, buttons=(stop,)))
    plan, actions = message["blocks"]
    assert plan["title"] == "◐ Hosts 1/5"
    assert [one["status"] for one in plan["tasks"]] == [
        "complete", "in_progress", "error", "pending", "pending",
    ]  # fmt: skip
    assert plan["tasks"][0]["details"]["elements"][0]["elements"][0]["text"] == "3 hosts"
    assert plan["tasks"][3]["title"] == "– 4. Send <\u2060!here>"
    assert [(e["value"], e["style"]) for e in actions["elements"]] == [("p:t:stop:", "danger")]


def test_a_report_is_one_message_under_its_title() -> None:
    (message,) = payloads(
        ReportView(title="Open *now*", text="Two are **open**.", note="Due today")
    )
    assert [block["type"] for block in message["blocks"]] == ["header", "markdown", "context"]
    assert message["text"] == "Open *now*: Two are **open**."
    (alone,) = payloads(ReportView(title="Open", text=""))
    assert [block["type"] for block in alone["blocks"]] == ["header"]


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [("detail", "A word on it", "quote"), ("preview", "--- a\n+++ a\n+x", "preformatted")],
)
def test_a_change_is_code_and_a_word_is_not(name: str, words: str, kind: str) -> None:
    line = ProposalLine(tool="write_file", arguments="{}", reason="", risk="low")
    line = replace(line, **{name: words})
    (message,) = payloads(ApprovalCard(question="1", asker="", proposals=(line,)))
    (part,) = message["blocks"][-1]["elements"]
    assert part["type"] == f"rich_text_{kind}" and part["elements"][0]["text"] == words


def test_a_plan_that_is_too_long_shows_where_it_is() -> None:
    done = [PlanStep(id=str(n), text="x" * 200, state="done") for n in range(40)]
    steps = (*done, PlanStep(id="now", text="NOW", state="running"))
    (message,) = payloads(PlanView(title="Long", steps=steps))
    assert check_message(message) == []
    assert "NOW" in shown(message) and "earlier steps" in shown(message)


ASKED = ApprovalCard(
    question="7",
    asker="Ann",
    proposals=(
        ProposalLine(
            tool="shell", arguments='{"command": "rm -rf <!channel> *x*"}', reason="to clean",
            risk="high",
        ),
    ),
    buttons=tuple(
        Button(label=label, token=f"q:7:{option}", style=style)  # type: ignore[arg-type]
        for label, option, style in (
            ("Approve once", "once", "good"), ("Always approve", "always", "plain"),
            ("Deny", "deny", "bad"),
        )
    ),
    rule="shell rm *",
)  # fmt: skip


def test_an_approval_shows_all_of_it_and_asks_before_always() -> None:
    (message,) = payloads(ASKED)
    assert "rm -rf <!channel> *x*" in shown(message), "as it will run, in code that pings nobody"
    for words in ("Requested by Ann", "high risk", "to clean", "covers: shell rm *"):
        assert words in shown(message)
    assert labels(message) == ["Approve once", "Always approve", "Deny", "Deny with reason"]
    confirmed = [e["text"]["text"] for e in elements(message) if "confirm" in e]
    assert confirmed == ["Always approve"]
    assert elements(message)[-1]["value"] == "q:7:deny"
    assert elements(message)[-1]["action_id"].startswith("w"), "it opens a modal"


def test_a_decided_approval_has_no_buttons() -> None:
    decided = msgspec.structs.replace(ASKED, state="approved", outcome="Approved by Bob.")
    (message,) = payloads(decided)
    assert elements(message) == [] and "Approved by Bob." in shown(message)


def test_long_arguments_are_shown_whole_and_the_buttons_come_last() -> None:
    line = ProposalLine(tool="shell", arguments="y" * 2_900, reason="", risk="low")
    first, last = payloads(msgspec.structs.replace(ASKED, proposals=(line,)))
    assert "".join(map(shown, (first, last))).count("y") >= 2_900
    assert not elements(first) and elements(last)


def test_very_long_arguments_are_a_file_above_the_card() -> None:
    line = ProposalLine(tool="shell", arguments="y" * 30_000, reason="", risk="low")
    asked = msgspec.structs.replace(ASKED, proposals=(line,))
    first, last = payloads(asked)
    assert first["files"][0]["text"].count("y") == 30_000 and elements(last)
    decided = msgspec.structs.replace(asked, state="approved", buttons=(), outcome="Approved.")
    assert payloads(decided)[0] == first, "a message with a file stays one"


def test_many_choices_are_a_list() -> None:
    few = tuple(Button(label=f"No. {n}", token=f"q:7:{n}") for n in range(5))
    many = tuple(Button(label=f"No. {n}", token=f"q:7:{n}") for n in range(120))
    (short,), (long,) = (
        payloads(ChoiceCard(question="7", text="Which?", buttons=one)) for one in (few, many)
    )
    assert [e["type"] for e in elements(short)] == ["button"] * 5
    assert [len(e["options"]) for e in elements(long)] == [100, 20]


def test_nobody_is_pinged_and_code_stays_code() -> None:
    text = (
        "<!channel> <@U1> a < b <#C1>\n\n> quote\n\n`<@U1>`\n\n```c\n#include <x.h>\n<!here>\n```\n"
    )
    safe = disarm(text)
    assert safe.startswith("&lt;!channel> &lt;@U1> a < b &lt;#C1>\n\n> quote")
    assert "`<\u2060@U1>`" in safe and "#include <x.h>\n<\u2060!here>" in safe
    assert disarm("<https://evil.example|https://bank.example>").startswith("&lt;https://evil")
    assert disarm("<https://a.b> `Map<A|B>`") == "<https://a.b> `Map<A|B>`"
    assert disarm("![chart](https://e.org/x.png) ![](u) \\![x]") == (
        "[chart](https://e.org/x.png) [picture](u) \\![x]"
    )


def test_long_answers_come_in_parts_or_as_a_file() -> None:
    code = "```py\n" + "\n".join(f"x{n} = {n}" for n in range(1_400)) + "\n```"
    parts = payloads(ReplyView(text=code, note="Stopped here."))
    assert len(parts) == 2
    for part in parts:
        text = part["blocks"][0]["text"]
        assert text.startswith("```py\n") and text.rstrip().endswith("```")
    assert parts[-1]["blocks"][1]["type"] == "context"
    first, document = payloads(ReportView(title="", text="word " * 20_000))
    assert len(first["blocks"][0]["text"]) <= MAX_BEGINNING + 3
    assert "blocks" in first and document["files"][0]["text"] == "word " * 20_000
    assert len(payloads(ReplyView(text="word " * 20_000, state="streaming"))) == 1
    assert payloads(ReplyView(text="  ")) == []


def test_files_have_words_for_who_cannot_see_them() -> None:
    files = (
        MediaFile(ref="t/1", name="chart.png", mime="image/png", size=5),
        MediaFile(ref="t/2", name="data.csv", mime="text/csv", size=5),
        MediaFile(ref="t/3", name="huge.bin", mime="", size=2_000 << 20),
    )
    upload, note = payloads(Media(files=files, caption="Look <!here>"))
    assert upload["text"] == "Look &lt;!here&gt;"
    assert [(f["ref"], f.get("alt", "")) for f in upload["files"]] == [
        ("t/1", "chart.png"),
        ("t/2", ""),
    ]
    assert "huge.bin" in shown(note)


def test_activity_is_compact() -> None:
    lines = tuple(
        ToolLine(call_id=str(n), tool="shell", summary=f"ls {n}", state="done", output="out")
        for n in range(50)
    )
    (message,) = payloads(Activity(lines=lines, words="I look."))
    text = shown(message)
    assert len(message["blocks"]) == 32 and "20 earlier steps" in text
    assert [block["type"] for block in message["blocks"]].count("task_card") == 30
    assert "ls 49" in text and "ls 19" not in text
    assert "stream" not in message, "the oldest tasks of a stream cannot be taken back"


def test_of_long_outputs_the_newest_are_shown() -> None:
    lines = tuple(
        ToolLine(call_id=str(n), tool="shell", summary="", state="done", output=f"{n}" * 500)
        for n in range(10)
    )
    (message,) = payloads(Activity(lines=lines))
    assert [bool(block.get("output")) for block in message["blocks"]] == [False] * 2 + [True] * 8


def test_what_runs_can_be_stopped_in_one_tap() -> None:
    line = ToolLine(call_id="1", tool="shell", summary="ls", state="running")
    (running,) = payloads(Activity(lines=(line,)))
    (growing,) = payloads(ReplyView(text="Once upon", state="streaming"))
    assert labels(running) == labels(growing) == ["Stop"]
    assert running["session"] == growing["session"] == "processing"
    (done,) = payloads(Activity(lines=(msgspec.structs.replace(line, state="done"),)))
    (told,) = payloads(ReplyView(text="Once upon a time"))
    assert labels(done) == labels(told) == [] and "session" not in done
    assert told["session"] == "active"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("<@U0BOT> do it", "do it"),
        ("ask <@U1|ann> in <#C1|dev>", "ask @ann in #dev"),
        ("see <https://a.b/c|this> and <https://a.b>", "see this (https://a.b/c) and https://a.b"),
        ("<!here> <!subteam^S1|@ops> a &lt;b&gt; &amp;amp;", "@here @ops a <b> &amp;"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
    ],
)  # fmt: skip
def test_what_people_write_is_read_as_they_saw_it(written: str, meant: str) -> None:
    assert make_readable(written, "U0BOT") == meant


@pytest.mark.parametrize(
    ("caption", "written"),
    [
        ("The **table**, as *you* asked.", "The *table*, as _you_ asked."),
        ("~~old~~ <!channel> a & b", "~old~ &lt;!channel&gt; a &amp; b"),
        ("docs and `**x** <@U1>`", "docs and `**x** &lt;@U1&gt;`"),
        ("# Head\n- one\n* two\n2 * 3 * 4", "*Head*\n• one\n• two\n2 * 3 * 4"),
    ],
)
def test_a_caption_is_written_in_slacks_own_markup(caption: str, written: str) -> None:
    file = MediaFile(ref="o1/a", name="a.csv", mime="text/csv", size=3)
    (payload,) = render(Media(files=(file,), caption=caption))
    assert msgspec.json.decode(payload)["text"] == written


@pytest.mark.parametrize("frame", [*ANSWERS, "{said}.{place}", "x.{place}. {said}"])
def test_no_comment_on_files_has_a_link_that_slack_would_load(frame: str) -> None:
    """Other messages forbid previews; a comment cannot."""
    caption = frame.format(place="evil.example", said="CANARY-1")
    files = tuple(MediaFile(ref=f"o/{n}", name=f"{n}.pdf", mime="", size=1) for n in range(12))
    *_, first, last = made = payloads(Media(files=files, caption=caption))
    assert "CANARY" in json.dumps(made), "no word is lost"
    for one in (first, last):
        assert check_previews("", {"initial_comment": one["text"]}) == []


def test_a_comment_may_name_a_file() -> None:
    file = MediaFile(ref="o/1", name="report.pdf", mime="", size=1)
    assert len(payloads(Media(files=(file,), caption="See report.pdf, e.g. page 2."))) == 1
