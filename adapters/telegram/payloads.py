"""Native payloads: a call's arguments except the chat, as JSON bytes with its `method`. Pure.

Moments are written into a payload last, so that none is taken for markup before: as each reader's
own time. A server that does not know the entity leaves the words, which are a time as well.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import msgspec

from adapters.telegram.blocks import Block
from adapters.telegram.entities import MAX_ENTITIES, Entity, Marked, hush_mentions
from adapters.text import measure_utf16
from gateway.moment_texts import MARKED, MARKS, drop_moments, has_moment, split_moments
from gateway.views import Button

FORMAT = "Dt"
"""A long date and a short time, in the reader's language and zone."""
TEXTS = (("text", "entities"), ("caption", "caption_entities"))
PLAIN = {"code", "pre"}
"""Entities and rich texts in which there is no other one."""

Json = dict[str, object]
STYLES = {"plain": "", "good": "success", "bad": "danger"}
NARROW = 18
"""Maximum length of the labels of two buttons that share a row."""
MAX_BUTTONS = 100


class _Key(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    text: str
    callback_data: str = ""
    style: str = ""
    url: str = ""


class Keyboard(msgspec.Struct, frozen=True):
    """InlineKeyboardMarkup."""

    inline_keyboard: tuple[tuple[_Key, ...], ...]


class ForceReply(msgspec.Struct, frozen=True):
    """Opens the reply field of whoever sees it."""

    force_reply: bool
    selective: bool
    input_field_placeholder: str


class NoReply(msgspec.Struct, frozen=True):
    """ReplyKeyboardRemove, of a closed form: only a mark, never sent."""

    remove_keyboard: Literal[True] = True


Markup = Keyboard | ForceReply | NoReply | None


class _Preview(msgspec.Struct, frozen=True):
    is_disabled: bool


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: str
    text: str
    entities: tuple[Entity, ...] = ()
    link_preview_options: _Preview
    reply_markup: Markup = None
    disable_notification: bool = False


class _Content(msgspec.Struct, frozen=True):
    blocks: tuple[Block, ...]
    skip_entity_detection: bool = True


class _RichMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: str
    rich_message: _Content
    reply_markup: Markup = None
    disable_notification: bool = False


class TelegramUpload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An upload: a stored copy by `ref`, or `text`."""

    name: str
    mime: str
    ref: str = ""
    text: str = ""


class Medium(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of an album."""

    type: str
    media: str
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()


class Upload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call with files; `files` names them by the part of the body that they go in."""

    method: str
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    media: tuple[Medium, ...] = ()
    files: dict[str, TelegramUpload]


_NO_PREVIEW = _Preview(True)
_ENCODER = msgspec.json.Encoder()


def messages(
    texts: Sequence[Marked], markup: Markup = None, *, quiet: bool = False
) -> tuple[bytes, ...]:
    """Make one sendMessage for each non-empty text; `markup` belongs to the last."""
    shown = [marked for marked in texts if marked.text.strip()]
    return tuple(
        message(marked, markup if index + 1 == len(shown) else None, quiet=quiet)
        for index, marked in enumerate(shown)
    )


def message(marked: Marked, markup: Markup = None, *, quiet: bool = False) -> bytes:
    """Make one sendMessage; a `quiet` one does not notify."""
    marked = hush_mentions(marked)
    return _ENCODER.encode(
        _Message(
            method="sendMessage",
            text=marked.text,
            entities=marked.entities[:MAX_ENTITIES],
            link_preview_options=_NO_PREVIEW,
            reply_markup=markup,
            disable_notification=quiet,
        )
    )


def rich_message(blocks: Sequence[Block], markup: Markup = None, *, quiet: bool = False) -> bytes:
    """Make one sendRichMessage without entity detection, so that no name in it pings. A `quiet` one
    does not notify."""
    return _ENCODER.encode(
        _RichMessage(
            method="sendRichMessage",
            rich_message=_Content(tuple(blocks)),
            reply_markup=markup,
            disable_notification=quiet,
        )
    )


def upload(call: Upload) -> bytes:
    """Make one call with files."""
    return _ENCODER.encode(call)


def keyboard(buttons: Sequence[Button]) -> Keyboard | None:
    """Rows of one or two buttons; None without any."""
    rows: list[tuple[_Key, ...]] = []
    for button in buttons[:MAX_BUTTONS]:
        key = _Key(
            text=button.label,
            callback_data=button.token,
            style=STYLES[button.style],
            url=button.url,
        )
        last = rows[-1] if rows else ()
        if len(last) == 1 and max(len(last[0].text), len(key.text)) <= NARROW:
            rows[-1] = (*last, key)
        else:
            rows.append((key,))
    return Keyboard(tuple(rows)) if rows else None


def write_moments(payload: bytes) -> bytes:
    """`payload` with its moments written."""
    if not has_moment(payload.decode()):
        return payload
    made: Json = msgspec.json.decode(payload)
    if "rich_message" in made:
        return msgspec.json.encode(made | {"rich_message": _write_rich(made["rich_message"])})
    return msgspec.json.encode(_write_texts(made))


def _write_texts(part: object) -> object:
    """Write moments as entities in texts that have some; elsewhere as words."""
    match part:
        case str():
            return drop_moments(part)
        case list():
            return [_write_texts(one) for one in part]
        case dict():
            made = {name: _write_texts(one) for name, one in part.items()}
            for text, entities in TEXTS:
                if isinstance(part.get(text), str) and has_moment(str(part[text])):
                    made |= _write_entities(str(part[text]), part.get(entities, []), entities, text)
            return made
    return part


def _write_entities(text: str, entities: object, name: str, of: str) -> Json:
    """The text without marks, its entities moved, and one more for each moment."""
    known: list[Json] = entities if isinstance(entities, list) else []
    gone = tuple(accumulate(_count_marks(text), initial=0))
    moved = []
    for one in known:
        start = int(str(one["offset"]))
        end = start + int(str(one["length"]))
        moved.append(
            one | {"offset": start - gone[start], "length": end - gone[end] - start + gone[start]}
        )
    plain = [one for one in moved if one.get("type") in PLAIN]
    added = [
        one for one in _find_entities(text, gone) if not any(_meet(one, other) for other in plain)
    ]
    room = sorted([*added, *moved][:MAX_ENTITIES], key=_order)
    return {of: drop_moments(text), name: room}


def _count_marks(text: str) -> Sequence[int]:
    """Return, for each UTF-16 unit of `text`, whether it is a mark."""
    return [int(MARKS.match(one) is not None) for one in text for _ in range(measure_utf16(one))]


def _find_entities(text: str, gone: Sequence[int]) -> list[Json]:
    found = []
    for one in MARKED.finditer(text):
        (moment,) = (part for part in split_moments(one.group()) if not isinstance(part, str))
        start = measure_utf16(text[: one.start()])
        entity = {
            "type": "date_time",
            "offset": start - gone[start],
            "length": measure_utf16(moment.words),
        }
        if moment.words:
            found.append(entity | {"unix_time": moment.at, "date_time_format": FORMAT})
    return found


def _meet(one: Json, other: Json) -> bool:
    first, second = _order(one), _order(other)
    return first[0] < second[0] - second[1] and second[0] < first[0] - first[1]


def _order(one: Json) -> tuple[int, int]:
    """Return a sort key that puts an outer entity before inner ones."""
    return int(str(one["offset"])), -int(str(one["length"]))


def _write_rich(part: object) -> object:
    """Rich texts: a moment becomes one of them, but within code."""
    match part:
        case str() if has_moment(part):
            return _make_rich(part)
        case list():
            return [_write_rich(one) for one in part]
        case dict() if part.get("type") in PLAIN:
            return _write_texts(part)
        case dict():
            return {name: _write_rich(one) for name, one in part.items()}
    return part


def _make_rich(text: str) -> object:
    parts: list[object] = [
        one
        if isinstance(one, str)
        else {
            "type": "date_time",
            "text": one.words,
            "unix_time": one.at,
            "date_time_format": FORMAT,
        }
        for one in split_moments(text)
    ]
    return parts if len(parts) > 1 else parts[0] if parts else ""
