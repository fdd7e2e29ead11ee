"""The tier of E2B: one machine for a workspace, found again after it was idle.

The supervisor runs there as in every tier, so that commands, servers, scripts and network grants
work as everywhere; it is reached through E2B's commands (wire.py, relay.py), and the workspace's
files are copied (workspace_copy.py). An idle machine is paused, with HOME and /tmp; the workspace's
own folder names it. Snapshots are taken while it runs: a lost one begins again from the newest. E2B
ends it when nobody renews it, so none outlives its gateway for long; machines that a killed gateway
left running are paused when the next one starts on this machine, or ended if nobody looks for them.
"""

import asyncio
import logging
import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import e2b
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes import seccomp
from agent_core.sandboxes.e2b.client import (
    KEEPS,
    OWNER,
    SECONDS_ALIVE,
    BoxGone,
    E2BClient,
    E2BRefused,
    E2BUnavailable,
    RemoteBox,
    translate_errors,
)
from agent_core.sandboxes.e2b.relay import WORKSPACE
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.e2b.state import BoxState, load_state, store_state
from agent_core.sandboxes.e2b.wire import BoxFacts, Wire
from agent_core.sandboxes.e2b.workspace_copy import (
    FOLDER,
    SECONDS_TO_CARRY,
    WorkspaceCopy,
    put_files,
)
from agent_core.sandboxes.environment import make_env
from agent_core.sandboxes.languages import choose_languages
from agent_core.sandboxes.link import LimitHolder, Link, SandboxGone, SandboxLimits, SupervisorSpec
from agent_core.sandboxes.masks import NO_SECRETS, SecretFiles
from agent_core.sandboxes.network import PORT
from agent_core.sandboxes.owners import describe_owner, is_owner_gone
from agent_core.sandboxes.port import Language
from agent_core.sandboxes.tier import SECONDS_TO_DIE, SUPERVISOR, Leak, TierUnusable

log = logging.getLogger("turnkeeper.sandboxes")
SECONDS_TO_START = 60.0
SECONDS_TO_PAUSE = 30.0
SECONDS_BETWEEN_SNAPSHOTS = 600.0
SECONDS_KEPT = 86_400.0
"""Seconds after which a paused machine is ended."""
SECONDS_BETWEEN_RESCUES = 6 * 3_600.0
"""Seconds after which leftovers are searched for again, with the next machine wanted."""
MAX_CALLS, MAX_CALL = 20, 120
"""Commands after the newest snapshot that are remembered, and characters of each."""
_PROGRAMS = {
    "relay.py": Path(__file__).with_name("relay.py"),
    "files.py": Path(__file__).with_name("files.py"),
    "supervisor.py": SUPERVISOR,
}
_EXPECTED = BoxFacts(
    home="/home/user",
    path="/usr/local/bin:/usr/bin:/bin",
    programs=("bash", "python3", "node"),
    node="v20.0.0",
)
"""The programs of E2B's own template, until a machine has told its own."""
_LOST = (
    "[A new sandbox: E2B has ended the one before. What ran in it is gone. The workspace's files "
    "are as the last finished command left them{rest}]\n"
)
_EMPTY = "; HOME and /tmp are empty, and what was installed is gone."
_RESTORED = "; HOME, /tmp and what was installed are as they were at {when} UTC{calls}."
_CALLS = ". Not in it is what these commands did there since: {calls}"
_NOT_BROUGHT = (
    "[It ended, but what it changed was not brought to the workspace: {why}. The next command does "
    "that first, if the sandbox is there still.]"
)
_NO_START = (
    "The sandbox at E2B does not start: its template needs python3. Ask the operator to look at "
    "E2B_TEMPLATE."
)
_TOO_LATE = "The sandbox at E2B did not start in time. Nothing ran; try again in a minute."


class E2BSandbox:
    """A machine with a supervisor, and the workspace's copy. `lasts`: it is found again."""

    def __init__(self, client: E2BClient, place: "BoxPlace", limits: SandboxLimits) -> None:
        self._client, self._place = client, place
        self._link = Link(limits)
        self._link.fault, self._link.grace = "lost", SECONDS_TO_CARRY
        self._link.on_exit = self.fetch
        self.note = place.note
        self._copy = WorkspaceCopy(place.box, place.workspace, place.hidden)
        self._wire = Wire(place.box, self._link, SECONDS_ALIVE)
        self._serving: asyncio.Task[None] | None = None
        self._saving: asyncio.Task[None] | None = None
        self._state = place.state

    @property
    def link(self) -> Link:
        return self._link

    @property
    def carrier(self) -> "E2BSandbox":
        """See the port."""
        return self

    async def begin(self, command: str) -> BoxFacts:
        """Make the copy, and start the supervisor. ToolFailed, BoxGone."""
        await put_files(self._place.box, await asyncio.to_thread(_read_programs))
        await self._copy.mirror()
        serving = self._wire.serve(command)
        self._serving = asyncio.ensure_future(serving)  # noqa: TID251  # `close` awaits it
        waits: set[asyncio.Future[BoxFacts] | asyncio.Task[None]]
        waits = {self._serving, self._wire.facts}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not self._wire.facts.done():
            if (fault := self._serving.exception()) is not None:
                raise fault
            raise E2BRefused(_NO_START)
        await asyncio.shield(self._link.ready)
        if self._link.gone.done():
            raise E2BRefused(_NO_START)
        self._store()
        return self._wire.facts.result()

    async def send(self) -> None:
        """See the port."""
        await self._copy.send()

    async def fetch(self, command: str) -> str:
        """See the port; never fails, because the command has ended in any case."""
        try:
            note = await self._copy.fetch()
        except (ToolFailed, BoxGone) as error:
            note = _NOT_BROUGHT.format(why=str(error).rstrip("."))
        calls = (*self._state.calls, " ".join(command.split())[:MAX_CALL])
        self._state = replace(self._state, calls=calls[-MAX_CALLS:])
        self._store()
        old = self._state.snapshot_at < ambient.now() - SECONDS_BETWEEN_SNAPSHOTS
        if self._place.lasts and old and (self._saving is None or self._saving.done()):
            self._saving = asyncio.ensure_future(self._save())  # noqa: TID251  # `close` awaits it
        return note

    async def save(self) -> None:
        """Take a snapshot of the machine if a command ended since the last one; see the port."""
        if not self._place.lasts or not self._state.calls:
            return
        if self._saving is None or self._saving.done():
            self._saving = asyncio.ensure_future(self._save())  # noqa: TID251  # `close` awaits it
        await asyncio.wait({self._saving})

    async def close(self) -> None:
        """Pause the machine if it is to be found again, otherwise end it; see the port. If E2B
        cannot be reached, it ends by itself."""
        if self._place.lasts and self._serving is not None:
            with suppress(SandboxGone, E2BRefused, TimeoutError):
                async with ambient.limit(SECONDS_TO_DIE):
                    await self._wire.end_relay()
        self._link.close()
        tasks = {one for one in (self._serving, self._saving) if one is not None}
        if self._saving is not None:
            self._saving.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=SECONDS_TO_DIE)
        name = self._place.box.sandbox_id
        with suppress(SandboxGone, E2BRefused, E2BUnavailable, TimeoutError):
            async with ambient.limit(SECONDS_TO_PAUSE):
                if not self._place.lasts:
                    await self._client.kill(name)
                    return
                await self._client.pause(name)

    async def _save(self) -> None:
        """Take a snapshot, and forget the one before. One that fails is taken after the next
        command."""
        before, ended = self._state.snapshot, len(self._state.calls)
        try:
            async with translate_errors():
                made = await self._place.box.create_snapshot()
            calls = self._state.calls[ended:]
            self._state = replace(
                self._state, snapshot=made.snapshot_id, snapshot_at=ambient.now(), calls=calls
            )
            self._store()
            if before:
                await self._client.delete_snapshot(before)
        except (SandboxGone, E2BRefused, E2BUnavailable) as error:
            log.warning("sandbox_not_saved", extra={"why": str(error)})

    def _store(self) -> None:
        if self._place.lasts:
            store_state(self._place.workspace, self._state)


class BoxPlace(Struct, frozen=True, kw_only=True):
    """The parts of a sandbox: the machine, its owner, the files it does not get; `note`: the fate
    of the previous machine."""

    box: RemoteBox
    workspace: Path
    hidden: SecretFiles
    lasts: bool
    state: BoxState
    note: str = ""


class E2BTier:
    """Machines at E2B."""

    name = "e2b"
    isolated = True
    about = (
        "On a machine at E2B: the workspace's files are taken there before a command and brought "
        "back at its end (node_modules, .venv and other caches stay there, and a command in the "
        "background brings its files when it ends); HOME, /tmp and what you start stay for the "
        "next command; no network but the hosts that a call names; memory, processes and disk "
        "are limited as everywhere, and by the machine's template."
    )
    cannot: frozenset[Leak] = frozenset()
    missing = ""
    masks = True
    limit_holder: LimitHolder = "itself"
    serves = True
    lists_processes = True
    max_processes = 4096

    def __init__(self, access: E2BAccess) -> None:
        self.client = E2BClient(access)
        self._facts = _EXPECTED
        self._rescued = ambient.monotonic()

    @property
    def programs(self) -> Mapping[Language, str]:
        """The machines' programs."""
        return choose_languages(self._facts.programs, self._facts.node)

    @property
    def shell(self) -> tuple[str, ...]:
        """The machines'."""
        return ("/bin/bash" if "bash" in self._facts.programs else "/bin/sh",)

    @property
    def python(self) -> str:
        """The machines'."""
        return "python3"

    def find_folder(self, workspace: Path) -> str:
        """See the port."""
        return f"{self._facts.home}/{WORKSPACE}"

    def build_env(self, workspace: Path) -> Mapping[str, str]:
        """See the port."""
        return make_env(self._facts.home, self._facts.path)

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
    ) -> E2BSandbox:
        """See the port."""
        if self._rescued < ambient.monotonic() - SECONDS_BETWEEN_RESCUES:
            self._rescued = ambient.monotonic()
            with suppress(E2BRefused, E2BUnavailable):
                await rescue_leftovers(self.client)
        place = await self._find(workspace, hidden, lasts)
        sandbox = E2BSandbox(self.client, place, limits)
        try:
            async with ambient.limit(SECONDS_TO_START):
                self._facts = await sandbox.begin(_build_command(limits))
        except BaseException as error:
            await sandbox.close()
            if isinstance(error, TimeoutError | SandboxGone):
                raise E2BUnavailable(_TOO_LATE) from None
            raise
        return sandbox

    async def _find(self, workspace: Path, hidden: SecretFiles, lasts: bool) -> BoxPlace:
        """The workspace's machine, or else another one: from the snapshot if there is one."""
        state = load_state(workspace) if lasts else BoxState()
        whose = {OWNER: describe_owner(), KEEPS: "yes" if lasts else "no"}
        box, note = None, ""
        if state.box:
            with suppress(BoxGone):
                box = await self.client.connect(state.box)
                await _end_relays(box)
                whole = replace(state, box=box.sandbox_id)
                return BoxPlace(
                    box=box, workspace=workspace, hidden=hidden, lasts=lasts, state=whole
                )
            note = _LOST.format(rest=_EMPTY)
        if state.snapshot:
            with suppress(BoxGone, E2BRefused):
                box = await self.client.create(whose, state.snapshot)
                await _end_relays(box)
                note = _LOST.format(rest=_describe_loss(state))
        if box is None:
            box = await self.client.create(whose)
            state = BoxState()
        return BoxPlace(
            box=box,
            workspace=workspace,
            hidden=hidden,
            lasts=lasts,
            state=replace(state, box=box.sandbox_id),
            note=note,
        )


async def find_e2b(access: E2BAccess) -> E2BTier:
    """Return the tier of `access`, once leftovers of earlier gateways are handled. TierUnusable if
    E2B refuses the key; if it is only unreachable, the tier says so at each call."""
    tier = E2BTier(access)
    try:
        await rescue_leftovers(tier.client)
    except E2BRefused as error:
        raise TierUnusable(str(error).rstrip(".")) from None
    except E2BUnavailable as error:
        log.warning("sandboxes_away", extra={"why": str(error)})
    return tier


async def rescue_leftovers(client: E2BClient) -> None:
    """Pause the machines of gateways that are gone, if the next one looks for them, and end the
    others; end those paused for long. E2BRefused, E2BUnavailable."""
    for one in await client.list_own():
        owner, keeps = one.metadata.get(OWNER, ""), one.metadata.get(KEEPS) == "yes"
        with suppress(BoxGone):
            if one.state == e2b.SandboxState.RUNNING:
                if is_owner_gone(owner):
                    await (client.pause if keeps else client.kill)(one.sandbox_id)
            elif not keeps or one.started_at.timestamp() < ambient.now() - SECONDS_KEPT:
                await client.kill(one.sandbox_id)


async def _end_relays(box: RemoteBox) -> None:
    """End what an earlier gateway started there."""
    async with translate_errors():
        for one in await box.commands.list():
            if any("relay.py" in word for word in one.args):
                await box.commands.kill(one.pid)


def _read_programs() -> dict[str, bytes]:
    return {name: place.read_bytes() for name, place in _PROGRAMS.items()}


def _build_command(limits: SandboxLimits) -> str:
    spec = SupervisorSpec(limits=limits, folders=(".",), proxy_port=PORT)
    refusals = seccomp.build_filter().hex()
    given = (platform.machine(), refusals, spec.encode())
    program, supervisor = (f"~/{FOLDER}/{name}" for name in ("relay.py", "supervisor.py"))
    words = " ".join(map(shlex.quote, given))
    return f"exec python3 -I -S -B {program} {supervisor} {words}"


def _describe_loss(state: BoxState) -> str:
    when = f"{ambient.utc(state.snapshot_at):%H:%M}"
    calls = _CALLS.format(calls="; ".join(state.calls)) if state.calls else ""
    return _RESTORED.format(when=when, calls=calls)
