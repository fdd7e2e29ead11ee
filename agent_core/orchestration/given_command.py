"""A turn that runs one command which its person gave, and asks no model."""

from msgspec import json
from msgspec.structs import replace

from agent_core.context.data_marks import mark_data
from agent_core.context.shortening import shorten
from agent_core.guardrails.guard import work_on_text
from agent_core.messages import Message, Text, ToolCall, ToolResult, user
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.scope import Scope

NAME = "run_command"
CALL = "given-command"
MAX_SHOWN = 3_000
"""Characters of the output in the answer, of both its ends; the tool's line has more."""
TOLD = "{said}\n\n[It stands for a command, which was run: {command}]"
NOTHING = "(no output)"


async def run_given_command(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
) -> TurnResult:
    """Run the command like any call: judged, asked about, in the sandbox. Its output is the
    answer."""
    call = await scope.once(CALL, lambda: _make_call(brief, hands), kind=ToolCall)
    (result,) = await act(scope.child(CALL), brief, hands, (call,))
    text = _quote(await _hide(result, hands))
    heard = text if _is_refused(result) else mark_data(text)  # what a program prints is data
    told = TOLD.format(said=brief.request_text(), command=brief.command)
    if brief.appended and brief.appended in brief.text:  # at the end, where others look for it
        told = f"{told}\n\n{brief.appended.lstrip()}"
    asked = user(told)
    return TurnResult(text=text, messages=(asked, _make_answer(heard)))


def _make_call(brief: Brief, hands: Hands) -> ToolCall:
    """Make the call, with all the time that commands may take: its person cannot ask for more."""
    arguments: dict[str, str | int] = {"command": brief.command}
    for tool in hands.toolbox.tools:
        if tool.name == NAME:
            arguments["timeout"] = int(tool.limit)
    return ToolCall(id=CALL, name=NAME, arguments=json.encode(arguments).decode())


async def _hide(result: ToolResult, hands: Hands) -> ToolResult:
    """Redact the output as an answer is: it reaches people directly."""
    if hands.hides is None:
        return result
    words, output = hands.hides().with_shapes(), result.content.strip("\n")
    shown = await work_on_text(len(output), lambda: words.hide(output))
    return replace(result, content=shown)


def _make_answer(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


def _is_refused(result: ToolResult) -> bool:
    return result.error and result.command is None


def _quote(result: ToolResult) -> str:
    """The output in a block that nothing in it ends."""
    text = result.content.strip("\n") or NOTHING
    if _is_refused(result):
        return text  # our explanation of why it was not run
    shown = shorten(text, MAX_SHOWN)
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{shown}\n{fence}"
