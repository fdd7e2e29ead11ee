"""A server as a child process that dies with the gateway: one message a line, bounded."""

import asyncio
import os
import signal
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from agent_core.mcp.deep_json import cut_levels
from agent_core.mcp.settings import MAX_MESSAGE, McpServer

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

MAX_KEPT_TEXT = 2_000
"""Bytes of a server's newest complaints."""
SECONDS_TO_FLUSH, SECONDS_TO_END = 0.5, 4.0
"""Seconds to flush its input; and to end after its input is closed, with the two of the shell
around it."""
_WATCHED = (
    "{ cat; exec >&-; sleep 2; kill -KILL 0; } 2>/dev/null | "
    '{ "$0" "$@"; (printf \'\\n\\001%s\' $? >&2); kill -KILL 0; }'
)
"""The command behind a `cat` that sees the end of our side. The gateway holds the other end of
standard input: however it dies, the command reads an end, and its group is dead 2 s later. If the
command ends, so does the `cat`, and with the last holder of its pipes its end is noticed."""

_ENDED = "\n\x01"
"""Before its exit code, behind all that it wrote."""


class Complaints(asyncio.Protocol):
    """A child's standard error, of which the end is kept; `closed` is called when nobody holds
    it."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self._closed = closed
        self._tail = bytearray()

    def data_received(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-MAX_KEPT_TEXT]

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed()

    @property
    def line(self) -> str:
        """Its last line, "" if it has none."""
        lines = self._tail.decode("utf-8", "replace").partition(_ENDED)[0].strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def last(self) -> str:
        """Its last line; if it has none, the exit code with which it ended."""
        code = self._tail.decode("utf-8", "replace").partition(_ENDED)[2]
        return self.line or (f"it ended with exit code {code}" if code.isdecimal() else "")


@asynccontextmanager
async def child(server: McpServer, complaints: Complaints) -> "AsyncIterator[TransportStreams]":
    """The streams to a child process. OSError if it cannot be started."""
    import anyio
    from mcp.shared.message import SessionMessage

    told, tells = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    asks, asked = anyio.create_memory_object_stream[SessionMessage](0)
    async with AsyncExitStack() as stack:
        for stream in (told, tells, asks, asked):
            stack.callback(stream.close)
        process, transport = await _start(server, complaints, stack)
        written = asyncio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, told, complaints)
            tasks.start_soon(_write, process, asked, told, written)
            try:
                yield tells, asks
            finally:
                with anyio.CancelScope(shield=True):
                    tells.close()  # remaining output of the server is read and discarded
                    asks.close()  # pending input is still written
                    try:
                        await _end(process, written)
                    finally:
                        transport.close()
                tasks.cancel_scope.cancel()


async def _start(
    server: McpServer, complaints: Complaints, stack: AsyncExitStack
) -> tuple[asyncio.subprocess.Process, asyncio.SubprocessTransport]:
    from mcp.client.stdio import get_default_environment

    loop = asyncio.get_running_loop()
    reads, writes = os.pipe()
    with os.fdopen(writes, "wb") as errors:  # from here on only the child holds that end
        pipe = os.fdopen(reads, "rb")
        hearing, _ = await loop.connect_read_pipe(lambda: complaints, pipe)
        stack.callback(hearing.close)
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=MAX_MESSAGE, loop=loop),
            *("/bin/sh", "-c", _WATCHED, server.command, *server.args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=get_default_environment() | (server.env or {}),
            cwd=server.cwd or None,
            start_new_session=True,
        )
    return asyncio.subprocess.Process(transport, protocol, loop), transport


async def _read(
    process: asyncio.subprocess.Process,
    told: "MemoryObjectSendStream[SessionMessage | Exception]",
    complaints: Complaints,
) -> None:
    """Forward its messages, one a line. Other lines are skipped: running calls have time limits of
    their own."""
    import anyio
    from mcp.shared.message import SessionMessage

    output = process.stdout
    assert output is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with told:
            while line := await _read_line(output, complaints):
                if (message := _parse(line)) is not None:
                    await told.send(SessionMessage(message))
    while await output.read(1 << 16):  # a server that cannot write does not read or exit either
        pass


def _parse(line: bytes) -> "JSONRPCMessage | None":
    """Return the message, without what is nested too deeply; None if the line is none."""
    from mcp_types import jsonrpc_message_adapter

    for cut in (bytes, cut_levels):
        with suppress(ValueError):
            words = cut(line).decode("utf-8", "replace")  # a bad byte costs only one character
            return jsonrpc_message_adapter.validate_json(words, by_name=False)
    return None


async def _read_line(output: asyncio.StreamReader, complaints: Complaints) -> bytes:
    """The next line with its end; nothing at the end of all, or if it is too long."""
    try:
        return await output.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        complaints.data_received(b"\nIt sent more than 16 MB without an end of line.\n")
        return b""


async def _write(
    process: asyncio.subprocess.Process,
    asked: "MemoryObjectReceiveStream[SessionMessage]",
    told: "MemoryObjectSendStream[SessionMessage | Exception]",
    written: asyncio.Event,
) -> None:
    """Write messages to it until the stream ends; then close its input."""
    entry = process.stdin
    assert entry is not None
    try:
        async with asked:
            async for one in asked:
                words = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                entry.write(words.encode("utf-8", "replace") + b"\n")
                await entry.drain()
    except (OSError, RuntimeError):  # RuntimeError: of uvloop, once its end was noticed
        told.close()  # it may survive, but it is unreachable: the session ends
    finally:
        entry.close()
        written.set()


async def _end(process: asyncio.subprocess.Process, written: asyncio.Event) -> None:
    """End its input, and it with all that it started if it does not end by that."""
    assert process.stdin is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_FLUSH):
            await written.wait()
    process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_END):
            await process.wait()
            return
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
