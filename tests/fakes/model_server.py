"""A model provider on loopback: speaks OpenAI's chat completions and responses, Anthropic's
messages, Google's generateContent and Ollama's chat.

Checks requests as the real ones do (roles, answered calls, unknown fields), records their bytes,
and answers from a script.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from agent_core.context.surroundings import strip_surroundings
from tests.fakes.model_anthropic import Anthropic
from tests.fakes.model_dialect import BadRequest, Dialect
from tests.fakes.model_gemini import Gemini
from tests.fakes.model_images import Images
from tests.fakes.model_ollama import OllamaApi
from tests.fakes.model_openai import OpenAI
from tests.fakes.model_responses import Responses
from tests.fakes.model_steps import (
    Call,
    Calls,
    Cut,
    Empty,
    Ends,
    Events,
    Fail,
    Halted,
    Hang,
    Json,
    Say,
    Slow,
    Step,
    Stop,
    Think,
)
from tests.fakes.waiting import PATIENCE, wait_until

__all__ = [
    "ModelServer",
    "Recorded",
    "Call",
    "Calls",
    "Cut",
    "Empty",
    "Ends",
    "Events",
    "Fail",
    "Halted",
    "Hang",
    "Json",
    "Say",
    "Slow",
    "Step",
    "Stop",
    "Think",
]


@dataclass(slots=True)
class Recorded:
    path: str
    raw: bytes
    body: Json
    headers: dict[str, str]
    peer: str
    """The client's address and port: the same when a connection is used again."""


@dataclass(frozen=True, slots=True)
class Ollama:
    """What Ollama gives its models: tokens that they get, and could hold. `tells`: it says how
    many they get once one is loaded, as its newer versions do."""

    given: int
    trained: int = 131_072
    tells: bool = False
    loaded: bool = False
    """They are loaded before the first request."""


class ModelServer:
    """`start()` gives the address without `/v1`; OpenAI's base URL is `<address>/v1`."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        """When set, other keys are refused with 401."""
        self.requests: list[Recorded] = []
        self.steps: list[Step] = []
        self.by_text: dict[str, list[Step]] = {}
        self.gate: asyncio.Event | None = None
        """When set, answers wait until the test sets the event."""
        self.midway = asyncio.Event()
        """Lets go what a `Halted` step holds back."""
        self.inflight = 0
        self.dropped = 0
        """Answers whose client went away."""
        self._changed = asyncio.Event()
        """Set whenever a request comes in or goes."""
        self.stream = True
        """False: answer in one piece although a stream was asked for."""
        self.extra_fields: set[str] = set()
        """Further top-level fields that this server takes."""
        self.models: list[str] = ["fake-model"]
        self.window = 0
        """Tokens that each of them holds, if the server says so."""
        self.ollama: Ollama | None = None
        """It behaves as Ollama does."""
        self.heard: list[tuple[str, bytes]] = []
        """Audio that was sent to be transcribed: name, bytes."""
        self.spoken = "buy some milk"
        self.deaf = 0
        """The status with which audio is refused, 0: it is transcribed."""
        self.images = Images()
        self._answers = 0
        self._runner: web.AppRunner | None = None

    def script(self, *steps: Step) -> None:
        """Add answers, given in this order."""
        self.steps.extend(steps)

    async def start(self) -> str:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._openai)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_post("/v1/messages", self._anthropic)
        app.router.add_post("/v1beta/models/{call}", self._gemini)
        app.router.add_post("/v1/audio/transcriptions", self._transcriptions)
        app.router.add_post("/v1/images/generations", self.images.answer)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/api/chat", self._ollama_chat)
        app.router.add_get("/api/version", self._version)
        app.router.add_get("/api/ps", self._ps)
        app.router.add_post("/api/show", self._show)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        self.midway.set()
        if self.gate:
            self.gate.set()
        if self._runner:
            await self._runner.cleanup()

    async def wait_inflight(self, count: int = 1, limit: float = PATIENCE) -> None:
        """Until exactly `count` requests are being answered."""
        await self.wait(lambda: self.inflight == count, limit)

    async def wait(self, met: Callable[[], object], timeout: float = PATIENCE) -> None:
        """Until `met`."""
        await wait_until(met, lambda: self._changed, timeout)

    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _models(self, _: web.Request) -> web.Response:
        held = {"max_model_len": self.window} if self.window else {}
        data = [{"id": name, "object": "model", **held} for name in self.models]
        return web.json_response({"object": "list", "data": data})

    async def _version(self, _: web.Request) -> web.Response:
        if self.ollama is None:
            raise web.HTTPNotFound
        return web.json_response({"version": "0.14.2"})

    async def _ollama_chat(self, request: web.Request) -> web.StreamResponse:
        if self.ollama is None:
            raise web.HTTPNotFound
        return await self._serve(request, OllamaApi(self.extra_fields, self.ollama.given))

    async def _ps(self, _: web.Request) -> web.Response:
        if self.ollama is None:
            raise web.HTTPNotFound
        held = {"context_length": self.ollama.given} if self.ollama.tells else {}
        loaded = self.models if self.requests or self.ollama.loaded else []
        return web.json_response({"models": [{"name": name, **held} for name in loaded]})

    async def _show(self, _: web.Request) -> web.Response:
        if self.ollama is None:
            raise web.HTTPNotFound
        return web.json_response({"model_info": {"llama.context_length": self.ollama.trained}})

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        most = self.ollama.given if self.ollama is not None else 0
        return await self._serve(request, OpenAI(self.extra_fields, most))

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, Responses(self.extra_fields))

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, Anthropic(self.extra_fields))

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        """`<model>:streamGenerateContent?alt=sse`."""
        model, _, method = request.match_info["call"].partition(":")
        if method != "streamGenerateContent" or request.query.get("alt") != "sse":
            raise web.HTTPNotFound
        return await self._serve(request, Gemini(self.extra_fields, model))

    async def _transcriptions(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.key is not None and given != self.key:
            return web.json_response({"error": {"message": "Incorrect API key"}}, status=401)
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField) and form["model"]
        with file.file:
            self.heard.append((file.filename, file.file.read()))
        if self.deaf:
            return web.json_response({"error": {"message": "no such model"}}, status=self.deaf)
        return web.json_response({"text": self.spoken})

    async def _serve(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        raw = await request.read()
        self.inflight += 1
        self._note()
        try:
            return await self._answer(request, raw, dialect)
        except (asyncio.CancelledError, ConnectionResetError):
            self.dropped += 1
            raise
        finally:
            self.inflight -= 1
            self._note()

    async def _answer(
        self, request: web.Request, raw: bytes, dialect: Dialect
    ) -> web.StreamResponse:
        names = ("x-api-key", "x-goog-api-key", "Authorization")
        given = next(filter(None, map(request.headers.get, names)), None)
        key = (given or "").removeprefix("Bearer ")
        if self.key is not None and key != self.key:
            return dialect.error(401, f"Incorrect API key provided: {key}.")
        try:
            body = json.loads(raw)
            self.requests.append(
                Recorded(request.path, raw, body, dict(request.headers), _peer(request))
            )
            dialect.check(body)
        except (BadRequest, ValueError, KeyError, TypeError) as error:
            return dialect.error(400, f"{type(error).__name__}: {error}")
        step = self._next(body, dialect)
        if self.gate:
            await self.gate.wait()
        if isinstance(step, Fail) and step.body is not None:
            return web.json_response(step.body, status=step.status)
        if isinstance(step, Fail):
            return dialect.error(step.status, step.message, step.retry_after, step.param)
        if isinstance(step, Hang):
            await asyncio.sleep(step.seconds)
            return dialect.error(504, "hung")
        self._answers += 1
        if not ((body.get("stream") or dialect.streams) and self.stream):
            return web.json_response(dialect.whole(body, step, self._answers))
        told = step.then if isinstance(step, Halted) else step
        return await self._stream(request, step, dialect, dialect.lines(body, told, self._answers))

    async def _stream(
        self, request: web.Request, step: Step, dialect: Dialect, lines: list[str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": dialect.content_type})
        await response.prepare(request)
        for line in lines:
            await response.write(f"{line}{dialect.end}".encode())
            if isinstance(step, Slow):
                await asyncio.sleep(step.delay)
            if isinstance(step, Halted) and step.then.text in line:
                await self.midway.wait()
        if isinstance(step, Cut):
            assert request.transport
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    def _next(self, body: Json, dialect: Dialect) -> Step:
        """The step whose text occurs in the conversation, else the next of the script."""
        text = json.dumps(body[dialect.turns], ensure_ascii=False)
        queue = next((q for key, q in self.by_text.items() if key in text and q), self.steps)
        step: Step = queue.pop(0) if queue else Say(f"ack {_words(dialect, body)}")
        while callable(step):
            step = step(body)
        return step


def _words(dialect: Dialect, body: Json) -> str:
    """What the person wrote last, as they did."""
    return strip_surroundings(dialect.last_user(body))


def _peer(request: web.Request) -> str:
    return str(request.transport.get_extra_info("peername")) if request.transport else ""
