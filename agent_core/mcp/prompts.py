"""A server's prompts: texts that a person has run as their own request."""

import re
import shlex
from typing import TYPE_CHECKING

from agent_core.errors import ToolFailed
from agent_core.mcp.listings import read_pages
from agent_core.mcp.server_facts import PromptFacts

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, ContentBlock, Prompt

MAX_ABOUT = 120
"""Maximum characters of a prompt's description in a list."""
STRAIGHT = dict.fromkeys(map(ord, "“”„"), '"')
"""The quotes that phones write."""
ANSWERED = "(You answered then:)"
_NAME = re.compile(r"[\w.-]{1,60}")
"""Matches an argument's name that people can write; another one may be anything."""


async def list_prompts(client: "Client") -> tuple[PromptFacts, ...]:
    """The server's prompts."""
    capabilities = client.server_capabilities
    if capabilities is None or capabilities.prompts is None:
        return ()
    pages = await read_pages(lambda cursor: client.list_prompts(cursor=cursor))
    return tuple({one.name: _describe(one) for page in pages for one in page.prompts}.values())


async def get_prompt(client: "Client", name: str, words: str) -> "CallToolResult":
    """The prompt's messages, in the shape of a tool's result. `words`: its arguments as people
    write them. Raises ToolFailed."""
    from mcp_types import CallToolResult, TextContent

    found = next((one for one in await list_prompts(client) if one.name == name), None)
    if found is None:
        raise ToolFailed("its server has no such prompt")
    result = await client.get_prompt(name, read_arguments(found, words))
    content: list[ContentBlock] = []
    for message in result.messages:
        if message.role == "assistant":
            content.append(TextContent(text=ANSWERED))
        content.append(message.content)
    return CallToolResult(content=content)


def read_arguments(prompt: PromptFacts, words: str) -> dict[str, str]:
    """Parse `name=value` for each argument, in quotes if it has spaces; words without a name are
    the first argument. Raises ToolFailed, which tells the arguments."""
    names = (*prompt.required, *prompt.optional)
    try:
        parts = shlex.split(words.translate(STRAIGHT))
    except ValueError:
        parts = words.split()
    pairs = [part.partition("=") for part in parts]
    if names and pairs and not any(mark and name in names for name, mark, _ in pairs):
        given = {names[0]: words.strip()}
    else:
        given = {name: value for name, mark, value in pairs if mark}
    strange = sorted(given.keys() - set(names)) or [name for name, mark, _ in pairs if not given]
    missing = [name for name in prompt.required if name not in given]
    if strange or missing:
        needed = (f"{one}=…" for one in filter(_NAME.fullmatch, prompt.required))
        takes = " ".join((*needed, *_brackets(prompt.optional)))
        raise ToolFailed(f"it takes: {takes}" if takes else "it takes no arguments")
    return given


def _brackets(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"[{one}=…]" for one in names if _NAME.fullmatch(one))


def _describe(prompt: "Prompt") -> PromptFacts:
    arguments = prompt.arguments or []
    return PromptFacts(
        name=prompt.name,
        about=" ".join((prompt.description or "").split())[:MAX_ABOUT],
        required=tuple(one.name for one in arguments if one.required),
        optional=tuple(one.name for one in arguments if not one.required),
    )
