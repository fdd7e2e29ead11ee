"""The HTTP API of a running gateway against its own description: schemathesis sends what the
description allows and what it forbids, and compares what comes back."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from yarl import URL

from tests.fakes.waiting import PATIENCE
from tests.gateway.process import World, peopled
from tests.sampling import SEED

OWN_TOKEN = "a-token-of-the-owner-0123456789"
EVENTS = "/api/conversations/{id}/events"
CALL_SECONDS = 2
"""A stream of events stays open as long as its reader does."""
NO_HTTP = (
    b"GET / HTTP/1.1\r\nAuthorization: Bearer \0sk-secret-of-somebody\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: sk-secret-of-somebody\r\n\r\n",
    b"sk-secret-of-somebody\r\n\r\n",
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03sk-secret-of-somebody",
    b"GET /sk-secret-of-somebody\0 HTTP/1.1\r\n\r\n",
    b"GET / HTTP/9.9\r\nX: sk-secret-of-somebody\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: sk-secret-of-somebody\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"sk-secret-of-somebody" * 2000 + b"\r\n\r\n",
)
"""What strangers send, with a word that no log may hold."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with peopled(tmp_path) as made:
        yield made


async def probe(world: World, *options: str) -> None:
    """Fails if an answer is not what the description says of its request."""
    run = await world.start(TURNKEEPER_TOKEN=OWN_TOKEN, OPENAI_API_KEY="", PRO_MODEL="")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{run.url}api/openapi.json"),
        *("-H", f"Authorization: Bearer {OWN_TOKEN}", "--seed", SEED),
        *("--checks", "all", "--exclude-checks", "ignored_auth"),  # soon answered 429, by design
        *("--continue-on-failure", "--no-shrink", "--no-color", "--warnings", "off"),
        *("--request-timeout", str(CALL_SECONDS), *options),
        cwd=world.folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-9000:]
    found = run.log.find("Traceback")
    assert found < 0, run.log[max(found - 900, 0) :][:4000]


def test_a_text_is_empty_in_the_description_where_the_gateway_takes_it_so() -> None:
    described = (Path(__file__).parents[2] / "adapters/web/static/openapi.json").read_text()
    patterns = {json.loads(one) for one in re.findall(r'"pattern": ("\[\^.*")', described)}
    (pattern,) = patterns
    every = (chr(n) for n in range(sys.maxunicode + 1))
    assert [c for c in every if bool(re.search(pattern, c)) != bool(c.strip())] == []


async def test_a_sample_of_requests(world: World) -> None:
    await probe(world, "--phases", "fuzzing", "-n", "2", "--exclude-path", EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["coverage", "fuzzing", "stateful"])
async def test_thousands_of_requests(phase: str, world: World) -> None:
    await probe(world, "--phases", phase, "-n", "300", "--exclude-path", EVENTS)


@pytest.mark.slow
async def test_streams_of_events(world: World) -> None:
    await probe(world, "--phases", "coverage,fuzzing", "-n", "10", "--include-path", EVENTS)


async def test_what_is_no_http_is_no_error_of_ours(world: World) -> None:
    run = await world.start(LOG_LEVEL="info")
    url = URL(run.url)
    for sent in NO_HTTP:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(sent)
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionResetError):
                await reader.read()
        writer.close()
    await run.end()
    assert "error" not in run.log and "sk-secret" not in run.log
