"""Files over the wire: what people sent is fetched, what the agent gives is uploaded."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from telegram import InputFile

from adapters.outputs import find_copy
from adapters.telegram.payloads import TelegramUpload
from adapters.telegram.transport import AiohttpRequest
from gateway.errors import Rejected

MAX_FETCHED = 20 << 20
NO_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff/\\]")
"""What a file's name on the wire must not hold."""
PHOTO = re.compile(r"photo|image|dimensions", re.IGNORECASE)
"""What a 400 says when a picture cannot be shown as a photo; as a file it passes."""


async def download(wire: AiohttpRequest, url: str, to: BinaryIO) -> None:
    """Write what is at `url` to `to`; Rejected if it is larger than the Bot API hands out."""
    taken = 0
    async with wire.download(url) as chunks:
        async for chunk in chunks:
            taken += len(chunk)
            if taken > MAX_FETCHED:
                raise Rejected("the file is larger than 20 MB")
            to.write(chunk)


@asynccontextmanager
async def open_sources(
    sources: Mapping[str, TelegramUpload], outputs: Path | None
) -> AsyncIterator[dict[str, InputFile]]:
    """`sources` ready to be uploaded under their names. Rejected if a kept copy is not there."""
    async with AsyncExitStack() as stack:
        parts = {}
        for name, source in sources.items():
            shown = NO_NAME.sub("_", source.name) or "file"
            if source.ref:
                file = await asyncio.to_thread(_open, source, outputs)
                stack.callback(file.close)
                part = InputFile(file, filename=shown, read_file_handle=False)
            else:
                part = InputFile(source.text.encode("utf-8", "replace"), filename=shown)
            part.mimetype = source.mime or part.mimetype
            parts[name] = part
        yield parts


def sources_of(data: dict[str, object]) -> dict[str, TelegramUpload]:
    """The files that a payload names, taken out of it."""
    return msgspec.convert(data.pop("files", {}), dict[str, TelegramUpload])


def caption_of(data: Mapping[str, object]) -> dict[str, object]:
    """What editMessageCaption takes for a message with files."""
    media = data.get("media")
    first = media[0] if isinstance(media, list) and media else data
    fields = {name: first[name] for name in ("caption", "caption_entities") if name in first}
    return {"caption": ""} | fields


def as_documents(
    data: Mapping[str, object], sources: Mapping[str, TelegramUpload]
) -> tuple[str, dict[str, object], dict[str, TelegramUpload]]:
    """(method, data, files) that send as files what is no photo to Telegram."""
    media = data.get("media")
    if isinstance(media, list):
        plain = [{**medium, "type": "document"} for medium in media]
        return "sendMediaGroup", {**data, "media": plain}, dict(sources)
    return "sendDocument", dict(data), {"document": next(iter(sources.values()))}


def _open(source: TelegramUpload, outputs: Path | None) -> BinaryIO:
    path = find_copy(outputs, source.ref, source.name)
    try:
        return path.open("rb")
    except OSError:
        raise Rejected(f"the file {source.name} is not there any more") from None
