"""A message that says it was possibly sent twice, and the same without that note. Pure.

Before such a message is sent, the adapter looks for the one without the note: if it exists, nothing
is sent, and nothing was sent twice.
"""

from itertools import zip_longest

import msgspec


def with_twins(payloads: tuple[bytes, ...], twins: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Attach to each payload the one that may be there in its place (`sure`)."""
    return tuple(
        payload
        if twin is None
        else msgspec.json.encode(_decode_payload(payload) | {"sure": twin.decode()})
        for payload, twin in zip_longest(payloads, twins[: len(payloads)])
    )


def _decode_payload(payload: bytes) -> dict[str, object]:
    told: dict[str, object] = msgspec.json.decode(payload)
    return told
