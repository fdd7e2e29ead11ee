"""The tool generate_slides: a presentation as a PPTX file, into the workspace and to the person."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from agent_core.errors import ToolFailed
from agent_core.messages import GivenFile, ToolOutput
from agent_core.skills.files import slug, store
from agent_core.skills.slides.deck import Deck, outline, write_deck
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.send import FileStore

NAME = "generate_slides"
FOLDER = "slides"
ABSENT = "python-pptx is not installed here. An operator installs it with the extra `slides`."


class SlidesArguments(Deck):
    """Arguments of generate_slides."""

    path: str = Field(default="", max_length=200, description="Ends with .pptx")


def why_unusable() -> str:
    """Return the reason why no presentation can be made, "" if one can. Imports nothing."""
    return "" if find_spec("pptx") is not None else ABSENT


def slides_tool(file_store: FileStore) -> Tool:
    """generate_slides that keeps copies in `file_store`."""

    async def call(wanted: SlidesArguments, context: ToolContext) -> ToolOutput:
        path = wanted.path or f"{FOLDER}/{slug(wanted.title, 'slides')}.pptx"
        if not path.endswith(".pptx"):
            raise ToolFailed("The path has to end with .pptx.")
        file = await asyncio.to_thread(_put, context.workspace, file_store, path, wanted)
        said = f"Wrote {path}: {len(wanted.slides) + 1} slides, given to the person."
        return ToolOutput(text=said, files=(file,), changed=(path,))

    return Tool(
        name=NAME,
        description="Write a presentation as a PPTX file and give it to the person.",
        summary="a presentation as PPTX",
        arguments=SlidesArguments,
        repetition="idempotent",
        access="write",
        call=call,
        preview=_preview,
        limit=60.0,
    )


def _put(workspace: Path, file_store: FileStore, path: str, deck: Deck) -> GivenFile:
    try:
        content = write_deck(deck)
    except ImportError:
        raise ToolFailed(ABSENT) from None
    store(workspace, path, content)
    return file_store.keep(workspace, path)


def _preview(wanted: SlidesArguments, workspace: Path) -> str:
    return outline(wanted)[:4_000]
