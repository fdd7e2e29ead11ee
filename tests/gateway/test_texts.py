"""Texts by language: what is said where a language lacks it, and what a set of them must hold."""

import pytest

from gateway.texts import CATALOGUE
from gateway.texts.languages import Texts
from gateway.wiring.features import OWN

PONG: Texts[str] = Texts(
    {"en": {"pong": "Pong, {name}.", "more": "More."}, "de": {"pong": "Pong, {name}"}}
)


def test_our_own_are_whole() -> None:
    CATALOGUE.check()
    for feature in OWN:
        feature.texts.check()


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
