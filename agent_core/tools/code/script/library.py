"""Tools of the agent, for the script that it runs: each function is one call of a tool.

A call waits until the tool has answered, and a person before that if one has to be asked. Threads
of a script take turns. Each function returns the words of the tool; ToolError says why it gave
none. Standard library only: this is the module `turnkeeper` inside a sandbox, and no other code
of ours is there.
"""

import json
import os
import socket
import threading

__all__ = [
    "ToolError",
    "ToolText",
    "browse",
    "list_files",
    "read_file",
    "run_command",
    "web_search",
    "write_file",
]
MAX_REQUEST = 2_000_000
"""Bytes of a call at most."""
PIECE = 1 << 16


class ToolError(Exception):
    """A tool refused, failed, or was not allowed; the text says why."""


class ToolText(str):
    """A tool's text. `exit_code`: of a command that has ended, otherwise None."""

    exit_code = None


class _Gateway:
    """The gateway at the other end of the open file 3: a line of JSON for each call, and one back.
    Leftovers of an interrupted call are recognised by their number, and skipped."""

    def __init__(self, channel: int) -> None:
        self._socket = socket.socket(fileno=os.dup(channel))
        self._socket.settimeout(None)
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._unread = b""
        self._calls = 0

    def call(self, tool: str, arguments: dict) -> ToolText:  # type: ignore[type-arg]
        """Call a tool."""
        if os.getpid() != self._owner:
            raise ToolError("Only the script can call tools, not a process that it starts.")
        with self._lock:
            self._calls += 1
            request = {"id": self._calls, "tool": tool, "arguments": arguments}
            answer = self._ask(self._calls, json.dumps(request).encode())
        if not answer["ok"]:
            raise ToolError(answer["text"])
        text = ToolText(answer["text"])
        text.exit_code = answer.get("exit_code")
        return text

    def _ask(self, number: int, request: bytes) -> dict:  # type: ignore[type-arg]
        if len(request) > MAX_REQUEST:
            raise ToolError(f"The call is too long: {len(request):,} bytes.")
        try:
            self._socket.sendall(b"\n" + request + b"\n")  # ends a partly written line first
            while True:
                answer = json.loads(self._read_line())
                if answer["id"] == number:
                    return answer  # type: ignore[no-any-return]
        except OSError as error:
            raise ToolError(f"The gateway cannot be reached: {error}.") from None

    def _read_line(self) -> bytes:
        while b"\n" not in self._unread:
            data = self._socket.recv(PIECE)
            if not data:
                raise OSError("it has ended the script's calls")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line


if __name__ == "turnkeeper":  # inside, where the gateway does not look limits up
    _gateway = _Gateway(3)


def web_search(query: str, **more: object) -> ToolText:
    """Search the web. `more`: count."""
    return _gateway.call("web_search", {"query": query, **more})


def browse(url: str, **more: object) -> ToolText:
    """Read a public web page as markdown. `more`: offset."""
    return _gateway.call("browse", {"url": url, **more})


def read_file(path: str, **more: object) -> ToolText:
    """Read a text file of the workspace. `more`: offset, limit, both in lines."""
    return _gateway.call("read_file", {"path": str(path), **more})


def write_file(path: str, content: str) -> ToolText:
    """Write a text file of the workspace, whole."""
    return _gateway.call("write_file", {"path": str(path), "content": content})


def list_files(path: str = ".", **more: object) -> ToolText:
    """List a folder of the workspace. `more`: pattern."""
    return _gateway.call("list_files", {"path": str(path), **more})


def run_command(command: str, **more: object) -> ToolText:
    """Run a shell command in the workspace. `more`: timeout, hosts, background."""
    return _gateway.call("run_command", {"command": command, **more})
