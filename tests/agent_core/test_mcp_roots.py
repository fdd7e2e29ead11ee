"""The folders that the operator names for a server are told to it when it asks, and no others."""

import sys
from pathlib import Path

import pytest

from agent_core.mcp.servers import Servers
from agent_core.mcp.settings import parse_servers
from agent_core.messages import ToolOutput
from agent_core.settings import SettingsError
from agent_core.tools.contract import ToolContext
from tests.fakes.waiting import PATIENCE

CURIOUS = """
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)
able, waiting = False, None
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            able = "roots" in asked["params"]["capabilities"]
            say({"id": asked["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                               "serverInfo": {"name": "curious", "version": "1"}}})
        case "tools/list":
            say({"id": asked["id"], "result": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}})
        case "tools/call":
            waiting = asked["id"]
            say({"id": 99, "method": "roots/list"})
        case None if asked.get("id") == 99:
            told = json.dumps(asked.get("result", {}).get("roots", "refused"))
            text = f"able {able} told {told}"
            say({"id": waiting, "result": {"content": [{"type": "text", "text": text}]}})
        case _ if "id" in asked:
            say({"id": asked["id"], "error": {"code": -32601, "message": "unknown"}})
"""


@pytest.mark.parametrize(
    ("roots", "told"),
    [
        ([], 'able False told "refused"'),
        (["/srv/a b", "/srv/ü"], '{"uri": "file:///srv/a%20b"}, {"uri": "file:///srv/%C3%BC"}'),
    ],
)
async def test_a_server_is_told_the_folders_of_its_settings(
    tmp_path: Path, roots: list[str], told: str
) -> None:
    given = {"name": "curious", "command": sys.executable, "args": ["-c", CURIOUS], "roots": roots}
    context = ToolContext(workspace=tmp_path, key="k", limit=60, output=lambda _: None)
    async with Servers(parse_servers([given])) as servers:
        await servers.meet(PATIENCE)
        (found,) = servers.find(["curious__look"])
        tool = servers.make(found)
        got = await tool.call(tool.arguments.model_validate({}), context)
        assert isinstance(got, ToolOutput) and told in got.text


@pytest.mark.parametrize("root", ["", "notes", "./notes", "~/notes", "file:///notes"])
def test_a_folder_without_its_whole_path_is_refused(root: str) -> None:
    with pytest.raises(SettingsError, match="server 1: roots: must be folders"):
        parse_servers([{"name": "a", "command": "x", "roots": [root]}])
