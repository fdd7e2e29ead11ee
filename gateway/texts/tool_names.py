"""Tools by the names that people give them. Vocabulary: imports nothing of ours but the texts."""

from gateway.texts import say
from gateway.texts.tools import TOOL_NAMES

SIGN_IN = "sign_in"
"""The tool by which people sign in at a server, beside the server's own."""
_FOREIGN = "__"
"""Stands between a server and its tool in the name of a tool of MCP."""


def name_tool(tool: str, language: str = "") -> str:
    """What people call the tool; its own name where there is no other."""
    if (key := TOOL_NAMES.get(tool)) is not None:
        return say(key, language)
    server, between, name = tool.partition(_FOREIGN)
    if server and between and name == SIGN_IN:
        return say("tool_sign_in", language, server=server)
    if server and between and name:
        return say("tool_foreign", language, tool=name, server=server)
    return tool
