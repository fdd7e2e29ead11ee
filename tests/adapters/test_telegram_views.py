"""Plans, activities, reports, tables and files: what people see in both forms."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from adapters.telegram import answers
from adapters.telegram.render import render
from adapters.text import MAX_BEGINNING
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    FormCard,
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
from tests.fakes.telegram_schema import check_payload
from tests.fakes.telegram_wire import bare

Json = dict[str, Any]


def payloads(view: View, *, rich: bool = False) -> list[Json]:
    found = [msgspec.json.decode(payload) for payload in render(view, rich=rich)]
    assert [wrong for payload in found for wrong in check_payload(payload)] == []
    return found


def styles(payload: Json) -> list[tuple[str, str]]:
    units = payload["text"].encode("utf-16-le")
    return [
        (e["type"], units[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le"))
        for e in payload.get("entities", [])
    ]


# ---- plans ---------------------------------------------------------------------------------

PLAN = PlanView(
    title="Move the site",
    steps=(
        PlanStep(id="a", text="Copy `files`", state="done", note="12 MB"),
        PlanStep(id="b", text="Check links", state="failed", note="3 broken"),
        PlanStep(id="c", text="Switch over", state="running"),
        PlanStep(id="d", text="Old mirror", state="skipped"),
        PlanStep(id="e", text="Tell the team"),
    ),
    buttons=(Button(label="Stop", token="q:1:stop", style="bad"),),
)
WHOLE = (
    "◐ Move the site 1/5\n\n☑ 1. Copy files (12 MB)\n✕ 2. Check links (3 broken)\n◐ 3. Switch over\n"
    "– 4. Old mirror\n☐ 5. Tell the team"
)


def test_a_plan_is_a_checklist_in_a_rich_message() -> None:
    (payload,) = payloads(PLAN, rich=True)
    title, checklist = payload["rich_message"]["blocks"]
    assert title["text"] == [{"type": "bold", "text": "◐ Move the site"}, " 1/5"]
    assert checklist["type"] == "list"
    assert [item.get("is_checked", False) for item in checklist["items"]] == [True, *[False] * 4]
    boxed = ["has_checkbox" in item for item in checklist["items"]]
    assert boxed == [True, False, False, False, True], "no box beside another mark"
    texts = [bare(item["blocks"]) for item in checklist["items"]]
    assert texts == [
        "1. Copy files (12 MB)",
        "✕ 2. Check links (3 broken)",
        "◐ 3. Switch over",
        "– 4. Old mirror",
        "5. Tell the team",
    ]
    assert payload["reply_markup"]["inline_keyboard"][0][0]["text"] == "Stop"


@pytest.mark.parametrize("rich", [True, False])
def test_only_what_has_to_be_seen_rings(rich: bool) -> None:
    line = ToolLine(call_id="1", tool="run_command", summary="ls", state="done")
    quiet: list[View] = [Activity(lines=(line,)), PLAN]
    loud: list[View] = [
        replace(PLAN, state="open"),
        ReplyView(text="done", state="done"),
        ReportView(title="Daily", text="ok"),
    ]
    for view in quiet:
        assert all(one["disable_notification"] for one in payloads(view, rich=rich))
    for view in loud:
        assert not any("disable_notification" in one for one in payloads(view, rich=rich))


def test_a_plan_is_a_list_with_marks_elsewhere() -> None:
    (payload,) = payloads(PLAN)
    assert payload["text"] == WHOLE
    assert ("bold", "Switch over") in styles(payload)
    assert ("strikethrough", "Old mirror") in styles(payload)
    assert ("italic", "(12 MB)") in styles(payload)
    assert payload["reply_markup"]["inline_keyboard"][0][0]["text"] == "Stop"


@pytest.mark.parametrize("rich", [True, False])
def test_of_a_plan_that_is_too_long_the_ended_steps_give_way_first(rich: bool) -> None:
    ended = tuple(PlanStep(id=f"s{n}", text="x" * 250, state="done") for n in range(300))
    rest = tuple(PlanStep(id=f"r{n}", text=f"step {n}") for n in range(3))
    view = PlanView(title="T", steps=(*ended, *rest), outcome="Done so far", language="de")
    (payload,) = payloads(view, rich=rich)
    text = bare(payload["rich_message"]["blocks"]) if rich else payload["text"]
    assert "◐ T 300/303" in text
    assert all(f"step {n}" in text for n in range(3))
    assert "frühere Schritte" in text
    assert text.endswith("Done so far")
    later = PlanView(title="T", steps=rest * 300)
    (payload,) = payloads(later, rich=rich)
    text = bare(payload["rich_message"]["blocks"]) if rich else payload["text"]
    assert "earlier" not in text
    assert text.rstrip().endswith("more steps")


# ---- tool lines ----------------------------------------------------------------------------

LINES = (
    ToolLine(call_id="1", tool="search", summary="q\n x", state="done", output="one\ntwo"),
    ToolLine(call_id="2", tool="shell", summary="ls", state="running"),
    ToolLine(call_id="3", tool="pay", summary="", state="denied"),
)


def test_outputs_are_folded_details_in_a_rich_message() -> None:
    (payload,) = payloads(Activity(lines=LINES, words="Looking **there**."), rich=True)
    words, search, shell, pay = payload["rich_message"]["blocks"]
    assert bare([words]) == "Looking there."
    assert search["type"] == "details"
    assert "is_open" not in search
    assert search["summary"] == ["☑ search:", " ", {"type": "code", "text": "q x"}]
    assert search["blocks"] == [{"type": "pre", "text": "one\ntwo"}]
    assert bare([shell, pay]) == "◐ shell: ls\n✕ pay (denied)"


def test_a_long_rich_activity_drops_old_outputs_then_old_lines() -> None:
    lines = tuple(
        ToolLine(call_id=str(n), tool="t", summary=f"n{n}", state="done", output=f"o{n} " * 400)
        for n in range(150)
    )
    (payload,) = payloads(Activity(lines=lines), rich=True)
    blocks = payload["rich_message"]["blocks"]
    assert bare(blocks[:1]) == "50 earlier steps"
    assert [block["type"] for block in blocks[1:]] == ["paragraph"] * 90 + ["details"] * 10
    assert "n50" in bare(blocks[1:2])


def test_the_words_of_cards_are_in_the_persons_language() -> None:
    proposal = ProposalLine(tool="shell", arguments="{}", reason="", risk="high")
    card = ApprovalCard(
        question="1", asker="Ann", proposals=(proposal,), rule="shell ls", language="de-AT"
    )
    (approval,) = payloads(card)
    assert approval["text"] == (
        "☐ Darf das laufen?\nGefragt von Ann\n\nshell, hohes Risiko\n\n„Immer“ umfasst: shell ls"
    )
    two = msgspec.structs.replace(card, proposals=(proposal, proposal))
    assert payloads(two)[0]["text"].startswith("☐ Dürfen diese 2 Aufrufe laufen?")
    (form,) = payloads(FormCard(question="1", text="Wie?", token="q:1:text", language="de"))
    assert form["reply_markup"]["input_field_placeholder"] == "Ihre Antwort"
    many = (msgspec.structs.replace(LINES[2], summary="s" * 300),) * 60
    for rich in (True, False):
        (payload,) = payloads(Activity(lines=many * 2, language="de"), rich=rich)
        text = bare(payload["rich_message"]["blocks"]) if rich else payload["text"]
        assert "frühere Schritte" in text
        assert "(abgelehnt)" in text
        assert "weitere Zeichen)" in text


# ---- tables and long answers ---------------------------------------------------------------

TABLE = "Prices:\n\n| Thing | Price |\n|:--|--:|\n| **Pen** | 2 |\n| Ink | 30 |\n\nThat is all."


def test_a_table_is_a_table_where_the_server_has_them() -> None:
    (payload,) = payloads(ReplyView(text=TABLE, note="Stopped here."), rich=True)
    before, table, after, note = payload["rich_message"]["blocks"]
    assert (bare([before]), bare([after]), bare([note])) == (
        "Prices:",
        "That is all.",
        "Stopped here.",
    )
    assert [cell["text"] for cell in table["cells"][0]] == ["Thing", "Price"]
    assert all(cell["is_header"] for cell in table["cells"][0])
    assert [cell["align"] for cell in table["cells"][1]] == ["left", "right"]
    assert table["cells"][1][0]["text"] == {"type": "bold", "text": "Pen"}
    (plain,) = payloads(ReplyView(text=TABLE))
    assert "Pen   | 2" in plain["text"].replace("    ", "   ")
    assert any(kind == "pre" for kind, _ in styles(plain))


def test_answers_without_a_table_stay_plain_messages() -> None:
    for text in ("Hello", "# Top\n\n- a | b\n- c", "a --- b | c", "```\n|a|\n|-|\n```"):
        assert [p["method"] for p in payloads(ReplyView(text=text), rich=True)] == ["sendMessage"]


def test_nothing_in_a_rich_message_pings_or_loads() -> None:
    text = (
        TABLE + "\n\n[a](tg://user?id=7) ![c](https://a.b/c.png) <img src=x> @somebody http://x.y"
    )
    (payload,) = payloads(ReplyView(text=text), rich=True)
    encoded = msgspec.json.encode(payload).decode()
    assert "tg://" not in encoded
    assert payload["rich_message"]["skip_entity_detection"] is True
    assert '"type":"photo"' not in encoded
    assert "<img src=x> @somebody" in bare(payload["rich_message"]["blocks"])
    assert encoded.count('"type":"url"') == 2


def test_names_in_plain_messages_ping_nobody() -> None:
    (payload,) = payloads(ReplyView(text="Ask @bob_b or **@ann_a**, mail a@b.cc, `@code`, 𝕏 @c"))
    assert [text for kind, text in styles(payload) if kind == "code"] == [
        "@bob_b",
        "@ann_a",
        "@code",
    ]


def test_a_very_long_answer_is_a_beginning_and_a_file() -> None:
    text = "".join(f"Paragraph {n} has some words in it.\n\n" for n in range(900))
    first, document = payloads(ReplyView(text=text))
    assert first["text"].startswith("Paragraph 0 ") and first["text"].endswith(".\n\n…")
    assert 1_000 < len(first["text"]) <= MAX_BEGINNING + 3, "no wall above the file"
    assert document["method"] == "sendDocument"
    assert document["files"]["document"]["text"] == text
    assert "all of it" in document["caption"]
    noted = payloads(ReplyView(text=text, note="Possibly sent twice (restart)."))
    assert noted[:2] == [first, document]
    assert noted[2]["text"] == "Possibly sent twice (restart)."


def test_what_is_shown_of_a_growing_answer_stays_a_message() -> None:
    """A message cannot become a file: what is streamed is the beginning of every final form."""
    words = [f"Sentence {n} of a long answer. " for n in range(1500)]
    for count in range(50, 1500, 50):
        growing = ReplyView(text="".join(words[:count]), state="streaming")
        shown = payloads(growing)
        final = payloads(ReplyView(text="".join(words)))
        assert len(shown) <= answers.BEGINNING
        for before, after in zip(shown, final, strict=False):
            assert after["method"] == before["method"]


def test_a_report() -> None:
    view = ReportView(title="Disk", text="All **fine**.\n\n" + TABLE, note="Daily", language="de")
    (rich,) = payloads(view, rich=True)
    kinds = [block["type"] for block in rich["rich_message"]["blocks"]]
    assert kinds == ["heading", "paragraph", "paragraph", "table", "paragraph", "footer"]
    (plain,) = payloads(view)
    assert plain["text"].startswith("Disk\n\nAll fine.\n\nPrices:")
    assert styles(plain)[0] == ("bold", "Disk")
    assert styles(plain)[-1] == ("italic", "Daily")
    long = ReportView(title="Disk", text="A paragraph of a report.\n\n" * 2000, language="de")
    for form in (True, False):
        *texts, document = payloads(long, rich=form)
        assert [p["method"] for p in texts] == ["sendMessage"]
        assert document["caption"].startswith("Die Antwort ist lang")
        assert document["files"]["document"]["name"] == "report.md"


# ---- files ---------------------------------------------------------------------------------


def file(name: str, mime: str = "text/csv", size: int = 5) -> MediaFile:
    return MediaFile(ref=f"t1/{name}", name=name, mime=mime, size=size)


def test_files_go_out_by_kind() -> None:
    picture = file("a.png", "image/png")
    (photo,) = payloads(Media(files=(picture,), caption="A **chart**"))
    assert photo["method"] == "sendPhoto"
    assert photo["caption"] == "A chart"
    assert photo["caption_entities"] == [{"type": "bold", "offset": 2, "length": 5}]
    assert photo["files"]["photo"] == {"name": "a.png", "mime": "image/png", "ref": "t1/a.png"}
    big, moving = file("b.png", "image/png", 11 << 20), file("c.gif", "image/gif")
    assert [p["method"] for p in payloads(Media(files=(big,)))] == ["sendDocument"]
    assert [p["method"] for p in payloads(Media(files=(moving,)))] == ["sendDocument"]
    album, documents = payloads(Media(files=(picture, file("d.csv"), picture, moving), caption="x"))
    assert [m["type"] for m in album["media"]] == ["photo", "photo"]
    assert [m.get("caption") for m in album["media"]] == ["x", None]
    assert [m["type"] for m in documents["media"]] == ["document", "document"]
    assert "caption" not in documents["media"][0]


def test_albums_have_at_most_ten_files_and_what_a_call_carries() -> None:
    calls = payloads(Media(files=tuple(file(f"{n}.csv") for n in range(21))))
    assert [len(call["files"]) for call in calls] == [10, 10, 1]
    heavy = payloads(Media(files=tuple(file(f"{n}.csv", size=20 << 20) for n in range(5))))
    assert [len(call["files"]) for call in heavy] == [2, 2, 1]


def test_a_long_caption_stands_above_and_a_large_file_is_named() -> None:
    view = Media(
        files=(file("a.csv"), file("huge.zip", size=51 << 20)), caption="w " * 600, language="de"
    )
    above, document, notice = payloads(view)
    assert above["method"] == "sendMessage"
    assert len(above["text"]) == 1199
    assert "caption" not in document
    assert notice["text"].startswith("✕ Die Datei huge.zip hat 51 MB")
