"""A memory of somebody else beside ours, set up for a gateway."""

import json
import sys
from pathlib import Path

from tests.fakes import memory_server
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig

USER = {"user": "{space}"}
PROVIDER = {
    "server": "mem",
    "recall": {"tool": "search", "arguments": {"query": "{words}", **USER}},
    "add": {"tool": "add", "arguments": {"text": "{text}", **USER}},
    "remove": {"tool": "remove", "arguments": {"text": "{text}", **USER}},
}


def kept(rig: Rig) -> Path:
    return rig.folder / "kept.json"


def settings(rig: Rig, **more: object) -> dict[str, str]:
    arguments = [memory_server.__file__, str(kept(rig))]
    server = {"name": "mem", "command": sys.executable, "args": arguments, "tools": []}
    return {
        "MCP_SERVERS": json.dumps([server]),
        "MEMORY_PROVIDER": json.dumps(PROVIDER | more),
    }


async def ask(rig: Rig, text: str, answer: str, *calls: Call, who: int = PERSON) -> str:
    """The person's last message as the model saw it first."""
    begun = len(rig.model.requests)
    rig.model.script(*calls, Say(answer))
    rig.telegram.say(who, text)
    await rig.shows(answer, who)
    await rig.quiet()
    said = rig.model.requests[begun].body["messages"]
    return str([one["content"] for one in said if one["role"] == "user"][-1])
