"""Transfers files: fetches those that people sent, uploads those that the agent sends."""

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
"""Matches characters forbidden in a file's name on the wire."""
PHOTO = re.compile(r"photo|image|dimensions", re.IGNORECASE)
"""Texts of a 400 for a picture that cannot be shown as a photo; as a file it passes."""


async def download(wire: AiohttpRequest, url: str, to: BinaryIO) -> None:
    """Write the file at `url` to `to`; Rejected if it is larger than the Bot API's limit."""
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
    """Remove the files that a payload names, and return them."""
    return msgspec.convert(data.pop("files", {}), dict[str, TelegramUpload])


def caption_of(data: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of editMessageCaption for a message with files."""
    media = data.get("media")
    first = media[0] if isinstance(media, list) and media else data
    fields = {name: first[name] for name in ("caption", "caption_entities") if name in first}
    return {"caption": ""} | fields


def as_documents(
    data: Mapping[str, object], sources: Mapping[str, TelegramUpload]
) -> tuple[str, dict[str, object], dict[str, TelegramUpload]]:
    """Return (method, data, files) that send as files what Telegram does not accept as photos."""
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
