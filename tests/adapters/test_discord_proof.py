"""What holds for every view: Discord takes it, no word is lost, nothing breaks out of its fence."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapters.calls import describe_call
from adapters.discord import render as rendering
from adapters.discord.render import render
from gateway.views import ApprovalCard, Media, PlanView, ProposalLine, ReplyView, ReportView, View
from tests.adapters.telegram_views import FILES, VIEWS, texts
from tests.fakes.discord_schema import check_message
from tests.fakes.discord_server import text_of
from tests.sampling import examples

Json = dict[str, Any]
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
SPEC = Path(__file__).parents[1] / "fixtures" / "schemas" / "discord.json"
"""Discord's own description of a message."""
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def payloads(view: View) -> list[Json]:
    return [msgspec.json.decode(one) for one in render(view)]


def as_sent(payload: Json) -> tuple[Json, list[str]]:
    """What goes out for a payload, and the names of its files."""
    names = [one["name"] for one in payload.get("files", ())]
    sent = {name: value for name, value in payload.items() if name != "files"}
    if names:
        sent["attachments"] = [{"id": str(n), "filename": name} for n, name in enumerate(names)]
    return sent | {"nonce": "n", "enforce_nonce": True}, names


def every_view_is_taken(view: View) -> None:
    rendered = payloads(view)
    for payload in rendered:
        sent, names = as_sent(payload)
        assert check_message(sent, names, new=True) == []
        assert all(text.count("```") % 2 == 0 for text in _each_text(payload))
    assert render(view) == render(view)
    if isinstance(view, PlanView):
        assert len(rendered) == 1
        assert not view.buttons or '"custom_id"' in json.dumps(rendered)


def _each_text(payload: Json) -> Iterator[str]:
    yield from re.findall(r'"content": "((?:[^"\\]|\\.)*)"', json.dumps(payload))


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_every_view_is_what_discord_takes(view: View) -> None:
    every_view_is_taken(view)


@pytest.mark.slow
@settings(max_examples=5_000, deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_thousands_of_views_are_what_discord_takes(view: View) -> None:
    every_view_is_taken(view)


@cache
def validator() -> Draft202012Validator:
    spec = json.loads(SPEC.read_text("utf-8"))
    schema = {"$ref": "#/components/schemas/MessageCreateRequest"}
    return Draft202012Validator(schema | {"components": spec["components"]})


def as_discord_describes_it(view: View) -> None:
    for payload in payloads(view):
        assert [error.message[:200] for error in validator().iter_errors(as_sent(payload)[0])] == []


@settings(max_examples=examples(80), deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_every_view_is_what_discords_description_takes(view: View) -> None:
    as_discord_describes_it(view)


@pytest.mark.slow
@settings(max_examples=5_000, deadline=None, suppress_health_check=SLOW)
@given(VIEWS)
def test_thousands_of_views_are_what_discords_description_takes(view: View) -> None:
    as_discord_describes_it(view)


# ---- no word is lost -----------------------------------------------------------------------

WORD = re.compile(r"w\d+e")


def shown(view: View) -> Iterator[str]:
    for payload in payloads(view):
        if isinstance(view, ReplyView | ReportView | ApprovalCard) and (
            files := payload.get("files")
        ):
            yield from (source["text"] for source in files)
        else:
            yield text_of(payload)


def numbered(pieces: list[str]) -> str:
    """Markdown in whose every piece stand words that are never the same twice."""
    count = iter(range(1_000_000))
    return "".join(re.sub("W", lambda _: f"w{next(count)}e", piece) for piece in pieces)


LONG = st.lists(
    st.sampled_from(
        [
            "W W W. **W W** W `W` W.\n\n" * 12,
            "# W\n\n",
            "##### W\n\n",
            "- W\n- [x] W **W**\n  - W\n\n",
            "```py\n" + "W = W(W)\n" * 60 + "```\n\n",
            "~~~~\nW\n```\nW\n~~~~\n\n",
            "| W | W |\n|---|---|\n" + "| W | W `W` |\n" * 25 + "\n",
            "> W W\n> W\n\n",
            "W " * 200 + "\n\n",
        ]
    ),
    min_size=1,
    max_size=60,
).map(numbered)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(LONG, st.booleans())
def test_the_parts_of_an_answer_are_the_answer(text: str, as_report: bool) -> None:
    view = ReportView(title="Title", text=text) if as_report else ReplyView(text=text)
    parts, wanted = list(shown(view)), WORD.findall(text)
    if any("files" in payload for payload in payloads(view)):
        *beginning, file = parts
        assert text in file
        assert len(beginning) == rendering.BEGINNING
        return
    assert len(parts) <= rendering.MAX_MESSAGES
    assert list(dict.fromkeys(word for part in parts for word in WORD.findall(part))) == wanted


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(["cmd", "command"]), st.lists(texts(20), min_size=1, max_size=3))
def test_an_approval_shows_all_arguments(name: str, arguments: list[str]) -> None:
    encoded = [msgspec.json.encode({name: one}).decode() for one in arguments]
    lines = tuple(
        ProposalLine(tool="shell", arguments=one, reason="", risk="low") for one in encoded
    )
    view = ApprovalCard(question="1", asker="", proposals=lines)
    whole = "".join("".join(shown(view)).split()).replace("```", "")
    files = (source["text"] for payload in payloads(view) for source in payload.get("files", ()))
    attached = "".join("".join(files).split())
    for one in encoded:
        line = ProposalLine(tool="t", arguments=one, reason="", risk="low")
        called = describe_call(line, "")
        wanted = "".join((called.whole or called.body).split())
        if wanted not in attached:  # where nothing is a fence
            assert wanted.replace("```", "``\\u0060").replace("```", "") in whole


@settings(max_examples=examples(60), deadline=None)
@given(st.builds(Media, files=st.lists(FILES, max_size=13).map(tuple), caption=texts(20)))
def test_each_file_is_given_once_or_named(view: Media) -> None:
    given_out = [one["ref"] for payload in payloads(view) for one in payload.get("files", ())]
    small = [one.ref for one in view.files if one.size <= rendering.MAX_FILE]
    assert given_out == small
    assert "".join(shown(view)).count("✕") >= len(view.files) - len(small)
