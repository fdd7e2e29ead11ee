"""Sandboxes by a Docker engine: that it contains, and what is left when something is lost."""

import asyncio
import time
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.sandboxes.bwrap import HOME, TMP, WORKSPACE
from agent_core.sandboxes.docker.engine import DockerEngine, EngineFailed
from agent_core.sandboxes.docker.tier import (
    IMAGE,
    OWNER,
    RECIPE,
    STALE,
    DockerTier,
    EngineFacts,
    EngineMissing,
    ImageMissing,
    find_docker,
    inspect_docker,
    remove_leftovers,
)
from agent_core.sandboxes.link import Link, SandboxLimits
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.owners import describe_owner
from agent_core.sandboxes.tier import Tier
from tests.fakes.docker_api import serve_api
from tests.fakes.docker_engine import PACKAGE, list_containers
from tests.fakes.sandboxes import DOCKER, make_sandboxes
from tests.fakes.waiting import PATIENCE

pytestmark = pytest.mark.pick("the engine of Docker", 6)

by_docker = pytest.mark.parametrize("tier", [DOCKER], indirect=True)


async def test_it_contains_or_the_engine_cannot_start_here(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """All that a quick run asks of a real engine. Where there is none it says why; the tests that
    need one are skipped with the same words."""
    try:
        address = request.getfixturevalue("docker_engine")
    except pytest.skip.Exception as why:
        print(f"No Docker engine: {why}")
        assert PACKAGE in str(why)
        return
    pool = make_sandboxes(await find_docker(address))
    done = await pool.run("pwd; id -u; echo $HOME; echo x > made", tmp_path, 20, lambda _: None)
    assert done.output.split()[0] == WORKSPACE and done.output.split()[1] != "0", done
    assert done.output.split()[2] == HOME and (tmp_path / "made").read_text() == "x\n"
    assert {"python", "bash", "javascript"} <= set(pool.programs)
    await pool.check()
    assert pool.contains and pool.leaks == ()
    await pool.close()
    assert list_containers(address) == []


# ---- what is lost --------------------------------------------------------------------------


@pytest.fixture
def engine(docker_engine: str) -> DockerEngine:
    return DockerEngine(docker_engine.removeprefix("unix://"))


@by_docker
async def test_a_container_that_is_removed_is_made_anew(
    tier: Tier, engine: DockerEngine, docker_engine: str, tmp_path: Path
) -> None:
    pool = make_sandboxes(tier)
    running = await pool.start("echo a > /tmp/a; echo begun; sleep 60", tmp_path, 60)
    async with asyncio.timeout(PATIENCE):
        while "begun" not in running.output():
            await asyncio.sleep(0.02)
    for one in list_containers(docker_engine):
        await engine.remove(str(one["Id"]))
    done = await running.wait(10)
    assert done is not None and "[The sandbox ended.]" in done.output
    again = (await pool.run("cat /tmp/a", tmp_path, 20, lambda _: None)).output
    assert again.startswith("[A new sandbox:") and again.endswith("\na\n")


@by_docker
async def test_what_a_gateway_left_that_is_gone_is_removed(
    tier: DockerTier, engine: DockerEngine, tmp_path: Path, docker_engine: str
) -> None:
    """One that was killed between making a container and starting it; others' stay."""
    here = describe_owner().rsplit("/", 2)[0]
    owners = {
        "gone": f"{here}/{2**22 + 1}/5", "reborn": f"{here}/1/5", "ours": describe_owner(),
        "far": "another-machine/pid:[1]/1/1",
    }  # fmt: skip
    for name, owner in owners.items():
        spec = tier.describe(tmp_path, SandboxLimits())
        host = {"NetworkMode": "none"}
        await engine.create(name, spec | {"Labels": {OWNER: owner}, "HostConfig": host})
    await engine.create("strange", spec | {"Labels": {}, "HostConfig": {"NetworkMode": "none"}})
    try:
        await remove_leftovers(engine)
        left = {str(one["Names"]) for one in list_containers(docker_engine)}
        assert left == {"['/ours']", "['/far']", "['/strange']"}
    finally:
        for name in ("ours", "far", "strange"):
            await engine.remove(name)
    assert list_containers(docker_engine) == []


async def test_one_that_nobody_can_tell_of_goes_when_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Listing(DockerEngine):
        async def ask(self, path: str, kind: object, query: object = None) -> object:
            import msgspec

            listed = [
                {"Id": f"{state} {age}", "State": state, "Labels": {OWNER: "elsewhere"}, "Created": time.time() - age}
                for state in ("running", "created") for age in (0, STALE + 1)
            ]  # fmt: skip
            return msgspec.convert(listed, kind)

        async def remove(self, name: str) -> None:
            asked.append(name)

    await remove_leftovers(Listing("nowhere"))
    assert asked == [f"created {STALE + 1}"]


# ---- limits --------------------------------------------------------------------------------


class SmallTier(DockerTier):
    """Less memory than the supervisor knows of, so that the kernel is first."""

    def describe(
        self, workspace: Path, limits: SandboxLimits, hidden: SecretFiles = NO_SECRETS
    ) -> dict[str, object]:
        spec = super().describe(workspace, limits, hidden)
        host = spec["HostConfig"]
        assert isinstance(host, dict)
        return spec | {"HostConfig": host | {"Memory": 100 << 20, "MemorySwap": 100 << 20}}


TAKES = "python3 -c 'bytearray(300 << 20)'"
CROWD = "for n in $(seq 50); do python3 -I -S -c 'import time; time.sleep(12)' & done; wait; false"


@by_docker
@pytest.mark.parametrize(
    "takes", [TAKES, f"{TAKES}; sleep 20", CROWD], ids=["it ends", "it goes on", "none is large"]
)
async def test_what_the_kernel_ended_is_told(takes: str, tier: DockerTier, tmp_path: Path) -> None:
    """It is faster than the watch, ends the supervisor last, and says nothing."""
    pool = make_sandboxes(SmallTier(tier.facts, tier.programs))
    done = await pool.run(takes, tmp_path, 15, lambda _: None)
    assert "[Stopped: over 4 GB of memory in all.]" in done.output and not done.timed_out, done
    assert (await pool.run("cat /proc/1/comm", tmp_path, 20, lambda _: None)).exit_code == 0
    full = "head -c 1000000000 /dev/zero > /dev/shm/x; rm /dev/shm/x; echo full"
    assert (
        "full"
        in (
            await make_sandboxes(tier, SandboxLimits(memory=200 << 20)).run(
                full, tmp_path, 20, lambda _: None
            )
        ).output
    )


@by_docker
async def test_one_processor_is_one(tier: Tier, tmp_path: Path) -> None:
    """As the kernel has it, in either of its two kinds of control groups."""
    pool = make_sandboxes(tier, SandboxLimits(cpus=1))
    words = "cat cpu.max || cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us"
    done = await pool.run(f"cd /sys/fs/cgroup; {words}", tmp_path, 20, lambda _: None)
    quota, period = done.output.split()[-2:]
    assert quota == period, done


# ---- what is missing -----------------------------------------------------------------------


async def test_an_engine_without_the_image_says_how_to_build_it(tmp_path: Path) -> None:
    async with serve_api(tmp_path) as address:
        with pytest.raises(ImageMissing, match=f"docker build -t {IMAGE} {RECIPE}"):
            await find_docker(address)
    assert (RECIPE / "Dockerfile").read_text().count("\nFROM ") == 1


@pytest.mark.parametrize("address", ["", "tcp://127.0.0.1:2375", "ssh://host", "unix://engine"])
async def test_what_is_no_socket_of_this_machine_is_refused(address: str) -> None:
    with pytest.raises(EngineMissing, match="is no Unix socket"):
        await inspect_docker(address)


async def test_an_engine_that_is_none_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="no Docker engine answers at .*/nothing"):
        await inspect_docker(f"unix://{tmp_path}/nothing")
    async with serve_api(tmp_path, "hello") as address:
        with pytest.raises(EngineMissing, match="answers what no engine says"):
            await inspect_docker(address)


async def test_a_refusal_of_the_engine_is_a_failed_call(tmp_path: Path) -> None:
    async with serve_api(tmp_path) as address:
        engine = DockerEngine(address.removeprefix("unix://"))
        tier = DockerTier(EngineFacts(engine=engine, cpus=2, path="/bin"), {})
        with pytest.raises(ToolFailed, match="the Docker engine says: No such image"):
            await tier.open(tmp_path, SandboxLimits())
        with pytest.raises(EngineFailed, match="opens no streams"):
            await engine.attach("one", Link(SandboxLimits()))


def test_what_a_container_is(tmp_path: Path) -> None:
    facts = EngineFacts(engine=DockerEngine("none"), cpus=1, path="/bin")
    spec = DockerTier(facts, {}).describe(tmp_path, SandboxLimits())
    host = spec["HostConfig"]
    assert isinstance(host, dict)
    assert host["NanoCpus"] == 10**9, "an engine refuses more than it has"
    assert host["CapDrop"] == ["ALL"] and host["ReadonlyRootfs"] and host["AutoRemove"]
    assert "Privileged" not in host and host["SecurityOpt"] == ["no-new-privileges"]
    only_read = {one["Target"]: one["ReadOnly"] for one in host["Mounts"]}
    own = f"{WORKSPACE}/.turnkeeper"
    hidden = {f"{own}/sandbox": True, f"{own}/snapshots": True}
    lent = {WORKSPACE: False, HOME: False, TMP: False}
    etc = {f"/etc/{name}": True for name in ("passwd", "group", "hosts", "nsswitch.conf")}
    written = etc | {"/etc/resolv.conf": True}
    assert only_read == lent | hidden | written | {own: True, "/opt/turnkeeper/bin": True}
