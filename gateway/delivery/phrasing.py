"""Renders the agent's phrases (`agent_core.phrases`) in a person's language. Pure."""

from agent_core.phrases import Phrase
from gateway.texts import CATALOGUE, ENGLISH, say
from gateway.texts.languages import choose_accepted


def say_phrase(phrase: Phrase, language: str) -> str:
    """`phrase` in `language`; one that this version has no text for in the agent's own words."""
    if phrase.key not in ENGLISH:
        return str(phrase)
    fields = {
        name: say_phrase(value, language) if isinstance(value, Phrase) else value
        for name, value in phrase.fields.items()
    }
    return say(phrase.key, language, **fields)


def say_to_browser(phrase: Phrase, accepted: str) -> tuple[str, str]:
    """Return the supported language that this Accept-Language prefers, and `phrase` in it."""
    language = choose_accepted(accepted, CATALOGUE.list_codes())
    return language or "en", say_phrase(phrase, language)
