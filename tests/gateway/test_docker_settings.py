"""SANDBOX_PROVIDER=docker where there is no engine, or none with the image."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.sandboxes.docker.tier import IMAGE
from tests.fakes.docker_api import serve_api
from tests.fakes.needs import NEEDS_BWRAP
from tests.gateway.process import World

BUILD = f"docker build -t {IMAGE} "


@pytest.fixture
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """One without the image."""
    async with serve_api(tmp_path_factory.mktemp("engine")) as address:
        yield address


@pytest.mark.pick("no engine")
@pytest.mark.parametrize("name", ["docker", "boxlite"])
async def test_without_an_engine_nothing_starts(world: World, name: str, tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/nothing"
    code, said = await world.command("run", SANDBOX_PROVIDER=name, DOCKER_HOST=address)
    assert code == 2 and f"SANDBOX_PROVIDER={name}: does not work here (no Docker engine" in said
    assert "start it" in said and "Traceback" not in said


async def test_without_the_image_the_way_to_build_it_is_told(world: World, engine: str) -> None:
    for command, expected in (("run", 2), ("doctor", 1)):
        code, said = await world.command(command, SANDBOX_PROVIDER="docker", DOCKER_HOST=engine)
        assert code == expected and BUILD in said and "Traceback" not in said


@NEEDS_BWRAP
@pytest.mark.pick("a doctor in a process", 2)
async def test_doctor_says_that_an_engine_is_there_as_well(
    world: World, engine: str, tmp_path: Path
) -> None:
    code, said = await world.command("doctor", SANDBOX_PROVIDER="auto", DOCKER_HOST=engine)
    assert code == 0 and "sandbox: bwrap" in said and BUILD in said
    none = f"unix://{tmp_path}/nothing"
    code, said = await world.command("doctor", SANDBOX_PROVIDER="auto", DOCKER_HOST=none)
    assert code == 0 and "docker" not in said


async def test_auto_passes_over_an_engine_without_the_image(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_core.sandboxes import detect

    monkeypatch.setattr(detect, "find_fault", _find_fault)
    assert (await detect.detect(engine)).name == "monty", "what comes after it"


@pytest.mark.slow
async def test_auto_takes_one_with_the_image_where_bubblewrap_does_not_work(
    docker_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_core.sandboxes import detect

    monkeypatch.setattr(detect, "find_fault", _find_fault)
    assert (await detect.detect(docker_engine)).name == "docker"


@pytest.mark.slow
async def test_doctor_says_that_it_contains(world: World, docker_engine: str) -> None:
    given = {"SANDBOX_PROVIDER": "docker", "DOCKER_HOST": docker_engine}
    code, said = await world.command("doctor", **given)
    assert code == 0 and "sandbox: docker" in said and "it contains what runs in it" in said
    assert "has no Chromium, else the browser would run in a container; build it anew" in said


@pytest.mark.slow
async def test_doctor_says_where_the_browser_runs(world: World, browser_engine: str) -> None:
    given = {"SANDBOX_PROVIDER": "docker", "DOCKER_HOST": browser_engine}
    code, said = await world.command("doctor", **given)
    assert code == 0 and "ok       browser: in a container of its own, by Docker" in said
    assert "has no Chromium" not in said


async def _find_fault(tier: object) -> str:
    return "not on this machine"
