"""What a sandbox is: a place where a command runs, honest about how far it is from the rest."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

NOTHING: Mapping[str, str] = {}
Language = Literal["python", "javascript", "typescript", "bash"]


class ProcessResult(Struct, frozen=True, kw_only=True):
    """A command that has ended. `exit_code` is 128 + the signal's number where one killed it.

    `output` is what it wrote, errors in between; where it wrote too much, its beginning and end,
    and the last line says how much was left out. `reason`: why the sandbox ended it, "" if it did
    not; the output says it, too.
    """

    exit_code: int
    output: str
    timed_out: bool
    reason: str = ""


class Running(Protocol):
    """A command under way."""

    @property
    def done(self) -> ProcessResult | None:
        """How it ended, None while it runs."""

    def output(self) -> str:
        """What it wrote so far, bounded like Done's."""

    async def wait(self, seconds: float) -> ProcessResult | None:
        """Wait at most `seconds` for its end."""

    def kill(self) -> None:
        """End it, with all that it started."""


class NetworkLoan(Protocol):
    """The hosts that one command may reach."""

    @property
    def env(self) -> Mapping[str, str]:
        """What it finds in its environment for that."""

    def describe_refused(self, done: ProcessResult) -> str:
        """What it tried to reach besides, and what to do; "" if nothing."""


class Permits(Struct, frozen=True, kw_only=True):
    """What a command may besides. `env`: what it finds in its environment. `hosts`: what it may
    reach of the network (`agent_core.tools.web.hosts`), where the tier closes it. `reveals`: it may
    read the workspace's files for secrets; it runs apart from the others then."""

    env: Mapping[str, str] = NOTHING
    hosts: frozenset[str] = frozenset()
    reveals: bool = False


NO_PERMITS = Permits()


class GatewayChannel(Protocol):
    """The gateway's end of a socket that a command has as its open file 3."""

    async def read(self) -> bytes:
        """What the command wrote to it next; b"" once it has closed it, or has ended. What one
        wrote that did not wait for an answer may be lost."""

    async def write(self, data: bytes) -> None:
        """Send it an answer; one that has ended does not hear it."""


class ChannelCommand(Running, Protocol):
    """A command under way that talks with the gateway. `output` is without its errors."""

    @property
    def channel(self) -> GatewayChannel:
        """By what it talks."""

    def errors(self) -> str:
        """What it wrote as errors so far, bounded likewise."""

    def show(self, live: Callable[[str], None]) -> None:
        """From now on `live` gets what it writes, errors in between."""

    def pause(self) -> None:
        """Its time does not run out until `resume`."""

    def resume(self) -> None:
        """Its time goes on."""


class ChannelSandbox(Protocol):
    """Starts commands that talk with the gateway."""

    async def start_talking(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> ChannelCommand:
        """As `Sandbox.start`; the command has a socket to the gateway as its open file 3."""


class Ran(Struct, frozen=True, kw_only=True):
    """How a command went in a shell that stays. `folder`: where the shell is now, as it calls it;
    "" if it ended with the command."""

    done: ProcessResult
    folder: str


class Shell(Protocol):
    """A shell that stays. One command at a time: callers take turns."""

    @property
    def alive(self) -> bool:
        """It takes commands; not any more as soon as it is being ended."""

    @property
    def gone(self) -> bool:
        """It is dead."""

    async def run(
        self,
        command: str,
        limit: float,
        live: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> Ran:
        """Run `command` in it, for at most `limit` seconds: then the shell is dead, and so it is
        when the call is cancelled. `env` holds for this command."""

    def close(self) -> None:
        """End it, with all that it started."""

    async def wait(self, seconds: float) -> None:
        """Wait at most `seconds` until it is gone."""


class Sandbox(Protocol):
    """Runs commands, each workspace's in one sandbox, where what a command leaves running, /tmp and
    HOME stay for the next one. `isolated`: nothing outside of it can be reached or changed."""

    @property
    def name(self) -> str:
        """The tier, as settings and /health call it."""

    @property
    def isolated(self) -> bool:
        """False: nothing isolates what runs here."""

    @property
    def about(self) -> str:
        """What the tier does and does not, in one sentence for people and models."""

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        permits: Permits = NO_PERMITS,
    ) -> ProcessResult:
        """Run `command` by a shell in the workspace `cwd` for at most `limit` seconds; `output`
        gets what it writes while it runs. What it leaves running stays, unless its time was up or
        the call was cancelled."""

    async def start(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> Running:
        """As `run`, but without waiting: it runs on for at most `limit` seconds, never longer
        than the gateway's process lives."""

    @property
    def programs(self) -> Mapping[Language, str]:
        """The languages that code can be run in, each with the words before a file's path."""

    async def open_shell(self, cwd: Path, limit: float) -> Shell:
        """A bash in the workspace that stays; ToolFailed without bash. What it runs may take
        `limit` seconds of computing. It dies with the gateway's process."""

    @property
    def channels(self) -> ChannelSandbox | None:
        """Starts commands that talk with the gateway; None where the tier has no way for it."""

    def lend_network(self, hosts: frozenset[str]) -> AbstractContextManager[NetworkLoan]:
        """What opens `hosts` for a command of a shell that stays, within the block."""
