"""The first program inside of a sandbox by E2B: it starts the supervisor, and holds its link.

Standard library only; it is started by its file, with the supervisor's file, a filter of system
calls and the supervisor's configuration. E2B carries lines, over connections that may break. So
each piece of the link is numbered both ways, kept until the other side has it, and sent again
where it was lost. From the gateway come `I number piece`, `A number` (it has all up to there) and
`S number` (it listens anew, and has all up to there) and `Q` (end all); to it go `F facts` and
`O number piece`.
Where the gateway is not heard of for long, all that runs here ends.
"""

import base64
import ctypes
import json
import os
import platform
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress

SILENCE = 240.0
"""Seconds without a line after which the gateway counts as gone."""
MAX_KEPT = 4 << 20
"""Bytes that the other side does not have yet; beyond them nothing more is read."""
_PIECE = 1 << 15
WORKSPACE = "workspace"
_PROGRAMS = ("python3", "node", "tsx", "bun", "ts-node")
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_NO_NEW_RIGHTS, _SECCOMP, _FILTER = 38, 22, 2
_SET_FLAGS, _GET_FLAGS, _UP = 0x8914, 0x8913, 1


def find_facts() -> dict:  # type: ignore[type-arg]
    """Return facts about this machine for the gateway."""
    found = [name for name in _PROGRAMS if shutil.which(name)]
    found += ["bash"] if shutil.which("/bin/bash") else []
    version = ""
    with suppress(OSError, subprocess.SubprocessError):
        asked = ("node", "--version")
        version = subprocess.run(asked, capture_output=True, timeout=5, text=True).stdout  # noqa: S603
    folders = [one for one in os.get_exec_path() if one.startswith("/")]
    home = os.path.expanduser("~")
    return {"home": home, "path": ":".join(folders), "programs": found, "node": version.strip()}


def close_network() -> None:
    """Enter a network namespace with nothing but a loopback; OSError if that is refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_NET if user == 0 else _NEW_USER | _NEW_NET):
        raise OSError(ctypes.get_errno(), "no network of its own")
    if user:
        maps = {"uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, words in {"setgroups": "deny", **maps}.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(words)
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(one, _GET_FLAGS, asked))[1]
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def refuse_calls(refusals: bytes) -> None:
    """Install a filter of system calls, compiled for the kernel; children gain no rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0)
    held = ctypes.create_string_buffer(refusals)
    told = struct.pack("HP", len(refusals) // 8, ctypes.addressof(held))
    if refusals:
        libc.prctl(_SECCOMP, _FILTER, ctypes.create_string_buffer(told), 0, 0)


def supervise(link: socket.socket, program: str, machine: str, refusals: str, spec: str) -> None:
    """Become the supervisor. If this kernel allows no network namespace, the network is the
    machine's, which E2B closes; the gateway's self-test tells what is within reach."""
    os.dup2(link.fileno(), 0)
    with suppress(OSError):
        close_network()
    refuse_calls(bytes.fromhex(refusals) if machine == platform.machine() else b"")
    with open(program) as file:
        words = file.read()
    sys.argv = [program, spec]
    exec(compile(words, "supervisor", "exec"), {"__name__": "__main__"})  # noqa: S102  # ours


class Relay:
    """Forwards the link."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._kept: list[tuple[int, bytes]] = []
        self._size = self._sent = self._taken = 0
        self._lines = bytearray()
        self._input = bytearray()

    def run(self) -> None:
        """Serve until one side is gone, or the gateway is silent."""
        self._link.setblocking(False)
        self._say(b"F " + json.dumps(find_facts()).encode())
        heard = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(self._link, selectors.EVENT_READ)
            while time.monotonic() - heard < SILENCE:
                reads = selectors.EVENT_READ if self._size < MAX_KEPT else 0
                writes = selectors.EVENT_WRITE if self._input else 0
                with suppress(KeyError):
                    selector.unregister(self._link)
                if reads | writes:
                    selector.register(self._link, reads | writes)
                for key, mask in selector.select(SILENCE / 8):
                    if key.fd == 0:
                        data = os.read(0, 1 << 20)
                        if not data:
                            return
                        heard = time.monotonic()
                        if not self._hear(data):
                            return
                    elif not self._serve_link(mask):
                        return

    def _serve_link(self, mask: int) -> bool:
        """Forward the link's data. Return False if the supervisor is gone."""
        try:
            if mask & selectors.EVENT_WRITE:
                del self._input[: self._link.send(self._input[:_PIECE])]
            if not mask & selectors.EVENT_READ:
                return True
            data = self._link.recv(_PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            self._sent += 1
            self._kept.append((self._sent, data))
            self._size += len(data)
            self._pass(self._sent, data)
        return bool(data)

    def _hear(self, data: bytes) -> bool:
        """False: the gateway wants it to end."""
        self._lines += data
        *whole, rest = self._lines.split(b"\n")
        self._lines = bytearray(rest)
        for line in whole:
            kind, _, said = bytes(line).partition(b" ")
            number, _, piece = said.partition(b" ")
            if kind == b"I" and int(number) == self._taken + 1:
                self._taken += 1
                self._input += base64.b64decode(piece)
            elif kind in (b"A", b"S"):
                self._forget(int(number))
            if kind == b"S":
                self._say(b"F " + json.dumps({"taken": self._taken}).encode())
                for number_kept, kept in self._kept:
                    self._pass(number_kept, kept)
            if kind == b"Q":
                return False
        return True

    def _forget(self, number: int) -> None:
        """The gateway has everything up to `number`."""
        self._size -= sum(len(data) for known, data in self._kept if known <= number)
        self._kept = [one for one in self._kept if one[0] > number]

    def _pass(self, number: int, data: bytes) -> None:
        self._say(b"O %d " % number + base64.b64encode(data))

    def _say(self, line: bytes) -> None:
        words = memoryview(line + b"\n")
        while words:
            words = words[os.write(1, words) :]


def main() -> None:
    """Start the supervisor, and forward its link."""
    os.chdir(os.path.expanduser("~"))
    os.makedirs(WORKSPACE, exist_ok=True)
    near, far = socket.socketpair()
    pid = os.fork()
    if not pid:
        near.close()
        try:
            supervise(far, *sys.argv[1:5])
        finally:
            os._exit(1)
    far.close()
    try:
        Relay(near).run()
    finally:
        near.close()
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
