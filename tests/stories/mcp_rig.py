"""MCP servers beside a gateway."""

import json
import sys
from pathlib import Path

from tests.fakes.mcp_server import arguments
from tests.fakes.model_server import Call
from tests.stories.rig import Rig


def stdio(rig: Rig, *more: str, name: str = "notes", **fields: object) -> str:
    """MCP_SERVERS with a child process; it writes its effects into a file."""
    dead = str(rig.folder / "dead")
    started = {"command": sys.executable, "args": arguments(note(rig), "--dead", dead, *more)}
    return json.dumps([{"name": name, "env": {"TOKEN": "TOKEN-SECRET"}, **started, **fields}])


def note(rig: Rig) -> Path:
    return rig.folder / "note"


def find(query: str) -> Call:
    return Call("find_tools", json.dumps({"query": query}))


def through(name: str, **given: object) -> Call:
    return Call("call_tool", json.dumps({"name": name, "arguments": given}))
