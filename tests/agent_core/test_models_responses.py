"""OpenAI's Responses API through the real SDK, against a provider on loopback."""

import json
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from agent_core.messages import Text, Thinking, ToolCall, user
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import Delta, Restarted, TextDelta, ThinkingDelta, Usage
from agent_core.models.wire import REASONING
from agent_core.settings import Endpoint
from tests.agent_core.asking import KEY, TOOL, ask, assistant, failure, ignore, tool
from tests.fakes.model_server import (
    Call,
    Calls,
    Cut,
    Empty,
    Events,
    Fail,
    Json,
    ModelServer,
    Say,
    Stop,
    Think,
)
from tests.fakes.odd_json import DEEP


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAIResponses]:
    model = connect(await server.start())
    yield model
    await model.close()


def connect(base: str, **more: object) -> OpenAIResponses:
    settings: Json = {"provider": "openai", "api_key": KEY, "base_url": f"{base}/v1"}
    mode = {"api_mode": "codex_responses", "key_setting": "OPENAI_API_KEY"}
    return OpenAIResponses(Endpoint(**(settings | mode | more)))


async def test_text_is_streamed_in_order(server: ModelServer, model: OpenAIResponses) -> None:
    server.script(Say("one two three"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(max_tokens=50), deltas.append)
    assert deltas == [TextDelta(text=word) for word in ("one ", "two ", "three")]
    assert reply.parts == (Text(text="one two three"),)
    assert (reply.finish, reply.model, reply.provider) == ("stop", "m", "openai")
    assert server.requests[0].path == "/v1/responses"
    assert server.requests[0].body == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be short.",
        "input": [{"role": "user", "content": "hi"}],
        "max_output_tokens": 50 + REASONING,
    }


async def test_usage_counts_cached_and_reasoning(
    server: ModelServer, model: OpenAIResponses
) -> None:
    usage = (await model.complete(ask(), ignore)).usage
    size = usage.input_tokens
    assert size > 0
    assert usage == Usage(
        input_tokens=size,
        output_tokens=7,
        cached_tokens=size // 2,
        reasoning_tokens=3,
        written_tokens=5,
    )


async def test_calls_are_answered_in_the_next_request(
    server: ModelServer, model: OpenAIResponses
) -> None:
    server.script(Calls([Call("look", '{"path": "a"}', text="Looking."), Call("find", '{"n": ')]))
    asked = ask(tools=(TOOL,), tool_choice="required", cache_key="c")
    reply = await model.complete(asked, ignore)
    assert reply.parts == (
        Text(text="Looking."),
        ToolCall(id="call_1_0", name="look", arguments='{"path": "a"}'),
        ToolCall(id="call_1_1", name="find", arguments='{"n": '),
    )
    assert reply.finish == "tool_calls"
    body = server.requests[0].body
    assert body["tool_choice"] == "required"
    assert body["tools"][0]["name"] == "look"
    assert "prompt_cache_key" not in body
    history = (user("hi"), assistant(*reply.parts), tool("call_1_1"), user("and?"))
    await model.complete(ask(*history), ignore)
    items = server.requests[1].body["input"]
    assert [item.get("type", item.get("role")) for item in items] == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
    ]
    assert items[5]["call_id"] == "call_1_0"
    assert "not run" in items[5]["output"]


async def test_reasoning_goes_back_to_its_provider_only(
    server: ModelServer, model: OpenAIResponses
) -> None:
    server.script(Think("let me see", Call("look")))
    deltas: list[Delta] = []
    reply = await model.complete(ask(tools=(TOOL,)), deltas.append)
    assert deltas == [ThinkingDelta(text=word) for word in ("let ", "me ", "see")]
    own = Thinking(text="let me see", provider="openai", signature="responses:rs_1:sig-1")
    assert reply.parts[0] == own
    foreign = Thinking(text="secret thoughts", provider="anthropic", signature="s")
    history = (user("hi"), assistant(foreign, *reply.parts), tool("call_1_0"))
    await model.complete(ask(*history), ignore)
    sent = server.requests[-1]
    assert sent.body["input"][1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "let me see"}],
        "encrypted_content": "sig-1",
    }
    assert b"secret thoughts" not in sent.raw
    other = connect(f"http://{sent.headers['Host']}", provider="other")
    await other.complete(ask(*history), ignore)
    assert b"sig-1" not in server.requests[-1].raw
    await other.close()


async def test_reasoning_that_led_to_nothing_or_cannot_be_known_stays_here(
    server: ModelServer, model: OpenAIResponses
) -> None:
    cut = Thinking(text="half", provider="openai", signature="responses:rs_9:enc")
    plain = Thinking(text="plain", provider="openai")
    history = (user("a"), assistant(cut), user("b"), assistant(plain, Text(text="c")), user("d"))
    await model.complete(ask(*history), ignore)
    assert b"rs_9" not in server.requests[0].raw
    assert b"plain" not in server.requests[0].raw


async def test_a_model_that_does_not_reason_is_asked_without(
    server: ModelServer, model: OpenAIResponses
) -> None:
    def answer(body: Json) -> Say | Fail:
        if "include" in body:
            return Fail(400, message="Encrypted content is not supported", param="include")
        return Say("ok")

    server.script(answer, answer, answer)
    for _ in range(2):
        assert (await model.complete(ask(), ignore)).parts == (Text(text="ok"),)
    assert len(server.requests) == 3


async def test_an_answer_in_one_piece_is_taken(server: ModelServer, model: OpenAIResponses) -> None:
    server.stream = False
    server.script(Think("hm", Calls([Call("look", '{"a": 1}', text="So.")])))
    deltas: list[Delta] = []
    reply = await model.complete(ask(tools=(TOOL,)), deltas.append)
    assert deltas == [ThinkingDelta(text="hm"), TextDelta(text="So.")]
    assert [type(part) for part in reply.parts] == [Thinking, Text, ToolCall]


async def test_each_request_begins_with_the_one_before(
    server: ModelServer, model: OpenAIResponses
) -> None:
    server.script(Think("t", Call("look")), Say("done"))
    history = [user("hi")]
    for _ in range(3):
        reply = await model.complete(ask(*history, tools=(TOOL,)), ignore)
        history.append(assistant(*reply.parts))
        history.append(tool("call_1_0") if reply.finish == "tool_calls" else user("go on"))
    bodies = [one.raw for one in server.requests]
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert after.startswith(before.removesuffix(b"]}"))


async def test_a_cut_stream_is_begun_anew(server: ModelServer, model: OpenAIResponses) -> None:
    server.script(Cut(), Stop(), Say("whole"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(), deltas.append)
    assert reply.parts == (Text(text="whole"),)
    assert deltas.count(Restarted()) == 2
    assert deltas[-2:] == [Restarted(), TextDelta(text="whole")]


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, "overloaded"),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded"}}, "rate_limited"),
        ({"status": "failed", "error": {"code": "bio_policy", "message": "no"}}, "rejected"),
        ({"status": "completed", "output": []}, "malformed"),
    ],
)
async def test_a_response_that_failed(server: ModelServer, response: Json, fault: str) -> None:
    model = connect(await server.start(), retries=0)
    kind = "completed" if response["status"] == "completed" else "failed"
    server.script(Events((json.dumps({"type": f"response.{kind}", "response": response}),)))
    assert (await failure(model)).fault == fault
    await model.close()


async def test_an_answer_of_a_word_leaves_room_to_reason(server: ModelServer) -> None:
    """Providers count reasoning as part of it, and refuse less than 16 tokens."""
    model = connect(await server.start())
    short = replace(ask(), max_tokens=5)
    server.script(Say("yes"), Fail(400, param="include"), Say("yes"), Say("yes"))
    await model.complete(short, ignore)
    await model.complete(short, ignore)
    asked = [request.body["max_output_tokens"] for request in server.requests]
    assert asked == [5 + REASONING, 5 + REASONING, 16]
    await model.close()


async def test_what_is_no_event_is_malformed(server: ModelServer) -> None:
    model = connect(await server.start(), retries=0)
    server.script(Events(("{nope",)), Events(('{"a": 1}',)), Events((DEEP,)), Empty())
    for _ in range(4):
        assert (await failure(model)).fault == "malformed"
    await model.close()


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "refused")]
)
async def test_an_answer_that_was_ended(
    server: ModelServer, model: OpenAIResponses, reason: str, finish: str
) -> None:
    content = [{"type": "output_text", "text": "half"}]
    output = [{"type": "message", "role": "assistant", "content": content}]
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": output}
    server.script(Events((json.dumps({"type": "response.incomplete", "response": end}),)))
    reply = await model.complete(ask(), ignore)
    assert (reply.parts, reply.finish) == ((Text(text="half"),), finish)
