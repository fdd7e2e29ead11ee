"""A server that a command leaves running is seen by the next command, the browser and the preview,
through the whole gateway, in each tier that holds one; Monty says that it holds none."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.wiring.agent_default import TurnkeeperAgent
from tests.fakes.e2b_server import serve_e2b
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.stories.rig import ADMIN, Rig

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.timeout(240),
    pytest.mark.pick("a browser in sandboxes"),
]
SECONDS = 120.0
START = """mkdir -p www && cd www && echo '<title>Cups</title>Three cups' > index.html
nohup python3 -m http.server {port} --bind 127.0.0.1 >log 2>&1 &
for _ in $(seq 100); do
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {port}))' 2>/dev/null && break
sleep 0.1; done
"""
ASK = "python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())'"


@pytest.fixture(
    params=[
        pytest.param("bwrap", marks=(NEEDS_BWRAP, pytest.mark.pick)),
        pytest.param("landlock", marks=(NEEDS_LANDLOCK, pytest.mark.slow)),
        pytest.param("docker", marks=pytest.mark.slow),
        pytest.param("e2b", marks=pytest.mark.slow),
    ]
)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Settings for a tier."""
    if request.param == "e2b":
        async with serve_e2b(tmp_path / "e2b") as server:
            yield server.env()
        return
    given = {"SANDBOX_PROVIDER": request.param}
    if request.param == "docker":
        given["DOCKER_HOST"] = request.getfixturevalue("docker_engine")
    yield given


def use_browser(action: str, **given: object) -> Call:
    """Where commands are the work, the browser is found besides."""
    arguments = {"action": action, **given}
    return Call("call_tool", json.dumps({"name": "browser_use", "arguments": arguments}))


async def test_what_runs_is_seen_by_all(rig: Rig, place: dict[str, str]) -> None:
    port = free_port()
    url = f"http://localhost:{port}/"
    rig.model.script(
        Call("run_command", json.dumps({"command": START.format(port=port)})),
        Call("run_command", json.dumps({"command": ASK.format(url=url)})),
        use_browser("go_to_url", url=url),
        use_browser("extract_content"),
        Say("Three cups."),
    )
    await rig.start(**place)
    async with asyncio.timeout(SECONDS):
        await rig.until(lambda: bool(rig.log.named("sandbox_checked")))
    rig.telegram.say(ADMIN, "how many cups?")
    if "E2B_API_URL" in place:  # its stand-in contains nothing, so commands are asked for
        for _ in range(2):
            await rig.until(lambda: bool(rig.cards(ADMIN)))
            rig.press(rig.cards(ADMIN)[-1], "Approve", ADMIN)
            await rig.until(lambda: not rig.cards(ADMIN))
    async with asyncio.timeout(SECONDS):
        await rig.telegram.wait_text(ADMIN, "Three cups.", SECONDS)
    await rig.quiet()
    assert not rig.cards(ADMIN), "what stays in the sandbox is not asked about"
    _, asked, seen, read = rig.seen(role="tool")
    assert "Three cups" in asked and "Title: Cups" in seen and "Three cups" in read
    agent = rig.host.services.agent
    assert isinstance(agent, TurnkeeperAgent)
    link = await agent._preview.open(rig.workspace(ADMIN), port)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        async with person.post(link) as answer:
            assert "Three cups" in await answer.text()


async def test_monty_says_that_nothing_is_served_there(rig: Rig) -> None:
    rig.model.script(
        Call("browser_use", json.dumps({"action": "go_to_url", "url": "http://localhost:8000/"})),
        Say("There is none."),
    )
    await rig.start(SANDBOX_PROVIDER="monty")
    rig.telegram.say(ADMIN, "/mode browser")
    await rig.shows("Profile: browser", ADMIN)
    rig.telegram.say(ADMIN, "how many cups?")
    await rig.shows("There is none.", ADMIN)
    await rig.quiet()
    (said,) = rig.seen(role="tool")
    assert "an address of this machine" in said, "no supervisor of this machine is asked"
    told = json.dumps(rig.model.requests[-1].body["tools"])
    assert "reaches nothing that runs in the sandbox" in told
