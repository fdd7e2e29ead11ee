"""The lines of an activity: one for each call of a tool, and how it went. Pure."""

import msgspec
from msgspec.structs import replace

from agent_core.guardrails.secret_shapes import hide_shapes
from agent_core.journal import Outcome, ToolFinished
from agent_core.messages import ToolCall
from agent_core.phrases import Phrase
from gateway.delivery.phrasing import say_phrase
from gateway.views import LineState, ToolLine

SUMMARY, OUTPUT = 120, 2_000
"""Maximum characters of a call's summary line, and of its output."""
ENDS: dict[Outcome, LineState] = {
    "ok": "done",
    "failed": "failed",
    "timed_out": "failed",
    "unknown": "unknown",
    "cancelled": "stopped",
    "denied": "denied",
}
Lines = tuple[ToolLine, ...]


def make_line(call: ToolCall) -> ToolLine:
    """The line of a call that begins."""
    tool = hide_shapes(call.name)  # a model may put anything in place of a name
    return ToolLine(call_id=call.id, tool=tool, summary=summary(call), state="running")


def mark_line(lines: Lines, call_id: str, state: LineState, output: str = "") -> Lines:
    """`lines` with one call in another state."""
    return tuple(
        replace(line, state=state, output=cut(output)) if line.call_id == call_id else line
        for line in lines
    )


def move_lines(lines: Lines, old: set[str], new: LineState) -> Lines:
    """`lines` with all that are in one of the states `old` in the state `new`."""
    return tuple(replace(line, state=new) if line.state in old else line for line in lines)


def summary(call: ToolCall) -> str:
    """The call in one line: the first of its arguments that says something, or all of them."""
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = call.arguments
    if isinstance(arguments, dict):
        arguments = next(filter(None, map(_words, arguments.values())), "")
    line = hide_shapes(str(arguments).strip().replace("\n", " ⏎ "))
    return line if len(line) <= SUMMARY else line[: SUMMARY - 1] + "…"


def _words(value: object) -> str:
    """Return a text, or joined texts; "" for anything else and for the current folder."""
    match value:
        case str():
            return "" if value.strip() in ("", ".") else value
        case list():
            return ", ".join(one for one in value if isinstance(one, str) and one.strip())
        case _:
            return ""


def end_of(record: ToolFinished) -> LineState:
    """Return how a call went. A command with another exit code than 0 failed, although its call
    gave the model its output."""
    failed = record.outcome == "ok" and record.command is not None and record.command.failed
    return "failed" if failed else ENDS[record.outcome]


def output_of(record: ToolFinished, language: str) -> str:
    """Return a call's output for people."""
    if record.command is not None and record.command.silent:
        return ""
    if isinstance(record.shown, Phrase):
        return say_phrase(record.shown, language)
    return hide_shapes(record.content if record.shown is None else record.shown)


def cut(output: str) -> str:
    """Cut a call's output to the part that is shown."""
    return output if len(output) <= OUTPUT else f"{output[:OUTPUT]}\n… (+{len(output) - OUTPUT})"
