"""Tells the model about restored files: their time, and what they lack."""

from collections.abc import Sequence

from agent_core import ambient
from agent_core.messages import ToolCall
from agent_core.sandboxes.states.file_states import RevivedFiles
from agent_core.sandboxes.states.scan import STATE

MAX_CALLS, MAX_CALL = 20, 120
"""Calls that are named, the newest; characters of each."""
_FILES = (
    "[The workspace was lost, and its files came back as they were at {when} UTC. What ran is "
    "gone.{state}{left}{missing}{calls}]\n"
)
_STATE = (
    "[HOME and /tmp were lost, and came back as they were at {when} UTC.{left}{missing}{calls}]\n"
)
_NO_STATE = " HOME and /tmp did not come back; what was installed there is gone."
_LEFT = " Too large to be kept: {names}."
_MISSING = " Not brought back: {names}."
_CALLS = " Not in them is what these calls did since, do again what is needed: {calls}."


def describe_revived(revived: RevivedFiles, calls: Sequence[ToolCall]) -> str:
    """Describe what was restored, for the result of the next call. `calls`: those that changed
    something and ended since."""
    left = [one for one in revived.left_out if one != STATE]
    named = calls[-MAX_CALLS:]
    return (_FILES if revived.workspace else _STATE).format(
        when=f"{ambient.utc(revived.at):%Y-%m-%d %H:%M}",
        state=_NO_STATE if STATE in revived.left_out else "",
        left=_LEFT.format(names=", ".join(left)) if left else "",
        missing=_MISSING.format(names=", ".join(revived.missing)) if revived.missing else "",
        calls=_CALLS.format(calls="; ".join(map(_describe_call, named))) if named else "",
    )


def _describe_call(call: ToolCall) -> str:
    return " ".join(f"{call.name} {call.arguments}".split())[:MAX_CALL]
