"""The definitions under which the operator's `allow` lets tools run unasked.

`allow` names tools, and a server may give a name another meaning later. So the operator vouches for
the definition that is known first; another one is asked about. What a person then approves holds
for that call, or for that person; for everybody only the operator allows it, by removing the file.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_core.config.plain_files import write_whole
from agent_core.mcp.settings import McpServer
from agent_core.tools.finding.mcp_tools import Definition
from agent_core.tools.finding.toolsets import is_in_all

log = logging.getLogger("turnkeeper.mcp")

MAX_VOUCHED = 2_000
"""Tools of one server with such definitions; of more, each call is asked about."""
OURS = "ours"
"""The version of a tool that the server does not describe."""

_Versions = dict[str, str]


class Vouching:
    """The definitions vouched for, by server and its tool, in files in `folder`, None: in memory.
    Where a file cannot be written, they hold until the end of the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, _Versions] = {}

    def recall(self, server: McpServer) -> None:
        """Read the server's file. Tools that are not in `allow` any more are forgotten, so that
        allowing one again begins anew."""
        place = self._place(server.name)
        if place is None or not place.is_file():
            return
        try:
            found = msgspec.json.decode(place.read_bytes(), type=_Versions)
        except (OSError, msgspec.DecodeError) as error:
            log.warning("mcp_vouched_lost", extra={"server": server.name, "error": str(error)})
            return
        kept = {tool: found[tool] for tool in found if _allows(server, tool)}
        self._known[server.name] = kept
        if kept != found:
            self._write(server.name)

    def is_vouched(self, server: McpServer, definition: Definition) -> bool:
        """The definition is one that the operator vouches for, or none of its tool is known."""
        if not _allows(server, definition.tool):
            return False
        known = self._known.get(server.name, {})
        version = known.get(definition.tool)
        if version is None:
            return len(known) < MAX_VOUCHED
        return definition.ours or version == _version(definition)

    def meet(self, server: McpServer, definitions: Iterable[Definition]) -> None:
        """Vouch for each definition that is the first one of its tool."""
        known = self._known.setdefault(server.name, {})
        new = {
            one.tool: _version(one)
            for one in definitions
            if one.tool not in known and _allows(server, one.tool)
        }
        if new:
            known |= dict(list(new.items())[: MAX_VOUCHED - len(known)])
            self._write(server.name)

    def _place(self, server: str) -> Path | None:
        return self._folder / f"{server}.allowed.json" if self._folder is not None else None

    def _write(self, server: str) -> None:
        place = self._place(server)
        if place is None:
            return
        try:
            write_whole(place, msgspec.json.encode(self._known[server]))
        except OSError as error:
            log.warning("mcp_vouched_not_kept", extra={"server": server, "error": str(error)})


def _allows(server: McpServer, tool: str) -> bool:
    return is_in_all(tool, (server.allow,))


def _version(definition: Definition) -> str:
    return OURS if definition.ours else definition.version
