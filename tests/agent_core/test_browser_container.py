"""The browser in a container to itself: what it sees of the machine, that it never outlives the
gateway, and which walls a browser gets."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Error

from agent_core.errors import ToolFailed
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.detect import MissingTier
from agent_core.sandboxes.docker.engine import DockerEngine
from agent_core.sandboxes.docker.tier import DockerTier, EngineFacts
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.browser import chromium, enclosure
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.container_walls import ContainerWalls
from agent_core.tools.browser.walls import choose_walls
from tests.fakes.docker_engine import list_containers
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.sandboxes import find_browser_tier
from tests.fakes.waiting import until

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
LIFE = """
import asyncio, sys
from pathlib import Path
from agent_core.sandboxes.docker.tier import find_docker
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.container_walls import ContainerWalls

async def live():
    walls = ContainerWalls(await find_docker(sys.argv[2]))
    async with Browser(Path(sys.argv[1]), walls=walls) as browser:
        async with browser.session(Path(sys.argv[1]) / "w") as session:
            await session.open()
            print("open", flush=True)
            await asyncio.Event().wait()

asyncio.run(live())
"""


@pytest.fixture
async def tier(request: pytest.FixtureRequest) -> DockerTier:
    return await find_browser_tier(request)


def list_inside(folder: Path) -> list[psutil.Process]:
    """The processes of containers that see `folder`'s downloads."""
    found = []
    for one in psutil.process_iter():
        try:
            mounts = Path(f"/proc/{one.pid}/mountinfo").read_text()
            own = os.readlink(f"/proc/{one.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        except OSError:
            continue
        if own and f" {folder}/downloads " in mounts and "/ways" in mounts:
            found.append(one)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
async def test_it_never_outlives_the_gateway(
    hangs: bool, browser_engine: str, tmp_path: Path
) -> None:
    """Also where it hangs, and its driver is killed too."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LIFE, str(tmp_path), browser_engine),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await process.stdout.readline() == b"open\n"
    left, inside = psutil.Process(process.pid).children(recursive=True), list_inside(tmp_path)
    assert [one for one in inside if "--headless" in one.cmdline()]
    assert len(list_containers(browser_engine)) == 1
    (driver,) = (one for one in left if "run-driver" in one.cmdline())
    if hangs:
        for one in inside:
            one.suspend()
    process.send_signal(signal.SIGKILL)
    if hangs:
        driver.kill()
        for one in inside[:1]:  # the container's first process, which is ours
            one.resume()
    await process.wait()
    await until(lambda: not list_containers(browser_engine), PATIENCE)
    await until(lambda: not [one for one in (*left, *inside) if one.is_running()], PATIENCE)


@pytest.mark.slow
async def test_it_has_nothing_of_the_machine(
    tier: DockerTier, browser_engine: str, tmp_path: Path
) -> None:
    home = tmp_path / "browser"
    async with Browser(home, walls=ContainerWalls(tier)) as browser, browser.session(tmp_path):
        own = list_inside(home)
        assert any("--headless" in one.cmdline() for one in own)
        for one in own:
            for kind in ("net", "pid", "mnt", "ipc"):
                there = os.readlink(f"/proc/{one.pid}/ns/{kind}")
                assert there != os.readlink(f"/proc/self/ns/{kind}")
            status = Path(f"/proc/{one.pid}/status").read_text()
            assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
            assert "Seccomp:\t2" in status
            assert one.uids().real == (enclosure.USER if os.geteuid() == 0 else os.geteuid())
        devices = Path(f"/proc/{own[0].pid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]
        root = Path(f"/proc/{own[0].pid}/root")
        held = {str(one) for one in (root / tmp_path.relative_to("/")).rglob("*")}
        assert held == {str(root / (tmp_path / name).relative_to("/")) for name in (
            "browser", "browser/downloads")}  # fmt: skip
        env = dict(
            line.split("=", 1)
            for line in Path(f"/proc/{own[0].pid}/environ").read_text().split("\0")
            if "=" in line
        )
        assert env.items() >= chromium.ENV_INSIDE.items() and env.keys() <= {
            *chromium.ENV_INSIDE, "HOSTNAME"}  # fmt: skip
    assert list_containers(browser_engine) == []


@pytest.mark.slow
async def test_one_that_takes_too_much_memory_is_ended(
    tier: DockerTier, browser_engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enclosure, "MEMORY", 60 << 20)
    async with Browser(tmp_path / "browser", walls=ContainerWalls(tier)) as browser:
        with contextlib.suppress(ToolFailed, Error):  # it may be ended before it is open
            async with browser.session(tmp_path) as session:
                await session.open()
        await until(lambda: browser.at_work(tmp_path) is None, PATIENCE)
        await until(lambda: not list_containers(browser_engine), PATIENCE)


@pytest.mark.slow
async def test_an_engine_that_is_gone_is_told(
    tier: DockerTier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = EngineFacts(engine=DockerEngine(f"{tmp_path}/none"), cpus=1, path="/usr/bin")
    walls = ContainerWalls(DockerTier(nowhere, {}, tier.browser))
    async with Browser(tmp_path / "browser", walls=walls) as browser:
        with pytest.raises(ToolFailed, match="The browser did not start"):
            async with browser.session(tmp_path):
                pass


NOWHERE = EngineFacts(engine=DockerEngine("/nowhere"), cpus=1, path="/usr/bin")


async def test_a_container_is_chosen_where_the_image_has_a_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within = DockerTier(NOWHERE, {}, "/usr/bin/chromium")
    chosen = await choose_walls(within, "docker")
    assert chosen is not None and chosen.name == "docker"
    assert chosen.find_browser() == "/usr/bin/chromium"
    chosen = await choose_walls(within, "auto")
    assert chosen is not None and chosen.name == "docker"
    assert await choose_walls(UnsafeTier(), "unsafe-subprocess") is None
    assert await choose_walls(MissingTier({}), "auto") is None
    assert await choose_walls(DockerTier(NOWHERE, {}), "auto") is None, "bubblewrap was tried"


@NEEDS_BWRAP
async def test_bubblewrap_is_chosen_where_it_has_none() -> None:
    for tier, name in ((DockerTier(NOWHERE, {}), "docker"), (BwrapTier(), "auto")):
        chosen = await choose_walls(tier, name)
        assert chosen is not None and chosen.name == "bwrap"


def test_nothing_is_missing_where_the_image_has_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "NAMES", ("no-such-browser",))
    assert chromium.find_missing("docker") == ""
    assert chromium.find_missing("bwrap") == chromium.find_missing("") == chromium.NO_BROWSER
