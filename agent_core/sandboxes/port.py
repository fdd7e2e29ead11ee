"""The port of a sandbox: runs commands, and tells how far they are isolated."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

NOTHING: Mapping[str, str] = {}
Language = Literal["python", "javascript", "typescript", "bash"]


class ProcessResult(Struct, frozen=True, kw_only=True):
    """The result of a command.

    `exit_code`: 128 + the signal's number if one killed it. `output`: with errors in between; of
    too much, the beginning and end, and the last line says how much was omitted. `reason`: why the
    sandbox ended it, "" if it did not; the output says it, too.
    """

    exit_code: int
    output: str
    timed_out: bool
    reason: str = ""


class Running(Protocol):
    """A command under way."""

    @property
    def done(self) -> ProcessResult | None:
        """Its result, None while it runs."""

    def output(self) -> str:
        """Return its output so far, bounded like Done's."""

    async def wait(self, seconds: float) -> ProcessResult | None:
        """Wait at most `seconds` for its end."""

    def kill(self) -> None:
        """End it, with all that it started."""


class NetworkLoan(Protocol):
    """The hosts that one command may reach."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables for it."""

    def describe_refused(self, done: ProcessResult) -> str:
        """Describe what else it tried to reach, and what to do; "" for nothing."""


class Permits(Struct, frozen=True, kw_only=True):
    """Additional grants of a command. `env`: added to its environment. `hosts`: reachable hosts
    (`agent_core.tools.web.hosts`), where the tier restricts the network. `reveals`: it may read the
    workspace's files with secrets; it then runs apart from the others."""

    env: Mapping[str, str] = NOTHING
    hosts: frozenset[str] = frozenset()
    reveals: bool = False


NO_PERMITS = Permits()


class GatewayChannel(Protocol):
    """The gateway's end of a socket that a command has as its open file 3."""

    async def read(self) -> bytes:
        """Return the command's next data; b"" once it has closed the channel, or has ended. Data of
        a command that did not wait for an answer may be lost."""

    async def write(self, data: bytes) -> None:
        """Send it an answer; one that has ended does not hear it."""


class ChannelCommand(Running, Protocol):
    """A command under way that talks with the gateway. `output` is without its errors."""

    @property
    def channel(self) -> GatewayChannel:
        """The channel to it."""

    def errors(self) -> str:
        """Return its bounded error output so far."""

    def show(self, live: Callable[[str], None]) -> None:
        """Show further output to `live`, with errors in between."""

    def pause(self) -> None:
        """Stop its time limit until `resume`."""

    def resume(self) -> None:
        """Resume its time limit."""


class ChannelSandbox(Protocol):
    """Starts commands that talk with the gateway."""

    async def start_talking(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> ChannelCommand:
        """Start a command like `Sandbox.start`, with a socket to the gateway as its open file 3."""


class Ran(Struct, frozen=True, kw_only=True):
    """The result of a command in a lasting shell. `folder`: the shell's current folder, by its
    inner name; "" if the shell ended with the command."""

    done: ProcessResult
    folder: str


class Shell(Protocol):
    """A shell that stays. One command at a time: callers take turns."""

    @property
    def alive(self) -> bool:
        """True while it takes commands; False as soon as it is being ended."""

    @property
    def gone(self) -> bool:
        """True if it is dead."""

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
    """Runs commands, each workspace's in one sandbox, where processes left running, /tmp and HOME
    stay for the next command. `isolated`: nothing outside of it can be reached or changed."""

    @property
    def name(self) -> str:
        """The tier, as settings and /health call it."""

    @property
    def isolated(self) -> bool:
        """False: nothing isolates commands."""

    @property
    def about(self) -> str:
        """Describe the tier's isolation in one sentence for people and models."""

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        permits: Permits = NO_PERMITS,
    ) -> ProcessResult:
        """Run `command` by a shell in the workspace `cwd` for at most `limit` seconds; `output`
        gets its live output. Processes it leaves running stay, unless its time was up or the call
        was cancelled."""

    async def start(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> Running:
        """Start `command` like `run`, without waiting for it: it runs for at most `limit` seconds,
        never longer than the gateway's process."""

    @property
    def programs(self) -> Mapping[Language, str]:
        """The languages that code can be run in, each with the words before a file's path."""

    async def open_shell(self, cwd: Path, limit: float) -> Shell:
        """Open a lasting bash in the workspace; ToolFailed without bash. Its processes may use
        `limit` seconds of CPU time. It dies with the gateway's process."""

    @property
    def channels(self) -> ChannelSandbox | None:
        """Starts commands that talk with the gateway; None where the tier has no way for it."""

    def lend_network(self, hosts: frozenset[str]) -> AbstractContextManager[NetworkLoan]:
        """Open `hosts` for a command of a lasting shell, within the block."""

    def take_lost(self, workspace: Path) -> str:
        """Return, once, a note for the model on what a command left running and is gone; "" for
        nothing. The result of `run` has it, too."""

    def end_when_idle(self, workspace: Path, seconds: float) -> None:
        """End the workspace's sandbox after so many seconds without use, if that is less than
        usual; until the next command."""
