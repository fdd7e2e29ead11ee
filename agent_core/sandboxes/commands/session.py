"""A lasting shell: it runs commands one after the other and keeps their effects.

The shell reads its commands from its standard input. Its output is one stream, separated by marks
that no command can know in advance: the shell itself writes one after each command, through a copy
of its output that commands do not inherit.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.commands.output import DRAIN, HALF, OutputBuffer
from agent_core.sandboxes.link import RemoteProcess
from agent_core.sandboxes.port import NOTHING, ProcessResult, Ran
from agent_core.text import parse_number

MAX_COMMAND_BYTES = 60_000
"""Bytes of a command, quoted."""
MAX_SAID = 16_000
"""Bytes after a mark; more of them were written by who found out the mark."""
LIFE = 86_400.0
"""Seconds after which the oldest shell ends."""
COMMAND_LINE = "exec /bin/bash --noprofile --norc 9>&1"
"""The shell's command line; it reads commands from its standard input."""


class ShellOutput:
    """A shell's output, separated by the mark of the running command."""

    def __init__(self) -> None:
        self._output = OutputBuffer(HALF)
        self._mark = b""
        self._held = b""
        self._over: asyncio.Future[Ran | None] | None = None

    @property
    def total(self) -> int:
        """Bytes written by the command, or by background processes since the last one."""
        return self._output.total

    def begin(self, mark: bytes, live: Callable[[str], None]) -> "asyncio.Future[Ran | None]":
        """A command begins; the future says how it went, None: the shell is dead."""
        self._mark = mark
        self._output.show(live)
        self._over = asyncio.get_running_loop().create_future()
        return self._over

    def add(self, data: bytes) -> None:
        """Keep the command's output; what may be the beginning of a mark waits for the rest."""
        self._held += data
        before, mark, after = self._held.partition(self._mark) if self._mark else (b"", b"", b"")
        if mark and b"\0" in after:
            said, _, rest = after.partition(b"\0")
            self._pass(before)
            self._end(said)
            self._held = b""
            self._pass(rest)
            return
        held = bool(mark) and len(after) < MAX_SAID
        safe = len(before) if held else self._count_unmarked()
        self._pass(self._held[:safe])
        self._held = self._held[safe:]

    def _pass(self, data: bytes) -> None:
        if data:
            self._output.add(data)

    def _count_unmarked(self) -> int:
        """Count the bytes that certainly belong to no mark."""
        at = self._held.rfind(b"\0")
        return at if at >= 0 and self._mark.startswith(self._held[at:]) else len(self._held)

    def _end(self, said: bytes) -> None:
        """End the command; later output belongs to the next one."""
        code, _, folder = said.decode("utf-8", "replace").partition(" ")
        exit_code = 1 if (number := parse_number(code)) is None else number
        done = ProcessResult(exit_code=exit_code, output=self.text(), timed_out=False)
        self._mark, self._output = b"", OutputBuffer(HALF)
        if self._over is not None and not self._over.done():
            self._over.set_result(Ran(done=done, folder=folder))

    def text(self) -> str:
        """Return the output kept."""
        return self._output.text()

    def end(self) -> None:
        """The shell is dead."""
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


class ShellSession:
    """A shell under way. One command at a time: callers take turns."""

    def __init__(self, process: RemoteProcess, stream: ShellOutput) -> None:
        self._process, self._stream = process, stream
        self._closing = False

    @property
    def alive(self) -> bool:
        """True while it takes commands; False as soon as it is being ended."""
        return not self._closing and not self.gone

    @property
    def gone(self) -> bool:
        """True if it is dead."""
        return self._process.done is not None

    async def run(
        self,
        command: str,
        limit: float,
        live: Callable[[str], None],
        env: Mapping[str, str] = NOTHING,
    ) -> Ran:
        """Run `command` in it, for at most `limit` seconds: then the shell is dead, and so it is
        when the call is cancelled. `env` holds for this command."""
        mark = ambient.token(16)
        words = _words(command, mark, env)
        if not self.alive:
            return await self._report_gone()
        over = self._stream.begin(b"\0%s " % mark.encode(), live)
        try:
            self._process.write(words)
        except BrokenPipeError:
            self.close()  # it is exiting; the stream reports it
        try:
            async with ambient.limit(limit):
                ran = await asyncio.shield(over)
        except TimeoutError:
            self._process.timed_out = True
            ran = None
        except BaseException:
            self.close()
            raise
        return await self._report_gone() if ran is None else ran

    async def _report_gone(self) -> Ran:
        self.close()
        done = await self._process.wait(DRAIN) or self._process.read_end()
        return Ran(done=done, folder="")

    def close(self) -> None:
        """End it, with all that it started."""
        self._closing = True
        self._process.kill()

    async def wait(self, seconds: float) -> None:
        """Wait at most `seconds` until it is gone."""
        await self._process.wait(seconds)


def _words(command: str, mark: str, env: Mapping[str, str]) -> bytes:
    """Return the shell's input: the command, then the one that writes its end mark."""
    given = "".join(f"{name}={shlex.quote(value)} " for name, value in env.items())
    said = "builtin printf '\\0%s %s %s\\0' " + mark + ' "$?" "$(builtin pwd -P 2>/dev/null)"'
    text = f"{given}eval {shlex.quote(command)} </dev/null 9>&-\n{said} >&9\n"
    try:
        words = text.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The command has half of a character pair; write it again.") from None
    if "\0" in command:
        raise ToolFailed("The command has a zero character, which no shell takes.")
    if len(words) > MAX_COMMAND_BYTES:
        raise ToolFailed("The command is too long for a shell. Write it to a file and run that.")
    return words
