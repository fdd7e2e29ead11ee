"""The container that the compose file describes contains what runs in it, without a capability.

The image is built from the shipped Dockerfile by the tests' engine, which has no network: in place
of a registry's Python it begins with this machine's, and what would be downloaded is copied.
"""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from agent_core.sandboxes.docker.tier import IMAGE
from tests.fakes.distributions import find_needed

ROOT = Path(__file__).parents[2]
NAME = "turnkeeper-shipped"
SITE = "/usr/local/lib/python3.11/dist-packages"
ENTRY = "import sys; from gateway.cli.main import main; sys.exit(main())"
FROM = "FROM python:3.11-slim\n"
PACKAGES = """RUN apt-get update \\
    && apt-get install -y --no-install-recommends ca-certificates curl git nodejs npm \\
    && rm -rf /var/lib/apt/lists/* \\
    && useradd --system --uid 10001 --user-group --home-dir /data turnkeeper \\
    && install"""
"""Debian's packages are in the tests' image, but the one that makes accounts."""
INSTALLED = (
    "RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt"
    " '.[documents,e2b]' && rm -rf /app/*\n"
)
ACCOUNT = "turnkeeper:x:10001:"
HERE = {
    FROM: f"FROM {IMAGE}\n",
    PACKAGES: f"""RUN echo '{ACCOUNT}10001::/data:/bin/sh' >> /etc/passwd \\
    && echo '{ACCOUNT}' >> /etc/group \\
    && install""",
    INSTALLED: f"""COPY site {SITE}
RUN mv /app/agent_core /app/gateway /app/adapters /app/cron {SITE} && rm -rf /app/* \\
    && mkdir -p /usr/local/bin && ln -s /usr/bin/python3 /usr/local/bin/python \\
    && printf '#!/usr/bin/python3\\n{ENTRY}\\n' > /usr/local/bin/turnkeeper \\
    && chmod 755 /usr/local/bin/turnkeeper
""",
}
"""What of the shipped Dockerfile needs a network -> what stands in its place."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="needs Debian's Python, 3.11"),
]


def docker(engine: str, *words: str) -> str:
    """What the engine's own client says. CalledProcessError."""
    client = shutil.which("docker", path="/usr/bin")
    if client is None:
        pytest.skip("needs the client of Debian's package of the engine")
    env = {**os.environ, "DOCKER_HOST": engine, "DOCKER_BUILDKIT": "0"}
    done = subprocess.run((client, *words), capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}: {done.stdout[-1500:]}{done.stderr}"
    return done.stdout


def copy_packages(to: Path) -> None:
    """What the product needs, as it is installed beside these tests."""
    for name in find_needed("turnkeeper", ("documents", "e2b")):
        one = importlib.metadata.distribution(name)
        for file in one.files or ():
            place = Path(str(one.locate_file(file)))
            if ".." not in file.parts and file.suffix != ".pyc" and place.is_file():
                (to / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(place, to / file)


@pytest.fixture(scope="module")
def image(docker_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The shipped image's name at the engine."""
    context = tmp_path_factory.mktemp("context")
    recipe = (ROOT / "Dockerfile").read_text()
    for shipped, here in HERE.items():
        assert recipe.count(shipped) == 1, f"the Dockerfile has no longer: {shipped}"
        recipe = recipe.replace(shipped, here)
    (context / "Dockerfile").write_text(recipe)
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, context)
    for name in ("agent_core", "gateway", "adapters", "cron"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, context / name, ignore=leave)
    copy_packages(context / "site")
    docker(docker_engine, "build", "--force-rm", "--network", "none", "--tag", NAME, str(context))
    shutil.rmtree(context)
    yield NAME
    docker(docker_engine, "image", "rm", "--force", NAME)


def read_options() -> list[str]:
    """The compose file's ways of running the gateway, as the client takes them."""
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["gateway"]
    given = {name: str(value) for name, value in service["environment"].items()}
    given["TURNKEEPER_TOKEN"] = "a-token-of-the-test-that-is-long"
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert "privileged" not in service and "docker.sock" not in str(service["volumes"])
    return [
        *(f"--cap-drop={one}" for one in service["cap_drop"]),
        *(f"--security-opt={one}" for one in service["security_opt"]),
        *(f"--env={name}={value}" for name, value in given.items()),
    ]


@contextmanager
def running(engine: str, image: str) -> Iterator[str]:
    """The gateway in its container, which is gone after the block."""
    name = docker(engine, "run", "--detach", "--network=none", *read_options(), image).strip()
    try:
        yield name
    finally:
        docker(engine, "rm", "--force", "--volumes", name)


RUNS = """
import asyncio, json, os, pathlib, sys
from agent_core.sandboxes.detect import find_tier
from agent_core.sandboxes.pool import SandboxPool

async def main():
    pool = SandboxPool(await find_tier("auto"))
    await pool.check()
    work = pathlib.Path("/data/workspaces/proof"); work.mkdir(parents=True)
    (pathlib.Path("/data") / "store-of-others").write_text("secret")
    words = "echo made > here; cat /data/store-of-others; id -u"
    done = await pool.run(words, work, 20, lambda _: None)
    print(json.dumps([pool.name, pool.contains, pool.leaks, done.output, os.listdir(work)]))
    await pool.close()

asyncio.run(main())
"""


def test_the_shipped_container_contains_what_runs_in_it(docker_engine: str, image: str) -> None:
    with running(docker_engine, image) as name:
        said = docker(docker_engine, "exec", name, "python", "-c", RUNS)
        tier, contains, leaks, output, made = json.loads(said.splitlines()[-1])
        assert (tier, contains, leaks) == ("landlock", True, []), said
        assert "here" in made and "secret" not in output and "10001" in output
        caps = docker(docker_engine, "exec", name, "grep", "Cap", "/proc/1/status")
        assert {line.split()[1] for line in caps.splitlines()} == {"0" * 16}, "none is left"
        facts = json.loads(docker(docker_engine, "inspect", name))[0]
        assert facts["State"]["Running"] and facts["Config"]["User"] == "turnkeeper"
        assert facts["HostConfig"]["CapDrop"] == ["ALL"] and not facts["HostConfig"]["CapAdd"]
        healthy = facts["Config"]["Healthcheck"]["Test"][1:]
        docker(docker_engine, "exec", name, *healthy)
        use_commands(docker_engine, name)


def use_commands(engine: str, name: str) -> None:
    """The commands of the documentation for containers."""
    said = docker(engine, "exec", name, "turnkeeper", "doctor")
    assert "ok       sandbox: landlock." in said and "it contains what runs in it" in said
    assert "note     browser: There is no browser on this machine." in said
    link = docker(engine, "exec", name, "turnkeeper", "link")
    assert link.startswith("http://127.0.0.1:8787/signin/owner.")
    answers = "printf 'none\\ntelegram\\n1:A\\nnone\\n' | timeout 100 turnkeeper init; ls -A"
    said = docker(engine, "exec", name, "sh", "-c", answers)
    assert "wrong    telegram: cannot be reached" in said and ".env" not in said
