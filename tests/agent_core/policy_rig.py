"""Tools that are judged and never run, and rules as an operator writes them."""

import json

from pydantic import BaseModel

from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.files import WriteFileArguments
from agent_core.tools.shell import RunCommandArguments
from agent_core.tools.web.tools import ReadPageArguments


async def refuse(arguments: BaseModel, context: ToolContext) -> str:
    """No call is made."""
    raise AssertionError(f"{arguments} ran in {context}")


def make_shell(*, isolated: bool) -> Tool:
    """run_command of a tier that runs nothing."""
    return Tool(
        name="run_command", description="", arguments=RunCommandArguments, repetition="effect",
        access="shell", call=refuse, limit=600.0, isolated=isolated,
    )  # fmt: skip


WRITING = Tool(
    name="write_file", description="", arguments=WriteFileArguments, repetition="idempotent", access="write",
    call=refuse,
)  # fmt: skip
FETCH = Tool(
    name="read_page", description="", arguments=ReadPageArguments, repetition="pure", access="network",
    call=refuse,
)  # fmt: skip


def read_rule(effect: str, name: str = "it", **conditions: object) -> str:
    """A rule in TOML."""
    given = {"name": name, "effect": effect, **conditions}
    lines = (f"{key} = {json.dumps(value)}" for key, value in given.items())
    return "[[rule]]\n" + "\n".join(lines) + "\n"
