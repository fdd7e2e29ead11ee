"""Guardrails: notices of findings that were let through. The turn itself tells of what is
blocked."""

from agent_core.events import GuardrailWarned
from gateway.delivery.phrasing import say_phrase
from gateway.feature import Feature, on_event
from gateway.views import Notice


def make_notice(event: GuardrailWarned, language: str) -> Notice:
    """Make the notice of a scanner's finding."""
    return Notice(text=say_phrase(event.words, language), quiet=True)


FEATURE = Feature(name="guardrails", events=(on_event(GuardrailWarned, make_notice),))
