"""OpenAI's chat completions through the real SDK, against a provider on loopback."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from agent_core import ambient
from agent_core.messages import Message, Text, Thinking, ToolCall, calls_of, user
from agent_core.models.answers.refusals import read_pause
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.port import (
    Delta,
    Restarted,
    TextDelta,
    ThinkingDelta,
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

NEWER = "max_completion_tokens"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAIChat]:
    model = connect(await server.start())
    yield model
    await model.close()


def connect(base: str, **more: object) -> OpenAIChat:
    settings: Json = {"provider": "openai", "api_key": KEY, "base_url": f"{base}/v1"}
    return OpenAIChat(Endpoint(**(settings | {"key_setting": "OPENAI_API_KEY"} | more)))


async def test_text_is_streamed_in_order(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Say("one two three"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(max_tokens=50), deltas.append)
    assert deltas == [TextDelta(text=word) for word in ("one ", "two ", "three")]
    assert reply.parts == (Text(text="one two three"),)
    assert (reply.finish, reply.model, reply.provider) == ("stop", "m", "openai")
    body = server.requests[0].body
    assert body["stream"] is True
    assert body["max_tokens"] == 50
    assert body["messages"][0] == {"role": "system", "content": "Be short."}


async def test_usage_counts_cached_and_reasoning(server: ModelServer, model: OpenAIChat) -> None:
    usage = (await model.complete(ask(), ignore)).usage
    assert usage.output_tokens == 7
    assert usage.reasoning_tokens == 3
    assert usage.cached_tokens == usage.input_tokens // 2 > 0


async def test_an_answer_in_one_piece_is_taken(server: ModelServer, model: OpenAIChat) -> None:
    server.stream = False
    server.script(Think("hm", Calls([Call("look", '{"a": 1}'), Call("look", "{}")])))
    reply = await model.complete(ask(tools=(TOOL,)), ignore)
    assert reply.parts == (
        Thinking(text="hm", provider="openai"),
        ToolCall(id="call_1_0", name="look", arguments='{"a": 1}'),
        ToolCall(id="call_1_1", name="look", arguments="{}"),
    )
    assert reply.finish == "tool_calls"
    assert reply.usage.output_tokens == 7


async def test_parallel_calls_are_put_together(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Calls([Call("look", '{"path": "a"}', text="Looking."), Call("find", '{"n": 2}')]))
    reply = await model.complete(ask(tools=(TOOL,), tool_choice="required"), ignore)
    assert reply.parts == (
        Text(text="Looking."),
        ToolCall(id="call_1_0", name="look", arguments='{"path": "a"}'),
        ToolCall(id="call_1_1", name="find", arguments='{"n": 2}'),
    )
    body = server.requests[0].body
    assert body["tool_choice"] == "required"
    assert body["tools"][0]["function"]["name"] == "look"


async def test_invalid_arguments_are_kept(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Call("look", '{"path": "a'))
    reply = await model.complete(ask(tools=(TOOL,)), ignore)
    assert reply.parts == (ToolCall(id="call_1_0", name="look", arguments='{"path": "a'),)


async def test_missing_ids_are_made(server: ModelServer, model: OpenAIChat) -> None:
    calls = Calls([Call("look", id=""), Call("find", id="")])
    server.script(calls, calls)
    first = await model.complete(ask(tools=(TOOL,)), ignore)
    again = await model.complete(ask(tools=(TOOL,)), ignore)
    assert first.parts == again.parts
    assert [part.id for part in first.parts if isinstance(part, ToolCall)] == [
        "call_1_0",
        "call_1_1",
    ]


async def test_calls_without_index_are_told_apart(server: ModelServer, model: OpenAIChat) -> None:
    """Some compatible providers give no index, or 0 for all, and arguments as an object."""
    one: Json = {"id": "a", "function": {"name": "look", "arguments": {"n": 1}}}
    two: Json = {"id": "b", "function": {"name": "find", "arguments": "{}"}}
    for extra in ({}, {"index": 0}):
        lines = [
            json.dumps({"choices": [{"delta": {"tool_calls": [call | extra]}}]})
            for call in (one, two)
        ]
        end = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        server.script(Events((*lines, end)))
        reply = await model.complete(ask(tools=(TOOL,)), ignore)
        assert reply.parts == (
            ToolCall(id="a", name="look", arguments='{"n":1}'),
            ToolCall(id="b", name="find", arguments="{}"),
        )
        assert reply.finish == "tool_calls"


async def test_thinking_is_replayed_to_its_maker_only(
    server: ModelServer, model: OpenAIChat
) -> None:
    server.script(Think("let me see", Call("look")))
    deltas: list[Delta] = []
    reply = await model.complete(ask(tools=(TOOL,)), deltas.append)
    assert deltas[0] == ThinkingDelta(text="let ")
    assert reply.parts[0] == Thinking(text="let me see", provider="openai")
    foreign = Thinking(text="secret thoughts", provider="anthropic", signature="s")
    history = (user("hi"), assistant(foreign, *reply.parts), tool("call_1_0"))
    await model.complete(ask(*history), ignore)
    sent = server.requests[-1]
    assert sent.body["messages"][2]["reasoning_content"] == "let me see"
    assert b"secret thoughts" not in sent.raw


async def test_thought_signatures_go_back_with_their_call(server: ModelServer) -> None:
    """Gemini refuses a call of its own that comes back without its signature."""
    extra = {"google": {"thought_signature": "c2ln"}}
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
    line = {"choices": [{"delta": {"tool_calls": [call | {"extra_content": extra}]}}]}
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    server.script(Events((json.dumps(line), end)))
    model = connect(await server.start(), provider="gemini")
    reply = await model.complete(ask(tools=(TOOL,)), ignore)
    assert reply.parts[0] == Thinking(text="", provider="gemini", signature="c2ln")
    await model.complete(ask(user("hi"), assistant(*reply.parts), tool("a")), ignore)
    assert server.requests[-1].body["messages"][2]["tool_calls"][0]["extra_content"] == extra
    await model.close()


async def test_every_call_is_answered(server: ModelServer, model: OpenAIChat) -> None:
    two = assistant(*(ToolCall(id=name, name="look", arguments="{}") for name in "ab"))
    await model.complete(ask(user("x"), two, tool("b"), user("and?")), ignore)
    roles = [message["role"] for message in server.requests[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]


async def test_a_later_request_begins_with_the_earlier(
    server: ModelServer, model: OpenAIChat
) -> None:
    history: list[Message] = []
    for turn in range(5):
        history.append(user(f"turn {turn} ü"))
        call = Call("look", f'{{ "n": {turn}}}', id=f"c{turn}")
        server.script(Think("hm", call), Say(f"done {turn}"))
        reply = await model.complete(ask(*history, tools=(TOOL,), cache_key="k"), ignore)
        history.append(assistant(*reply.parts))
        history.append(tool(calls_of(history[-1])[0].id))
        reply = await model.complete(ask(*history, tools=(TOOL,), max_tokens=9), ignore)
        history.append(assistant(*reply.parts))
    bodies = [request.raw[: request.raw.rindex(b"]")] for request in server.requests]
    assert len(bodies) == 10
    for earlier, later in zip(bodies, bodies[1:], strict=False):
        assert later.startswith(earlier)
    assert b"prompt_cache_key" not in bodies[0]


async def test_openai_itself_gets_its_own_parameters() -> None:
    """Nothing is sent: the body alone is looked at."""
    model = connect("https://api.openai.com")
    body = json.loads(model._body(ask(cache_key="conversation-1", max_tokens=5)))
    assert (body["prompt_cache_key"], body["max_completion_tokens"]) == (
        "conversation-1",
        5 + REASONING,
    )
    assert "max_tokens" not in body
    await model.close()


async def test_cache_key_and_thinking_by_setting(server: ModelServer) -> None:
    server.extra_fields.add("enable_thinking")
    model = connect(await server.start(), cache_key=True, thinking=True)
    await model.complete(ask(cache_key="conversation-1"), ignore)
    body = server.requests[0].body
    assert (body["prompt_cache_key"], body["enable_thinking"]) == ("conversation-1", True)
    await model.close()


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_busy_providers_are_asked_again(
    server: ModelServer, model: OpenAIChat, status: int
) -> None:
    server.script(Fail(status, retry_after=0.01), Fail(status, retry_after=0.01), Say("now"))
    reply = await model.complete(ask(), ignore)
    assert reply.parts == (Text(text="now"),)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "fault", "after"),
    [(429, "rate_limited", 0.01), (500, "overloaded", 0.01), (529, "overloaded", 0.01)],
)
async def test_busy_for_good(
    server: ModelServer, model: OpenAIChat, status: int, fault: str, after: float
) -> None:
    server.script(*[Fail(status, retry_after=after)] * 3)
    failed = await failure(model)
    assert (failed.fault, failed.retry_after) == (fault, after)
    assert len(server.requests) == 3


AGAIN = {
    "Rate limit reached. Please try again in 20s. Visit": 20.0,
    "Please try again in 6m0.5s.": 360.5,
    "Please retry after 2 minutes": 120.0,
    '{"retryDelay": "34.5s"}': 34.5,
    "Try again in 3 moons": None,
}


@pytest.mark.parametrize("words", AGAIN)
def test_words_that_say_when_to_come_back(words: str) -> None:
    refusal = httpx2.Response(429, text=words)
    assert read_pause(refusal) == AGAIN[words]
    assert read_pause(httpx2.Response(500, text=words)) is None


@pytest.mark.parametrize(
    ("reset", "left", "pause"),
    [("6m0s", "0", 360.0), ("6m0s", "7", None), ("90", "0", 90.0), ("{now}", "0", 40.0)],
)
def test_limits_that_say_when_they_begin_anew(
    reset: str, left: str, pause: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ambient, "now", lambda: 1_800_000_000.0)
    reset = reset.format(now=1_800_000_040_000)
    headers = {"x-ratelimit-reset": reset, "x-ratelimit-remaining": left}
    assert read_pause(httpx2.Response(429, headers=headers)) == pause


async def test_a_limit_is_told_with_when_it_ends(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Fail(429, body={"error": {"message": "Please try again in 2h5m."}}))
    failed = await failure(model)
    assert "Try again in 3 h or use another model" in str(failed)
    assert len(server.requests) == 1 and failed.retry_after == 7_500.0


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_an_outage_is_told_with_when_it_ends(
    server: ModelServer, model: OpenAIChat, status: int
) -> None:
    server.script(Fail(status, retry_after=7_500))
    failed = await failure(model)
    told = f"down ({status}: scripted failure). Try again in 3 h or use another model"
    assert told in str(failed)
    assert failed.retry_after == 7_500.0


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
async def test_lines_of_a_stream_end_in_any_way(end: str) -> None:
    said = [json.dumps({"choices": [{"delta": {"content": one}}]}) for one in ("one", " two")]
    body = "".join(f"data: {one}{end}{end}" for one in (*said, "[DONE]")).encode()
    calls = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        model = connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        reply = await model.complete(ask(), ignore)
        await model.close()
    assert (reply.parts, calls) == ((Text(text="one two"),), 1)


async def test_a_refusal_that_is_cut_off_is_a_connection_that_failed() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nno mo")
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        cut_off = connect(f"http://127.0.0.1:{port}", retries=0)
        assert (await failure(cut_off)).fault == "unreachable"
        await cut_off.close()


async def test_a_cut_stream_starts_anew(server: ModelServer, model: OpenAIChat) -> None:
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
    assert TextDelta(text="This ") in deltas[:-4]


async def test_cuts_and_busy_answers_share_the_tries(
    server: ModelServer, model: OpenAIChat
) -> None:
    server.script(Fail(500, retry_after=0.01), Cut(8), Cut(8), Say("too late"))
    failed = await failure(model)
    assert failed.fault == "unreachable"
    assert str(failed).startswith("openai's answer was cut off.")
    assert len(server.requests) == 3


async def test_an_error_in_the_stream(server: ModelServer) -> None:
    line = json.dumps({"error": {"message": f"engine overloaded {KEY}"}})
    server.script(Events((line,)))
    model = connect(await server.start(), retries=0)
    failed = await failure(model)
    assert failed.fault == "overloaded"
    assert "engine overloaded [key]" in str(failed)
    await model.close()


async def test_an_empty_answer_is_asked_once_more(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Empty(), Say("well"))
    assert (await model.complete(ask(), ignore)).parts == (Text(text="well"),)
    server.script(Empty(), Empty(), Say("never asked"))
    assert (await failure(model)).fault == "malformed"
    assert len(server.requests) == 4


async def test_nonsense_is_malformed(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Events(("<html>",)), Events(('{"choices": 3}',)))
    assert (await failure(model)).fault == "malformed"
    server.script(Events((DEEP,)), Events((f'{{"x": {DEEP}}}',)))
    assert (await failure(model)).fault == "malformed"


async def test_a_wrong_key(server: ModelServer) -> None:
    model = connect(await server.start(), api_key="sk-wrong-0987654321")
    failed = await failure(model)
    assert failed.fault == "auth"
    assert str(failed) == "openai rejected the API key (401). Check OPENAI_API_KEY."
    await model.close()


async def test_a_refused_request_shows_why(server: ModelServer, model: OpenAIChat) -> None:
    server.script(Fail(400, message=f"no such model for {KEY} " + "x" * 900))
    failed = await failure(model)
    assert failed.fault == "rejected"
    assert "no such model for [key]" in str(failed)
    assert len(str(failed)) < 280


async def test_tools_without_reasoning_where_the_model_wants_it(
    server: ModelServer, model: OpenAIChat
) -> None:
    """gpt-5.6 and later take tools in chat completions only with reasoning_effort none."""

    def picky(body: Json) -> Say | Fail:
        if body.get("reasoning_effort") == "none":
            return Say("fine")
        return Fail(400, message="Function tools with reasoning_effort…", param="reasoning_effort")

    server.script(picky, picky, picky)
    for _ in range(2):
        reply = await model.complete(ask(tools=(TOOL,)), ignore)
        assert reply.parts == (Text(text="fine"),)
    assert len(server.requests) == 3


FULL: Json = {
    "stream_options": {"include_usage": True}, "prompt_cache_key": "c", "enable_thinking": True,
    "reasoning_effort": "high", "tool_choice": "required", "max_tokens": 50,
}  # fmt: skip
FORBIDDEN = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
COMPLAINTS = {
    "param": lambda name: {"error": {"message": "No.", "param": name}},
    "OpenAI": lambda name: {"error": {"message": f"Unsupported parameter: '{name}'. Use another."}},
    "Azure": lambda name: {"error": {"message": f"Unrecognized request argument supplied: {name}"}},
    "Mistral": lambda name: {"detail": [FORBIDDEN | {"loc": ["body", name]}]},
    "Groq": lambda name: {"error": {"message": f"property '{name}' is unsupported"}},
    "plain": lambda name: {"error": f"{name} is not supported by this model"},
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("form", COMPLAINTS)
async def test_a_field_that_a_server_does_not_take_is_left_out(
    server: ModelServer, form: str, status: int
) -> None:
    """Each alone, then all of them: the request succeeds, without no other field, and what was
    learnt is not tried again."""
    server.extra_fields = {"enable_thinking"}
    base = await server.start()
    for refused in (*([name] for name in FULL), list(FULL)):

        def picky(body: Json, refused: list[str] = refused) -> Say | Fail:
            known = [name for name in refused if name in body]
            return Fail(status, body=COMPLAINTS[form](known[0])) if known else Say("fine")

        model = connect(base, cache_key=True, thinking=True)
        server.script(*[picky] * (len(FULL) + 4))
        asked = ask(tools=(TOOL,), tool_choice="required", max_tokens=50, cache_key="c")
        asked = msgspec.structs.replace(asked, effort="high")
        for _ in range(2):
            assert (await model.complete(asked, ignore)).parts == (Text(text="fine"),)
        first, last = server.requests[0].body, server.requests[-1].body
        assert first | FULL == first
        assert last == {
            name: value for name, value in last.items() if name in first or name == NEWER
        }
        assert set(first) - set(last) == set(refused)
        assert (NEWER in last) == ("max_tokens" in refused)
        assert len(server.requests) <= len(refused) + 3
        server.requests.clear()
        server.steps.clear()
        await model.close()


async def test_reasoning_that_a_server_does_not_take_back_is_left_out(
    server: ModelServer, model: OpenAIChat
) -> None:
    thought = assistant(Thinking(text="hm", provider="openai"), Text(text="So."))

    def picky(body: Json) -> Say | Fail:
        known = any("reasoning_content" in message for message in body["messages"])
        message = "'messages.2': property 'reasoning_content' is unsupported"
        return Fail(400, message=message) if known else Say("fine")

    server.script(picky, picky, picky)
    for _ in range(2):
        reply = await model.complete(ask(user("hi"), thought, user("go")), ignore)
        assert reply.parts == (Text(text="fine"),)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: maximum context length is 4096 tokens, but 5000 were requested",
        "Invalid max_tokens: maximum context length is 4096 tokens, but 5000 were requested",
        "Invalid schema for function 'look'",
        "tool_choice",
    ],
)
async def test_other_refusals_are_not_sent_again(
    server: ModelServer, model: OpenAIChat, message: str
) -> None:
    server.script(*[Fail(400, message=message)] * 3)
    await failure(model, ask(tools=(TOOL,), tool_choice="required", max_tokens=50))
    assert len(server.requests) == 1


async def test_silence_is_a_timeout(server: ModelServer) -> None:
    server.script(Hang())
    model = connect(await server.start(), timeout=0.1, retries=0)
    failed = await failure(model)
    assert failed.fault == "timeout"
    assert str(failed) == "openai sent nothing for 0.1 s. Try again later."
    await model.close()


async def test_silence_in_the_middle_is_a_timeout(server: ModelServer) -> None:
    server.script(Slow(delay=5))
    model = connect(await server.start(), timeout=0.1, retries=0)
    assert (await failure(model)).fault == "timeout"
    await model.close()


async def test_nobody_listens() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    model = connect(f"http://127.0.0.1:{port}", retries=0)
    failed = await failure(model)
    assert failed.fault == "unreachable"
    assert "127.0.0.1" in str(failed)
    await model.close()


@pytest.mark.parametrize("streaming", [True, False])
async def test_cancelling_closes_the_connection(
    server: ModelServer, model: OpenAIChat, streaming: bool
) -> None:
    for _ in range(3):
        server.script(Slow(delay=0.02, text="word " * 500) if streaming else Hang())
        started = asyncio.Event()
        task = asyncio.create_task(model.complete(ask(), lambda _, seen=started: seen.set()))
        await (started.wait() if streaming else server.wait_inflight(1))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_inflight(0)
    assert server.dropped == 3, "none was answered to its end"


async def test_connections_are_used_again(server: ModelServer, model: OpenAIChat) -> None:
    for _ in range(3):
        await model.complete(ask(), ignore)
    assert len({request.peer for request in server.requests}) == 1


async def test_no_secret_is_logged(
    server: ModelServer, model: OpenAIChat, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(Fail(500, retry_after=0.01), Say("ok"), Fail(400))
    await model.complete(ask(), ignore)
    await failure(model)
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["sk-with-umlaut-ü", "sk-with\nnewline-1234"])
async def test_a_key_that_cannot_be_sent(server: ModelServer, key: str) -> None:
    model = connect(await server.start(), api_key=key, retries=0)
    failed = await failure(model)
    assert failed.fault in ("rejected", "unreachable")
    assert key not in str(failed)
    await model.close()


async def test_broken_characters_are_a_failure(model: OpenAIChat) -> None:
    assert (await failure(model, ask(user("\ud83d")))).fault == "rejected"
