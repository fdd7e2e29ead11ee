"""Names of tools for people.

Vocabulary: imports nothing of ours but the texts.
"""

from gateway.texts import say
from gateway.texts.tools import TOOL_NAMES

SIGN_IN = "sign_in"
"""The suffix of the tool by which people sign in at a server."""
_FOREIGN = "__"
"""Stands between a server and its tool in the name of a tool of MCP."""


def name_tool(tool: str, language: str = "") -> str:
    """Return the tool's name for people, by default its own name; one line, whatever a model
    calls."""
    tool = " ".join(tool.split())
    if (key := TOOL_NAMES.get(tool)) is not None:
        return say(key, language)
    server, between, name = tool.partition(_FOREIGN)
    if server and between and name == SIGN_IN:
        return say("tool_sign_in", language, server=server)
    if server and between and name:
        return say("tool_foreign", language, tool=name, server=server)
    return tool
