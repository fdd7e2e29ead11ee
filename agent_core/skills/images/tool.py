"""The tool generate_image: a picture from words, into the workspace and to the person. It costs
money, so a person is asked, and it is never made twice."""

import asyncio

from pydantic import BaseModel, Field

from agent_core.context.pictures import kind
from agent_core.errors import ModelFailed, ToolFailed
from agent_core.messages import GivenFile, ToolOutput
from agent_core.skills.files import add, slug
from agent_core.skills.images.painter import Painter, Shape
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.send import FileStore

NAME = "generate_image"
FOLDER = "images"
LIMIT = 300.0
"""Seconds for one picture."""
_ENDS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


class ImageArguments(BaseModel):
    """Arguments of generate_image."""

    prompt: str = Field(min_length=1, max_length=8_000)
    shape: Shape = "square"
    name: str = Field(default="", max_length=60, description="Of the file, without its end.")


def image_tool(painter: Painter, file_store: FileStore) -> Tool:
    """generate_image by `painter`."""

    async def call(wanted: ImageArguments, context: ToolContext) -> ToolOutput:
        try:
            picture = await painter.paint(wanted.prompt, wanted.shape)
        except ModelFailed as error:
            raise ToolFailed(f"No picture was made: {error}") from None
        path, file = await asyncio.to_thread(_put, context, file_store, wanted, picture)
        said = f"Made {path} ({file.size:,} bytes) and given to the person."
        return ToolOutput(text=said, files=(file,), changed=(path,))

    return Tool(
        name=NAME,
        description="Make a picture from words; it is given to the person and kept in the "
        "workspace. It costs money.",
        summary="a picture from words; costs money",
        arguments=ImageArguments,
        repetition="effect",
        access="network",
        call=call,
        bind=lambda arguments, workspace: painter.name,
        preview=lambda arguments, workspace: f"Made by {painter.name}." if painter.name else "",
        limit=LIMIT,
    )


def _put(
    context: ToolContext, file_store: FileStore, wanted: ImageArguments, picture: bytes
) -> tuple[str, GivenFile]:
    end = _ENDS.get(kind(picture[:12]))
    if end is None:
        raise ToolFailed("What the provider sent is no picture that can be shown.")
    stem = slug(wanted.name or wanted.prompt, "picture")
    path = add(context.workspace, f"{FOLDER}/{stem}", end, picture)
    return path, file_store.keep(context.workspace, path)
