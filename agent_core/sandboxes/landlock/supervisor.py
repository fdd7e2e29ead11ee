"""The supervisor of the tier `landlock`: two processes in place of a namespace.

This one stays outside of Landlock's domain, so that nothing inside can signal, trace or read it: it
holds the socket to the gateway, enforces the limits, answers the calls that the filter asks about,
and adopts every orphan of the commands. The other one, the keeper, is inside and only starts
commands, as siblings of its own: so all of them are in one domain and can signal each other, and
their ends are reported to this process.

Standard library only, started by its file with its configuration as the one argument
(`LandlockSpec` in tier.py).
"""

import array
import errno
import json
import os
import select
import signal
import socket
import struct
import sys

if __name__ == "__main__":  # run as a file, without an installed package
    sys.path.append(os.path.abspath(__file__).rsplit("/", 4)[0])

from agent_core.sandboxes import seccomp, supervisor
from agent_core.sandboxes.landlock import calls
from agent_core.sandboxes.landlock.guard import SyscallGuard

_LENGTH = struct.Struct(">I")
_FLAGS = os.O_PATH | os.O_CLOEXEC


class LandlockGround(supervisor.Ground):
    """Commands in a Landlock domain, started by the keeper."""

    def __init__(
        self, keeper: int, channel: socket.socket, guard: SyscallGuard, listener: int
    ) -> None:
        self.own = frozenset({keeper})
        self.sources = ((listener, guard.serve),)
        self._channel, self._guard = channel, guard
        self._waits = select.poll()
        for one in (channel.fileno(), listener):
            self._waits.register(one, select.POLLIN)

    def spawn(self, spec: dict, files: tuple[int, int, int, int]) -> int:  # type: ignore[type-arg]
        given = [one >= 0 for one in files]
        words = json.dumps({"spec": spec, "files": given}).encode()
        try:
            sent = [one for one in files if one >= 0]
            socket.send_fds(self._channel, [_LENGTH.pack(len(words))], sent)
            self._channel.sendall(words)
            self._await_keeper()
            pid, number = struct.unpack(">iI", _receive(self._channel, 8))
        except (BrokenPipeError, ConnectionResetError):
            raise EOFError from None  # the keeper has exited
        if pid < 0:
            raise OSError(number, os.strerror(number))
        return int(pid)

    def _await_keeper(self) -> None:
        """Wait for its answer. It forks, and is asked about that like any other."""
        while self._channel.fileno() not in {one for one, _ in self._waits.poll()}:
            self._guard.serve(0)

    def listen(self, port: int) -> socket.socket:
        server = socket.create_server((self._guard.address, 0), backlog=128)
        self._guard.ports[port] = server.getsockname()[1]
        return server

    def find_places(self, port: int) -> list[tuple[str, int]]:
        return [self._guard.find_place(port)]


def _receive(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = channel.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def keep(
    spec: dict,  # type: ignore[type-arg]
    channel: socket.socket,
    parent: int,
    score: supervisor.OomScore,
) -> None:
    """Become the keeper: enter the domain, and start commands for the other side until it is
    gone."""
    calls.die_with_parent(signal.SIGKILL)
    os.setsid()
    abi = min(calls.find_abi(), spec["abi"])
    calls.restrict(_open_rules(spec), abi)
    program = seccomp.build_guarded_filter(os.getpid(), scoped=abi >= calls.SCOPES)
    listener = calls.install_filter(program)
    socket.send_fds(channel, [b"!"], [listener])
    os.close(listener)
    while os.getppid() == parent:
        words, files = _receive_files(channel)
        given = json.loads(words)
        left, number = iter(files), 0
        stdin, output, errors, talk = (next(left) if one else -1 for one in given["files"])
        try:
            with score.raise_for_child() as wait:
                pid = calls.fork_sibling()
                if not pid:
                    calls.die_with_parent(signal.SIGKILL)
                    wait()
                    supervisor.exec_command(given["spec"], (stdin, output, errors, talk))
        except OSError as error:
            pid, number = -1, error.errno or 0
        for one in files:
            os.close(one)
        channel.sendall(struct.pack(">iI", pid, number))


def _receive_files(channel: socket.socket) -> tuple[bytes, list[int]]:
    size = array.array("i").itemsize * 4
    head, ancillary, _, _ = channel.recvmsg(
        _LENGTH.size, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC
    )
    if not head:
        raise EOFError
    files = array.array("i")
    for _, _, data in ancillary:
        files.frombytes(data[: len(data) - len(data) % files.itemsize])
    head += _receive(channel, _LENGTH.size - len(head)) if len(head) < _LENGTH.size else b""
    return _receive(channel, _LENGTH.unpack(head)[0]), list(files)


def _open_rules(spec: dict) -> list[tuple[int, int]]:  # type: ignore[type-arg]
    """Open the allowed paths with their rights; missing ones are left out."""
    rules = []
    rights = {"read": calls.READ, "use": calls.USE, "change": calls.CHANGE}
    for how, paths in spec["paths"].items():
        nofollow = os.O_NOFOLLOW if how == "change" else 0
        for path in paths:
            try:
                held = os.open(path, _FLAGS | nofollow)
            except OSError:
                if how == "change":
                    raise
                continue
            if how == "change" and os.readlink(f"/proc/self/fd/{held}") != path:
                raise OSError(errno.ELOOP, f"a link is on the way to {path}")
            only = -1 if os.path.isdir(f"/proc/self/fd/{held}") else calls.OF_FILES
            rules.append((held, rights[how] & only))
    return rules


def get_ready(spec: dict) -> None:  # type: ignore[type-arg]
    """Drop privileges, and get out of the reach of commands. OSError."""
    user = spec["user"] if spec["user"] >= 0 else None
    calls.drop_privileges(user, set(spec["capabilities"]))
    supervisor.set_up()


def main() -> None:
    """Serve the gateway at standard input."""
    spec = supervisor.read_spec()
    reads, writes = supervisor.take_link(spec)
    near, far = socket.socketpair()
    parent, keeper = os.getpid(), os.fork()
    if not keeper:
        try:
            os.close(reads)
            os.close(writes)
            near.close()
            score = supervisor.OomScore()
            get_ready(spec)
            keep(spec, far, parent, score)
        except EOFError:
            pass  # the other side has exited
        except OSError as error:
            os.write(2, f"Landlock: {error.strerror}\n".encode())
        finally:
            os._exit(1)
    get_ready(spec)
    far.close()
    _, files, _, _ = socket.recv_fds(near, 1, 1, socket.MSG_CMSG_CLOEXEC)
    if not files:
        sys.exit(1)
    change = spec["paths"]["change"]
    most = spec["limits"]["tasks"]
    guard = SyscallGuard(files[0], spec["address"], change, spec["barred"], keeper, most)
    ground = LandlockGround(keeper, near, guard, files[0])
    supervisor.Supervisor(reads, writes, spec, ground).run()


if __name__ == "__main__":
    main()
