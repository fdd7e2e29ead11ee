"""The sandboxes of a gateway, one a workspace: created when needed, ended when idle for long.

What a command leaves running stays for the next one: a server, a file in /tmp. A lost sandbox is
created anew at the next command; none outlives this process.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import NothingRuns, ToolFailed
from agent_core.phrases import phrase
from agent_core.sandboxes import folders
from agent_core.sandboxes.channel import TalkingCommand
from agent_core.sandboxes.commands import notes, session
from agent_core.sandboxes.commands.advice import MAX_FILE, explain_blindness, explain_end
from agent_core.sandboxes.commands.carried import CarriedShell
from agent_core.sandboxes.commands.loans import OPEN_NETWORK, AdvisedLoan
from agent_core.sandboxes.commands.output import DRAIN, HALF, OutputBuffer
from agent_core.sandboxes.commands.pooled import PooledShell
from agent_core.sandboxes.link import (
    CommandSpec,
    LimitHolder,
    Link,
    RemoteProcess,
    SandboxGone,
    SandboxLimits,
    Sink,
    Streams,
)
from agent_core.sandboxes.masks import (
    NO_SECRETS,
    SecretFiles,
    find_secret_files,
    is_unchanged,
)
from agent_core.sandboxes.network import SandboxNetwork
from agent_core.sandboxes.port import (
    NO_PERMITS,
    NOTHING,
    Language,
    NetworkLoan,
    Permits,
    ProcessResult,
    Shell,
)
from agent_core.sandboxes.self_test import PROBE_LIMITS, TriesItself, find_leaks
from agent_core.sandboxes.states.running import RunningBook, RunningProgram
from agent_core.sandboxes.tier import Leak, OpenSandbox, Tier
from agent_core.tools import paths

log = logging.getLogger("turnkeeper.sandboxes")

IDLE = 1_800.0
"""Seconds after the last command until a sandbox is ended."""
MAX_OPEN = 64
"""Sandboxes at once; the one that was idle longest makes room."""
SECONDS_UNTOUCHED = 600.0
"""Seconds between two notes that HOME and /tmp are in use."""
SECONDS_TO_KEEP = 10.0
"""Seconds to save everything when the gateway ends; the rest stays as saved before."""
REMEMBERED = 256
"""Workspaces of which it is known why their last sandbox ended."""
NO_SERVERS = "Nothing listens at a port here: the sandbox runs no servers."


class _Key(NamedTuple):
    """`reveals`: the sandbox for commands that may read the workspace's secret files."""

    path: Path
    reveals: bool = False


class _Place:
    """A workspace's sandbox, while there is one or one is being created. `hidden`: the files it
    hides. `used`: the end of the last command, monotonic and by the calendar; `touched`: when a use
    of HOME and /tmp was noted."""

    def __init__(self) -> None:
        self.making = asyncio.Lock()
        self.sandbox: OpenSandbox | None = None
        self.users = self.holds = 0
        """Calls within it; commands in the background, which keep it from being idle."""
        self.used = self.used_at = 0.0
        self.touched = 0.0
        self.hidden = NO_SECRETS
        self.idle = 0.0
        """Seconds without use after which it is ended; 0: as the pool says."""
        self.timer: asyncio.TimerHandle | None = None
        self.quiet: asyncio.TimerHandle | None = None
        self.unkept = False
        """True if a command began since it was saved."""
        self.folder: tuple[int, int] | None = None
        """The identity of the workspace's folder when the sandbox was created."""

    @property
    def is_open(self) -> bool:
        """True if there is a sandbox that takes commands."""
        return self.sandbox is not None and not self.sandbox.link.gone.done()

    def cancel_timers(self) -> None:
        """Cancel all timers."""
        for timer in (self.timer, self.quiet):
            if timer is not None:
                timer.cancel()


class WorkspaceKeeper(Protocol):
    """Saves the content of sandboxes, in case one is lost. Both methods block."""

    quiet: float
    """Seconds after the last command until a sandbox is kept."""

    def take_idle(self, workspace: Path) -> None:
        """Keep the workspace, HOME and /tmp as they are now."""

    def revive(self, workspace: Path) -> object:
        """Restore lost content."""


class SandboxPool:
    """All sandboxes of one tier.

    `idle` in seconds. `lasts`: content besides the workspace is kept for the next sandbox, where
    the tier supports it. `keeper`: saves the content of quiet sandboxes. `encloses`: the tier of
    the browser's own sandbox, which may differ from that of commands; "" for none.
    """

    def __init__(  # noqa: PLR0913 - an argument for each difference between the tiers
        self,
        tier: Tier,
        limits: SandboxLimits | None = None,
        *,
        idle: float = IDLE,
        network: SandboxNetwork | None = None,
        lasts: bool = True,
        keeper: WorkspaceKeeper | None = None,
        encloses: str = "",
    ) -> None:
        self.encloses = encloses
        self._tier, self._idle, self._lasts, self._keeper = tier, idle, lasts, keeper
        self._network = network or SandboxNetwork()
        self.limits = limits or SandboxLimits()
        self._places: dict[_Key, _Place] = {}
        self._ended: dict[Path, str] = {}
        self._book = RunningBook(self._spawn)
        self.contains = False
        self.leaks: tuple[Leak, ...] = ()
        """Leaks found by the self-test, except for those that the tier itself admits."""
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The tier's."""
        return self._tier.name

    @property
    def isolated(self) -> bool:
        """The tier's."""
        return self._tier.isolated

    @property
    def missing(self) -> str:
        """The tier's."""
        return self._tier.missing

    @property
    def masks(self) -> bool:
        """The tier's."""
        return self._tier.masks

    @property
    def serves(self) -> bool:
        """The tier's."""
        return self._tier.serves

    @property
    def limit_holder(self) -> LimitHolder:
        """The tier's."""
        return self._tier.limit_holder

    @property
    def cannot(self) -> frozenset[Leak]:
        """The tier's."""
        return self._tier.cannot

    async def check(self) -> None:
        """Run the self-test of a tier that claims to contain. Where nothing runs, nothing escapes:
        a call is told so without asking anybody first."""
        if self._tier.missing:
            self.contains = True
        elif self._tier.isolated:
            trial = SandboxPool(self._tier, PROBE_LIMITS, lasts=False)
            if isinstance(self._tier, TriesItself):
                found = await self._tier.find_leaks(trial)
            else:
                found = await find_leaks(trial, self._tier)
            self.leaks = tuple(one for one in found if one not in self._tier.cannot)
            self.contains = not self.leaks
            level = logging.INFO if self.contains else logging.WARNING
            log.log(level, "sandbox_checked", extra={"leaks": ", ".join(self.leaks) or "none"})

    @property
    def about(self) -> str:
        """The tier's."""
        return self._tier.about

    @property
    def programs(self) -> Mapping[Language, str]:
        """The tier's."""
        return self._tier.programs

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        permits: Permits = NO_PERMITS,
    ) -> ProcessResult:
        """See the port."""
        async with self._enter(cwd, permits.reveals) as (place, link):
            with self.lend_network(permits.hosts) as loan:
                self._book.hide(place.path, permits.env)
                spec = self._spec(place.path, command, limit, {**loan.env, **permits.env})
                process = _start(link, spec, limit, OutputBuffer(HALF, output))
                try:
                    done = await process.wait(limit + DRAIN + link.grace) or process.read_end()
                finally:
                    await process.end()
                known = self._places.get(place)
                hidden = known.hidden if known is not None else NO_SECRETS
                ended = "" if permits.reveals else self._ended.pop(place.path, "")
                ended += self._book.take(place.path)
                noted = notes.add_notes(done, loan, ended, hidden)
                blind = "" if self._tier.lists_processes else explain_blindness(command)
                return notes.append_note(noted, explain_end(command, done) or blind)

    async def start(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> RemoteProcess:
        """See the port."""
        return (await self._launch(command, cwd, limit, permits))[0]

    @property
    def channels(self) -> "SandboxPool":
        """Itself: each sandbox has a supervisor."""
        return self

    async def start_talking(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> TalkingCommand:
        """See the port."""
        buffers = OutputBuffer(HALF), OutputBuffer(HALF)
        process, loan = await self._launch(command, cwd, limit, permits, buffers)
        return TalkingCommand(process, buffers, loan)

    async def _launch(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits,
        apart: tuple[OutputBuffer, ...] = (),
    ) -> tuple[RemoteProcess, NetworkLoan]:
        """Start a command whose hosts are open until its end. `apart`: buffers for its output and
        its errors; it has a channel then."""
        async with self._enter(cwd, permits.reveals) as (place, link):
            loan = self._network.issue(permits.hosts) if self._tier.isolated else None
            given = {**(loan.env if loan is not None else NOTHING), **permits.env}
            self._book.hide(place.path, permits.env)
            talks = bool(apart)
            spec = self._spec(place.path, command, limit, given)
            spec = replace(spec, channel=talks, errors=talks, stays=not talks)
            try:
                process = _start(link, spec, limit, *apart)
            except BaseException:
                if loan is not None:
                    self._network.revoke(loan)
                raise
            if loan is not None:
                process.on_end(partial(self._network.revoke, loan))
            if not talks:  # a script may wait for a person without end
                self._hold(place, process)
            return process, loan or OPEN_NETWORK

    def _hold(self, key: _Key, process: RemoteProcess) -> None:
        """Keep the sandbox from being idle until a command in the background has ended."""
        place = self._places.get(key) or _Place()  # there is none when the gateway ends
        place.holds += 1

        def release() -> None:
            place.holds -= 1
            place.used = ambient.monotonic()
            self._rest(key, place)

        process.on_end(release)

    @contextmanager
    def lend_network(self, hosts: frozenset[str]) -> Iterator[NetworkLoan]:
        """See the port; where the network is not restricted, nothing is lent."""
        if not self._tier.isolated:
            yield OPEN_NETWORK
            return
        with self._network.lend(hosts) as loan:
            yield AdvisedLoan(loan, self._tier.advise)

    async def open_shell(self, cwd: Path, limit: float) -> Shell:
        """See the port."""
        async with self._enter(cwd) as (place, link):
            stream = session.ShellOutput()
            spec = self._spec(place.path, session.COMMAND_LINE, limit, NOTHING, stdin=True)
            shell = session.ShellSession(_start(link, spec, session.LIFE, stream), stream)
            known = self._places[place]
            carrier = known.sandbox.carrier if known.sandbox is not None else None
            carried = CarriedShell(shell, carrier.send, carrier.fetch) if carrier else shell
            return PooledShell(carried, partial(self._use_shell, place, known))

    @asynccontextmanager
    async def _use_shell(
        self, key: _Key, place: _Place, env: Mapping[str, str]
    ) -> AsyncIterator[str]:
        """Hold the sandbox in use during a command of its shell. Yield why the shell ends instead,
        "" if it does not: new files with secrets are to be hidden, which takes another sandbox."""
        place.users += 1
        place.cancel_timers()
        found, over = NO_SECRETS, place.used_at
        try:
            if masks := self._tier.masks and self._places.get(key) is place:
                found = await asyncio.to_thread(find_secret_files, key.path)
                new = found.find_new(place.hidden, place.used_at)
                if new and place.users == 1:
                    self._retire(key, notes.SECRET_CAME.format(names=notes.list_names(new)))
                    yield notes.SHELL_ENDED.format(names=notes.list_names(new))
                    return
            place.unkept = True
            self._book.hide(key.path, env)
            yield ""
            over = await _find_end(key.path, found, over) if masks else ambient.now()
        finally:
            self._leave(key, place, over, saves=True)

    async def connect(self, workspace: Path, port: int) -> Streams:
        """Connect to a server that a command started; ToolFailed if none answers there. Creates no
        sandbox: what ran in a lost one is gone (NothingRuns)."""
        if not self._tier.serves:
            raise ToolFailed(NO_SERVERS)
        place = self._places.get(_Key(Path(os.path.realpath(workspace))))
        if place is None or not (place.is_open or place.making.locked()):
            raise NothingRuns(phrase("preview_stopped", minutes=f"{self._idle / 60:g}"))
        async with self._enter(workspace, starts=False) as (_, link):
            try:
                return await link.connect(port)
            except SandboxGone as error:
                raise ToolFailed(str(error)) from None

    def end_when_idle(self, workspace: Path, seconds: float) -> None:
        """See the port."""
        if place := self._places.get(key := _Key(Path(os.path.realpath(workspace)))):
            place.idle = min(seconds, self._idle)
            self._rest(key, place)

    def take_lost(self, workspace: Path) -> str:
        """See the port."""
        return self._book.take(Path(os.path.realpath(workspace)))

    def halt(self, workspace: Path | None = None) -> None:
        """End all that runs in this workspace's sandbox, or in all; the sandboxes stay."""
        chosen = None if workspace is None else Path(os.path.realpath(workspace))
        for key, place in self._places.items():
            if place.sandbox is not None and chosen in (None, key.path):
                self._book.lose(*key)
                place.sandbox.link.halt()

    async def close(self) -> None:
        """Save the content of sandboxes, end them all, and wait until they are gone."""
        await self._keep_all()
        for key in list(self._places):
            self._retire(key)
        while self._ending:
            await asyncio.wait(self._ending)
        await self._network.close()

    # ---- one sandbox -------------------------------------------------------------------------

    @asynccontextmanager
    async def _enter(
        self, workspace: Path, reveals: bool = False, *, starts: bool = True
    ) -> AsyncIterator[tuple[_Key, Link]]:
        """Hold the workspace's sandbox in use, created if needed. `starts`: a command is to be
        started, from which new files with secrets are hidden first."""
        key = _Key(Path(os.path.realpath(workspace)), reveals and self._tier.masks)
        place = self._places.setdefault(key, _Place())
        place.users += 1
        place.cancel_timers()
        over: float | None = None
        try:
            async with place.making:
                lost = place.sandbox is not None and place.folder != paths.identify(key.path)
                gone, found, revived = lost or not place.is_open, NO_SECRETS, None
                if gone and self._keeper is not None:
                    revived = await asyncio.to_thread(self._keeper.revive, key.path)
                if (gone or starts) and self._tier.masks and not key.reveals:
                    found = await asyncio.to_thread(find_secret_files, key.path)
                if gone:
                    await self._make(key, place, notes.LOST, found)
                    if lost:  # the caller reports what came back
                        self._ended[key.path] = "" if revived else notes.NO_FOLDER
                elif place.users == 1 and (new := found.find_new(place.hidden, place.used_at)):
                    why = notes.SECRET_CAME.format(names=notes.list_names(new))
                    await self._make(key, place, why, found)
                assert place.sandbox is not None
                if starts and place.sandbox.carrier is not None:
                    await self._carry(key, place, found)
                link = place.sandbox.link
            place.unkept = place.unkept or starts
            yield key, link
            if starts and self._tier.masks:
                over = await _find_end(key.path, found, place.used_at)
        finally:
            self._leave(key, place, ambient.now() if over is None else over, saves=starts)

    def _leave(self, key: _Key, place: _Place, over: float, *, saves: bool) -> None:
        """End a use; `over`: new files in the workspace up to then are commands'."""
        place.users -= 1
        place.used, place.used_at = ambient.monotonic(), over
        place.idle = 0.0 if saves else place.idle
        if place.used - place.touched > SECONDS_UNTOUCHED:
            place.touched = place.used
            folders.note_use(key.path)
        self._rest(key, place)
        if saves and not place.users and self._keeper is not None:
            loop = asyncio.get_running_loop()
            place.quiet = loop.call_later(self._keeper.quiet, self._keep, key)

    def _rest(self, key: _Key, place: _Place) -> None:
        """Count the idle time from now on, if nothing uses it."""
        if place.users or place.holds or self._places.get(key) is not place:
            return
        if place.timer is not None:
            place.timer.cancel()
        loop = asyncio.get_running_loop()
        place.timer = loop.call_later(place.idle or self._idle, self._expire, key, place)

    def _expire(self, key: _Key, place: _Place) -> None:
        """End it, unless a connection to one of its servers carried data meanwhile."""
        idle, loop = place.idle or self._idle, asyncio.get_running_loop()
        used = place.sandbox.link.carried_at if place.sandbox is not None else 0.0
        if (left := used + idle - loop.time()) > 0:
            place.timer = loop.call_later(left, self._expire, key, place)
        else:
            self._retire(key, f"was idle for {idle / 60:g} minutes")

    async def _carry(self, key: _Key, place: _Place, hidden: SecretFiles) -> None:
        """Copy files to a remote sandbox; to a new one if it is gone by now."""
        assert place.sandbox is not None and place.sandbox.carrier is not None
        try:
            await place.sandbox.carrier.send()
        except SandboxGone:
            await self._make(key, place, notes.LOST, hidden)

    async def _make(self, key: _Key, place: _Place, why: str, hidden: SecretFiles) -> None:
        """Create the sandbox; `why`: the fate of the previous one."""
        if place.sandbox is not None:
            await place.sandbox.close()
            place.sandbox = None
            self._note_end(key, why)
        unused = ((key, one) for key, one in self._places.items() if not one.users)
        idle = sorted((one.holds > 0, one.used, key) for key, one in unused)
        for _, _, oldest in idle[: max(0, len(self._places) - MAX_OPEN)]:
            self._retire(oldest, "made room for others")
        place.hidden = hidden
        lasts = self._lasts and not key.reveals
        emptied = await asyncio.to_thread(folders.will_be_emptied, key.path)
        place.sandbox = made = await self._tier.open(key.path, self.limits, hidden, lasts=lasts)
        place.folder = paths.identify(key.path)
        made.link.on_accept = self._network.accept
        await self._book.load(key.path)
        self._book.lose(*key)
        made.link.on_running = partial(self._note_running, key, made.link)
        place.touched = ambient.monotonic()
        if (note := made.note or (notes.EMPTIED if emptied else "")) and not key.reveals:
            self._ended[key.path] = note

    def _note_running(self, key: _Key, link: Link, found: tuple[RunningProgram, ...]) -> None:
        """Note what stays in the sandbox, so that its end can be told."""
        if (place := self._places.get(key)) and place.sandbox and place.sandbox.link is link:
            self._book.note(*key, found)

    def _note_end(self, key: _Key, why: str) -> None:
        """Remember why the sandbox ended, for the next command."""
        if not key.reveals:
            self._ended[key.path] = notes.ANEW.format(why=why)
        while len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def _retire(self, key: _Key, why: str = "") -> None:
        """End the workspace's sandbox; the next command makes another, and says `why`."""
        if why and key in self._places:
            self._note_end(key, why)
        place = self._places.pop(key, None)
        if place is None:
            return
        place.cancel_timers()
        self._book.lose(*key)
        self._spawn(self._end(key, place))

    async def _end(self, key: _Key, place: _Place) -> None:
        try:
            await self._book.save(key.path)
            if key.path not in {known.path for known in self._places}:
                self._book.forget(key.path)
        finally:
            async with place.making:
                if place.sandbox is not None:
                    await place.sandbox.close()

    def _keep(self, key: _Key) -> None:
        """Save the content of a sandbox that has been quiet."""
        if (place := self._places.get(key)) is not None and place.sandbox is not None:
            place.unkept = False
            self._spawn(self._save(key.path, place.sandbox))

    async def _keep_all(self) -> None:
        """Save what commands changed since the last time, the newest first."""
        if self._keeper is None:
            return
        newest = sorted(self._places.items(), key=lambda one: -one[1].used)
        try:
            async with ambient.limit(SECONDS_TO_KEEP):
                for key, place in newest:
                    if place.unkept and place.sandbox is not None:
                        place.unkept = False
                        await self._save(key.path, place.sandbox)
        except TimeoutError:
            log.warning("not_all_kept", extra={"seconds": SECONDS_TO_KEEP})

    async def _save(self, workspace: Path, sandbox: OpenSandbox) -> None:
        await sandbox.save()
        assert self._keeper is not None
        await asyncio.to_thread(self._keeper.take_idle, workspace)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run it in the background."""
        task = asyncio.ensure_future(work)  # noqa: TID251  # `close` awaits it
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _spec(
        self, place: Path, command: str, limit: float, env: Mapping[str, str], stdin: bool = False
    ) -> CommandSpec:
        return CommandSpec(
            argv=(*self._tier.shell, "-c", command),
            env={**self._tier.build_env(place), **env},
            cwd=self._tier.find_folder(place),
            rlimits={
                "CORE": 0,
                "CPU": int(limit) + 1,
                "DATA": self.limits.memory,
                "FSIZE": MAX_FILE,
                "NPROC": self._tier.max_processes,
            },
            stdin=stdin,
        )


def _start(
    link: Link,
    spec: CommandSpec,
    limit: float,
    output: Sink | None = None,
    errors: Sink | None = None,
) -> RemoteProcess:
    try:
        return link.start(spec, limit, output, errors)
    except SandboxGone as error:
        raise ToolFailed(str(error)) from None


async def _find_end(workspace: Path, found: SecretFiles, before: float) -> float:
    """Return the moment up to which new files in the workspace are commands'; files that a person
    adds from now on are new. It stays `before` if nothing came since `found`, otherwise it costs a
    wait."""
    return before if is_unchanged(workspace, found) else await ambient.part_file_times()
