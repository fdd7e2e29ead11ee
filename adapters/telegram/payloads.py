"""Native payloads: what a call takes besides the chat, as JSON bytes with its `method`. Pure."""

from collections.abc import Sequence

import msgspec

from adapters.telegram.blocks import Block
from adapters.telegram.entities import MAX_ENTITIES, Entity, Marked, hush_mentions
from gateway.views import Button

STYLES = {"plain": "", "good": "success", "bad": "danger"}
NARROW = 18
"""Two buttons share a row when both labels are at most this long."""
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


Markup = Keyboard | ForceReply | None


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
    """What is uploaded: a kept copy by `ref`, or `text`."""

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
    """One sendMessage a text that holds anything; `markup` belongs to the last."""
    shown = [marked for marked in texts if marked.text.strip()]
    return tuple(
        message(marked, markup if index + 1 == len(shown) else None, quiet=quiet)
        for index, marked in enumerate(shown)
    )


def message(marked: Marked, markup: Markup = None, *, quiet: bool = False) -> bytes:
    """One sendMessage; a `quiet` one rings nowhere."""
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
    """One sendRichMessage; nothing in it is detected, so no name in it pings. A `quiet` one rings
    nowhere."""
    return _ENCODER.encode(
        _RichMessage(
            method="sendRichMessage",
            rich_message=_Content(tuple(blocks)),
            reply_markup=markup,
            disable_notification=quiet,
        )
    )


def upload(call: Upload) -> bytes:
    """One call with files."""
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
