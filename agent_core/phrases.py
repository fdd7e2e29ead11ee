"""What the agent says about itself, as values: a key, its fields, and the English of it.

A surface that speaks another language finds its words by the key; nobody reads the English back.
Light: `agent_core.errors` needs it, and that is imported with `Agent`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

FaultKey = Literal[
    "fault_key",
    "fault_credit",
    "fault_rate",
    "fault_late",
    "fault_down",
    "fault_refused",
    "fault_silent",
    "fault_unreachable",
    "fault_uncallable",
    "fault_characters",
    "fault_stopped",
    "fault_cut",
    "fault_error",
    "fault_empty",
    "fault_senseless",
    "fault_stuck",
]
PhraseKey: TypeAlias = FaultKey

FAULTS: dict[FaultKey, str] = {
    "fault_key": "{name} refused the key ({status}). Check {setting}.",
    "fault_credit": "{name} says that there is no credit left (402). Check the account.",
    "fault_rate": "{name} limits the rate (429). Try again later or use another model.",
    "fault_late": "{name} took too long (408). Try again.",
    "fault_down": "{name} is overloaded or down ({status}). Try again later.",
    "fault_refused": "{name} did not accept the request ({status}): {detail}",
    "fault_silent": "{name} sent nothing for {seconds}. Try again later.",
    "fault_unreachable": "{name} cannot be reached at {host}. Check the network and the base URL.",
    "fault_uncallable": "{name} cannot be called: {detail}. Check key and base URL.",
    "fault_characters": "The conversation holds broken characters.",
    "fault_stopped": "{name} stopped sending. Try again, or use another model.",
    "fault_cut": "{name} broke off its answer. Try again, or use another model.",
    "fault_error": "{name} broke off with an error: {detail}. Try again, or use another model.",
    "fault_empty": "{name} gave an empty answer. Try again, or use another model.",
    "fault_senseless": "{name} sent something that is not {detail}. Try again, or use another "
    "model.",
    "fault_stuck": "This led nowhere ({detail}). Ask in another way.",
}
ENGLISH: Mapping[str, str] = {str(key): text for key, text in FAULTS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A sentence as a value; `str` gives the English. A field may be a phrase again. Stored: a key
    of another version than this one stands for itself."""

    key: str
    fields: "dict[str, str | Phrase]" = field(default_factory=dict)

    def __str__(self) -> str:
        return ENGLISH.get(self.key, self.key).format(**self.fields)


def phrase(key: PhraseKey, **fields: "str | Phrase") -> Phrase:
    """The phrase `key` with its fields."""
    return Phrase(key=key, fields=fields)
