"""Prepares pictures for a model: which ones it can be shown, and the text in place of the
others."""

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from agent_core.context.data_marks import render_content
from agent_core.messages import Message, Picture, ToolResult, pictures_of, text_of
from agent_core.models.port import ModelRequest

MAX_BYTES = 3_750_000
"""Maximum bytes of one picture: Anthropic takes 5 MB of base64."""
MAX_SHOWN = 20_000_000
"""Bytes of pictures in one request; older ones are left out first."""
MAX_COUNTED = 90
"""Pictures in one request: Anthropic takes 100."""
UNSEEN = "[the picture {path} cannot be shown to you]"
_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)

Form: TypeAlias = tuple[Callable[[str], dict[str, object]], Callable[[str], dict[str, object]]]
"""Writes a text, and a picture by its data URL, for a protocol."""
Read = Callable[[str], bytes]
"""Reads the stored copy with this `ref`; OSError if it is gone."""


def kind(head: bytes) -> str:
    """Return the MIME type of a picture by its first bytes, if all providers take it; otherwise "".
    Names and declared types are ignored."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for sign, mime in _SIGNS if head.startswith(sign)), "")


async def attach_pictures(request: ModelRequest, read: Read) -> ModelRequest:
    """`request` with the pictures of its messages."""
    wanted = _choose_newest(request.messages)
    if not wanted:
        return request
    return replace(request, pictures=await asyncio.to_thread(_encode_pictures, wanted, read))


def describe_unseen(picture: Picture) -> str:
    """Describe a picture that is not shown."""
    return UNSEEN.format(path=picture.path)


def render_user_content(
    message: Message, shown: Mapping[str, str], form: Form
) -> str | list[dict[str, object]]:
    """Render a person's message for protocols that take data URLs: plain text, or text and
    pictures."""
    pictures = pictures_of(message)
    if not pictures:
        return text_of(message)
    words, picture = form
    return [
        words(text_of(message)),
        *(
            words(describe_unseen(one))
            if (data := shown.get(one.ref)) is None
            else picture(f"data:{one.mime};base64,{data}")
            for one in pictures
        ),
    ]


def split_result(
    result: ToolResult, shown: Mapping[str, str]
) -> tuple[str, tuple[tuple[Picture, str], ...]]:
    """Split a result into text, with a note for each picture that is not shown, and the shown
    pictures with their base64 data. A failure is text alone: providers take no picture in one."""
    if not result.pictures:
        return render_content(result), ()
    seen = () if result.error else tuple(one for one in result.pictures if one.ref in shown)
    words = (
        render_content(result),
        *(describe_unseen(one) for one in result.pictures if one not in seen),
    )
    return "\n".join(filter(None, words)), tuple((one, shown[one.ref]) for one in seen)


def _choose_newest(messages: tuple[Message, ...]) -> list[str]:
    room, refs = MAX_SHOWN, dict[str, None]()
    found = [picture for message in messages for picture in pictures_of(message)]
    for picture in reversed(found[_count_left_out(len(found)) :]):
        if picture.ref not in refs and picture.size <= room:
            room -= picture.size
            refs[picture.ref] = None
    return list(refs)


def _count_left_out(count: int) -> int:
    """Return how many of the first of `count` pictures are left out. It grows in steps: between two
    of them each request begins with the whole previous one."""
    leap = MAX_COUNTED // 2
    return -(-max(0, count - MAX_COUNTED) // leap) * leap


def _encode_pictures(refs: Iterable[str], read: Read) -> dict[str, str]:
    found: dict[str, str] = {}
    for ref in refs:
        try:
            found[ref] = base64.b64encode(read(ref)).decode()
        except OSError:
            continue  # copies are kept for a month
    return found
