"""Describes failures of the agent in the person's language. Pure."""

from agent_core.events import ErrorMet
from gateway.delivery.phrasing import say_phrase


def describe_error(error: ErrorMet, language: str) -> str:
    """`error` in `language`; its own text where it has no phrases: a word of a budget is in that
    language already, and one of an older version is not known by any other words."""
    return " ".join(say_phrase(one, language) for one in error.phrases) or error.text
