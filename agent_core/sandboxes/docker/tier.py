"""The tier of Docker: one container a workspace, made through the engine's HTTP API.

The supervisor is the container's first process; the attached connection to the engine keeps it
alive. When that ends, with the gateway, however it ends, the engine closes the supervisor's input,
the supervisor ends, the kernel ends all the others, and the engine removes the container.
Containers of a gateway killed between creating and starting one are removed when the next one looks
for the engine.

The program of the supervisor is passed with the call, so an older image serves a newer gateway.
Commands run as `nobody` where the gateway is root, as with bubblewrap; otherwise as the gateway's
user.
"""

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes import folders, seccomp
from agent_core.sandboxes.bwrap import HOME, TMP, WORKSPACE
from agent_core.sandboxes.commands.output import HALF, OutputBuffer
from agent_core.sandboxes.docker.engine import (
    SCHEME,
    DockerEngine,
    EngineFailed,
    EngineStream,
    JsonObject,
)
from agent_core.sandboxes.environment import NAME, make_env, make_etc
from agent_core.sandboxes.folders import NOBODY
from agent_core.sandboxes.languages import PROGRAMS, choose_languages
from agent_core.sandboxes.link import (
    CommandSpec,
    LimitHolder,
    Link,
    SandboxGone,
    SandboxLimits,
    SupervisorSpec,
)
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.network import PORT
from agent_core.sandboxes.owners import describe_owner, hold_trial, is_owner_gone
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.tier import (
    SECONDS_TO_DIE,
    SECONDS_TO_START,
    SUPERVISOR,
    Leak,
    TierUnusable,
    await_commands,
)
from agent_core.tools.paths import OWN

IMAGE = "turnkeeper-sandbox:0.2"
RECIPE = Path(__file__).parents[1] / "image"
"""The folder that the image is built from."""
OWNER = "turnkeeper.owner"
"""The label that says which process a container belongs to."""
STALE = 60
"""Seconds after which a container that does not run is a leftover."""
_ENTRY = Path(__file__).with_name("entry.py")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_ALIASES = "/opt/turnkeeper/bin"
MAX_SHARED = 512 << 20
"""Bytes of /dev/shm, which the kernel counts as memory."""
_IN_TMP = 1 << 30
"""Bytes of a program's /tmp, likewise."""
_FIRST_TO_GO = '{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$0" "$@"'
_TRIED = "tried"
_BROWSERS = "chromium chromium-browser google-chrome-stable google-chrome"
_PROBE = f"""
touch {_TRIED}
[ -x /bin/bash ] && echo bash
for name in {" ".join(name for name in PROGRAMS if name != "bash")}
do command -v $name >/dev/null && echo $name; done
echo "version $(node --version 2>/dev/null)"
for name in {_BROWSERS}
do command -v $name >/dev/null && echo "browser $(command -v $name)"; done
"""
"""Questions to a new image, for any shell."""


class EngineMissing(TierUnusable):
    """No usable engine answers."""


class ImageMissing(TierUnusable):
    """The engine is there, the sandboxes' image is not."""


class _EngineInfo(Struct):
    cpus: int = field(name="NCPU", default=1)


class _ImageConfig(Struct):
    env: list[str] | None = field(name="Env", default=None)


class _ImageInfo(Struct):
    config: _ImageConfig | None = field(name="Config", default=None)


class _ListedContainer(Struct):
    id: str = field(name="Id")
    labels: dict[str, str] = field(name="Labels", default_factory=dict)
    state: str = field(name="State", default="")
    created: float = field(name="Created", default=0)


class EngineFacts(Struct, frozen=True, kw_only=True):
    """Facts about an engine that has the image. `path`: where the image has its programs."""

    engine: DockerEngine
    cpus: int
    path: str


class ContainerSandbox:
    """A sandbox whose supervisor is the first process of a container."""

    carrier = None
    note = ""

    def __init__(self, engine: DockerEngine, name: str, link: Link) -> None:
        self._engine, self._name, self._link = engine, name, link
        self.stream: EngineStream | None = None

    @property
    def link(self) -> Link:
        return self._link

    @property
    def said(self) -> bytes:
        """The supervisor's error output."""
        return self.stream.said if self.stream is not None else b""

    async def save(self) -> None:
        """See the port: HOME and /tmp are in the workspace's folder, so nothing is saved."""

    async def close(self) -> None:
        """See the port; if the engine is gone, the next look for it removes the container."""
        self._link.close()
        try:
            async with ambient.limit(SECONDS_TO_DIE):
                await self._engine.remove(self._name)
        except (EngineFailed, TimeoutError):
            pass


class DockerTier:
    """Containers of a Docker engine: no network, no files but the workspace, and the image's."""

    name = "docker"
    isolated = True
    about = (
        "In a sandbox by Docker: the workspace, HOME, /tmp and what you start stay for the next "
        "command; no network but the hosts that a call names; it shares the machine's kernel."
    )
    cannot: frozenset[Leak] = frozenset()
    missing = ""
    masks = True
    limit_holder: LimitHolder = "kernel"
    serves = True
    lists_processes = True
    max_processes = 4096
    """The kernel counts the processes of one user in all containers together."""

    def __init__(
        self, facts: EngineFacts, programs: Mapping[Language, str], browser: str = ""
    ) -> None:
        self.facts, self.programs, self.browser = facts, programs, browser
        self._env = make_env(HOME, f"{facts.path}:{_ALIASES}")

    @property
    def shell(self) -> tuple[str, ...]:
        """The image's, which the kernel ends before the supervisor where memory is short."""
        return ("/bin/sh", "-c", _FIRST_TO_GO, self.programs.get("bash", "/bin/sh"))

    @property
    def python(self) -> str:
        """The image's."""
        return "python3"

    def find_folder(self, workspace: Path) -> str:
        """See the port."""
        return WORKSPACE

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port."""
        return self._env

    def advise(self, output: str) -> str:
        """See the port."""
        return ""

    async def open(
        self,
        workspace: Path,
        limits: SandboxLimits,
        hidden: SecretFiles = NO_SECRETS,
        *,
        lasts: bool = True,
    ) -> ContainerSandbox:
        """See the port."""
        return await await_commands(self._begin(workspace, limits, hidden))

    async def _begin(
        self, workspace: Path, limits: SandboxLimits, hidden: SecretFiles
    ) -> ContainerSandbox:
        await asyncio.to_thread(_prepare, workspace)
        engine, name = self.facts.engine, f"turnkeeper-{ambient.new_id()}"
        sandbox = ContainerSandbox(engine, name, Link(limits))
        try:
            await engine.create(name, self.describe(workspace, limits, hidden))
            sandbox.stream = await engine.attach(name, sandbox.link)
            await engine.start(name)
        except BaseException as error:
            await sandbox.close()
            if isinstance(error, EngineFailed):
                words = f"The sandbox does not start: the Docker engine says: {error}."
                raise ToolFailed(words) from None
            raise
        return sandbox

    def describe(
        self, workspace: Path, limits: SandboxLimits, hidden: SecretFiles = NO_SECRETS
    ) -> dict[str, object]:
        """Describe the container for the engine."""
        spec = SupervisorSpec(limits=limits, folders=(WORKSPACE, HOME, TMP), proxy_port=PORT)
        program = SUPERVISOR.read_text(encoding="utf-8")
        mounts = _mount(workspace, hidden)
        described = self._describe(program, (spec.encode(),), _find_user(), limits, mounts)
        return described | {"WorkingDir": WORKSPACE}

    def describe_program(
        self,
        program: str,
        words: Iterable[str],
        user: tuple[int, int],
        limits: SandboxLimits,
        binds: Iterable[tuple[Path, str]],
    ) -> dict[str, object]:
        """Describe a container for one of the gateway's own Python programs, passed as text, with
        its `words`, to which more may be added. It sees the image, an empty /tmp, and `binds`,
        folders with their paths inside. Its only disk is memory, within its limit."""
        mounts: list[JsonObject] = [
            {"Type": "bind", "Source": str(source), "Target": target} for source, target in binds
        ]
        mounts.append({"Type": "tmpfs", "Target": TMP, "TmpfsOptions": {"SizeBytes": _IN_TMP}})
        return self._describe(program, words, user, limits, mounts) | {"WorkingDir": TMP}

    def _describe(
        self,
        program: str,
        words: Iterable[str],
        user: tuple[int, int],
        limits: SandboxLimits,
        mounts: list[JsonObject],
    ) -> dict[str, object]:
        entry, refusals = _ENTRY.read_text(encoding="utf-8"), seccomp.build_filter().hex()
        first = (entry, program, str(limits.cpus), refusals)
        return {
            "Image": IMAGE,
            "Entrypoint": [self.python, "-I", "-S", "-B", "-c", *first, *words],
            "Cmd": [],
            "User": "{}:{}".format(*user),
            "Hostname": NAME,
            "NetworkDisabled": True,
            "Labels": {OWNER: describe_owner()},
            **dict.fromkeys(("AttachStdin", "AttachStdout", "AttachStderr", "OpenStdin"), True),
            "StdinOnce": True,  # its input is closed with the connection
            "HostConfig": {**self._enclose(limits), "Mounts": mounts},
        }

    def _enclose(self, limits: SandboxLimits) -> JsonObject:
        """Return the isolation, and the limits that the supervisor does not enforce itself."""
        shared = min(MAX_SHARED, limits.memory // 4)
        memory = limits.memory + shared + (64 << 20)
        return {
            "NetworkMode": "none",
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "ShmSize": shared,
            "Memory": memory,
            "MemorySwap": memory,
            "PidsLimit": limits.tasks,
            "NanoCpus": min(limits.cpus, self.facts.cpus) * 1_000_000_000,
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        }


async def inspect_docker(address: str) -> EngineFacts:
    """Look at the engine at `address`, as DOCKER_HOST has it. EngineMissing, ImageMissing."""
    if not address.startswith(f"{SCHEME}/"):
        raise EngineMissing(f"DOCKER_HOST={address} is no Unix socket; write {SCHEME}/path")
    engine = DockerEngine(address.removeprefix(SCHEME))
    try:
        info = await engine.ask("/info", _EngineInfo)
    except EngineFailed as error:
        raise EngineMissing(
            f"no Docker engine answers at {engine.socket} ({error}); start it, and let the "
            "gateway's user use its socket"
        ) from None
    try:
        image = await engine.ask(f"/images/{IMAGE}/json", _ImageInfo)
    except EngineFailed as error:
        if error.status != 404:
            raise EngineMissing(f"the Docker engine does not show its images: {error}") from None
        raise ImageMissing(
            f"the image {IMAGE} is not there; build it: docker build -t {IMAGE} {RECIPE}"
        ) from None
    named = (one.removeprefix("PATH=") for one in (image.config and image.config.env) or ())
    path = next((one for one in named if one.startswith("/")), _PATH)
    return EngineFacts(engine=engine, cpus=info.cpus, path=path)


async def find_docker(address: str) -> DockerTier:
    """The tier of the engine at `address`, with the languages of its image. TierUnusable."""
    facts = await inspect_docker(address)
    await remove_leftovers(facts.engine)
    with hold_trial() as folder:
        try:
            programs, browser = await _find_programs(DockerTier(facts, {}), folder)
        except (ToolFailed, SandboxGone) as error:
            raise EngineMissing(f"no container runs: {error}") from None
        if not (folder / _TRIED).exists():
            raise EngineMissing(
                "containers cannot write to a folder of the gateway's; use an engine of this "
                "machine, without user namespaces of its own"
            )
    return DockerTier(facts, programs, browser)


async def remove_leftovers(engine: DockerEngine) -> None:
    """Remove the containers of gateways that are gone."""
    query = {"all": "true", "filters": json.dumps({"label": [OWNER]})}
    try:
        for one in await engine.ask("/containers/json", list[_ListedContainer], query):
            if _is_left(one):
                await engine.remove(one.id)
    except EngineFailed as error:
        raise EngineMissing(f"the Docker engine does not end old containers: {error}") from None


def _is_left(one: _ListedContainer) -> bool:
    """Return True if its owner is gone; or if that is unknown, and it is old and does not run."""
    gone = is_owner_gone(one.labels.get(OWNER, ""))
    if gone is None:
        return one.state != "running" and one.created < ambient.now() - STALE
    return gone


async def _find_programs(tier: DockerTier, workspace: Path) -> tuple[Mapping[Language, str], str]:
    """The image's languages, and its browser."""
    sandbox = await tier.open(workspace, SandboxLimits())
    try:
        argv = ("/bin/sh", "-c", _PROBE)
        output = OutputBuffer(HALF)
        spec = CommandSpec(argv=argv, env=tier.build_env(workspace), cwd=WORKSPACE)
        await sandbox.link.start(spec, SECONDS_TO_START, output).wait(SECONDS_TO_START)
    finally:
        await sandbox.close()
    lines = output.text().split("\n")
    version = next((one[8:] for one in lines if one.startswith("version ")), "")
    browser = next((one[8:] for one in lines if one.startswith("browser ")), "")
    return choose_languages({one for one in lines if one in PROGRAMS}, version), browser


def _find_user() -> tuple[int, int]:
    """Return the user and group of commands."""
    return (NOBODY, NOBODY) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def _prepare(workspace: Path) -> None:
    folders.prepare(workspace, os.geteuid() == 0)
    folders.write_etc(workspace, make_etc(*_find_user(), HOME))


def _mount(workspace: Path, hidden: SecretFiles) -> list[JsonObject]:
    """Mount the workspace, HOME and /tmp; the gateway's own folder is read-only, its state
    invisible; `hidden` files are replaced by an unreadable one, folders by an empty one."""
    own, inside = workspace / OWN, f"{WORKSPACE}/{OWN}"
    state = own / folders.STATE
    binds = (
        (workspace, WORKSPACE, False),
        (own, inside, True),
        (state / folders.HOME, HOME, False),
        (state / folders.TMP, TMP, False),
        (state / folders.ALIASES, _ALIASES, True),
        *((state / folders.ETC / name, f"/etc/{name}", True) for name in make_etc(0, 0, HOME)),
    )
    mounted: list[JsonObject] = [
        {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": only_read}
        for source, target, only_read in binds
    ]
    empty = [f"{inside}/{name}" for name in (folders.STATE, folders.SNAPSHOTS)]
    empty += (f"{WORKSPACE}/{one}" for one in hidden.names if one in hidden.folders)
    mounted += ({"Type": "tmpfs", "Target": target, "ReadOnly": True} for target in empty)
    mounted += (
        {
            "Type": "bind",
            "Source": str(state / folders.MASK),
            "Target": f"{WORKSPACE}/{one}",
            "ReadOnly": True,
        }
        for one in hidden.names
        if one not in hidden.folders
    )
    return mounted
