"""What tests of several replicas share."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.redis_server import RedisServer, redis_server
from tests.gateway.process import World, peopled

Pair = tuple[World, World, RedisServer]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Two homes with the same people and servers, and a Redis."""
    redis = redis_server(tmp_path)
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    try:
        async with peopled(first) as one:
            two = World(second, one.telegram, one.model)
            two.model_url = one.model_url
            try:
                yield one, two, redis
            finally:
                for run in two.runs:
                    await run.end(signal.SIGKILL)
    finally:
        redis.end()
