"""Commands in texts: which there are, what becomes of them, and that nobody else can make one."""

import re

import msgspec
import pytest

from agent_core.journal import QuestionAsked
from agent_core.phrases import Phrase
from agent_core.questions import Decision
from agent_core.text import clean, clean_json, clean_values
from gateway.command_texts import (
    NamedCommand,
    OwnText,
    drop_marks,
    find_commands,
    mark_commands,
    name_command,
    write_commands,
    write_in_view,
)
from gateway.conversation.inbox.cleaning import clean_inbound
from gateway.delivery.fold import ViewFold
from gateway.jobs_port import JobRefused
from gateway.messages import Conversation, GatewaySaid
from gateway.texts import CATALOGUE, say
from gateway.views import ChoiceCard, Notice, PlanView, ReplyView, View
from gateway.wiring.features import our_commands

BARE = re.compile(r"(?<![\w/.:<{])/[a-z]\w*")
ELSEWHERE: dict[str, list[str]] = {"link_code": ["/link"]}
"""A command that its person gives on another platform, which may write it otherwise."""


@pytest.mark.parametrize("language", CATALOGUE.list_codes())
def test_each_command_in_a_text_is_one_of_ours(language: str) -> None:
    for key, text in CATALOGUE.read(language).items():
        assert "{/" not in text, f"{key}: braces that mark nothing"
        for command in find_commands(text):
            assert command.name in our_commands() or command.name == "{name}", f"{key}: {command}"
        bare = BARE.findall(write_commands(text, lambda _: ""))
        assert bare == ELSEWHERE.get(key, []), f"{key}: a command stands in braces"


def test_what_the_catalogue_writes_is_a_value() -> None:
    text = mark_commands("Write {/stop all}, {/pair {code}} or {/resume …} and {n}, {/zone A/B…}.")
    assert find_commands(text.format(code="X2", n=1)) == (
        NamedCommand(name="stop", arguments="all"),
        NamedCommand(name="pair", arguments="X2"),
        NamedCommand(name="resume", whole=False),
        NamedCommand(name="zone", arguments="A/B", whole=False),
    )
    plain = "Write /stop all, /pair X2 or /resume and 1, /zone A/B."
    assert write_commands(text).format(code="X2", n=1) == plain
    assert drop_marks(text).format(code="X2", n=1) == plain
    slack = write_commands(text, lambda command: f"`/turnkeeper {command.words}`")
    assert slack.startswith("Write `/turnkeeper stop all`, `/turnkeeper pair")


def test_a_text_that_was_cut_shows_no_mark() -> None:
    text = name_command("stop all")
    for end in range(len(text)):
        assert (
            write_commands(text[:end]) == drop_marks(text[:end]) == "/stop all"[: max(0, end - 1)]
        )


FORGED = f"see {name_command('unpair telegram:1')} now"


def test_a_value_brings_no_command_into_a_text() -> None:
    assert find_commands(say("memory_saved", "", text=FORGED)) == ()
    assert say("memory_saved", "", text=FORGED) == "Remembered: see /unpair telegram:1 now"
    (listed, asked) = find_commands(
        say("resume_recent", "", found=FORGED) + say("help", "", commands=OwnText(FORGED))
    )
    assert (listed.words, asked.words) == ("resume", "unpair telegram:1")


def test_nobody_else_can_write_one() -> None:
    """People, models and tools: what they write is cleaned where it enters."""
    plain = "see /unpair telegram:1 now"
    assert clean(FORGED) == plain and clean_values({"text": [FORGED]}) == {"text": [plain]}
    escaped = "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in FORGED)
    for text in (f'{{"text": "{FORGED}"}}', f'{{"text": "{escaped}"}}'):
        assert msgspec.json.decode(clean_json(text)) == {"text": plain}


def test_the_gateways_own_word_keeps_its_commands() -> None:
    where = Conversation(platform="slack", account="1", channel="7")
    said = GatewaySaid(conversation=where, event="e", text=say("welcome"))
    assert clean_inbound(said) is said
    assert [one.words for one in find_commands(said.text)] == ["help"]


def test_what_is_not_shown_in_a_chat_is_plain() -> None:
    assert "Delete one first: /jobs." in str(JobRefused(say("jobs_too_many", n=1)))


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (Notice(text=say("welcome")), "done; `/help` lists"),
        (ChoiceCard(question="", text="?", outcome=say("plan_undone")), "undone with </undo>."),
        (PlanView(title="", steps=(), outcome=say("plan_undone")), "undone with </undo>."),
        (ReplyView(text="x", note=say("plan_off")), "at once. </plan on> makes"),
    ],
)
def test_a_view_keeps_them_while_it_is_stored(view: View, shown: str) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(view), type=View)
    assert stored == view
    written = write_in_view(stored, lambda one: f"`/{one.words}`", lambda one: f"</{one.words}>")
    assert shown in str(written)
    assert write_in_view(written) is written


def test_a_card_of_the_agent_may_name_one() -> None:
    fold = ViewFold(language="de")
    asked = Decision(text="Job", options=("Yes",), hints=(Phrase(key="jobs_zone_hint"),))
    (name,) = fold.add(QuestionAsked(key="k", id="q", question=asked, at=0.0))
    card = fold.shapes[name].view
    assert isinstance(card, ChoiceCard)
    assert drop_marks(card.text) == "Job\nSie haben keine Zeitzone gewählt; /timezone tut das."
    assert [one.name for one in find_commands(card.text)] == ["timezone"]


def test_a_view_of_an_older_version_shows_what_it_said() -> None:
    old = b'{"kind":"notice","text":"Write /resume and a number.","tone":"info","quiet":false}'
    view = msgspec.json.decode(old, type=View)
    assert write_in_view(view, lambda _: "?") is view
