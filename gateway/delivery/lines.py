"""The lines of an activity: one for each call of a tool, and how it went. Pure."""

import msgspec
from msgspec.structs import replace

from agent_core.journal import Outcome
from agent_core.messages import ToolCall
from gateway.views import LineState, ToolLine

SUMMARY, OUTPUT = 120, 2_000
"""Most characters of a call in one line, and of what it gave."""
ENDS: dict[Outcome, LineState] = {
    "ok": "done",
    "failed": "failed",
    "timed_out": "failed",
    "unknown": "unknown",
    "cancelled": "stopped",
    "denied": "denied",
}
Lines = tuple[ToolLine, ...]


def begun(call: ToolCall) -> ToolLine:
    """The line of a call that begins."""
    return ToolLine(call_id=call.id, tool=call.name, summary=summary(call), state="running")


def marked(lines: Lines, call_id: str, state: LineState, output: str = "") -> Lines:
    """`lines` with one call in another state."""
    return tuple(
        replace(line, state=state, output=cut(output)) if line.call_id == call_id else line
        for line in lines
    )


def moved(lines: Lines, old: set[str], new: LineState) -> Lines:
    """`lines` with all that are in one of the states `old` in the state `new`."""
    return tuple(replace(line, state=new) if line.state in old else line for line in lines)


def summary(call: ToolCall) -> str:
    """The call in one line: its first argument's value, or all of them."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = call.arguments
    if isinstance(arguments, dict):
        arguments = next((value for value in arguments.values() if isinstance(value, str)), "")
    line = str(arguments).strip().replace("\n", " ⏎ ")
    return line if len(line) <= SUMMARY else line[: SUMMARY - 1] + "…"


def cut(output: str) -> str:
    """What of a call's output is shown."""
    return output if len(output) <= OUTPUT else f"{output[:OUTPUT]}\n… (+{len(output) - OUTPUT})"
