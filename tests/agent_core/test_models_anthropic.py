"""Anthropic's messages through the real SDK, against a provider on loopback."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from agent_core.messages import Message, Text, Thinking, ToolCall, calls_of, user
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.port import (
    Delta,
    Restarted,
    TextDelta,
    ThinkingDelta,
    Usage,
)
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
    Hang,
    Json,
    ModelServer,
    Say,
    Slow,
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
async def model(server: ModelServer) -> AsyncIterator[AnthropicMessages]:
    model = connect(await server.start())
    yield model
    await model.close()


def connect(base: str, **more: object) -> AnthropicMessages:
    settings: Json = {"provider": "anthropic", "api_key": KEY, "base_url": base}
    return AnthropicMessages(Endpoint(**(settings | {"key_setting": "ANTHROPIC_API_KEY"} | more)))


async def test_text_is_streamed_in_order(server: ModelServer, model: AnthropicMessages) -> None:
    server.script(Say("one two three"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(tools=(TOOL,)), deltas.append)
    assert deltas == [TextDelta(text=word) for word in ("one ", "two ", "three")]
    assert reply.parts == (Text(text="one two three"),)
    assert (reply.finish, reply.model, reply.provider) == ("stop", "m", "anthropic")
    body = server.requests[0].body
    assert body["max_tokens"] == 8192
    assert body["cache_control"] == body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["tools"][0]["input_schema"] == TOOL.parameters


async def test_a_short_answer_leaves_room_to_reason(
    server: ModelServer, model: AnthropicMessages
) -> None:
    for name in ("claude-opus-4-8", "other"):
        await model.complete(ask(model=name, max_tokens=5), ignore)
    asked = [request.body["max_tokens"] for request in server.requests]
    assert asked == [5 + REASONING, 5], "only those of which it is known"


async def test_usage_counts_cached_input(server: ModelServer, model: AnthropicMessages) -> None:
    usage = (await model.complete(ask(), ignore)).usage
    assert usage == Usage(
        input_tokens=130, output_tokens=9, cached_tokens=100, reasoning_tokens=3, written_tokens=20
    )


async def test_an_answer_in_one_piece_is_taken(
    server: ModelServer, model: AnthropicMessages
) -> None:
    server.stream = False
    server.script(Think("hm", Call("look", '{"a": 1}', text="So.")))
    reply = await model.complete(ask(tools=(TOOL,)), ignore)
    assert reply.parts == (
        Thinking(text="hm", provider="anthropic", signature="sig-1"),
        Text(text="So."),
        ToolCall(id="toolu_1_0", name="look", arguments='{"a": 1}'),
    )
    assert reply.finish == "tool_calls"


async def test_parallel_calls(server: ModelServer, model: AnthropicMessages) -> None:
    server.script(Calls([Call("look", '{"path": "a"}', text="Looking."), Call("find", "")]))
    reply = await model.complete(ask(tools=(TOOL,), tool_choice="required"), ignore)
    assert reply.parts == (
        Text(text="Looking."),
        ToolCall(id="toolu_1_0", name="look", arguments='{"path": "a"}'),
        ToolCall(id="toolu_1_1", name="find", arguments="{}"),
    )
    assert server.requests[0].body["tool_choice"] == {"type": "any"}


async def test_invalid_arguments_are_kept_and_can_be_replayed(
    server: ModelServer, model: AnthropicMessages
) -> None:
    server.script(Call("look", '{"path": "a', id=""))
    reply = await model.complete(ask(tools=(TOOL,)), ignore)
    assert reply.parts == (ToolCall(id="call_1_0", name="look", arguments='{"path": "a'),)
    answer = tool("call_1_0", "not JSON", error=True)
    await model.complete(ask(user("hi"), assistant(*reply.parts), answer), ignore)
    sent = server.requests[-1].body["messages"]
    assert sent[1]["content"][0]["input"] == {"invalid_arguments": '{"path": "a'}
    assert sent[2]["content"][0]["is_error"] is True


async def test_thinking_is_replayed_to_its_maker_only(
    server: ModelServer, model: AnthropicMessages
) -> None:
    server.script(Think("let me see", Call("look"), redacted="enc"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(tools=(TOOL,)), deltas.append)
    assert deltas[0] == ThinkingDelta(text="let ")
    foreign = Thinking(text="secret thoughts", provider="openai")
    history = (user("hi"), assistant(foreign, *reply.parts), tool("toolu_1_0"))
    await model.complete(ask(*history), ignore)
    sent = server.requests[-1]
    assert sent.body["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "let me see", "signature": "sig-1"},
        {"type": "redacted_thinking", "data": "enc"},
    ]
    assert b"secret thoughts" not in sent.raw


async def test_roles_alternate_and_calls_are_answered(
    server: ModelServer, model: AnthropicMessages
) -> None:
    """The fake refuses anything else with 400, as the provider does."""
    two = assistant(*(ToolCall(id=name, name="look", arguments="{}") for name in "ab"))
    three = assistant(Text(text=" "), ToolCall(id="c", name="look", arguments='{"x": 1}'))
    history = (user("x"), two, tool("b"), user("steer"), user(" "), three, assistant(), user("y"))
    await model.complete(ask(*history), ignore)
    sent = server.requests[0].body["messages"]
    kinds = [[block["type"] for block in message["content"]] for message in sent]
    assert kinds[2] == ["tool_result", "tool_result", "text"]
    assert [message["role"] for message in sent][-1] == "user"
    await model.complete(ask(user("x"), two), ignore)


async def test_a_later_request_begins_with_the_earlier(
    server: ModelServer, model: AnthropicMessages
) -> None:
    history: list[Message] = []
    for turn in range(5):
        history.append(user(f"turn {turn} ü"))
        call = Call("look", f'{{ "n": {turn}}}', id=f"c{turn}")
        server.script(Think("hm", call), Say(f"done {turn}"))
        reply = await model.complete(ask(*history, tools=(TOOL,)), ignore)
        history.append(assistant(*reply.parts))
        history.append(tool(calls_of(history[-1])[0].id))
        reply = await model.complete(ask(*history, tools=(TOOL,), tool_choice="none"), ignore)
        history.append(assistant(*reply.parts))
    bodies = [request.raw[: request.raw.rindex(b"]}]")] for request in server.requests]
    assert len(bodies) == 10
    for earlier, later in zip(bodies, bodies[1:], strict=False):
        assert later.startswith(earlier)


async def test_a_steer_is_appended_to_the_last_message(
    server: ModelServer, model: AnthropicMessages
) -> None:
    call = assistant(ToolCall(id="a", name="look", arguments="{}"))
    await model.complete(ask(user("x"), call, tool("a")), ignore)
    await model.complete(ask(user("x"), call, tool("a"), user("and this")), ignore)
    first, second = (request.raw for request in server.requests)
    assert second.startswith(first[: first.rindex(b"]}]")])


@pytest.mark.parametrize(
    ("status", "fault"), [(429, "rate_limited"), (500, "overloaded"), (529, "overloaded")]
)
async def test_busy_providers(
    server: ModelServer, model: AnthropicMessages, status: int, fault: str
) -> None:
    busy = Fail(status, retry_after=0.01)
    server.script(busy, busy, Say("now"))
    assert (await model.complete(ask(), ignore)).parts == (Text(text="now"),)
    server.script(busy, busy, busy)
    failed = await failure(model)
    assert (failed.fault, failed.retry_after) == (fault, 0.01)
    assert len(server.requests) == 6


async def test_a_cut_stream_starts_anew(server: ModelServer, model: AnthropicMessages) -> None:
    server.script(Cut(8), Stop("half"), Say("whole"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(), deltas.append)
    assert reply.parts == (Text(text="whole"),)
    assert deltas[-4:] == [
        Restarted(),
        TextDelta(text="half"),
        Restarted(),
        TextDelta(text="whole"),
    ]
    server.script(Fail(500, retry_after=0.01), Cut(8), Cut(8))
    assert (await failure(model)).fault == "unreachable"
    assert len(server.requests) == 6


async def test_an_error_in_the_stream(server: ModelServer) -> None:
    error = {"type": "overloaded_error", "message": f"slow down {KEY}"}
    server.script(Events((json.dumps({"type": "error", "error": error}),)))
    model = connect(await server.start(), retries=0)
    failed = await failure(model)
    assert failed.fault == "overloaded"
    assert "slow down [key]" in str(failed)
    await model.close()


async def test_empty_and_senseless_answers(server: ModelServer, model: AnthropicMessages) -> None:
    server.script(Empty(), Say("well"))
    assert (await model.complete(ask(), ignore)).parts == (Text(text="well"),)
    server.script(Empty(), Empty())
    assert (await failure(model)).fault == "malformed"
    server.script(Events(("<html>",)), Events((DEEP,)))
    assert (await failure(model)).fault == "malformed"
    server.script(Events(("[]",)), Events((DEEP,)))
    assert (await failure(model)).fault == "malformed"


async def test_a_wrong_key(server: ModelServer) -> None:
    model = connect(await server.start(), api_key="sk-ant-wrong-0987654321")
    failed = await failure(model)
    assert failed.fault == "auth"
    assert str(failed) == "anthropic rejected the API key (401). Check ANTHROPIC_API_KEY."
    await model.close()


async def test_a_refused_request_shows_why(server: ModelServer, model: AnthropicMessages) -> None:
    server.script(Fail(400, message=f"no such model for {KEY} " + "x" * 900))
    failed = await failure(model)
    assert failed.fault == "rejected"
    assert "no such model for [key]" in str(failed)
    assert len(str(failed)) < 280


async def test_silence_is_a_timeout(server: ModelServer) -> None:
    server.script(Hang(), Slow(delay=5))
    model = connect(await server.start(), timeout=0.1, retries=0)
    assert (await failure(model)).fault == "timeout"
    assert (await failure(model)).fault == "timeout"
    await model.close()


async def test_nobody_listens() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    model = connect(f"http://127.0.0.1:{port}", retries=0)
    assert (await failure(model)).fault == "unreachable"
    await model.close()


async def test_cancelling_closes_the_connection(
    server: ModelServer, model: AnthropicMessages
) -> None:
    for _ in range(3):
        server.script(Slow(delay=0.02, text="word " * 500))
        started = asyncio.Event()
        task = asyncio.create_task(model.complete(ask(), lambda _, seen=started: seen.set()))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_inflight(0)
    assert server.dropped == 3, "none was answered to its end"


async def test_connections_are_used_again(server: ModelServer, model: AnthropicMessages) -> None:
    for _ in range(3):
        await model.complete(ask(), ignore)
    assert len({request.peer for request in server.requests}) == 1


async def test_no_secret_is_logged(
    server: ModelServer, model: AnthropicMessages, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(Fail(500, retry_after=0.01), Say("ok"), Fail(400))
    await model.complete(ask(), ignore)
    await failure(model)
    assert caplog.records
    assert KEY not in caplog.text


async def test_scripts_by_text_and_the_gate(server: ModelServer, model: AnthropicMessages) -> None:
    """Two conversations at once, each with its own script, held by the gate."""
    server.by_text = {"tea": [Say("green")], "coffee": [Say("black")]}
    server.gate = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        coffee = group.create_task(model.complete(ask(user("coffee?")), ignore))
        tea = group.create_task(model.complete(ask(user("tea?")), ignore))
        await server.wait_inflight(2)
        server.gate.set()
    assert coffee.result().parts == (Text(text="black"),)
    assert tea.result().parts == (Text(text="green"),)
    assert (await model.complete(ask(user("tea?")), ignore)).parts == (Text(text="ack tea?"),)


async def test_thinking_that_is_refused_stays_behind(
    server: ModelServer, model: AnthropicMessages
) -> None:
    """It is bound to its account and to what stood before it; without it the turn goes on."""
    thinking = Thinking(text="hm", provider="anthropic", signature="sig-1")
    history = (user("a"), assistant(thinking, Text(text="b")), user("c"))
    bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound"
    server.script(Fail(400, message=bound), Say("ok"))
    assert (await model.complete(ask(*history), ignore)).parts == (Text(text="ok"),)
    assert b"sig-1" in server.requests[0].raw
    assert b"sig-1" not in server.requests[1].raw
    server.script(Fail(400, message=bound))
    assert (await failure(model, ask(user("no thinking")))).fault == "rejected"
    assert len(server.requests) == 3


async def test_a_model_that_cannot_be_made_to_call_is_asked(
    server: ModelServer, model: AnthropicMessages
) -> None:
    """Claude Opus 5.5 and others refuse forced tool use."""

    def answer(body: Json) -> Say | Fail:
        forced = body["tool_choice"]["type"] == "any" if "tool_choice" in body else False
        message = "tool_choice: forced tool use is not supported for this model"
        return Fail(400, message=message) if forced else Say("ok")

    server.script(answer, answer, answer)
    for _ in range(2):
        reply = await model.complete(ask(tools=(TOOL,), tool_choice="required"), ignore)
        assert reply.parts == (Text(text="ok"),)
    assert len(server.requests) == 3
    await model.complete(ask(tools=(TOOL,), tool_choice="none"), ignore)
    assert server.requests[-1].body["tool_choice"] == {"type": "none"}


async def test_answers_may_be_as_long_as_the_model_writes(server: ModelServer) -> None:
    """Old models refuse more than they write: that is asked for once."""

    def answer(body: Json) -> Say | Fail:
        if body["model"] == "claude-proxied" and body["max_tokens"] > 8192:
            return Fail(400, message="max_tokens: 64000 > 8192, which is the maximum allowed")
        return Say("yes")

    model = connect(await server.start())
    try:
        for name in ("claude-sonnet-5-5", "claude-3-5-haiku", "other", *["claude-proxied"] * 2):
            server.script(answer, answer)
            assert (await model.complete(replace(ask(), model=name), ignore)).finish == "stop"
            server.steps.clear()
    finally:
        await model.close()
    asked = [request.body["max_tokens"] for request in server.requests]
    assert asked == [64_000, 8192, 8192, 64_000, 8192, 8192]
