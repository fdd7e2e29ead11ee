"""Google's own protocol through its real SDK, against a provider on loopback."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import pytest
from google.genai import types
from hypothesis import given

from agent_core.messages import Message, Text, Thinking, ToolCall, calls_of, text_of, user
from agent_core.models.google.client import Gemini
from agent_core.models.google.contents import config, contents
from agent_core.models.port import Delta, Restarted, TextDelta, ThinkingDelta, Usage
from agent_core.models.tiers import Models
from agent_core.models.wire import REASONING
from agent_core.settings import Endpoint, ModelSettings, SettingsError
from tests.agent_core.asking import KEY, TOOL, ask, assistant, failure, ignore, tool
from tests.agent_core.models_rig import PICTURES, histories
from tests.fakes.model_gemini import SIGNED
from tests.fakes.model_gemini import Gemini as Spoken
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
from tests.fakes.pictures import PNG, one

NAME = "gemini-3.8-flash"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[Gemini]:
    model = connect(await server.start())
    yield model
    await model.close()


def connect(base: str, **more: object) -> Gemini:
    settings: Json = {"provider": "gemini", "api_key": KEY, "base_url": base}
    return Gemini(Endpoint(**(settings | {"key_setting": "GEMINI_API_KEY"} | more)))


async def test_text_is_streamed_in_order_and_counted(server: ModelServer, model: Gemini) -> None:
    server.script(Think("hm well", Say("one two three")))
    deltas: list[Delta] = []
    reply = await model.complete(ask(model=NAME), deltas.append)
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["one ", "two ", "three"]
    assert [d.text for d in deltas if isinstance(d, ThinkingDelta)] == ["hm well"]
    assert reply.parts == (
        Thinking(text="hm well", provider="gemini"), Text(text="one two three"),
    )  # fmt: skip
    assert (reply.model, reply.provider, reply.finish) == (NAME, "gemini", "stop")
    read = reply.usage.input_tokens
    counted = Usage(input_tokens=read, output_tokens=7, cached_tokens=read // 2, reasoning_tokens=3)
    assert reply.usage == counted and read > 0
    body = server.requests[0].body
    assert body["systemInstruction"]["parts"] == [{"text": "Be short."}]
    assert server.requests[0].path == f"/v1beta/models/{NAME}:streamGenerateContent"


async def test_a_short_answer_leaves_room_to_reason(server: ModelServer, model: Gemini) -> None:
    await model.complete(ask(model=NAME, max_tokens=5), ignore)
    assert server.requests[0].body["generationConfig"]["maxOutputTokens"] == 5 + REASONING


async def test_calls_go_back_with_their_signature(server: ModelServer, model: Gemini) -> None:
    server.script(
        Calls([Call("look", '{"a": 1}', text="Let me see."), Call("look", "{}")]), Say("Seen.")
    )
    first = await model.complete(ask(model=NAME, tools=(TOOL,)), ignore)
    answer = Message(role="assistant", parts=first.parts)
    calls = calls_of(answer)
    assert first.finish == "tool_calls" and [c.arguments for c in calls] == ['{"a":1}', "{}"]
    results = (tool(calls[1].id, "second"), tool(calls[0].id, "first", error=True))
    last = await model.complete(
        ask(user("hi"), answer, *results, model=NAME, tools=(TOOL,)), ignore
    )
    assert text_of(Message(role="assistant", parts=last.parts)) == "Seen."
    said, results_ = server.requests[-1].body["contents"][1:]
    signed = [part.get("thoughtSignature") for part in said["parts"]]
    assert signed == [None, SIGNED, None]
    responses = [part["functionResponse"]["response"] for part in results_["parts"]]
    assert responses == [{"error": "first"}, {"output": "second"}]


async def test_calls_of_another_model_are_taken(server: ModelServer, model: Gemini) -> None:
    """A fallback in the middle of a turn."""
    call = ToolCall(id="c", name="look", arguments="not json")
    foreign = Thinking(text="", provider="openai", signature="AAAA")
    history = (user("x"), assistant(foreign, call), tool("c"))
    server.script(Say("fine"))
    await model.complete(ask(*history, model=NAME, tools=(TOOL,)), ignore)
    part = server.requests[0].body["contents"][1]["parts"][0]
    assert part["functionCall"]["args"] == {"invalid_arguments": "not json"}
    assert part["thoughtSignature"] and "AAAA" not in str(server.requests[0].body)


async def test_pictures_are_shown(server: ModelServer, model: Gemini) -> None:
    server.script(Say("a dot"), Fail(400, message="no images"), Say("blind"))
    shown = {"a": base64.b64encode(PNG).decode()}
    question = user("what?", (one("a"),))
    await model.complete(ask(question, model=NAME, pictures=shown), ignore)
    parts = server.requests[0].body["contents"][0]["parts"]
    assert base64.urlsafe_b64decode(parts[1]["inlineData"]["data"]) == PNG
    await model.complete(ask(question, model=NAME, pictures=shown), ignore)
    assert "cannot be shown" in str(server.requests[-1].body) and len(server.requests) == 3


ODD = json.dumps({"candidates": [{"content": {"parts": [{"functionCall": {"args": [1]}}]}}]})


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ((Fail(401),), "auth"),
        ((Fail(400, message="bad schema"),), "rejected"),
        ((Fail(429, retry_after=0.01),) * 3, "rate_limited"),
        ((Fail(429, retry_after=3600.0),), "rate_limited"),
        ((Fail(402),), "unpaid"),
        ((Events((ODD,)),) * 2, "malformed"),
        ((Fail(503, retry_after=0.01),) * 3, "overloaded"),
        ((Cut(),) * 3, "unreachable"),
        ((Stop(),) * 3, "unreachable"),
        ((Empty(),) * 2, "malformed"),
        ((Events(("this is no json",)), Events((DEEP,))), "malformed"),
    ],
)
async def test_what_fails_is_told(
    server: ModelServer, model: Gemini, steps: tuple[object, ...], fault: str
) -> None:
    server.script(*steps)  # type: ignore[arg-type]
    failed = await failure(model, ask(model=NAME))
    assert failed.fault == fault and len(server.requests) == len(steps)


async def test_what_fails_once_is_tried_again(server: ModelServer, model: Gemini) -> None:
    server.script(Fail(500, retry_after=0.01), Cut(20), Say("whole"))
    deltas: list[Delta] = []
    reply = await model.complete(ask(model=NAME), deltas.append)
    assert text_of(Message(role="assistant", parts=reply.parts)) == "whole"
    assert sum(isinstance(one, Restarted) for one in deltas) == 1


async def test_nobody_there() -> None:
    model = connect("http://127.0.0.1:9", retries=0)
    failed = await failure(model, ask(model=NAME))
    await model.close()
    assert failed.fault == "unreachable" and "127.0.0.1" in str(failed)


async def test_a_server_that_says_nothing(server: ModelServer) -> None:
    model = connect(await server.start(), retries=0, timeout=0.2)
    server.script(Hang())
    failed = await failure(model, ask(model=NAME))
    await model.close()
    assert failed.fault == "timeout"


async def test_a_call_that_is_stopped_is_let_go(server: ModelServer, model: Gemini) -> None:
    server.script(Slow(0.05, "word " * 200))
    task = asyncio.create_task(model.complete(ask(model=NAME), ignore))
    await server.wait_inflight()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await model.close()
    await server.wait_inflight(0)
    assert server.dropped == 1


async def test_what_was_blocked_is_a_refusal(server: ModelServer, model: Gemini) -> None:
    server.script(Events(('{"promptFeedback": {"blockReason": "SAFETY"}}',)))
    reply = await model.complete(ask(model=NAME), ignore)
    assert (reply.finish, reply.parts) == ("refused", ())


@given(history=histories())
def test_every_history_is_taken(history: tuple[Message, ...]) -> None:
    request = ask(*history, model=NAME, pictures=PICTURES, tools=(TOOL,))
    made = contents(request, "gemini")
    for one_ in made:
        types.Content.model_validate(one_)
    types.GenerateContentConfig.model_validate(config(request, thinking=True))
    wire = [
        types.Content.model_validate(one_).model_dump(mode="json", by_alias=True, exclude_none=True)
        for one_ in made
    ]
    Spoken(set(), "gemini-2.5-flash").check({"contents": wire})


async def test_each_request_begins_with_the_one_before(server: ModelServer, model: Gemini) -> None:
    server.script(Call("look"), Say("Done."), Say("More."))
    history: tuple[Message, ...] = (user("hi"),)
    for more in ((), (user("go on"),)):
        history = (*history, *more)
        while True:
            reply = await model.complete(ask(*history, model=NAME, tools=(TOOL,)), ignore)
            answer = Message(role="assistant", parts=reply.parts)
            history = (*history, answer)
            if not calls_of(answer):
                break
            history = (*history, *(tool(call.id) for call in calls_of(answer)))
    bodies = [request.body["contents"] for request in server.requests]
    assert len(bodies) == 3
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert after[: len(before)] == before


def test_it_is_chosen_by_a_setting() -> None:
    env = {"GEMINI_API_KEY": "k", "GEMINI_API_MODE": "generate_content"}
    settings = ModelSettings.read(env)
    endpoint = settings.endpoint("gemini")
    assert endpoint.api_mode == "generate_content"
    assert endpoint.base_url == "https://generativelanguage.googleapis.com"
    model, known_as = Models(settings).pick("pro")
    assert (model.provider, known_as) == ("gemini", "gemini-3.8-flash")
    with pytest.raises(SettingsError, match="GEMINI_API_MODE=codex_responses"):
        ModelSettings.read(env | {"GEMINI_API_MODE": "codex_responses"})
