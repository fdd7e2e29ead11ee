"""Answers the system calls that commands under Landlock are asked about (see `seccomp.ASKED`).

Landlock knows ports and no addresses, and knows nothing of modes and times; a filter of system
calls reads numbers and no addresses. So the supervisor does these calls in the caller's place:

- A TCP socket is made here and put into the caller's table of files; a second descriptor is kept
  until it is connected or listens. It is bound and connected by that one, to the sandbox's own
  address (127.x.y.z) alone, whatever loopback address the caller names. What listens at that very
  address was put there by a command of this sandbox; what listens at all addresses was not.
- A process or thread begins while the sandbox may have more (task_budget.py).
- Modes and times of a file are changed by a descriptor that holds the file, after looking where
  it is. Nothing depends on what the caller's memory says afterwards.

Standard library only: see `agent_core.sandboxes.supervisor`.
"""

import errno
import fcntl
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable

from agent_core.sandboxes import seccomp, supervisor
from agent_core.sandboxes.landlock.calls import read_memory, set_times
from agent_core.sandboxes.landlock.task_budget import TaskBudget

MAX_WAITING = 64
"""Connections that are being made at once."""
MAX_SOCKETS = 256
"""Sockets that are neither connected nor listening, of which a second descriptor is kept."""
_RECEIVE, _SEND, _VALID, _ADD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
"""The requests at the filter's open file (SECCOMP_IOCTL_NOTIF_…)."""
_CALL = struct.Struct("=QIIiIQ6Q")
_ANSWER, _ADDED, _ID = struct.Struct("=QqiI"), struct.Struct("=QIIII"), struct.Struct("=Q")
_LET_PASS, _ADD_AND_SEND = 1, 2
_AT_FDCWD = -100
_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_PAGE = 4096
_LOOPBACK, _OURS = "127.", ("0.0.0.0", "::", "::1")  # noqa: S104  # rewritten, never bound
"""Addresses by which commands mean their own machine."""
_MAPPED, _MAPPED_HEX = "::ffff:", "0000000000000000FFFF0000"
_LISTENS = "0A"
_MAX_PATH, _MAX_ADDRESS = 4096, 128
Arguments = tuple[int, ...]


class AskedCall:
    """A system call that waits for its answer. `pid`: the thread that made it."""

    def __init__(self, listener: int, data: bytes) -> None:
        self.id, self.pid, _, self.number, _, _, *arguments = _CALL.unpack(data)
        self.arguments: Arguments = tuple(arguments)
        self._listener = listener

    def check(self) -> None:
        """Check that the data read since belongs to the caller. OSError if it is gone."""
        fcntl.ioctl(self._listener, _VALID, _ID.pack(self.id))

    def answer(self, value: int = 0, number: int = 0) -> None:
        """Return `value`, or fail with an error's number."""
        self._respond(_ANSWER.pack(self.id, value if not number else 0, -number, 0))

    def let_pass(self) -> None:
        """Let the kernel run it, for calls whose arguments are all numbers."""
        self._respond(_ANSWER.pack(self.id, 0, 0, _LET_PASS))

    def add(self, descriptor: int, flags: int) -> None:
        """Return `descriptor` as a new open file of the caller's. OSError."""
        fcntl.ioctl(self._listener, _ADD, _ADDED.pack(self.id, _ADD_AND_SEND, descriptor, 0, flags))

    def _respond(self, data: bytes) -> None:
        try:
            fcntl.ioctl(self._listener, _SEND, data)
        except OSError:
            pass  # the caller has exited

    def read(self, address: int, size: int) -> bytes:
        """The caller's memory. OSError."""
        data = read_memory(self.pid, address, size)
        self.check()
        return data

    def read_path(self, address: int) -> bytes:
        """A text in the caller's memory. OSError."""
        found = b""
        while b"\0" not in found and len(found) < _MAX_PATH:
            at = address + len(found)
            found += self.read(at, _PAGE - at % _PAGE)
        return found.partition(b"\0")[0]

    def find_file(self, descriptor: int) -> str:
        """Return a path by which the caller's open file can be opened again."""
        return f"/proc/{self.pid}/fd/{descriptor}"


class SyscallGuard:
    """Handles the calls of one sandbox. `address`: its own; `folders`: where modes and times may be
    changed, except in `barred`; `own`: a process that commands must not signal, and that starts
    them; `most`: processes and threads at once."""

    def __init__(  # noqa: PLR0913
        self, listener: int, address: str, folders: list[str], barred: str, own: int, most: int
    ) -> None:
        self._budget = TaskBudget(most)
        self._listener, self.address, self._own = listener, address, own
        self._folders, self._barred = [os.path.realpath(one) for one in folders], barred
        self._sockets: dict[int, socket.socket] = {}
        self._waiting = threading.Semaphore(MAX_WAITING)
        self.ports: dict[int, int] = {}
        """Ports of the supervisor's own, by how commands call them."""
        self._names = seccomp.name_calls()
        self._acts: dict[str, Callable[[AskedCall], None]] = {
            "socket": self._make_socket, "bind": self._bind, "listen": self._listen,
            "connect": self._connect, "chmod": self._change_mode, "fchmod": self._change_mode_of,
            "fchmodat": self._change_mode_at, "fchmodat2": self._change_mode_at,
            "utime": self._set_utime, "utimes": self._set_utimes,
            "futimesat": self._set_utimes_at, "utimensat": self._set_times_at,
        }  # fmt: skip
        self._acts |= dict.fromkeys(seccomp.SIGNALS, self._judge_signal)
        self._acts |= dict.fromkeys(seccomp.FORKS, self._judge_fork)

    def serve(self, mask: int) -> None:
        """Answer a call."""
        data = bytearray(_CALL.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, data)
        except OSError:
            return  # the caller has exited
        call = AskedCall(self._listener, bytes(data))
        try:
            self._acts[self._names[call.number]](call)
        except OSError as error:
            call.answer(number=error.errno or errno.EPERM)
        except Exception:  # noqa: BLE001  # boundary: one call must not end the sandbox
            call.answer(number=errno.EPERM)

    # ---- sockets -----------------------------------------------------------------------------

    def _make_socket(self, call: AskedCall) -> None:
        if len(self._sockets) >= MAX_SOCKETS:
            self._forget_closed()
            if len(self._sockets) >= MAX_SOCKETS:
                raise OSError(errno.EMFILE, "too many sockets")
        made = socket.socket(call.arguments[0], socket.SOCK_STREAM)
        os.set_blocking(made.fileno(), not call.arguments[1] & socket.SOCK_NONBLOCK)
        flags = os.O_CLOEXEC if call.arguments[1] & socket.SOCK_CLOEXEC else 0
        try:
            call.add(made.fileno(), flags)
        except OSError:
            made.close()
            raise
        self._sockets[os.fstat(made.fileno()).st_ino] = made

    def _bind(self, call: AskedCall) -> None:
        sock = self._find(call)
        if sock is None:
            raise OSError(errno.EINVAL, "bound, or not ours")
        inside, port = self._read_address(call, sock)
        if not inside:
            raise OSError(errno.EADDRNOTAVAIL, "not an address of the sandbox")
        if port in self.ports:
            raise OSError(errno.EADDRINUSE, "the way out")
        try:
            self._bind_to(sock, port)
        except OSError as error:
            # our descriptor of a socket closed inside may be the only obstacle
            if error.errno != errno.EADDRINUSE or not self._forget_closed():
                raise
            self._bind_to(sock, port)
        call.answer()

    def _bind_to(self, sock: socket.socket, port: int) -> None:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(self._name(sock, self.address, port))

    def _name(self, sock: socket.socket, host: str, port: int) -> tuple[str, int]:
        """The address as a socket of its family takes it."""
        return (f"{_MAPPED}{host}" if sock.family == socket.AF_INET6 else host), port

    def _listen(self, call: AskedCall) -> None:
        sock = self._find(call)
        if sock is None:
            raise OSError(errno.EINVAL, "connected, or not ours")
        if not sock.getsockname()[1]:
            self._bind_to(sock, 0)
        sock.listen(min(call.arguments[1] & 0x7FFFFFFF, 4096))
        self._forget(sock)
        call.answer()

    def _connect(self, call: AskedCall) -> None:
        sock = self._find(call)
        if sock is None:
            raise OSError(errno.EISCONN, "connected, or not ours")
        inside, port = self._read_address(call, sock)
        if not inside:
            raise OSError(errno.ENETUNREACH, "there is no network")
        place = self._name(sock, *self.find_place(port))
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if not fcntl.fcntl(sock.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK:
            if not self._waiting.acquire(blocking=False):
                raise OSError(errno.EAGAIN, "too many connections at once")
            self._forget(sock, close=False)
            threading.Thread(target=self._wait, args=(call, sock, place), daemon=True).start()
            return
        number = sock.connect_ex(place)
        if number in (0, errno.EINPROGRESS):
            self._forget(sock)
        call.answer(number=number)

    def _wait(self, call: AskedCall, sock: socket.socket, place: tuple[str, int]) -> None:
        """Connect for a caller that waits; who is refused may try again."""
        try:
            number = sock.connect_ex(place)
            if number:
                self._sockets[os.fstat(sock.fileno()).st_ino] = sock
            else:
                sock.close()
            call.answer(number=number)
        finally:
            self._waiting.release()

    def find_place(self, port: int) -> tuple[str, int]:
        """Return the address where a server of the sandbox listens that commands reach at `port`.
        OSError."""
        if port in self.ports:
            return self.address, self.ports[port]
        at = f"{socket.inet_aton(self.address)[::-1].hex().upper()}:{port:04X}"
        if _has_listener("/proc/net/tcp", at) or _has_listener("/proc/net/tcp6", _MAPPED_HEX + at):
            return self.address, port
        raise OSError(errno.ECONNREFUSED, "Connection refused")

    def _find(self, call: AskedCall) -> socket.socket | None:
        """Return our descriptor of the caller's socket. OSError if there is none."""
        kind, _, number = os.readlink(call.find_file(call.arguments[0])).partition(":")
        call.check()
        if kind != "socket":
            raise OSError(errno.ENOTSOCK, "not a socket")
        return self._sockets.get(int(number[1:-1]))

    def _read_address(self, call: AskedCall, sock: socket.socket) -> tuple[bool, int]:
        """Return whether the caller's address means the sandbox itself, and the port. OSError."""
        data = call.read(call.arguments[1], min(call.arguments[2] & 0xFFFFFFFF, _MAX_ADDRESS))
        least = 24 if sock.family == socket.AF_INET6 else 8
        if len(data) < least or struct.unpack_from("=H", data)[0] != sock.family:
            raise OSError(errno.EAFNOSUPPORT, "not of the socket's family")
        port = struct.unpack_from(">H", data, 2)[0]
        if sock.family == socket.AF_INET:
            host = socket.inet_ntoa(data[4:8])
        else:
            host = socket.inet_ntop(socket.AF_INET6, data[8:24]).removeprefix(_MAPPED)
        return host.startswith(_LOOPBACK) or host in _OURS, port

    def _forget(self, sock: socket.socket, close: bool = True) -> None:
        self._sockets.pop(os.fstat(sock.fileno()).st_ino, None)
        if close:
            sock.close()

    def _forget_closed(self) -> bool:
        """Close our descriptors of sockets that nothing inside has any more; were there any?"""
        held = set[int]()
        for pid in supervisor.list_alive(os.getpid())[1:]:
            try:
                for name in os.listdir(f"/proc/{pid}/fd"):
                    kind, _, number = os.readlink(f"/proc/{pid}/fd/{name}").partition(":")
                    if kind == "socket":
                        held.add(int(number[1:-1]))
            except OSError:
                continue
        closed = [inode for inode in self._sockets if inode not in held]
        for inode in closed:
            self._sockets.pop(inode).close()
        return bool(closed)

    # ---- files -------------------------------------------------------------------------------

    def _change_mode(self, call: AskedCall) -> None:
        path, mode = call.arguments[:2]
        self._chmod(call, self._hold(call, _AT_FDCWD, path, 0), mode)

    def _change_mode_of(self, call: AskedCall) -> None:
        self._chmod(call, self._hold(call, call.arguments[0], 0, _EMPTY_PATH), call.arguments[1])

    def _change_mode_at(self, call: AskedCall) -> None:
        at, path, mode, flags = call.arguments[:4]
        flags = flags if self._names[call.number] == "fchmodat2" else 0
        self._chmod(call, self._hold(call, at, path, flags), mode)

    def _chmod(self, call: AskedCall, held: int, mode: int) -> None:
        try:
            os.chmod(f"/proc/self/fd/{held}", stat.S_IMODE(mode))
        finally:
            os.close(held)
        call.answer()

    def _set_utime(self, call: AskedCall) -> None:
        path, times = call.arguments[:2]
        given = _convert_times(call.read(times, 16), whole=True) if times else None
        self._set_times(call, self._hold(call, _AT_FDCWD, path, 0), given)

    def _set_utimes(self, call: AskedCall) -> None:
        path, times = call.arguments[:2]
        given = _convert_times(call.read(times, 32)) if times else None
        self._set_times(call, self._hold(call, _AT_FDCWD, path, 0), given)

    def _set_utimes_at(self, call: AskedCall) -> None:
        at, path, times = call.arguments[:3]
        given = _convert_times(call.read(times, 32)) if times else None
        self._set_times(call, self._hold(call, at, path, 0 if path else _EMPTY_PATH), given)

    def _set_times_at(self, call: AskedCall) -> None:
        at, path, times, flags = call.arguments[:4]
        given = call.read(times, 32) if times else None
        flags = flags if path else _EMPTY_PATH
        self._set_times(call, self._hold(call, at, path, flags), given)

    def _set_times(self, call: AskedCall, held: int, times: bytes | None) -> None:
        try:
            set_times(f"/proc/self/fd/{held}", times)
        finally:
            os.close(held)
        call.answer()

    def _hold(self, call: AskedCall, at: int, address: int, flags: int) -> int:
        """Open the file that the call names, if it may be changed. OSError."""
        words = call.read_path(address) if address else b""
        if not words and not flags & _EMPTY_PATH:
            raise OSError(errno.ENOENT, "no name")
        path, at = os.fsdecode(words), at & 0xFFFFFFFF
        relative_to_folder = at == _AT_FDCWD & 0xFFFFFFFF
        start = f"/proc/{call.pid}/cwd" if relative_to_folder else call.find_file(at)
        for own in ("/proc/self/", "/proc/thread-self/", "/dev/fd/"):
            if path.startswith(own):
                kept = "fd/" if own == "/dev/fd/" else ""
                path = f"/proc/{call.pid}/{kept}{path.removeprefix(own)}"
        how = os.O_PATH | os.O_CLOEXEC
        if not path:
            held = os.open(start, how)
        else:
            how |= os.O_NOFOLLOW if flags & _NOFOLLOW else 0
            folder = os.open(start, os.O_PATH | os.O_CLOEXEC)
            try:
                held = os.open(path, how, dir_fd=folder)
            finally:
                os.close(folder)
        try:
            call.check()
            if not self._may_change(os.readlink(f"/proc/self/fd/{held}")):
                raise OSError(errno.EPERM, "outside of the workspace")
        except OSError:
            os.close(held)
            raise
        return held

    def _may_change(self, real: str) -> bool:
        inside = [one for one in self._folders if real == one or real.startswith(f"{one}/")]
        best = max(inside, key=len, default="")
        barred = real == self._barred or real.startswith(f"{self._barred}/")
        return bool(best) and (not barred or best.startswith(f"{self._barred}/"))

    # ---- processes ---------------------------------------------------------------------------

    def _judge_fork(self, call: AskedCall) -> None:
        """Let a process or a thread begin. The gateway's own command always may: excess processes
        are ended soon."""
        if call.pid != self._own and not self._budget.spend():
            raise OSError(errno.EAGAIN, "too many processes")
        call.let_pass()

    # ---- signals -----------------------------------------------------------------------------

    def _judge_signal(self, call: AskedCall) -> None:
        """Let a signal pass to a process of this sandbox. All arguments are numbers, so they cannot
        change after the check."""
        target = call.arguments[0] & 0xFFFFFFFF
        target -= 1 << 32 if target >= 1 << 31 else 0
        inside = [one for one in supervisor.list_alive(os.getpid())[1:] if one != self._own]
        if target > 0:
            allowed = _find_process(target) in inside
        else:
            allowed = not target or any(_find_group(one) == -target for one in inside)
        if not allowed:
            raise OSError(errno.EPERM, "not of this sandbox")
        call.let_pass()


def _has_listener(table: str, at: str) -> bool:
    """Return True if a server listens at exactly this address, not at all addresses."""
    try:
        with open(table) as file:
            rows = (line.split(maxsplit=4) for line in file)
            return any(row[1] == at and row[3] == _LISTENS for row in rows)
    except OSError:
        return False


def _convert_times(data: bytes, whole: bool = False) -> bytes:
    """Convert two `struct timeval`, or two whole seconds, to `struct timespec`."""
    if whole:
        first, second = struct.unpack("=qq", data)
        return struct.pack("=qqqq", first, 0, second, 0)
    first, micro, second, micro_too = struct.unpack("=qqqq", data)
    return struct.pack("=qqqq", first, micro * 1000, second, micro_too * 1000)


def _find_process(thread: int) -> int:
    """Return the process of a thread, 0 if there is none."""
    try:
        with open(f"/proc/{thread}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Tgid:")), 0)
    except OSError:
        return 0


def _find_group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0
