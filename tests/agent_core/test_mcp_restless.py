"""Servers that say without an end that their tools changed, and those that begin no session."""

import sys
from pathlib import Path

import pytest

from agent_core.mcp import connection, servers
from agent_core.mcp.servers import Servers
from agent_core.mcp.settings import McpServer
from tests.fakes.waiting import PATIENCE, until

RESTLESS = """
import json, sys
place, calm, count = sys.argv[1], sys.argv[2] == "calm", 0
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    match asked.get("method"):
        case "initialize":
            answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                                "serverInfo": {"name": "restless", "version": "1"}}
        case "tools/list":
            count += 1
            with open(place, "a") as file:
                file.write("x")
            names = ["stays", "stays"] if calm else ["stays", f"new_{count}"]
            answer["result"] = {"tools": [{"name": one, "inputSchema": {"type": "object"}} for one in names]}
        case _ if "id" not in asked:
            continue
        case _:
            answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
    if asked["method"] == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
"""
MUTE = "import sys; sys.stdin.read()"
OLD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    begun = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": begun}), flush=True)
"""


def run(script: str, *words: str) -> McpServer:
    return McpServer(name="odd", command=sys.executable, args=("-c", script, *words), timeout=30)


@pytest.mark.parametrize("kind", ["calm", "changing"])
async def test_tools_are_listed_calmly_whatever_a_server_says(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as it says that they changed would be without a pause."""
    monkeypatch.setattr(connection, "CALM", 3600.0)
    lists = tmp_path / "lists"
    async with Servers([run(RESTLESS, str(lists), kind)]) as found:
        await found.meet(PATIENCE)
        await found.describe()  # other messages come and go meanwhile
        (facts,) = await found.describe()
        assert facts.there and "stays" in facts.tools
        assert len(lists.read_text()) == 1
        found.refresh()
    monkeypatch.setattr(connection, "CALM", 0.01)
    monkeypatch.setattr(servers, "MAX_TOOLS", 4)
    lists.write_text("")
    async with Servers([run(RESTLESS, str(lists), kind)]) as found:
        await found.meet(PATIENCE)
        await until(lambda: len(lists.read_text()) > 20, PATIENCE)
        assert len(found._known) <= 6, "what it had once is not kept for ever"
        assert found.find(["odd__stays"])


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (MUTE, "no answer within 2 s"),
        (OLD, "Unsupported protocol version"),
        ("exit(3)", "exit code 3"),
    ],
)
async def test_a_session_that_does_not_begin_says_why(
    script: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the exit code of a process that was ended for that."""
    monkeypatch.setattr(connection, "START", 2.0)
    async with Servers([run(script)]) as found:
        await found.meet(PATIENCE)
        (facts,) = await found.describe()
        assert not facts.there and told in facts.why
