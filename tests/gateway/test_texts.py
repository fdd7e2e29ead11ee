"""Texts by language: what is said where a language lacks it, and what a set of them must hold."""

from string import Formatter

import pytest

from agent_core.guardrails.redaction import NOTHING
from agent_core.phrases import ENGLISH as ENGLISH_PHRASES
from agent_core.phrases import Phrase
from agent_core.questions import Approval, Decision, Proposal
from gateway.command_texts import drop_marks
from gateway.conversation.decisions import summarize
from gateway.features.history.undo import Restored
from gateway.store.rows import QuestionRow
from gateway.texts import CATALOGUE
from gateway.texts.languages import ENGLISH, Texts
from gateway.texts.tools import TOOL_NAMES
from gateway.wiring.features import OWN

PONG: Texts[str] = Texts(
    {"en": {"pong": "Pong, {name}.", "more": "More."}, "de": {"pong": "Pong, {name}"}}
)


def test_our_own_are_whole() -> None:
    CATALOGUE.check()
    for feature in OWN:
        feature.texts.check()


OWN_NAMES = tuple(name for name in TOOL_NAMES if "_" in name)


@pytest.mark.parametrize("language", CATALOGUE.list_codes())
def test_people_read_of_no_tool_by_its_own_name(language: str) -> None:
    """In no text of another language than English, which models read too; nor in what became of a
    turn that was taken back, nor in what a reminder says."""
    texts = CATALOGUE.read(language).values() if language != ENGLISH else ()
    assert not [(name, text) for text in texts for name in OWN_NAMES if name in text]
    for name in OWN_NAMES:
        assert name not in Restored(tools=(name, "other")).describe(language)
        proposal = Proposal(call_id="c", tool=name, arguments='{"path": "a"}', digest="d", risk="low", reason="")  # fmt: skip
        kind = Approval(proposals=(proposal,))
        row = QuestionRow(id="q", turn="t", key="k", status="open", question=kind, entitled=(), asked=0.0, expires=0.0)  # fmt: skip
        assert name not in summarize(row, language, NOTHING)
    twice = Restored(tools=("run_command", "bash")).describe(language)
    assert twice.count(CATALOGUE.say("tool_run_command", language)) == 1


def test_a_question_of_several_lines_is_listed_in_one_without_marks() -> None:
    asked = Decision(
        text="**New job: Files**\nAt 09:00\n\n**Next**: 2031-03-03 · 2*3", options=("a",)
    )
    row = QuestionRow(id="q", turn="t", key="k", status="open", question=asked, entitled=(), asked=0.0, expires=0.0)  # fmt: skip
    assert summarize(row, "", NOTHING) == "New job: Files · At 09:00"


@pytest.mark.parametrize(
    ("language", "said"), [("de-AT", "Pong, Ann"), ("fr", "Pong, Ann."), ("", "Pong, Ann.")]
)
def test_a_text_is_said_in_the_language_or_in_english(language: str, said: str) -> None:
    assert PONG.say("pong", language, name="Ann") == said


def test_what_a_language_lacks_is_said_in_english() -> None:
    PONG.check()
    assert PONG.say("more", "de") == "More."
    assert PONG.find("less", "de") is None


@pytest.mark.parametrize(
    ("german", "why"),
    [
        ({"ping": "Ping"}, "ping is there in de, but not in en"),
        ({"pong": "Pong, {nmae}"}, "pong has no nmae in en, but in de"),
        ({"pong": "Pong, {name"}, "pong cannot be read"),
    ],
)
def test_what_cannot_be_said_is_found_at_once(german: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Texts({"en": {"pong": "Pong, {name}."}, "de": german}).check()


@pytest.mark.parametrize("language", CATALOGUE.list_codes())
def test_no_text_ends_a_sentence_twice(language: str) -> None:
    """What an error says of itself may be a sentence, or not."""
    for key, text in CATALOGUE.read(language).items():
        names = {name for _, name, _, _ in Formatter().parse(drop_marks(text)) if name}
        for value in ("it broke.", "it broke", "up to ..", "and so on…", "."):
            try:
                said = CATALOGUE.say(key, language, **dict.fromkeys(names, value))
            except (ValueError, TypeError):
                continue  # it counts something
            assert "broke.." not in said and "broke.。" not in said, said
            assert (value == "up to ..") <= ("up to .." in said or not names), said


@pytest.mark.parametrize("key", ENGLISH_PHRASES)
def test_no_phrase_ends_a_sentence_twice(key: str) -> None:
    names = {name for _, name, _, _ in Formatter().parse(ENGLISH_PHRASES[key]) if name}
    said = str(Phrase(key=key, fields=dict.fromkeys(names, "it broke.")))
    assert "broke.." not in said
