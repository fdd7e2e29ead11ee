"""The tool terminate: the model says that it is done, and the loop ends with its answer."""

from collections.abc import Iterable
from typing import Literal

import msgspec
from pydantic import BaseModel

from agent_core.messages import Message, Text, ToolCall, ToolResult
from agent_core.tools.contract import Tool, ToolContext

ENDS = frozenset({"terminate"})
"""Tools whose results end the loop."""


class TerminateArguments(BaseModel):
    """Arguments of terminate."""

    status: Literal["success", "failure"]
    answer: str = ""


def terminate_tool() -> Tool:
    """Make terminate; it touches nothing, so nobody is asked."""
    return Tool(
        name="terminate",
        description="End the work now, with the answer for the person. Not needed where you "
        "simply answer.",
        summary="end the work now",
        arguments=TerminateArguments,
        repetition="pure",
        access="person",
        call=_call,
    )


def final_words(
    calls: Iterable[ToolCall], results: Iterable[ToolResult], words: str
) -> tuple[Message, ...]:
    """Return the assistant's last words, if one of `calls` ended the loop; `words`: said with them,
    for a call without an answer. () if none did."""
    for call, result in zip(calls, results, strict=True):
        if call.name in ENDS and not result.error:
            given = TerminateArguments.model_validate(msgspec.json.decode(call.arguments))
            said = given.answer.strip() or words.strip() or f"({given.status})"
            return (Message(role="assistant", parts=(Text(text=said),)),)
    return ()


async def _call(given: TerminateArguments, context: ToolContext) -> str:
    return f"The work ends here: {given.status}."
