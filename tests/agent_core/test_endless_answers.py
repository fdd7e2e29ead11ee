"""Servers that do not end: each form of it, in each protocol, is given up at its limit, told, and
asked nowhere again at the same provider."""

import asyncio
import gzip
import io
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.errors import ModelFailed
from agent_core.models.answers import limits, streamed_answers
from agent_core.models.catalog import Catalog
from agent_core.models.ollama.client import OllamaChat
from agent_core.models.port import Delta, Model
from agent_core.models.transcription import Transcriber
from agent_core.settings import Endpoint
from agent_core.skills.images.generations import generate
from tests.agent_core.asking import ask
from tests.agent_core.streams_rig import BLOCK, WIRES, chat, events, words
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import head, serving

WORDS = "some words, and some more of them. "
PIECE = WORDS * 200
"""Characters that one event says."""
ALL = [*WIRES, "ollama"]
CALL = {"name": "look", "arguments": '{"a": 1}'}
HUGE = json.dumps({"a": "x" * 3_000_000})


def say(wire: str, text: str) -> Json:
    """An event that says `text`."""
    match wire:
        case "chat":
            return chat({"content": text})
        case "responses":
            return {"type": "response.output_text.delta", "output_index": 0, "delta": text}
        case "anthropic":
            said = {"type": "text_delta", "text": text}
            return {"type": "content_block_delta", "index": 0, "delta": said}
        case "ollama":
            return {"model": "m", "message": {"role": "assistant", "content": text}}
    return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}]}


def think(wire: str, text: str) -> Json:
    """An event that reasons."""
    match wire:
        case "chat":
            return chat({"reasoning_content": text})
        case "responses":
            kind = "response.reasoning_summary_text.delta"
            return {"type": kind, "output_index": 0, "summary_index": 0, "delta": text}
        case "anthropic":
            thought = {"type": "thinking_delta", "thinking": text}
            return {"type": "content_block_delta", "index": 0, "delta": thought}
        case "ollama":
            return {"model": "m", "message": {"role": "assistant", "thinking": text}}
    parts = [{"text": text, "thought": True}]
    return {"candidates": [{"content": {"parts": parts, "role": "model"}}]}


def call(wire: str, count: int, arguments: str) -> list[Json]:
    """A whole answer of `count` calls."""
    match wire:
        case "chat":
            made = [
                {"index": n, "id": f"c{n}", "function": {"name": "look", "arguments": arguments}}
                for n in range(count)
            ]
            return [chat({"tool_calls": made}), chat({}, "tool_calls")]
        case "responses":
            items = [
                {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": "look",
                 "arguments": arguments, "status": "completed"} for n in range(count)
            ]  # fmt: skip
            done = [
                {"type": "response.output_item.done", "output_index": n, "item": item}
                for n, item in enumerate(items)
            ]
            ended = {"status": "completed", "model": "m", "output": items}
            return [*done, {"type": "response.completed", "response": ended}]
        case "anthropic":
            lines: list[Json] = [{"type": "message_start", "message": {"model": "m"}}]
            for n in range(count):
                block = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {}}
                given = {"type": "input_json_delta", "partial_json": arguments}
                lines += [
                    {"type": "content_block_start", "index": n, "content_block": block},
                    {"type": "content_block_delta", "index": n, "delta": given},
                    {"type": "content_block_stop", "index": n},
                ]
            end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
            return [*lines, end, {"type": "message_stop"}]
        case "ollama":
            made = [{"function": {"name": "look", "arguments": json.loads(arguments)}}] * count
            message = {"role": "assistant", "content": "", "tool_calls": made}
            return [{"model": "m", "message": message, "done": True, "done_reason": "stop"}]
    parts = [{"functionCall": {"name": "look", "args": json.loads(arguments)}}] * count
    content = {"parts": parts, "role": "model"}
    return [{"candidates": [{"content": content, "finishReason": "STOP"}]}]


def begin(wire: str) -> list[Json]:
    if wire != "anthropic":
        return []
    start = {"type": "message_start", "message": {"model": "m"}}
    return [start, {"type": "content_block_start", "index": 0, "content_block": BLOCK}]


def write(wire: str, event: Json) -> bytes:
    line = json.dumps(event).encode()
    return line + b"\n" if wire == "ollama" else b"data: " + line + b"\n\n"


Endless = Callable[[str], Iterator[bytes]]
"""The body of an answer, piece by piece."""


def _repeat(event: Callable[[str, str], Json]) -> Endless:
    def body(wire: str) -> Iterator[bytes]:
        for one in begin(wire):
            yield write(wire, one)
        while True:
            yield write(wire, event(wire, PIECE))

    return body


def _line(wire: str) -> Iterator[bytes]:
    """One event without its end."""
    yield write(wire, {"pad": ""})[:-4]
    while True:
        yield b"x" * 100_000


def _lines(wire: str) -> Iterator[bytes]:
    """Nothing but line ends, as some servers keep a connection alive."""
    while True:
        yield b"\n" * 100_000


def _comments(wire: str) -> Iterator[bytes]:
    while True:
        yield b": still here\n\n" * 5_000 if wire != "ollama" else b" \n" * 50_000


def _data_lines(wire: str) -> Iterator[bytes]:
    """Lines of one event, which never comes to its end."""
    while True:
        yield b"data: [1, 2, 3,\n" * 5_000


def _whole(wire: str) -> Iterator[bytes]:
    """An answer in one piece."""
    yield b'{"pad": "'
    while True:
        yield b"x" * 100_000


ENDLESS: dict[str, Endless] = {
    "words": _repeat(say),
    "reasoning": _repeat(think),
    "a line": _line,
    "line ends": _lines,
    "comments": _comments,
    "lines of one event": _data_lines,
    "one piece": _whole,
}


class EndlessServer:
    """Answers each question with `body` and `status`. `sent`: bytes of the longest answer."""

    def __init__(self) -> None:
        self.body: Callable[[], Iterator[bytes]] = lambda: iter(())
        self.status, self.headers = 200, {}
        self.asked = self.sent = 0
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.asked += 1
        given = web.StreamResponse(status=self.status, headers=self.headers)
        await given.prepare(request)
        sent = 0
        for piece in self.body():
            await given.write(piece)
            sent += len(piece)
            self.sent = max(self.sent, sent)
            await asyncio.sleep(0)
        return given


@pytest.fixture
async def server() -> AsyncIterator[EndlessServer]:
    made = EndlessServer()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/{path:.*}", made.answer)
    async with TestServer(app) as listening:
        made.address = f"http://127.0.0.1:{listening.port}"
        yield made


def connect(wire: str, server: EndlessServer, timeout: float = 30.0) -> Model:
    end = Endpoint(provider="p", api_key="k", base_url=server.address, timeout=timeout)
    server.headers = {"Content-Type": "text/event-stream"}
    if wire != "ollama":
        return WIRES[wire](end)
    server.headers = {"Content-Type": "application/x-ndjson"}
    catalog = Catalog()
    catalog.note_window("p", "m", 4_096, 4_096)
    return OllamaChat(end, catalog)


async def fail(model: Model) -> ModelFailed:
    try:
        with pytest.raises(ModelFailed) as failed:
            await model.complete(ask(), lambda _: None)
        return failed.value
    finally:
        await model.close()


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize("form", ENDLESS)
async def test_an_answer_without_an_end_is_given_up(
    server: EndlessServer, monkeypatch: pytest.MonkeyPatch, wire: str, form: str
) -> None:
    for owner in (limits, streamed_answers):
        monkeypatch.setattr(owner, "MAX_EVENT", 1 << 20)
    for owner in (limits, streamed_answers):
        monkeypatch.setattr(owner, "MAX_ANSWER", 4 << 20)
    server.body = lambda: ENDLESS[form](wire)
    failed = await fail(connect(wire, server))
    assert failed.fault in ("endless", "malformed"), str(failed)
    assert server.asked == 1 if failed.fault == "endless" else server.asked <= 2
    assert server.sent < 16 << 20


@pytest.mark.parametrize("wire", ALL)
async def test_signs_of_life_keep_an_answer_only_so_long(
    server: EndlessServer, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    """Of proxies whose model is gone, such as OpenRouter's comments and Anthropic's pings."""
    monkeypatch.setattr("agent_core.models.wire.LONGEST", 0.02)
    model = connect(wire, server, timeout=10.0)

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        server.asked += 1
        given = web.StreamResponse(headers=server.headers)
        await given.prepare(request)
        for one in begin(wire):
            await given.write(write(wire, one))
        await given.write(write(wire, say(wire, "so ")))
        while True:
            await given.write(b"\n" if wire == "ollama" else b": processing\n\n")
            await asyncio.sleep(0.01)

    monkeypatch.setattr(server, "answer", answer)
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with TestServer(app) as listening:
        server.address = f"http://127.0.0.1:{listening.port}"
        await model.close()
        failed = await fail(connect(wire, server, timeout=10.0))
    assert failed.fault == "endless" or wire == "gemini", "its SDK takes no comments"
    assert server.asked == (1 if failed.fault == "endless" else 2)


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize(("count", "arguments"), [(101, '{"a": 1}'), (1, HUGE)])
async def test_calls_that_nobody_means_are_not_made(
    server: EndlessServer, wire: str, count: int, arguments: str
) -> None:
    server.body = lambda: (write(wire, one) for one in call(wire, count, arguments))
    assert (await fail(connect(wire, server))).fault == "endless"
    server.body = lambda: (write(wire, one) for one in call(wire, 100, '{"a": 1}'))
    model = connect(wire, server)
    reply = await model.complete(ask(), lambda _: None)
    assert len(reply.parts) == 100
    await model.close()


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize("packed", [False, True])
async def test_of_an_error_the_beginning_is_read(
    server: EndlessServer, wire: str, packed: bool
) -> None:
    """An endless one, and one that unpacks to half a gigabyte."""
    bomb = gzip.compress(b"x" * 500_000_000, 1) if packed else b""

    def body() -> Iterator[bytes]:
        if packed:
            yield bomb
            return
        while True:
            yield b"x" * 100_000

    model = connect(wire, server)
    server.body, server.status = body, 400
    server.headers |= {"Content-Encoding": "gzip"} if packed else {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failed = await fail(model)
    assert failed.fault == "rejected" and "(400)" in str(failed)
    assert server.sent < 16 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


async def test_an_answer_as_long_as_any_arrives_whole(server: EndlessServer) -> None:
    """128,000 tokens, an event each."""
    shown: list[Delta] = []
    for wire in ("chat", "anthropic"):
        model = connect(wire, server)
        said, (*_, last) = write(wire, say(wire, "word ")), events(wire)
        end = [last] if wire == "chat" else events(wire)[-2:]
        pieces = [*(write(wire, one) for one in begin(wire)), *([said * 1_000] * 128)]
        server.body = lambda pieces=pieces, end=end, wire=wire: iter(
            [*pieces, *(write(wire, one) for one in end)]
        )
        reply = await model.complete(ask(), shown.append)
        assert words(reply) == "word " * 128_000
        await model.close()


@pytest.mark.parametrize("wire", ["chat", "anthropic", "ollama"])
async def test_what_comes_behind_an_answer_takes_nothing_of_it(
    server: EndlessServer, monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    monkeypatch.setattr(streamed_answers, "MAX_ANSWER", 1 << 20)
    whole = [{"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True}]
    whole = whole if wire == "ollama" else events(wire)
    done = b"data: [DONE]\n\n" if wire == "chat" else b""

    def body() -> Iterator[bytes]:
        yield b"".join(write(wire, one) for one in whole) + done
        while True:
            yield b"\n" * 100_000

    server.body = body
    model = connect(wire, server)
    assert words(await model.complete(ask(), lambda _: None)) == "hello"
    await model.close()


@pytest.mark.parametrize("status", [200, 500])
async def test_other_calls_of_models_end_too(
    server: EndlessServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A transcription and a picture."""
    monkeypatch.setattr(limits, "MAX_ANSWER", 4 << 20)
    monkeypatch.setattr("agent_core.skills.images.generations.MAX_BYTES", 4 << 20)
    server.body, server.status = lambda: _whole("chat"), status
    server.headers = {"Content-Type": "application/json"}
    end = Endpoint(provider="p", api_key="k", base_url=server.address, retries=0)
    with pytest.raises(ModelFailed):
        await generate(end, {"prompt": "a cat"})
    heard = Transcriber(end, "m")
    with pytest.raises(ModelFailed):
        await heard.words(io.BytesIO(b"RIFF"), "a.wav")
    await heard.close()
    assert server.sent < 32 << 20


async def test_other_calls_of_models_last_only_so_long(server: EndlessServer) -> None:
    """Of a server that sends a byte now and then."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        given = web.StreamResponse(headers={"Content-Type": "application/json"})
        await given.prepare(request)
        while True:
            await given.write(b" ")
            await asyncio.sleep(0.01)

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with TestServer(app) as listening, asyncio.timeout(20):
        base = f"http://127.0.0.1:{listening.port}"
        end = Endpoint(provider="p", api_key="k", base_url=base, retries=0, timeout=0.6)
        heard = Transcriber(end, "m")
        for call in (generate(end, {"prompt": "a cat"}), heard.words(io.BytesIO(b"R"), "a.wav")):
            with pytest.raises(ModelFailed) as failed:
                await call
            assert failed.value.fault == "endless" and "without an end" in str(failed.value)
        await heard.close()


async def test_a_picture_that_is_cut_off_is_told() -> None:
    cut = (
        head("application/json", "200 OK", "Content-Length: 100000") + b'{"data": [{"b64_json": "A'
    )
    async with serving(lambda n: cut) as (base, _):
        end = Endpoint(provider="p", api_key="k", base_url=base, retries=0)
        with pytest.raises(ModelFailed) as failed:
            await generate(end, {"prompt": "a cat"})
    assert failed.value.fault == "unreachable"
