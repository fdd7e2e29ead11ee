"""Finds a model server on this machine: only loopback, only the usual ports."""

import asyncio
from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp
import msgspec

from agent_core.models.streamed_http import read_json
from agent_core.models.windows import choose_talking
from agent_core.settings import CompatibleProvider, TierModels

LIMIT = 0.3
"""Seconds for all probes together: they run side by side."""
MAX_BYTES = 1_000_000


class Port(NamedTuple):
    """The usual port of a server."""

    name: str
    number: int


USUAL = (
    Port("ollama", 11434),
    Port("lmstudio", 1234),
    Port("llamacpp", 8080),
    Port("vllm", 8000),
)


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def discover(
    session: aiohttp.ClientSession | None = None, ports: tuple[Port, ...] = USUAL
) -> CompatibleProvider | None:
    """Return the first usual port whose `/v1/models` lists a chat model, None if there is none."""
    found: dict[Port, CompatibleProvider] = {}

    async def probe(used: aiohttp.ClientSession, port: Port) -> None:
        provider = await _probe(used, port)
        if provider:
            found[port] = provider

    async with AsyncExitStack() as stack:
        used = (
            session
            if session
            else await stack.enter_async_context(aiohttp.ClientSession(trust_env=False))
        )
        async with asyncio.TaskGroup() as group:
            for port in ports:
                group.create_task(probe(used, port))
    return next((found[port] for port in ports if port in found), None)


async def _probe(session: aiohttp.ClientSession, port: Port) -> CompatibleProvider | None:
    base_url = f"http://127.0.0.1:{port.number}/v1"
    timeout = aiohttp.ClientTimeout(total=LIMIT)
    try:
        async with session.get(
            f"{base_url}/models", timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != 200:
                return None
            listed = await read_json(response, MAX_BYTES)
        models = msgspec.convert(listed, _Models).data
    except (aiohttp.ClientError, TimeoutError, msgspec.ValidationError):  # or it is another server
        return None
    model = next(iter(choose_talking(model.id for model in models if model.id)), None)
    if not model:
        return None
    tiers = TierModels(max=model, pro=model, flash=model)
    return CompatibleProvider(name=port.name, base_url=base_url, tier_models=tiers)
