"""A view that says it was possibly sent twice, and the same without that word. Pure.

Before such a message is sent, the adapter looks whether the one without the word is there already:
then nothing is sent, and nothing was sent twice.
"""

from itertools import zip_longest

import msgspec
from msgspec.structs import replace

from gateway.texts import say
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    Reply,
    Report,
    Said,
    View,
)

NOTES = tuple(
    say(key, language) for key in ("twice_note", "lost_note") for language in ("en", "de")
)


def without_doubt(view: View) -> View | None:
    """`view` as it was before its doubt was put on it, None if there is none."""
    match view:
        case Reply() | Report():
            field, text = "note", view.note
        case Notice() | ChoiceCard() | FormCard():
            field, text = "text", view.text
        case Activity():
            field, text = "words", view.words
        case ApprovalCard() | PlanView():
            field, text = "outcome", view.outcome
        case Media() | Said():
            return None
    for note in NOTES:
        if text.endswith(note):
            return replace(view, **{field: text.removesuffix(note).rstrip()})
    return None


def with_twins(payloads: tuple[bytes, ...], twins: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Each payload with the one that may be there in its place (`sure`)."""
    return tuple(
        payload if twin is None else msgspec.json.encode(_told(payload) | {"sure": twin.decode()})
        for payload, twin in zip_longest(payloads, twins[: len(payloads)])
    )


def _told(payload: bytes) -> dict[str, object]:
    told: dict[str, object] = msgspec.json.decode(payload)
    return told
