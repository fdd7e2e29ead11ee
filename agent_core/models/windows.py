"""Asks servers for the windows of their models.

Each kind of server tells it elsewhere (November 2026): vLLM, OpenRouter and others in the list of
their models, llama.cpp in `/props`, LM Studio in `/api/v0/models`, Anthropic for each model. Ollama
gives a model what its memory allows when it loads it: `/api/ps` tells it from then on.
"""

import asyncio
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

import aiohttp

from agent_core.models.endpoint import Endpoint
from agent_core.models.streamed_http import read_json

LIMIT = 3.0
"""Seconds for one question."""
MAX_BYTES = 16_000_000
"""Bytes of an answer: the longest lists of models have 1 MB (OpenRouter)."""
MAX_WINDOW = 100_000_000
"""Tokens: more stands for an unknown window (tokenizers say 10**30)."""
MAX_DIGITS = 12
_LISTED = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_input_tokens",
    "max_context_length",  # Mistral
)
_SILENT = re.compile(
    r"embed|whisper|tts|dall-e|image|audio|moderation|realtime|transcribe|rerank|sora|veo|imagen"
    r"|minilm|paraphrase|(?:\b|_)(?:bge|e5|gte)[-_]"
)
"""Matches names of models that are not for conversations."""
Json: TypeAlias = dict[str, object]


class AskedWindow(NamedTuple):
    """A model's window in tokens. `sure`: it is loaded with it; otherwise it may get less.
    `trained`: its maximum, where its server may give it less and then silently drops the beginning
    of longer requests; 0 elsewhere."""

    tokens: int
    sure: bool = True
    trained: int = 0


async def ask_windows(wanted: Iterable[tuple[Endpoint, str]]) -> dict[tuple[str, str], AskedWindow]:
    """Ask servers for windows, in parallel; return them by provider and model."""
    found: dict[tuple[str, str], AskedWindow] = {}

    async def ask(session: aiohttp.ClientSession, endpoint: Endpoint, model: str) -> None:
        if (held := await ask_window(session, endpoint, model)) is not None:
            found[endpoint.provider, model] = held

    async with aiohttp.ClientSession(trust_env=True) as session, asyncio.TaskGroup() as group:
        for endpoint, model in wanted:
            group.create_task(ask(session, endpoint, model))
    return found


async def ask_models(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the names of all models that the server of `endpoint` lists; () if it lists none."""
    if endpoint.api_mode == "generate_content":
        return ()
    async with aiohttp.ClientSession(trust_env=True) as session:
        server = _Server(session, endpoint)
        anthropic = endpoint.api_mode == "anthropic_messages"
        url = f"{server.root}/v1/models?limit=1000" if anthropic else f"{server.base}/models"
        listed = (await server.get(url)).get("data")
    rows = map(_as_object, listed if isinstance(listed, list) else ())
    names = (row.get("id") for row in rows)
    return tuple(name.removeprefix("models/") for name in names if isinstance(name, str) and name)


def choose_talking(listed: Iterable[str]) -> tuple[str, ...]:
    """Return those of a server's models that a conversation can use, by their names."""
    return tuple(name for name in listed if not _SILENT.search(name))


async def list_talking(endpoints: Mapping[str, Endpoint]) -> tuple[str, ...]:
    """Models that these servers list and that a conversation can use, by provider/model."""
    found: dict[str, tuple[str, ...]] = {}

    async def ask(provider: str, endpoint: Endpoint) -> None:
        found[provider] = await ask_models(endpoint)

    async with asyncio.TaskGroup() as group:
        for provider, endpoint in endpoints.items():
            group.create_task(ask(provider, endpoint))
    return tuple(f"{one}/{name}" for one in endpoints for name in choose_talking(found[one]))


def has_model(listed: Iterable[str], model: str) -> bool:
    """Return True if `model` is among the listed ones; a suffix after a colon is a variant."""
    known = set(listed)
    plain = model.partition(":")[0]
    return model in known or plain in known or f"{model}:latest" in known


def find_nearest(name: str, known: Iterable[str], least: float = 0.5) -> str:
    """Return the one of `known` (tiers or provider/model) that resembles `name` most, in any case;
    "" for none. `least`: how much, from 0 to 1."""
    plain = {(one.partition("/")[2] or one).lower(): one for one in known}
    # a provider's name is most of a short name, and does not identify the model
    for said in filter(None, (name.partition("/")[2], name)):
        if close := difflib.get_close_matches(said.lower(), plain, 1, least):
            return plain[close[0]]
    return ""


async def ask_window(
    session: aiohttp.ClientSession, endpoint: Endpoint, model: str
) -> AskedWindow | None:
    """Return what the server of `endpoint` tells of `model`, None for nothing. Raises nothing."""
    server = _Server(session, endpoint)
    if endpoint.api_mode == "anthropic_messages":
        about = await server.get(f"{server.root}/v1/models/{quote(model, safe='')}")
        return _make_window(about.get("max_input_tokens"))
    if endpoint.api_mode == "generate_content":
        return None
    if may_be_ollama(endpoint) and await _tells_version(server):
        held = await _ask_ollama(server, model)
        return _choose_context(held, endpoint.num_ctx) if endpoint.num_ctx else held
    listed = _find(await server.get(f"{server.base}/models"), model)
    for name in _LISTED:
        if (held := _make_window(listed.get(name))) is not None:
            return held
    return (
        await _ask_llama_cpp(server)
        or await _ask_lm_studio(server, model)
        or await _ask_ollama(server, model)
    )


async def speaks_ollama(endpoint: Endpoint) -> bool:
    """Return True if Ollama answers at `endpoint`, whose own protocol tells more than others."""
    async with aiohttp.ClientSession(trust_env=True) as session:
        return await _tells_version(_Server(session, endpoint))


def find_root(endpoint: Endpoint) -> str:
    """The address of `endpoint` where its host's paths begin."""
    return endpoint.base_url.rstrip("/").removesuffix("/v1")


class _Server:
    """The server at an address. `base` ends where OpenAI's paths begin, `root` is the host's."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: Endpoint) -> None:
        self.base = endpoint.base_url.rstrip("/")
        self.root = find_root(endpoint)
        self._session = session
        key = endpoint.api_key
        self._headers = {"authorization": f"Bearer {key}"}
        if endpoint.api_mode == "anthropic_messages":
            self._headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}

    async def get(self, url: str) -> Json:
        """Return the JSON object at `url`; {} if there is none."""
        return await self._ask("GET", url, None)

    async def post(self, url: str, body: Json) -> Json:
        """Return the JSON object that answers `body`; {} if there is none."""
        return await self._ask("POST", url, body)

    async def _ask(self, method: str, url: str, body: Json | None) -> Json:
        timeout = aiohttp.ClientTimeout(total=LIMIT)
        try:
            async with self._session.request(
                method,
                url,
                json=body,
                timeout=timeout,
                headers=self._headers,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    return {}
                found = await read_json(response, MAX_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return {}
        return {"data": found} if isinstance(found, list) else _as_object(found)


def may_be_ollama(endpoint: Endpoint) -> bool:
    """Return True if the server of `endpoint` is spoken to as Ollama, if it is that."""
    return endpoint.own_server or endpoint.api_mode == "ollama_chat"


async def _tells_version(server: _Server) -> bool:
    about = await server.get(f"{server.root}/api/version")
    return isinstance(about.get("version"), str)


def _choose_context(held: AskedWindow | None, wanted: int) -> AskedWindow:
    """Choose the window of an Ollama model: `wanted`, or the loaded one if that is larger, to avoid
    a reload; at most what it was trained for."""
    if held is None:
        return AskedWindow(wanted)
    most = held.trained or held.tokens
    loaded = held.tokens if held.sure else 0
    return AskedWindow(min(most, max(wanted, loaded)), trained=most)


async def _ask_llama_cpp(server: _Server) -> AskedWindow | None:
    props = await server.get(f"{server.root}/props")
    return _make_window(_as_object(props.get("default_generation_settings")).get("n_ctx"))


async def _ask_lm_studio(server: _Server, model: str) -> AskedWindow | None:
    about = _find(await server.get(f"{server.root}/api/v0/models"), model)
    if (held := _make_window(about.get("loaded_context_length"))) is not None:
        return held
    return _make_window(about.get("max_context_length"), sure=False)


async def _ask_ollama(server: _Server, model: str) -> AskedWindow | None:
    about = await server.post(f"{server.root}/api/show", {"model": model})
    known = _as_object(about.get("model_info"))
    lengths = (value for name, value in known.items() if name.endswith(".context_length"))
    trained = _make_window(next(lengths, None), sure=False)
    most = trained.tokens if trained is not None else 0
    loaded = (await server.get(f"{server.root}/api/ps")).get("models")
    for one in map(_as_object, loaded if isinstance(loaded, list) else ()):
        held = _make_window(one.get("context_length"))
        if held is not None and model in (one.get("name"), one.get("model")):
            return held._replace(trained=max(most, held.tokens))
    return trained._replace(trained=most) if trained is not None else None


def _find(body: Json, model: str) -> Json:
    """The entry of `model` in a list of models."""
    listed = body.get("data")
    entries = map(_as_object, listed if isinstance(listed, list) else ())
    return next((one for one in entries if one.get("id") == model), {})


def _make_window(value: object, sure: bool = True) -> AskedWindow | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:MAX_DIGITS])
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WINDOW:
        return None
    return AskedWindow(value, sure)


def _as_object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
