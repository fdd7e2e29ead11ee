"""What stands beside the agent: a model and its tools in a loop, and nothing else."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
from pydantic import ValidationError

from agent_core.errors import ToolFailed
from agent_core.messages import Message, Text, ToolCall, ToolResult, calls_of, text_of, user
from agent_core.models.port import Model, ModelRequest, ToolSpec
from agent_core.tools.contract import Tool, ToolContext
from benchmarks.agent.course import SYSTEM

MAX_ROUNDS = 90


@dataclass(slots=True)
class Loop:
    """What it took."""

    text: str = ""
    tokens: int = 0


async def loop(model: Model, text: str, tools: tuple[Tool, ...], folder: Path) -> Loop:
    """Ask, run what is called, ask again, until nothing is called."""
    done, by_name = Loop(), {tool.name: tool for tool in tools}
    specs = tuple(
        ToolSpec(
            name=tool.name,
            description=tool.description,
            parameters=tool.arguments.model_json_schema(),
        )
        for tool in tools
    )
    messages: tuple[Message, ...] = (user(text),)
    for _ in range(MAX_ROUNDS):
        request = ModelRequest(model="m", system=SYSTEM, messages=messages, tools=specs)
        reply = await model.complete(request, lambda delta: None)
        done.tokens += reply.usage.input_tokens + reply.usage.output_tokens
        answer = Message(role="assistant", parts=reply.parts or (Text(text=""),))
        messages = (*messages, answer)
        if not calls_of(answer):
            done.text = text_of(answer)
            return done
        results = [await _run(by_name, call, folder) for call in calls_of(answer)]
        messages = (*messages, *(Message(role="tool", parts=(one,)) for one in results))
    return done


async def _run(tools: dict[str, Tool], call: ToolCall, folder: Path) -> ToolResult:
    context = ToolContext(workspace=folder, key=call.id, limit=30.0, output=lambda text: None)
    try:
        tool = tools[call.name]
        wanted = tool.arguments.model_validate(msgspec.json.decode(call.arguments))
        gave, failed = await tool.call(wanted, context), False
    except (KeyError, ToolFailed, ValidationError, msgspec.DecodeError) as error:
        gave, failed = f"{type(error).__name__}: {error}", True
    text = gave if isinstance(gave, str) else gave.text
    return ToolResult(call_id=call.id, name=call.name, content=text, error=failed)
