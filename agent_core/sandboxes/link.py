"""The gateway's end of a sandbox: commands and connections over one socket to the supervisor."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Struct

from agent_core import ambient
from agent_core.sandboxes import supervisor
from agent_core.sandboxes.commands.output import DRAIN, FLOOD, HALF_BEHIND, OutputBuffer
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.states.running import RunningProgram
from agent_core.tools import room

SECONDS_TO_OPEN = 10.0
"""Time limit for a connection to a port inside."""
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CREDIT = supervisor.WINDOW // 2
"""Bytes taken after which the other side may send as many more."""
REASONS = {
    "memory": "[Stopped: over {memory} of memory in all.]",
    "processes": "[Stopped: over {processes} processes in all.]",
    "tasks": "[Refused: over {tasks} processes and threads in all.]",
    "disk": "[Stopped: over {disk} of disk in all.]",
    "gone": "[The sandbox ended.]",
    "lost": "[The sandbox was lost while this ran: whether it finished is unknown. Files of the "
    "workspace are as they were before it. Look what is there before you run it again.]",
}
"""Reasons why the sandbox ended a command, by the supervisor's code."""


LimitHolder = Literal["kernel", "watch", "itself"]
"""Holders of limits of memory and processes: the kernel, by control groups; the supervisor, which
watches; or the sandbox itself, in its own way."""


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """The limits of one sandbox: bytes, bytes, a number, a number."""

    memory: int = 4 << 30
    disk: int = room.MAX_BYTES
    processes: int = 512
    cpus: int = 2

    @property
    def tasks(self) -> int:
        """Processes and threads at most, where they are refused and not ended."""
        return 2 * self.processes + 64

    def describe(self, reason: str) -> str:
        """The sentence of a limit that was met."""
        given = {"processes": str(self.processes), "tasks": str(self.tasks)}
        for name, size in (("memory", self.memory), ("disk", self.disk)):
            given[name] = f"{size / (1 << 30):g} GB" if size >= 1 << 30 else f"{size >> 20} MB"
        return REASONS.get(reason, "[Stopped by the sandbox.]").format(**given)


class SupervisorSpec(Struct, frozen=True, kw_only=True):
    """The supervisor's configuration. `folders`: those that count as disk, by their inner names.
    `proxy_port`: where it listens for outgoing connections, 0 for nowhere."""

    limits: SandboxLimits
    folders: tuple[str, ...]
    proxy_port: int = 0

    def encode(self) -> str:
        """Encode it as the one argument."""
        limits = self.limits
        said = {"memory": limits.memory, "disk": limits.disk, "processes": limits.processes}
        given = {"limits": said | {"tasks": limits.tasks}, "proxy_port": self.proxy_port}
        return json.dumps(given | {"folders": list(self.folders)})


NO_LIMITS: Mapping[str, int] = {}


class CommandSpec(Struct, frozen=True, kw_only=True):
    """A command to start inside. `rlimits`: by name without `RLIMIT_`. `stdin`: it is written to;
    otherwise it is empty. `channel`: it has a socket to the gateway as its file 3. `errors`:
    standard error comes separately. `stays`: it runs in the background."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    rlimits: Mapping[str, int] = NO_LIMITS
    stdin: bool = False
    channel: bool = False
    errors: bool = False
    stays: bool = False


OnExit: TypeAlias = Callable[[str], Awaitable[str]]
"""Called with a command's words when it has ended; returns a note for its output."""


class Sink(Protocol):
    """Takes a command's output."""

    @property
    def total(self) -> int:
        """Bytes so far; beyond FLOOD the command is stopped."""

    def add(self, data: bytes) -> None:
        """Add output."""

    def text(self) -> str:
        """Return the output kept."""

    def end(self) -> None:
        """The command has ended; a little output may still come."""


class RemoteProcess:
    """A command under way in the sandbox. Needs no task: its end is a frame, its limit a timer."""

    def __init__(
        self, link: "Link", stream: int, output: Sink, limit: float, errors: Sink | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.words = ""
        self.timed_out = False
        self._link, self._stream, self._output = link, stream, output
        self._errors = errors or output
        self.channel: Streams | None = None
        self._code = 128 + signal.SIGKILL
        self._reason = ""
        self._exited: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_later(limit, self._expire)
        self._left: float | None = None
        self._ending: asyncio.Task[None] | None = None
        self._on_end: list[Callable[[], None]] = []

    @property
    def done(self) -> ProcessResult | None:
        """Its result, None while it runs."""
        return self.read_end() if self._exited.done() else None

    def read_end(self) -> ProcessResult:
        """Return its result as of now; one that cannot even be killed counts as dead."""
        reason = f"\n{self._link.limits.describe(self._reason)}" if self._reason else ""
        text = f"{self.output()}{reason}"
        return ProcessResult(
            exit_code=self._code, output=text, timed_out=self.timed_out, reason=self._reason
        )

    def on_end(self, act: Callable[[], None]) -> None:
        """Call `act` when it has ended; at once if it has."""
        if self._exited.done():
            act()
        else:
            self._on_end.append(act)

    def pause(self) -> None:
        """Stop its time limit."""
        if self._left is None:
            self._left = max(0.0, self._timer.when() - asyncio.get_running_loop().time())
            self._timer.cancel()

    def resume(self) -> None:
        """Resume its time limit."""
        left, self._left = self._left, None
        if left is not None and not self._exited.done():
            self._timer = asyncio.get_running_loop().call_later(left, self._expire)

    def output(self) -> str:
        """Return its output so far."""
        return self._output.text()

    def write(self, data: bytes) -> None:
        """Give it input; BrokenPipeError if it has ended."""
        if self._exited.done():
            raise BrokenPipeError
        self._link.send(supervisor.DATA, self._stream, data)

    def close_input(self) -> None:
        """Close its input."""
        self._link.send(supervisor.END, self._stream)

    async def wait(self, seconds: float) -> ProcessResult | None:
        """Wait at most `seconds` for its end and its last output."""
        try:
            async with ambient.limit(seconds):
                await asyncio.shield(self._exited)
        except TimeoutError:
            return None
        return self.read_end()

    def kill(self) -> None:
        """Kill it, with its children."""
        if not self._exited.done():
            self._link.send(supervisor.KILL, self._stream)

    def leave(self) -> None:
        """Abandon it: what it left behind stays, and is not listened to."""
        self._timer.cancel()
        self._link.send(supervisor.QUIET, self._stream)
        self._link.forget(self._stream, self)
        self._report_end()

    async def end(self) -> None:
        """Abandon it; kill it first if it has not ended, and wait until it is gone."""
        if not self._exited.done():
            self.kill()
            await self.wait(DRAIN)
        self.leave()

    def take(self, kind: int, data: bytes) -> None:
        """A frame of the supervisor's."""
        if kind == supervisor.DATA:
            self._output.add(data)
            if self._output.total > FLOOD:
                self.kill()
        elif kind == supervisor.ERRORS:
            self._errors.add(data)
            if self._errors.total > FLOOD:
                self.kill()
        elif kind == supervisor.EXIT:
            told = json.loads(data)
            end = int(told["code"]), str(told["reason"])
            if self._link.on_exit is None:
                self._settle(*end)
            else:
                self._timer.cancel()
                closing = self._close(self._link.on_exit, *end)
                self._ending = asyncio.ensure_future(closing)  # noqa: TID251  # it settles this

    async def _close(self, act: OnExit, code: int, reason: str) -> None:
        """Close it: its end is seen only after `act` has run."""
        if note := await act(self.words):
            self._output.add(f"\n{note}".encode())
        self._settle(code, reason)

    def lose(self) -> None:
        """The sandbox has ended, and so has this."""
        if self._ending is None:
            self._settle(self._code, self._link.fault)

    def _settle(self, code: int, reason: str) -> None:
        self._timer.cancel()
        if not self._exited.done():
            self._code, self._reason = code, reason
            self._exited.set_result(None)
            self._output.end()
            self._report_end()

    def _report_end(self) -> None:
        acts, self._on_end = self._on_end, []
        for act in acts:
            act()

    def _expire(self) -> None:
        self.timed_out = True
        self.kill()


class _Carrier(asyncio.Transport):
    """One connection as a transport: data is written in frames, within the credit."""

    def __init__(self, link: "Link", stream: int) -> None:
        super().__init__()
        self._link, self.stream = link, stream
        self.reader = asyncio.StreamReader(limit=supervisor.WINDOW // 2)
        self._protocol = asyncio.StreamReaderProtocol(self.reader)
        self._credit, self._taken = supervisor.WINDOW, 0
        self._unsent = bytearray()
        self._closing = self._leaving = self._ending = self._paused = self._full = False
        self._protocol.connection_made(self)
        self.writer = asyncio.StreamWriter(
            self, self._protocol, self.reader, asyncio.get_running_loop()
        )

    def take(self, kind: int, data: bytes) -> None:
        """A frame of the supervisor's."""
        if kind == supervisor.DATA:
            self._link.note_data()
            self._taken += len(data)
            self.reader.feed_data(data)
            self._give_credit()
        elif kind == supervisor.END:
            self.reader.feed_eof()
        elif kind == supervisor.CREDIT:
            self._credit += int.from_bytes(data[:4], "big")
            self._pour()
        elif kind == supervisor.KILL:
            self.lose()

    def lose(self) -> None:
        """The connection is lost."""
        if not self._closing:
            self._closing = True
            self._link.forget(self.stream, self)
        self._protocol.connection_lost(None)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_closing():
            self._link.note_data()
            self._unsent += data
            self._pour()

    def write_eof(self) -> None:
        self._ending = True
        self._pour()

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self._closing or self._leaving

    def close(self) -> None:
        """Close it when the other side has taken everything written."""
        self._leaving = True
        self._pour()

    def abort(self) -> None:
        if not self._closing:
            self._link.send(supervisor.KILL, self.stream)
            self.lose()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        """Grant no credit for more, as nobody reads."""
        self._full = True

    def resume_reading(self) -> None:
        self._full = False
        self._give_credit()

    def _give_credit(self) -> None:
        if self._taken >= _CREDIT and not self._full:
            self._link.send(supervisor.CREDIT, self.stream, self._taken.to_bytes(4, "big"))
            self._taken = 0

    def _pour(self) -> None:
        while self._unsent and self._credit > 0:
            piece = bytes(self._unsent[: min(supervisor.PIECE, self._credit)])
            del self._unsent[: len(piece)]
            self._credit -= len(piece)
            self._link.send(supervisor.DATA, self.stream, piece)
        if self._ending and not self._unsent:
            self._ending = False
            self._link.send(supervisor.END, self.stream)
        if self._leaving and not self._unsent:
            self.abort()
            return
        full = len(self._unsent) > supervisor.PIECE
        if full != self._paused:
            self._paused = full
            self._protocol.pause_writing() if full else self._protocol.resume_writing()


class SandboxGone(Exception):
    """The sandbox ended, or nothing inside could be reached; the text says what."""


class Link(asyncio.Protocol):
    """The socket to a supervisor.

    `on_accept` gets each connection from inside to the proxy's port; without it none is made.
    `on_running` gets what stays after its command, whenever that changes. `on_exit` runs before a
    command's end is seen, for at most `grace` seconds; `fault`: why commands end with the link, of
    REASONS.
    """

    def __init__(self, limits: SandboxLimits) -> None:
        loop = asyncio.get_running_loop()
        self.limits = limits
        self.ready: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.on_accept: Callable[[Streams], None] | None = None
        self.on_running: Callable[[tuple[RunningProgram, ...]], None] | None = None
        self.on_exit: OnExit | None = None
        self.grace = 0.0
        self.fault = "gone"
        self.carried_at = 0.0
        """When a connection last carried data, by the loop's clock."""
        self._transport: asyncio.Transport | None = None
        self._incoming = bytearray()
        self._streams: dict[int, RemoteProcess | _Carrier] = {}
        self._opening: dict[int, asyncio.Future[str]] = {}
        self._next = 1

    # ---- for the sandbox ---------------------------------------------------------------------

    def start(
        self,
        spec: CommandSpec,
        limit: float,
        output: Sink | None = None,
        errors: Sink | None = None,
    ) -> RemoteProcess:
        """Start a command; it runs to its end or to `limit` seconds. SandboxGone."""
        self._check()
        stream = self._take_number()
        channel = self._take_number() if spec.channel else 0
        sink = output or OutputBuffer(HALF_BEHIND)
        process = RemoteProcess(self, stream, sink, limit, errors)
        process.words = spec.argv[-1]
        self._streams[stream] = process
        if channel:
            carrier = self._carry(channel)
            process.channel = carrier.reader, carrier.writer
        given = {"argv": spec.argv, "env": dict(spec.env), "cwd": spec.cwd, "stdin": spec.stdin}
        given |= {"errors": spec.errors, "stays": spec.stays}
        words = json.dumps(given | {"rlimits": dict(spec.rlimits), "channel": channel})
        self.send(supervisor.START, stream, words.encode())
        return process

    async def connect(self, port: int) -> Streams:
        """Connect to a server that listens inside; SandboxGone if none does."""
        self._check()
        stream = self._take_number()
        opened = self._opening[stream] = asyncio.get_running_loop().create_future()
        self.send(supervisor.OPEN, stream, json.dumps({"port": port}).encode())
        try:
            async with ambient.limit(SECONDS_TO_OPEN):
                refused = await opened
        except TimeoutError:
            refused = "no answer"
            self.send(supervisor.KILL, stream)
        finally:
            del self._opening[stream]
        if refused:
            raise SandboxGone(f"Nothing answers at port {port} of the sandbox ({refused}).")
        carrier = self._streams[stream]
        assert isinstance(carrier, _Carrier)
        return carrier.reader, carrier.writer

    def halt(self) -> None:
        """End all that runs inside."""
        self.send(supervisor.HALT, 0)

    def close(self) -> None:
        """End the sandbox."""
        if self._transport is not None:
            self._transport.abort()

    def send(self, kind: int, stream: int, data: bytes = b"") -> None:
        """Send a frame; does nothing once the sandbox is gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(supervisor.HEAD.pack(kind, stream, len(data)) + data)

    def note_data(self) -> None:
        """Note that a connection carries data."""
        self.carried_at = asyncio.get_running_loop().time()

    def forget(self, stream: int, one: "RemoteProcess | _Carrier") -> None:
        """Drop further frames of this stream."""
        if self._streams.get(stream) is one:
            del self._streams[stream]

    def _check(self) -> None:
        if self._transport is None or self.gone.done():
            raise SandboxGone("The sandbox is gone.")

    def _take_number(self) -> int:
        number, self._next = self._next, self._next + 2
        return number

    def _carry(self, stream: int) -> _Carrier:
        self._streams[stream] = carrier = _Carrier(self, stream)
        return carrier

    # ---- for asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        at = 0
        while len(self._incoming) - at >= supervisor.HEAD.size:
            kind, stream, length = supervisor.HEAD.unpack_from(self._incoming, at)
            begin = at + supervisor.HEAD.size
            if length > supervisor.PIECE:
                self.close()  # our supervisor never sends that
                return
            if len(self._incoming) < begin + length:
                break
            at = begin + length
            self._take(kind, stream, bytes(self._incoming[begin:at]))
        del self._incoming[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        for one in list(self._streams.values()):
            one.lose()
        for opened in self._opening.values():
            if not opened.done():
                opened.set_result("the sandbox is gone")
        if not self.gone.done():
            self.gone.set_result(None)
        if not self.ready.done():
            self.ready.set_result(None)

    def _take(self, kind: int, stream: int, data: bytes) -> None:
        if kind == supervisor.READY:
            if not self.ready.done():
                self.ready.set_result(None)
        elif kind == supervisor.RUNS:
            if self.on_running is not None:
                self.on_running(msgspec.json.decode(data, type=tuple[RunningProgram, ...]))
        elif kind == supervisor.OPEN:
            if self.on_accept is None or stream in self._streams:
                self.send(supervisor.KILL, stream)
                return
            carrier = self._carry(stream)
            self.on_accept((carrier.reader, carrier.writer))
        elif kind in (supervisor.OPENED, supervisor.REFUSED):
            opened = self._opening.get(stream)
            if opened is None or opened.done():
                self.send(supervisor.KILL, stream)
            elif kind == supervisor.OPENED:
                self._carry(stream)
                opened.set_result("")
            else:
                opened.set_result(data.decode("utf-8", "replace") or "refused")
        elif (one := self._streams.get(stream)) is not None:
            one.take(kind, data)
