"""Guardrails: people hear of what was found and let through. Of what is stopped the turn tells."""

from agent_core.events import GuardrailWarned
from gateway.delivery.phrasing import say_phrase
from gateway.feature import Feature, on_event
from gateway.views import Notice


def make_notice(event: GuardrailWarned, language: str) -> Notice:
    """The line about what a scanner found."""
    return Notice(text=say_phrase(event.words, language), quiet=True)


FEATURE = Feature(name="guardrails", events=(on_event(GuardrailWarned, make_notice),))
