"""Ollama by its own protocol, against a server on loopback: the window is asked for."""

import asyncio
import base64
import gc
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given

from agent_core.messages import Message, Text, Thinking, ToolCall, calls_of, text_of, user
from agent_core.models.ollama.client import OllamaChat, OwnServerChat
from agent_core.models.ollama.messages import build_body
from agent_core.models.port import Delta, Restarted, TextDelta, ThinkingDelta, Usage
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings
from tests.agent_core.asking import TOOL, ask, failure, ignore, tool
from tests.agent_core.models_rig import PICTURES, histories
from tests.fakes.model_ollama import TOO_LONG, OllamaApi
from tests.fakes.model_server import (
    Call,
    Calls,
    Cut,
    Empty,
    Ends,
    Events,
    Fail,
    Hang,
    ModelServer,
    Ollama,
    Say,
    Slow,
    Stop,
    Think,
)
from tests.fakes.odd_json import DEEP
from tests.fakes.pictures import PNG, one

NAME = "qwen3:8b"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    server.ollama, server.models = Ollama(given=4096, trained=40_960, tells=True), [NAME]
    yield server
    await server.close()


def configure(address: str, **env: str) -> Models:
    """As a person has it who wrote the address alone."""
    entry = [{"name": "house", "base_url": f"{address}/v1", "tier_models": {"pro": NAME}}]
    found = {"OPENAI_COMPATIBLE_PROVIDERS": json.dumps(entry), "MODEL_TIMEOUT": "2"}
    return Models(ModelSettings.read(found | env))


@pytest.fixture
async def models(server: ModelServer) -> AsyncIterator[Models]:
    models = configure(await server.start())
    yield models
    await models.close()


async def test_the_window_is_asked_for_with_each_request(
    server: ModelServer, models: Models
) -> None:
    model, name = models.pick("pro")
    server.script(Say("one"), Say("two"))
    for _ in range(2):
        await model.complete(ask(model=name), ignore)
    assert [request.path for request in server.requests] == ["/api/chat"] * 2
    assert [one.body["options"]["num_ctx"] for one in server.requests] == [16_384] * 2
    assert models.catalog.window("house", NAME) == 16_384


@pytest.mark.parametrize(
    ("ollama", "env", "asked"),
    [
        (Ollama(given=4096, trained=8192), {}, 8192),
        (Ollama(given=4096, trained=131_072), {"OLLAMA_NUM_CTX": "65536"}, 65_536),
        (Ollama(given=4096), {"OLLAMA_NUM_CTX": "0"}, None),
        (Ollama(given=4096), {"MODEL_WINDOWS": f'{{"house/{NAME}": 9000}}'}, 9000),
        (Ollama(given=32_768, tells=True, loaded=True), {}, 32_768),
        (Ollama(given=2048, tells=True, loaded=True), {}, 16_384),
    ],
)
@pytest.mark.parametrize("learnt", [True, False])
async def test_how_much_is_asked_for(
    server: ModelServer, ollama: Ollama, env: dict[str, str], asked: int | None, learnt: bool
) -> None:
    server.ollama = ollama
    models = configure(await server.start(), **env)
    if learnt:
        await models.learn_windows(("pro",))
    model, name = models.pick("pro")
    await model.complete(ask(model=name), ignore)
    assert server.requests[-1].body["options"].get("num_ctx") == asked
    if asked:
        assert models.catalog.window("house", NAME) == asked
    await models.close()


async def test_text_and_thoughts_are_streamed_and_counted(
    server: ModelServer, models: Models
) -> None:
    server.script(Think("hm well", Say("one two three")))
    deltas: list[Delta] = []
    model, name = models.pick("pro")
    reply = await model.complete(ask(model=name), deltas.append)
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["one ", "two ", "three"]
    assert [d.text for d in deltas if isinstance(d, ThinkingDelta)] == ["hm ", "well"]
    thought = Thinking(text="hm well", provider="house")
    assert reply.parts == (thought, Text(text="one two three"))
    assert (reply.model, reply.provider, reply.finish) == (NAME, "house", "stop")
    read = reply.usage.input_tokens
    assert read > 0 and reply.usage == Usage(input_tokens=read, output_tokens=7)


@pytest.mark.parametrize("named", [None, ""])
async def test_calls_go_and_come_back(
    server: ModelServer, models: Models, named: str | None
) -> None:
    calls = [Call("look", '{"a": 1}', named, "Let me see."), Call("look", id=named)]
    server.script(Calls(calls), Say("Seen."))
    model, name = models.pick("pro")
    first = await model.complete(ask(model=name, tools=(TOOL,)), ignore)
    answer = Message(role="assistant", parts=first.parts)
    made = calls_of(answer)
    assert first.finish == "tool_calls"
    assert [call.arguments for call in made] == ['{"a":1}', "{}"]
    assert len({call.id for call in made}) == 2
    results = (tool(made[0].id, "first"), tool(made[1].id, "second"))
    last = await model.complete(
        ask(user("hi"), answer, *results, model=name, tools=(TOOL,)), ignore
    )
    assert text_of(Message(role="assistant", parts=last.parts)) == "Seen."
    said = server.requests[-1].body["messages"]
    assert [(one["tool_name"], one["content"]) for one in said if one["role"] == "tool"] == [
        ("look", "first"),
        ("look", "second"),
    ]


async def test_pictures_are_shown(server: ModelServer, models: Models) -> None:
    model, name = models.pick("pro")
    shown = {"a": base64.b64encode(PNG).decode()}
    await model.complete(ask(user("what?", (one("a"),)), model=name, pictures=shown), ignore)
    (said,) = [m for m in server.requests[0].body["messages"] if m["role"] == "user"]
    assert base64.b64decode(said["images"][0]) == PNG and "what?" in said["content"]


async def test_a_conversation_that_is_too_long_is_refused_and_not_cut(
    server: ModelServer, models: Models
) -> None:
    model, name = models.pick("pro")
    failed = await failure(model, ask(user("word " * 20_000), model=name))
    assert failed.fault == "overflow" and server.requests[-1].body["truncate"] is False


async def test_a_model_that_does_not_think_is_asked_without(
    server: ModelServer,
) -> None:
    models = configure(await server.start(), PRO_REASONING_EFFORT="high")
    refusal = {"error": f'"{NAME}" does not support thinking'}
    server.script(Fail(400, body=refusal), Say("fine"), Say("again"))
    model, name = models.pick("pro")
    for _ in range(2):
        await model.complete(ask(model=name), ignore)
    assert [one.body.get("think") for one in server.requests] == ["high", None, None]
    await models.close()


@pytest.mark.pick("a failure of Ollama", 4)
@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ((Fail(404, message=f"model '{NAME}' not found"),), "missing"),
        ((Fail(400, message="does not support tools"),), "rejected"),
        ((Fail(400, message=TOO_LONG),), "overflow"),
        ((Fail(503, retry_after=0.01),) * 3, "overloaded"),
        ((Cut(),) * 3, "unreachable"),
        ((Stop(),) * 3, "unreachable"),
        ((Empty(),) * 2, "malformed"),
        ((Events(("this is no json",)), Events((DEEP,))), "malformed"),
        ((Events(('{"error": "llama runner process has terminated"}',)),) * 3, "overloaded"),
        ((Events((f'{{"error": "{TOO_LONG}"}}',)),), "overflow"),
        ((Hang(),), "timeout"),
    ],
)
async def test_what_fails_is_told(
    server: ModelServer, models: Models, steps: tuple[object, ...], fault: str
) -> None:
    server.script(*steps)  # type: ignore[arg-type]
    model, name = models.pick("pro")
    retries = 0 if isinstance(steps[0], Hang) else None
    failed = await failure(model, ask(model=name, retries=retries))
    assert failed.fault == fault and len(server.requests) == len(steps)


async def test_a_cut_answer_is_told_as_one(server: ModelServer, models: Models) -> None:
    server.script(Ends(Say("half of")))
    model, name = models.pick("pro")
    assert (await model.complete(ask(model=name), ignore)).finish == "length"


async def test_what_breaks_once_is_tried_again(server: ModelServer, models: Models) -> None:
    server.script(Cut(20), Say("whole"))
    deltas: list[Delta] = []
    model, name = models.pick("pro")
    reply = await model.complete(ask(model=name), deltas.append)
    assert text_of(Message(role="assistant", parts=reply.parts)) == "whole"
    assert sum(isinstance(one, Restarted) for one in deltas) == 1


async def test_an_answer_in_one_piece_is_taken(server: ModelServer, models: Models) -> None:
    server.stream = False
    server.script(Call("look", '{"a": 1}'))
    model, name = models.pick("pro")
    reply = await model.complete(ask(model=name, tools=(TOOL,)), ignore)
    assert reply.finish == "tool_calls"


async def test_a_call_that_is_stopped_is_let_go(server: ModelServer, models: Models) -> None:
    server.script(Slow(0.05, "word " * 200))
    model, name = models.pick("pro")
    task = asyncio.create_task(model.complete(ask(model=name), ignore))
    await server.wait_inflight()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await models.close()
    await server.wait_inflight(0)
    assert server.dropped == 1


async def test_a_server_that_is_none_is_spoken_to_as_before(server: ModelServer) -> None:
    server.ollama = None
    models = configure(await server.start())
    model, name = models.pick("pro")
    for _ in range(2):
        await model.complete(ask(model=name), ignore)
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
    await models.close()


async def test_a_server_that_starts_later_is_found_out_then(server: ModelServer) -> None:
    server.ollama = None
    models = configure(await server.start())
    server.script(Fail(400, message="still starting"), Say("now"))
    model, name = models.pick("pro")
    await failure(model, ask(model=name))
    server.ollama = Ollama(given=4096)
    await model.complete(ask(model=name), ignore)
    assert server.requests[-1].path == "/api/chat"
    await models.close()


@pytest.mark.filterwarnings("ignore:Unclosed client session:ResourceWarning")
async def test_first_calls_side_by_side_leave_no_connection(server: ModelServer) -> None:
    left: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, about: left.append(about))
    models = configure(await server.start())
    model, name = models.pick("pro")
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(model.complete(ask(model=name), ignore))
    await models.close()
    gc.collect()
    assert left == []


@pytest.mark.parametrize(
    ("url", "mode", "kind"),
    [
        ("http://gpu.lan:8000/v1", "", OwnServerChat),
        ("http://gpu.lan:8000", "ollama_chat", OllamaChat),
        ("https://ollama.house.example/v1", "ollama_chat", OllamaChat),
    ],
)
def test_who_may_be_ollama(url: str, mode: str, kind: type) -> None:
    entry = [{"name": "house", "base_url": url, "api_mode": mode, "tier_models": {"pro": NAME}}]
    settings = ModelSettings.read({"OPENAI_COMPATIBLE_PROVIDERS": json.dumps(entry)})
    keys = Models(settings)._keys_of("house")
    assert isinstance(keys.client(keys.endpoints[0]), kind)


@pytest.mark.parametrize(
    ("url", "mode"), [("https://openrouter.ai/api/v1", ""), ("http://h/v1", "chat_completions")]
)
def test_others_are_not_asked(url: str, mode: str) -> None:
    entry = [{"name": "house", "base_url": url, "api_mode": mode, "tier_models": {"pro": NAME}}]
    settings = ModelSettings.read({"OPENAI_COMPATIBLE_PROVIDERS": json.dumps(entry)})
    keys = Models(settings)._keys_of("house")
    assert not isinstance(keys.client(keys.endpoints[0]), OwnServerChat | OllamaChat)


@given(history=histories())
def test_every_history_is_taken(history: tuple[Message, ...]) -> None:
    request = ask(*history, model=NAME, pictures=PICTURES)
    body = build_body(request, "house", tools=json.dumps([]), num_ctx=10**9)  # type: ignore[arg-type]
    OllamaApi(set(), 4096).check(json.loads(json.dumps(body)))


async def test_a_model_that_takes_no_tools_is_given_them_as_text(
    server: ModelServer, models: Models
) -> None:
    model, name = models.pick("pro")
    why = f"registry.ollama.ai/library/{NAME} does not support tools"
    server.script(Fail(400, message=why), Say("one"), Say("two"))
    call = ToolCall(id="c1", name="look", arguments='{"path": "a"}')
    history = (user("hi"), Message(role="assistant", parts=(call,)), tool("c1", "a dog"))
    for said in ("one", "two"):
        reply = await model.complete(ask(*history, model=name, tools=(TOOL,)), ignore)
        assert text_of(Message(role="assistant", parts=reply.parts)) == said
    assert ["tools" in one.body for one in server.requests] == [True, False, False]
    system, asked, called, seen = server.requests[-1].body["messages"]
    assert "<tools>" in system["content"] and asked["content"] == "hi"
    assert "<tool_call>" in called["content"] and "tool_calls" not in called
    assert seen["role"] == "user" and "a dog" in seen["content"]
