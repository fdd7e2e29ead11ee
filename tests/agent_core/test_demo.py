"""The demo model: labelled, scripted, and bound by the tools that are offered."""

import json

import pytest

from agent_core.messages import Message, Text, ToolCall, ToolResult, user
from agent_core.models.demo import LABEL, DemoModel
from agent_core.models.port import Delta, ModelReply, ModelRequest, TextDelta, ToolSpec

TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={"type": "object"})
    for name in ("list_files", "write_file", "run_command", "ask_user")
)


async def say(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS) -> ModelReply:
    deltas: list[Delta] = []
    request = ModelRequest(model="demo", system="", messages=messages, tools=tools)
    reply = await DemoModel(delay=0).complete(request, deltas.append)
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    streamed = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert streamed == text
    ends = not any(isinstance(part, ToolCall) for part in reply.parts)
    known = any(LABEL in str(one.parts) for one in messages)
    assert text.endswith(LABEL) == (ends and not known), "the first answer says who gave it"
    return reply


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("List my things", "list_files", {}),
        ("which files?", "list_files", {}),
        (
            "write something",
            "write_file",
            {"path": "note.txt", "content": "A note from the demo model.\n"},
        ),
        ("run it", "run_command", {"command": "echo hello from the sandbox"}),
    ],
)
async def test_words_start_tools(text: str, tool: str, arguments: dict[str, str]) -> None:
    reply = await say(user(text))
    call = reply.parts[-1]
    assert isinstance(call, ToolCall)
    assert (call.name, json.loads(call.arguments)) == (tool, arguments)
    assert reply.finish == "tool_calls"


async def test_a_plan_comes_before_the_words_of_its_steps() -> None:
    planning = ToolSpec(name="task_planning", description="", parameters={"type": "object"})
    said = "Plan a trip: first find the weather, then write a packing list"
    call = (await say(user(said), tools=(*TOOLS, planning))).parts[-1]
    assert isinstance(call, ToolCall) and call.name == "task_planning"


async def test_a_job_comes_before_what_it_does() -> None:
    scheduling = ToolSpec(name="schedule_job", description="", parameters={"type": "object"})
    said = "every working day at nine list the files"
    call = (await say(user(said), tools=(*TOOLS, scheduling))).parts[-1]
    assert isinstance(call, ToolCall) and call.name == "schedule_job"


async def test_choose_asks() -> None:
    call = (await say(user("Let me choose!"))).parts[-1]
    assert isinstance(call, ToolCall)
    arguments = json.loads(call.arguments)
    assert call.name == "ask_user"
    assert set(arguments) == {"question", "options", "kind"}
    assert arguments["kind"] == "decision"
    assert len(arguments["options"]) > 1


async def test_only_offered_tools_are_called() -> None:
    reply = await say(user("run a command"), tools=TOOLS[:1])
    assert reply.finish == "stop"
    assert "`run_command`" in _text(reply)


async def test_anything_else_explains() -> None:
    text = _text(await say(user("hello")))
    assert "OPENAI_API_KEY" in text
    assert "ANTHROPIC_API_KEY" in text
    assert "PRO_MODEL" in text


async def test_results_are_quoted_and_call_ids_differ() -> None:
    call = ToolCall(id="demo_1", name="run_command", arguments="{}")
    result = ToolResult(call_id="demo_1", name="run_command", content="hello ```")
    history = (
        user("run"),
        Message(role="assistant", parts=(call,)),
        Message(role="tool", parts=(result,)),
    )
    done = await say(*history)
    later = await say(*history, Message(role="assistant", parts=done.parts), user("hello"))
    assert LABEL not in _text(later)
    assert "`run_command` gave:\n\n````\nhello ```\n````" in _text(done)
    again = await say(*history, Message(role="assistant", parts=done.parts), user("run"))
    last = again.parts[-1]
    assert isinstance(last, ToolCall)
    assert last.id == "demo_2"


def _text(reply: ModelReply) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, Text))
