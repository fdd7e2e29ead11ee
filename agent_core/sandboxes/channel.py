"""A command that talks with the gateway, by a socket that it has as its open file 3."""

from collections.abc import Callable
from contextlib import suppress

from agent_core.errors import ToolFailed
from agent_core.sandboxes.commands.output import OutputBuffer
from agent_core.sandboxes.link import RemoteProcess, Streams
from agent_core.sandboxes.port import NetworkLoan, ProcessResult
from agent_core.sandboxes.supervisor import PIECE


class LinkChannel:
    """The gateway's end. It ends with the command, whoever else still holds the other end."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    async def read(self) -> bytes:
        """See the port."""
        with suppress(ConnectionError):
            return await self._reader.read(PIECE)
        return b""

    async def write(self, data: bytes) -> None:
        """See the port."""
        with suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    def close(self) -> None:
        """Close the channel: nobody is at the other end any more."""
        self._writer.transport.abort()


class TalkingCommand:
    """A command under way with its channel, its output and its errors."""

    def __init__(
        self, process: RemoteProcess, buffers: tuple[OutputBuffer, OutputBuffer], loan: NetworkLoan
    ) -> None:
        if process.channel is None:
            raise ToolFailed("The command has no channel.")
        self._process, self._loan = process, loan
        self._output, self._errors = buffers
        self._channel = LinkChannel(process.channel)
        process.on_end(self._channel.close)

    @property
    def channel(self) -> LinkChannel:
        """See the port."""
        return self._channel

    @property
    def done(self) -> ProcessResult | None:
        """See the port."""
        return self._process.done

    def output(self) -> str:
        """See the port."""
        return self._process.output()

    def errors(self) -> str:
        """See the port; refused network connections are listed at the end."""
        said = self._errors.text()
        done = self._process.done
        refused = self._loan.describe_refused(done) if done is not None else ""
        return f"{said.rstrip()}\n{refused}\n".lstrip() if refused else said

    def show(self, live: Callable[[str], None]) -> None:
        """See the port."""
        self._output.show(live)
        self._errors.show(live)

    def pause(self) -> None:
        """See the port."""
        self._process.pause()

    def resume(self) -> None:
        """See the port."""
        self._process.resume()

    async def wait(self, seconds: float) -> ProcessResult | None:
        """See the port."""
        return await self._process.wait(seconds)

    def kill(self) -> None:
        """See the port."""
        self._process.kill()
