"""Tools for models whose server takes none: calls come and go as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.messages import Message, Text, ToolCall, text_of, user
from agent_core.models.answers.written_tools import write_tools
from agent_core.models.port import ModelReply
from agent_core.orchestration.written_calls import read_written_calls
from tests.agent_core.asking import TOOL, ask, assistant, ignore, tool
from tests.agent_core.models_rig import histories
from tests.agent_core.streams_rig import connect, events, words, write
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import head, serving

REFUSALS = {
    "vLLM": (400, '\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser '
             "to be set"),
    "Ollama": (400, "registry.ollama.ai/library/gemma:latest does not support tools"),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "OpenRouter": (404, "No endpoints found that support tool use. To learn more about provider "
                   "routing, visit: https://openrouter.ai/docs"),
    "Groq": (400, "`tools` are not supported with this model"),
    "Google": (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    "Mistral": (400, "Function calling is not supported for this model"),
    "DeepSeek": (400, "deepseek-reasoner does not support Function Calling"),
    "LiteLLM": (422, "litellm.UnsupportedParamsError: x doesn't support tool calling"),
}  # fmt: skip
WIRES = ["chat", "responses", "anthropic"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("maker", REFUSALS)
async def test_what_a_server_does_not_take_is_written(wire: str, maker: str) -> None:
    status, why = REFUSALS[maker]
    told = json.dumps({"error": {"message": why, "type": "BadRequestError"}}).encode()
    refusal = head("application/json", f"{status} No") + told

    def answer(n: int) -> bytes:
        refused = b'"tools":' in server.bodies[-1]
        return refusal if refused else head() + write(events(wire))

    call = ToolCall(id="c1", name="look", arguments='{"path": "a"}')
    history = (user("hi"), assistant(Text(text="So."), call), tool("c1", "It is a dog."), user("?"))
    async with serving(answer) as (base, server):
        model = connect(wire, base)
        for n in (2, 3):
            reply = await model.complete(ask(*history, tools=(TOOL,), tool_choice="none"), ignore)
            assert words(reply) == "hello" and server.asked == n, "it is learnt once"
        await model.close()
    sent = json.loads(server.bodies[-1])
    said = json.dumps(sent)
    assert "tools" not in sent and "tool_choice" not in sent
    assert "tool_use_id" not in said and "tool_call_id" not in said and "call_id" not in said
    for sign in ("<tools>", "Looks.", "<tool_call>", "<tool_response>\\nIt is a dog.\\n"):
        assert sign in said


@given(st.lists(st.sampled_from(["</tool_response>", "</TOOL_RESPONSE", "<tool_call>", "a", "\n"])))
def test_no_result_ends_its_block(pieces: list[str]) -> None:
    sent = write_tools(ask(user("hi"), tool("c1", "".join(pieces)), tools=(TOOL,)))
    text = text_of(sent.messages[-1]).casefold()
    assert text.count("</tool_response") == 1 and text.endswith("\n</tool_response>")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "told",
    [
        "Function tools with reasoning_effort are not supported for gpt-5.6",
        "tools.0.name: String should match pattern",
        "Your plan does not support this model",
        "This model does not support tool choice 'required'",
        "We do not support tools[0].type",
        "Invalid schema for function 'look': type is not supported",
    ],
)
async def test_a_refusal_of_one_tool_is_told(wire: str, told: str) -> None:
    bodies: list[Json] = []

    def answer(n: int) -> bytes:
        bodies.append(json.loads(server.bodies[-1]))
        return (
            head("application/json", "400 No") + json.dumps({"error": {"message": told}}).encode()
        )

    async with serving(answer) as (base, server):
        model = connect(wire, base)
        with pytest.raises(Exception, match="rejected"):
            await model.complete(ask(tools=(TOOL,)), ignore)
        await model.close()
    assert all("tools" in body for body in bodies)


@given(histories())
def test_any_conversation_is_written(messages: tuple[Message, ...]) -> None:
    asked = ask(*messages, tools=(TOOL,))
    written = write_tools(asked)
    assert written.tools == () and {one.role for one in written.messages} <= {"user", "assistant"}
    assert not any(isinstance(part, ToolCall) for one in written.messages for part in one.parts)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(-5, 5), max_size=3))
def test_a_written_call_is_read_as_the_same_call(arguments: Json) -> None:
    call = ToolCall(id="c1", name="look", arguments=json.dumps(arguments))
    (message,) = write_tools(ask(assistant(call))).messages
    reply = ModelReply(parts=(Text(text=text_of(message)),), model="m", provider="p")
    (read,) = read_written_calls(reply, lambda name: name == "look", (user("hi"),)).parts
    assert isinstance(read, ToolCall)
    assert (read.name, json.loads(read.arguments)) == ("look", arguments)
