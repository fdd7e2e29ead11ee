"""Running scripts: their requests over their channel, and those that wait for a person.

A script whose call needs a person waits while its turn is parked, in this process and no longer:
none outlives it.
"""

import json
import re

import msgspec
from msgspec import Struct

from agent_core.sandboxes.port import ChannelCommand
from agent_core.tools.code.script.library import MAX_REQUEST
from agent_core.tools.contract import InnerCall, Invoke

TOOLS = {
    "web_search": "web_search",
    "browse": "read_page",
    "read_file": "read_file",
    "write_file": "write_file",
    "list_files": "list_files",
    "run_command": "run_command",
}
"""Functions of the library, and the tools that they call."""
MAX_CALLS = 100
"""Calls of one script."""
_NUMBERED = re.compile(rb'\s*\{"id": ?(\d{1,9}),')
"""The beginning of a call of the library's, also of one that is not understood."""
MAX_HELD = 16
"""Scripts that wait for people at once; beyond them the oldest ends."""


class _Request(Struct, frozen=True):
    """A line of a script's."""

    id: int | str
    tool: str
    arguments: dict[str, object] = {}


class _Answer(Struct, frozen=True, kw_only=True):
    """A line back. `id`: None if the script's line had none that could be read."""

    id: int | str | None
    ok: bool
    text: str
    exit_code: int | None = None


class RunningScript:
    """A running script. `files`: those of the workspace before it began."""

    def __init__(self, command: ChannelCommand, files: frozenset[str]) -> None:
        self.command, self.files = command, files
        self._unread = bytearray()
        self._calls = 0
        self._pending: tuple[_Request, InnerCall] | None = None

    @property
    def gone(self) -> bool:
        """True if it has ended; see `Caller`."""
        return self.command.done is not None

    def pause(self) -> None:
        """Stop its time limit while a person thinks; see `Caller`."""
        self.command.pause()

    def resume(self) -> None:
        """Resume its time limit; see `Caller`."""
        self.command.resume()

    async def serve(self, invoke: Invoke) -> None:
        """Make its calls one after the other, until there are no more. After a park the interrupted
        one is made first."""
        while True:
            if self._pending is not None:
                answer = await self._make_call(*self._pending, invoke)
                self._pending = None
            else:
                line = await self._read_line()
                if line is None or self.gone:
                    return
                refused = self._take(line)
                if refused is None:
                    continue
                answer = refused
            await self.command.channel.write(msgspec.json.encode(answer) + b"\n")

    async def _make_call(self, request: _Request, call: InnerCall, invoke: Invoke) -> _Answer:
        result = await invoke(call, self)
        code = result.command.exit_code if result.command is not None else None
        return _Answer(id=request.id, ok=not result.error, text=result.content, exit_code=code)

    async def _read_line(self) -> bytes | None:
        """Return its next line, None at the end; only the beginning of one that is too long."""
        begun = b""
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > MAX_REQUEST:
                begun = begun or bytes(self._unread[: MAX_REQUEST + 1])
                self._unread.clear()
            data = await self.command.channel.read()
            if not data:
                return None
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return begun or line

    def _take(self, line: bytes) -> _Answer | None:
        """Return an error if the line is no call; None if it is one, or empty."""
        if not line.strip():
            return None
        begun = _NUMBERED.match(line)
        number = int(begun[1]) if begun is not None else None
        if len(line) > MAX_REQUEST:
            return _refuse(number, f"A call has at most {MAX_REQUEST:,} bytes.")
        try:
            request = msgspec.json.decode(line, type=_Request)
            arguments = json.dumps(request.arguments, ensure_ascii=False)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            return _refuse(number, f"That is no call of a tool: {error}.")
        if request.tool not in TOOLS:
            known = ", ".join(TOOLS)
            return _refuse(request.id, f"A script cannot call {request.tool!r}, only {known}.")
        if self._calls >= MAX_CALLS:
            return _refuse(request.id, f"A script may make {MAX_CALLS} calls, and has made them.")
        self._calls += 1
        call = InnerCall(n=self._calls, name=TOOLS[request.tool], arguments=arguments)
        self._pending = request, call
        return None


def _refuse(number: int | str | None, text: str) -> _Answer:
    return _Answer(id=number, ok=False, text=text)


class RunningScripts:
    """The scripts of this process that wait for people, by the tokens of their calls."""

    def __init__(self) -> None:
        self._held: dict[str, RunningScript] = {}

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of all that wait, oldest first."""
        return tuple(self._held)

    def holds(self, token: str) -> bool:
        """Return True if the script is held; see `CallHolder`."""
        return token in self._held

    def drop(self, token: str) -> None:
        """Drop the script; see `CallHolder`."""
        script = self._held.pop(token, None)
        if script is not None:
            script.command.kill()

    def hold(self, token: str, script: RunningScript) -> None:
        """Hold it until its turn goes on."""
        script.command.show(_show_nobody)
        self._held[token] = script
        for oldest in list(self._held)[:-MAX_HELD]:
            self.drop(oldest)

    def take(self, token: str) -> RunningScript | None:
        """Return and release the script held under this token."""
        return self._held.pop(token, None)

    def end_turn(self, turn: str) -> None:
        """End the scripts held for the finished turn."""
        for token in [one for one in self._held if one.startswith(f"{turn}/")]:
            self.drop(token)


def _show_nobody(text: str) -> None:
    return None
