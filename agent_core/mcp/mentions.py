"""Resources that a person names in a message, as `@server:uri`, and prompts that they run, as
`/prompt server name …`: read as the turn begins."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.events import StatusShown
from agent_core.mcp.resources import READ
from agent_core.messages import Mention
from agent_core.orchestration.brief import Brief
from agent_core.scope import Scope
from agent_core.tools.finding.mcp_tools import NAME_SEPARATOR
from agent_core.tools.finding.toolsets import is_in_all

MAX_MENTIONS = 5
"""Resources that one message names."""
MAX_SHOWN = 2_000
"""Characters of why one cannot be read."""
_MENTION = re.compile(r"(?<![\w@./:])@([a-z0-9][a-z0-9_-]{0,40}):([^\s<>\"']{1,2000})")


PROMPT = "/prompt "
"""The start of a text that runs a prompt."""
_RUN = re.compile(r"/prompt\s+(\S+)\s+(?:[\"“„]([^\"“”„]+)[\"“”]|(\S+))(?:\s+((?s:.*)))?\s*")
"""A prompt's name with a blank in it stands in quotes."""
_ENDS, _PAIRS = ".,;:!?", {")": "(", "]": "[", "}": "{"}
"""Signs that end a sentence around an address, or close what was opened before it."""
RUN = (
    "[The person runs the prompt {name} of the server {server}. What follows is its text: take it "
    "as their request.]\n\n{text}"
)


class ResourceReader(Protocol):
    """Reads named resources and prompts of servers."""

    async def read(self, mention: Mention, workspace: Path, key: str) -> str:
        """The text, marked as its server's; files are written into `workspace`. ToolFailed."""


class _Read(Struct, frozen=True, kw_only=True):
    """One read. `text`: for the model; `why`: why it failed, for people."""

    mention: str
    text: str = ""
    why: str = ""

    def tell(self) -> str:
        """The text for the model."""
        return self.text or f"[{self.mention} could not be read: {self.why}]"


def find_mentions(texts: Iterable[str], servers: Iterable[str]) -> tuple[Mention, ...]:
    """Return each resource or prompt of `servers` named in the texts, once."""
    known, found = frozenset(servers), []
    for text in texts:
        if text.startswith(PROMPT):
            if run := _RUN.fullmatch(text):
                found.append(Mention(server=run[1], prompt=run[2] or run[3], words=run[4] or ""))
            continue
        for server, uri in _MENTION.findall(text):
            if uri := _end_uri(uri):
                found.append(Mention(server=server, uri=uri))
    return tuple(dict.fromkeys(one for one in found if one.server in known))[:MAX_MENTIONS]


def _end_uri(uri: str) -> str:
    """`uri` without the signs of its sentence; a bracket that it opened itself is its own."""
    while uri and (
        uri[-1] in _ENDS or (uri[-1] in _PAIRS and uri.count(uri[-1]) > uri.count(_PAIRS[uri[-1]]))
    ):
        uri = uri[:-1]
    return uri


async def add_mentions(scope: Scope, brief: Brief, servers: ResourceReader) -> Brief:
    """Add the named content to the brief, each as data; a failed read is told in a line beside the
    answer, and to the model."""
    own = scope.child("mentions")

    async def read() -> list[_Read]:
        return [await _read(own, brief, servers, one) for one in brief.mentions]

    found = await own.once("read", read, kind=list[_Read])
    for n, one in enumerate(found):
        said = one.why or f"{len(one.text):,} characters"
        own.emit(StatusShown(text=said, phase=one.mention), f"mention-{n}")
    told = "\n\n".join(one.tell() for one in found)
    return brief.append(told, brief.said or brief.request_text())


async def _read(own: Scope, brief: Brief, servers: ResourceReader, mention: Mention) -> _Read:
    shown = str(mention)
    tool = f"{mention.server}{NAME_SEPARATOR}{READ}"
    if brief.reach is None or not is_in_all(tool, brief.reach):
        return _Read(mention=shown, why="its server is not in reach here")
    key = f"{own.turn_id}/mention/{shown}"
    try:
        text = await servers.read(mention, Path(brief.workspace), key)
    except ToolFailed as error:
        return _tell_failure(shown, str(error))
    most = brief.most_observed
    text = text if len(text) <= most else _cut(text, most)
    if mention.prompt:
        text = RUN.format(name=mention.prompt, server=mention.server, text=text)
    return _Read(mention=shown, text=text)


def _tell_failure(shown: str, said: str) -> _Read:
    """A failed read. The model is told a server's words within their marks, people without."""
    ours, mark, marked = said.partition("\n[")
    lines = (line for line in said.splitlines() if line and not line.startswith("["))
    told = f"[{shown} could not be read: {' '.join(ours.split())}]{mark}{marked}"
    return _Read(mention=shown, text=told, why=" ".join(lines)[:MAX_SHOWN])


def _cut(text: str, most: int) -> str:
    """`text` without its middle; its end is the mark that closes it."""
    head, tail = most * 3 // 4, most // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out]\n{text[-tail:]}"
