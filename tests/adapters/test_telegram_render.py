"""Views to Bot API payloads: goldens, and what holds for every payload."""

import subprocess
import sys
import time
import timeit
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.telegram.render import render, render_draft
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Notice,
    ProposalLine,
    ReplyView,
    SaidView,
    ToolLine,
    View,
)
from tests.fakes.telegram_schema import check
from tests.sampling import examples

PREVIEW = {"is_disabled": True}


def shown(view: View) -> list[dict[str, Any]]:
    """The payloads, each checked as the call that it will be."""
    payloads = [msgspec.json.decode(payload) for payload in render(view)]
    for payload in payloads:
        call = {key: value for key, value in payload.items() if key != "method"}
        assert check(payload["method"], {"chat_id": 1} | call) == []
        assert payload["link_preview_options"] == PREVIEW
    return payloads


def entities(payload: dict[str, Any]) -> list[tuple[str, str]]:
    units = payload["text"].encode("utf-16-le")
    return [
        (e["type"], units[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le"))
        for e in payload.get("entities", [])
    ]


def test_a_plain_reply() -> None:
    assert shown(ReplyView(text="Hello, it is 5 - 3 = 2.")) == [
        {
            "method": "sendMessage",
            "text": "Hello, it is 5 - 3 = 2.",
            "link_preview_options": PREVIEW,
        }
    ]


def test_markdown_becomes_entities() -> None:
    (payload,) = shown(
        ReplyView(
            text="# Top\n\n**b** 𝕏 `c` [l](https://a.b)\n\n- x\n\n```py\ni < 1\n```", note="stopped"
        )
    )
    assert payload["text"] == "Top\n\nb 𝕏 c l\n\n• x\n\ni < 1\n\nstopped"
    assert ("code", "c") in entities(payload)
    assert ("text_link", "l") in entities(payload)
    assert ("pre", "i < 1") in entities(payload)
    assert entities(payload)[-1] == ("italic", "stopped")
    assert [e["language"] for e in payload["entities"] if e["type"] == "pre"] == ["py"]


def test_html_and_double_bars_survive() -> None:
    (payload,) = shown(ReplyView(text="a <b>x</b> || b || c <script>\n\n`x<y || z` **!**"))
    assert payload["text"] == "a <b>x</b> || b || c <script>\n\nx<y || z !"


def test_nothing_in_model_output_pings_or_loads() -> None:
    text = "[Ann](tg://user?id=7) ![cat](https://a.b/c.png) [bad](javascript:1) ![x](tg://emoji?id=5368324170671202286)"
    (payload,) = shown(ReplyView(text=text))
    assert entities(payload) == [("text_link", "cat")]
    assert "Ann" in payload["text"]


def test_markup_that_means_nothing_is_shown_raw() -> None:
    assert [p["text"] for p in shown(ReplyView(text="```\n\n```"))] == ["```\n\n```"]
    assert shown(ReplyView(text="  ")) == []
    assert [p["text"] for p in shown(ReplyView(text="", note="stopped"))] == ["stopped"]


def test_a_long_reply_comes_whole_in_parts() -> None:
    code = "```py\n" + "".join(f"print({i})\n" for i in range(900)) + "```"
    payloads = shown(ReplyView(text="Words **here**.\n\n" * 200 + code, note="possibly sent twice"))
    assert len(payloads) == 4
    together = "\n".join(payload["text"] for payload in payloads)
    assert together.count("Words here.") == 200
    assert all(f"print({i})" in together for i in range(900))
    assert all(any(kind == "pre" for kind, _ in entities(p)) for p in payloads[1:])


def test_activity() -> None:
    lines = (
        ToolLine(call_id="1", tool="search", summary="q\n x", state="done", output="one\ntwo"),
        ToolLine(call_id="2", tool="shell", summary="", state="running"),
        ToolLine(call_id="3", tool="pay", summary="5", state="denied"),
    )
    (payload,) = shown(Activity(lines=lines, words="Looking **there**."))
    assert payload["text"] == (
        "Looking there.\n☑ search: q x\none\ntwo\n◐ shell\n✕ pay: 5 (denied)"
    )
    assert entities(payload) == [
        ("bold", "there"),
        ("code", "q x"),
        ("expandable_blockquote", "one\ntwo"),
        ("code", "5"),
    ]


def test_a_long_activity_is_one_message_and_counts_what_it_folds() -> None:
    lines = tuple(
        ToolLine(call_id=str(i), tool="t", summary="𝕏" * 300, state="done", output="o" * 900)
        for i in range(40)
    )
    (payload,) = shown(Activity(lines=lines, words="|a|" * 900))
    assert "earlier steps\n" in payload["text"]
    assert "(300 more characters)" in payload["text"]
    assert payload["text"].count("expandable") == 0
    assert len([e for e in payload["entities"] if e["type"] == "expandable_blockquote"]) >= 1


BUTTONS = (
    Button(label="Approve once", token="q:1:once", style="good"),
    Button(label="Deny", token="q:1:deny", style="bad"),
    Button(label="For this whole conversation", token="q:1:here"),
)


def card(arguments: str, **more: Any) -> ApprovalCard:
    line = ProposalLine(
        tool="shell", arguments=arguments, reason="it deletes files", risk="high", detail="cwd /tmp"
    )
    return ApprovalCard(
        question="1", asker="Ann", proposals=(line,), buttons=BUTTONS, rule="shell", **more
    )


def test_an_approval_shows_everything_and_its_buttons() -> None:
    (payload,) = shown(card('{"cmd":"rm -rf x"}'))
    assert payload["text"] == (
        "☐ May this run?\nRequested by Ann\n\nshell, high risk\nit deletes files\n"
        "cmd: rm -rf x\ncwd /tmp\n\n“Always” covers: shell"
    )
    assert payload["reply_markup"]["inline_keyboard"] == [
        [
            {"text": "Approve once", "callback_data": "q:1:once", "style": "success"},
            {"text": "Deny", "callback_data": "q:1:deny", "style": "danger"},
        ],
        [{"text": "For this whole conversation", "callback_data": "q:1:here"}],
        [{"text": "Deny with reason", "callback_data": "q:1:why"}],
    ]


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        ("detail", "Isolation: none.", "expandable_blockquote"),
        ("preview", "--- a.txt\n+++ a.txt\n+x", "pre"),
    ],
)
def test_a_change_is_code_and_a_word_on_a_call_is_not(name: str, words: str, kind: str) -> None:
    view = card("{}")
    line = replace(view.proposals[0], tool="write_file", **{name: words})
    (payload,) = shown(replace(view, proposals=(line,)))
    assert (kind, words) in entities(payload)


def test_a_decided_approval_has_no_buttons_and_its_outcome() -> None:
    (payload,) = shown(card("{}", state="denied", outcome="Denied by Ann, 12:01"))
    assert payload["text"] == "✕ shell\nDenied by Ann, 12:01"
    assert "reply_markup" not in payload


def test_long_arguments_are_folded_and_whole_with_the_buttons_last() -> None:
    argument = "".join(f"line {i}\\n" for i in range(300))
    above, asked = shown(card(f'{{"code": "{argument}"}}'))
    assert above["text"].count("line ") == 300
    assert entities(above)[0][0] == "expandable_blockquote"
    assert "line 0\n" in asked["text"] and "line 299" in asked["text"]
    assert "reply_markup" not in above and "reply_markup" in asked


def test_very_long_arguments_are_a_file_above_the_card() -> None:
    argument = "".join(f"line {i}\\n" for i in range(60_000))
    asked = card(f'{{"code": "{argument}"}}')
    first, last = map(msgspec.json.decode, render(asked))
    assert first["method"] == "sendDocument"
    assert first["files"]["document"]["text"].count("line ") == 60_000
    assert "line 0\n" in last["text"] and "line 59999" in last["text"] and "reply_markup" in last
    decided = replace(asked, state="approved", buttons=(), outcome="Approved.")
    kept, folded = map(msgspec.json.decode, render(decided))
    assert kept == first, "a message with a file stays one"
    assert "Approved." in folded["text"] and "reply_markup" not in folded


def test_hidden_characters_are_made_visible_in_an_approval() -> None:
    (payload,) = shown(card('{"cmd":"ls \u202egnp.exe"}'))
    assert "\u202e" not in payload["text"]
    assert "ls \\u202egnp.exe" in payload["text"]


def test_choice_form_notice_said() -> None:
    (choice,) = shown(ChoiceCard(question="1", text="Which **one**?", buttons=BUTTONS[:1]))
    assert choice["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "q:1:once"
    (answered,) = shown(
        ChoiceCard(question="1", text="Which?", state="answered", buttons=BUTTONS, outcome="Red")
    )
    assert answered["text"] == "Which?\n\n☑ Red"
    assert "reply_markup" not in answered
    (form,) = shown(FormCard(question="1", text="Your name?", token="q:1:f"))
    assert form["reply_markup"] == {
        "force_reply": True,
        "selective": False,
        "input_field_placeholder": "Your answer",
    }
    (error,) = shown(Notice(text="It failed. Try `/retry`.", tone="error"))
    assert error["text"] == "✕ It failed. Try /retry."
    assert shown(SaidView(name="Ann", text="hi")) == []


def test_a_draft_is_the_end_of_the_text() -> None:
    assert render_draft("") == {"text": ""}
    assert render_draft("**a**")["entities"] == [{"type": "bold", "offset": 0, "length": 1}]
    long = render_draft("word " * 2000)
    assert len(str(long["text"])) <= 4096


WORDS = st.text(max_size=30) | st.sampled_from(
    [
        "**b**",
        "`c`",
        "```py\n",
        "```",
        "\n\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "- x\n",
        "> q\n",
    ]
    + ["[l](https://a.b)", "||s||", "<b>", "# h\n", "𝕏" * 300, "x" * 900, "1. a\n", "~~s~~", "$x$"]
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(WORDS, max_size=30).map("".join), st.sampled_from(["", "stopped"]))
def test_every_reply_is_what_telegram_takes(text: str, note: str) -> None:
    view = ReplyView(text=text.encode("utf-8", "replace").decode(), note=note)
    shown(view)
    assert render(view) == render(view)


def test_plain_replies_are_cheap_and_need_no_converter() -> None:
    view = ReplyView(text="A short answer, as most are. It has two sentences.")
    took = timeit.timeit(lambda: render(view), timer=time.thread_time, number=500)
    assert took / 500 < 0.0001
    code = (
        "import sys; from adapters.telegram.render import render; from gateway.views import ReplyView;"
        "render(ReplyView(text='hi')); sys.exit('telegramify_markdown' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
