"""Writes moments as Discord's timestamps: each reader's own time.

Done last, on the finished payload, so that none is taken for markup before.
"""

import msgspec

from gateway.moment_texts import Moment, has_moment, write_moments

TEXT = 10
"""The component in which Discord reads markdown."""


def write_moment(moment: Moment) -> str:
    """The moment as Discord's markdown has it."""
    return f"<t:{moment.at}:f>"


def write_in_payload(payload: bytes) -> bytes:
    """`payload` with its moments written."""
    if not has_moment(payload.decode()):
        return payload
    return msgspec.json.encode(_write(msgspec.json.decode(payload)))


def _write(part: object) -> object:
    match part:
        case str():
            return write_moments(part)
        case list():
            return [_write(one) for one in part]
        case dict() if part.get("type") == TEXT and isinstance(part.get("content"), str):
            return part | {"content": write_moments(part["content"], write_moment)}
        case dict():
            return {name: _write(one) for name, one in part.items()}
    return part
