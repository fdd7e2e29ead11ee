"""The program inside a sandbox that runs commands for the gateway outside.

Standard library only: it is started alone, by its file, with its configuration as the one argument
(`SupervisorSpec` in link.py); a second one may tell the numbers of open files that count met limits
(`SandboxGroup.open_counters`). It speaks frames over its link, a socket at standard input that both
sides write, or else a pipe at standard input and one at standard output: one byte of kind, four of
a stream's number, four of length, then that many bytes. The gateway assigns odd numbers, the
supervisor even ones. Everything that runs here ends with the link.
"""

import ctypes
import errno
import json
import os
import resource
import selectors
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

HEAD = struct.Struct(">BII")
PIECE = 1 << 16
"""Bytes of a frame at most."""
WINDOW = 4 * PIECE
"""Bytes that a side may send over a connection before the other grants credit for more."""
MAX_UNSENT = 1 << 20
"""Bytes for a gateway that does not read; beyond them no output is read."""
START, DATA, END, CREDIT, KILL, HALT, EXIT = range(1, 8)
OPEN, OPENED, REFUSED, READY, QUIET, ERRORS, RUNS = range(8, 15)
_LEAST = 4096
"""Bytes that a file counts for at least: a disk has room for so many, empty or not."""
_LONG = 2_000
"""Characters of a path from which on folders are opened in parts: no path may have 4,096."""
_SECONDS_BETWEEN_LOOKS, _SECONDS_WHILE_NONE_RUNS, _SECONDS_BETWEEN_SIZES = 0.25, 1.0, 2.0
_SECONDS_BETWEEN_PORTS, _SECONDS_OF_A_JOB = 1.0, 2.0
"""Seconds between two looks at ports; seconds after which a shell's child counts as one that
stays."""
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
MAX_NAMED, _MAX_WORDS = 12, 200
"""Programs that are named to the gateway, and characters of each."""
_SHELLS = ("sh", "bash", "dash")
_LISTENS = "0A"
"""The state of a server's socket in /proc/net/tcp."""
_MAX_PIPE = 1 << 20
"""Bytes that a pipe holds at most."""
COUNTED = {
    "memory": ("memory", "oom_kill", "memory.events", "memory.oom_control"),
    "tasks": ("pids", "max", "pids.events", "pids.events"),
}
"""By limit that the kernel may hold: the control group's controller, the word before the count of
how often it was met, and the file that has it, of version 2 and 1."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
FIRST = 300
"""How far commands are before others when memory is short: as if they had 30 per cent of it."""
NICE, CROWD_NICE, CROWD = 5, 19, 64
"""Nice values of commands: a third of a competing process's share; next to none above CROWD
processes."""


class _Command:
    """A running command; its process leads a session. `pipes`: open outputs, each with the kind of
    its frames. `shown`: the gateway takes its output. `channel`: its connection's stream, or 0.
    `stays`: it runs in the background; `holds`: it is a shell, whose children do."""

    def __init__(self, pid: int, pipes: dict[int, int], stays: bool, holds: bool) -> None:
        self.pid, self.pipes, self.stays, self.holds = pid, pipes, stays, holds
        self.ended, self.shown = False, True
        self.reason = ""
        self.input: _Input | None = None
        self.channel = 0


class _Input:
    """Pending input of a command, or of a connection."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.data = bytearray()
        self.closing = False


class _Connection:
    """A connection to a port inside, from one, or to a command's channel."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.input = sock, _Input(sock.fileno())
        self.credit = WINDOW
        self.read_end = self.write_end = False


class OomScore:
    """The order in which the kernel ends processes when memory is short: commands first, since
    the supervisor, which reports that, may be larger than each of them. It is inherited, and this
    process may raise its own only before it is out of reach (`set_up`)."""

    def __init__(self) -> None:
        self._file, self._own = -1, 0
        with suppress(OSError, ValueError):
            self._file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
            self._own = int(os.read(self._file, PIECE))

    @contextmanager
    def raise_for_child(self) -> Iterator[Callable[[], None]]:
        """Raise it while a child is forked. The child calls the function that this yields, which
        returns when this process has its own score again."""
        reads, writes = os.pipe2(os.O_CLOEXEC)

        def wait() -> None:
            os.close(writes)
            os.read(reads, 1)

        try:
            self._write(min(self._own + FIRST, 1000))
            yield wait
        finally:
            self._write(self._own)
            _close(reads, writes)

    def _write(self, score: int) -> None:
        with suppress(OSError):
            os.write(self._file, str(score).encode())


class Ground:
    """Where commands run: processes of this machine, or of this namespace."""

    own = frozenset[int]()
    """Processes that are no command's, though they are below this one."""
    sources: tuple[tuple[int, Callable[[int], None]], ...] = ()
    """Further files to listen to, each with its handler."""

    def __init__(self) -> None:
        self._score = OomScore()

    def spawn(self, spec: dict, files: tuple[int, int, int, int]) -> int:  # type: ignore[type-arg]
        """Start a command with these open files: its input, output, errors (-1: with its output)
        and channel, -1 for none; return its process. OSError."""
        with self._score.raise_for_child() as wait:
            pid = os.fork()
            if not pid:
                wait()
                exec_command(spec, files)
        return pid

    def listen(self, port: int) -> socket.socket:
        """A server at the port, as commands call it."""
        return socket.create_server(("127.0.0.1", port), backlog=128)

    def find_places(self, port: int) -> list[tuple[str, int]]:
        """Return where a command's server at the port may listen. OSError if it does nowhere."""
        return [("127.0.0.1", port), ("::1", port)]  # some programs listen on one only


class Supervisor:
    """Runs commands and carries bytes, in one thread."""

    def __init__(self, reads: int, writes: int, spec: dict, ground: Ground) -> None:  # type: ignore[type-arg]
        self._reads, self._writes, self._spec, self._ground = reads, writes, spec, ground
        self._selector = selectors.DefaultSelector()
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._commands: dict[int, _Command] = {}
        self._connections: dict[int, _Connection] = {}
        self._dialling: dict[int, socket.socket] = {}
        self._next = 2
        self._paused = self._occupied = False
        self._looked = self._sized = 0.0
        self._free = 0
        self._counters = Counters(spec["counters"])
        self._behind: dict[int, int] = {}
        self._named: list[object] = []
        self._roots: list[int] = []
        self._seen: dict[int, float] = {}
        self._killed: set[int] = set()  # they may take a moment to be gone
        self._listed = 0.0

    def run(self) -> None:
        """Serve until the gateway is gone."""
        wake, wakes = socket.socketpair()
        for one in (wake.fileno(), wakes.fileno(), self._reads, self._writes):
            os.set_blocking(one, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ, partial(self._reap, wake))
        self._selector.register(self._reads, selectors.EVENT_READ, self._serve_link)
        for file, act in self._ground.sources:
            self._selector.register(file, selectors.EVENT_READ, act)
        if port := self._spec.get("proxy_port"):
            self._listen(port)
        self._send(READY, 0, json.dumps({"pid": os.getpid()}).encode())
        try:
            while True:
                alive = any(not one.ended for one in self._commands.values())
                left = _SECONDS_WHILE_NONE_RUNS if self._occupied else None
                pause = _SECONDS_BETWEEN_LOOKS if alive else left
                for key, mask in self._selector.select(pause):
                    if self._selector.get_map().get(key.fd) is key:  # unchanged since the request
                        key.data(mask)
                if pause is not None:
                    self._watch(pause)
        except (BrokenPipeError, ConnectionResetError, EOFError):
            pass  # the gateway has exited
        finally:
            self._kill_all(frozenset())

    def _heed(self, file: int, events: int, act: Callable[[int], object] | None = None) -> None:
        """Call `act` at these events of an open file from now on; without it, stop listening."""
        known = file in self._selector.get_map()
        if events:
            (self._selector.modify if known else self._selector.register)(file, events, act)
        elif known:
            self._selector.unregister(file)

    # ---- frames ------------------------------------------------------------------------------

    def _send(self, kind: int, stream: int, data: bytes = b"") -> None:
        self._outgoing += HEAD.pack(kind, stream, len(data)) + data
        self._flush()

    def _flush(self, mask: int = 0) -> None:
        while self._outgoing:
            try:
                sent = os.write(self._writes, memoryview(self._outgoing)[:WINDOW])
            except BlockingIOError:
                break
            del self._outgoing[:sent]
        self._heed(self._writes, selectors.EVENT_WRITE if self._outgoing else 0, self._flush)
        full = len(self._outgoing) > MAX_UNSENT
        if full != self._paused:
            self._paused = full
            for stream, command in self._commands.items():
                for fd in command.pipes:
                    self._listen_to(stream, command, fd, not full)

    def _serve_link(self, mask: int) -> None:
        try:
            data = os.read(self._reads, WINDOW)
        except BlockingIOError:
            return
        if not data:
            raise EOFError
        self._incoming += data
        while len(self._incoming) >= HEAD.size:
            kind, stream, length = HEAD.unpack_from(self._incoming)
            if len(self._incoming) < HEAD.size + length:
                break
            payload = bytes(self._incoming[HEAD.size : HEAD.size + length])
            del self._incoming[: HEAD.size + length]
            self._take(kind, stream, payload)

    def _take(self, kind: int, stream: int, payload: bytes) -> None:
        command, connection = self._commands.get(stream), self._connections.get(stream)
        if kind == START:
            self._start(stream, json.loads(payload))
        elif kind == KILL and command is not None:
            self._kill(command)
        elif kind == QUIET and command is not None:
            command.shown = False  # remaining output is read even if the process keeps it open
        elif kind == HALT:
            self._kill_all(self._ground.own)
        elif kind == OPEN:
            self._open(stream, json.loads(payload)["port"])
        elif kind in (DATA, END) and (one := command or connection) and one.input is not None:
            self._write(one.input, payload, kind == END)
        elif kind == CREDIT and connection is not None:
            connection.credit += int.from_bytes(payload, "big")
            self._follow(stream, connection)
        elif kind == KILL and connection is not None:
            self._end(stream, connection)
        elif kind == KILL and (sock := self._dialling.pop(stream, None)) is not None:
            self._heed(sock.fileno(), 0)
            sock.close()

    # ---- commands ----------------------------------------------------------------------------

    def _start(self, stream: int, spec: dict) -> None:  # type: ignore[type-arg]
        reads, writes = os.pipe2(os.O_CLOEXEC)
        complains, errors = os.pipe2(os.O_CLOEXEC) if spec["errors"] else (-1, -1)
        stdin, feeds = os.pipe2(os.O_CLOEXEC) if spec["stdin"] else (-1, -1)
        near, far = socket.socketpair() if spec["channel"] else (None, None)
        try:
            channel = -1 if far is None else far.fileno()
            pid = self._ground.spawn(spec, (stdin, writes, errors, channel))
            self._occupied = True
        except OSError as error:
            pid = -1
            self._send(DATA, stream, f"Not started: {os.strerror(error.errno or 0)}.\n".encode())
        _close(writes, errors, stdin, -1 if far is None else far.detach())
        pipes = {fd: kind for fd, kind in ((reads, DATA), (complains, ERRORS)) if fd >= 0}
        if pid < 0:
            _close(*pipes, feeds, -1 if near is None else near.detach())
            self._send(END, stream)
            self._send(EXIT, stream, json.dumps({"code": 126, "reason": ""}).encode())
            return
        self._commands[stream] = command = _Command(
            pid, pipes, spec.get("stays", False), spec["stdin"]
        )
        if feeds >= 0:
            os.set_blocking(feeds, False)
            command.input = _Input(feeds)
        for fd in pipes:
            os.set_blocking(fd, False)
            self._listen_to(stream, command, fd, not self._paused)
        if near is not None:
            command.channel = spec["channel"]
            self._adopt(command.channel, near)

    def _listen_to(self, stream: int, command: _Command, fd: int, listen: bool) -> None:
        read = partial(self._read_output, stream, command, fd)
        self._heed(fd, selectors.EVENT_READ if listen else 0, read)

    def _read_output(self, stream: int, command: _Command, fd: int, mask: int = 0) -> bool:
        """Forward a piece of its output. Return False if there is none now."""
        try:
            data = os.read(fd, PIECE)
        except BlockingIOError:
            return False
        if data:
            if command.shown:
                self._send(command.pipes[fd], stream, data)
            return True
        self._listen_to(stream, command, fd, False)
        os.close(fd)
        del command.pipes[fd]
        if not command.pipes:
            self._send(END, stream)
        if command.ended:
            del self._commands[stream]
        return False

    def _reap(self, wake: socket.socket, mask: int) -> None:
        wake.recv(PIECE)
        by_pid = {one.pid: (stream, one) for stream, one in self._commands.items()}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in self._ground.own:
                raise EOFError  # no more processes can be started
            if pid not in by_pid:
                continue  # an orphan reparented to us
            stream, command = by_pid[pid]
            self._read_rest(stream, command)
            command.ended = True
            code = os.waitstatus_to_exitcode(status)
            met = self._counters.find_met() if code else ""
            command.reason = command.reason or met
            told = {"code": code if code >= 0 else 128 - code, "reason": command.reason}
            self._send(EXIT, stream, json.dumps(told).encode())
            if command.input is not None:
                self._close_input(command.input)
            if not command.pipes:
                del self._commands[stream]
            if command.reason == "memory":
                self._stop_session(pid)  # the kernel ended one of them
            if self._has_orphans():  # known also if the gateway ends right now
                self._looked = 0.0
                self._watch(0.0)

    def _has_orphans(self) -> bool:
        """Commands left processes behind. Where the kernel does not tell, the next look does."""
        known = self._ground.own.union(one.pid for one in self._commands.values())
        with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
            return any(int(pid) not in known for pid in file.read().split())
        return False

    def _read_rest(self, stream: int, command: _Command) -> None:
        """Forward what it wrote before its end, also to its channel: that comes first."""
        for fd in list(command.pipes):
            for _ in range(_MAX_PIPE // PIECE):
                if not self._read_output(stream, command, fd):
                    break
        if (talk := self._connections.get(command.channel)) is not None:
            left = talk.credit + 1
            while talk.credit < left:
                left = talk.credit
                self._serve_connection(command.channel, talk, selectors.EVENT_READ)

    def _kill(self, command: _Command) -> None:
        """Kill it with its children, except those that made a session of their own and lost their
        parent: such servers stay until everything is ended."""
        if command.ended:
            return
        tree = _list_tree(command.pid)
        self._killed.update(tree)
        for pid in (-command.pid, *tree):  # its process group first
            _kill_one(pid)

    def _stop_session(self, leader: int) -> None:
        """Kill what is left of the session that `leader` began."""
        for pid in _list_here():
            if (stat := _read_stat(pid)) and stat[3] == str(leader):
                self._killed.add(pid)
                _kill_one(pid)

    def _kill_all(self, spared: frozenset[int]) -> None:
        if os.getpid() == 1:
            _kill_one(-1)
        for _ in range(50 if os.getpid() != 1 else 0):  # forks may happen meanwhile
            tree = [pid for pid in list_alive(os.getpid())[1:] if pid not in spared]
            for pid in tree:
                _kill_one(pid)
            if not tree:
                return

    # ---- input -------------------------------------------------------------------------------

    def _write(self, stream_input: _Input, data: bytes, end: bool) -> None:
        if stream_input.fd < 0:
            return
        stream_input.data += data
        stream_input.closing = stream_input.closing or end
        self._pour(stream_input)

    def _pour(self, stream_input: _Input, mask: int = 0) -> None:
        """Write as much as possible now."""
        written = 0
        try:
            while stream_input.data:
                count = os.write(stream_input.fd, memoryview(stream_input.data)[:PIECE])
                del stream_input.data[:count]
                written += count
        except BlockingIOError:
            pass
        except OSError:
            stream_input.data.clear()
            stream_input.closing = True
        every = self._connections.items()
        connection = next((pair for pair in every if pair[1].input is stream_input), None)
        if connection is None:  # of a command: its own pipe
            events = selectors.EVENT_WRITE if stream_input.data else 0
            self._heed(stream_input.fd, events, partial(self._pour, stream_input))
            if stream_input.closing and not stream_input.data:
                self._close_input(stream_input)
            return
        stream, one = connection
        if written:
            self._send(CREDIT, stream, written.to_bytes(4, "big"))
        if stream_input.closing and not stream_input.data and not one.write_end:
            one.write_end = True
            try:
                one.sock.shutdown(socket.SHUT_WR)
            except OSError:
                one.read_end = True
        self._follow(stream, one)

    def _close_input(self, stream_input: _Input) -> None:
        if stream_input.fd < 0:
            return
        self._heed(stream_input.fd, 0)
        os.close(stream_input.fd)
        stream_input.fd = -1

    # ---- connections -------------------------------------------------------------------------

    def _listen(self, port: int) -> None:
        """Whoever inside wants to go out asks the gateway's proxy, by this port."""
        server = self._ground.listen(port)
        server.setblocking(False)

        def accept(mask: int) -> None:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            stream, self._next = self._next, self._next + 2
            self._send(OPEN, stream, b"{}")
            self._adopt(stream, sock)

        self._selector.register(server, selectors.EVENT_READ, accept)

    def _open(self, stream: int, port: int) -> None:
        """Begin a connection from the gateway to a server inside."""
        try:
            self._try_places(stream, self._ground.find_places(port))
        except OSError as error:
            self._refuse(stream, error.errno)

    def _try_places(self, stream: int, places: list[tuple[str, int]]) -> None:
        """Connect to the first place, or to the next where that fails. Never waits: a server that
        accepts nothing would otherwise hold up everything else here."""
        family = socket.AF_INET6 if ":" in places[0][0] else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        finish = partial(self._finish_connection, stream, sock, places[1:])
        try:
            code = sock.connect_ex(places[0])
        except OverflowError:  # there is no such port
            code = errno.ECONNREFUSED
        if code == errno.EINPROGRESS:
            self._dialling[stream] = sock
            self._heed(sock.fileno(), selectors.EVENT_WRITE, finish)
        else:
            finish(0, code)

    def _finish_connection(
        self,
        stream: int,
        sock: socket.socket,
        others: list[tuple[str, int]],
        mask: int,
        code: int = -1,
    ) -> None:
        self._heed(sock.fileno(), 0)
        self._dialling.pop(stream, None)
        if code < 0:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not code:
            self._send(OPENED, stream)
            self._adopt(stream, sock)
            return
        sock.close()
        if not others:
            self._refuse(stream, code)
            return
        try:
            self._try_places(stream, others)
        except OSError as error:
            self._refuse(stream, error.errno)

    def _refuse(self, stream: int, number: int | None) -> None:
        self._send(REFUSED, stream, os.strerror(number or errno.ETIMEDOUT).encode())

    def _adopt(self, stream: int, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._connections[stream] = connection = _Connection(sock)
        self._follow(stream, connection)

    def _follow(self, stream: int, one: _Connection) -> None:
        """Listen for what can go on: reading with credit, writing with data."""
        if one.read_end and one.write_end:
            self._drop(stream, one)
            return
        events = selectors.EVENT_READ if one.credit > 0 and not one.read_end else 0
        events |= selectors.EVENT_WRITE if one.input.data else 0
        self._heed(one.sock.fileno(), events, partial(self._serve_connection, stream, one))

    def _serve_connection(self, stream: int, one: _Connection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._pour(one.input)
        if not mask & selectors.EVENT_READ or one.read_end or one.credit <= 0:
            return
        try:
            data = one.sock.recv(min(PIECE, one.credit))
        except BlockingIOError:
            return
        except OSError:
            data, one.write_end = b"", True
        one.credit -= len(data)
        if data:
            self._send(DATA, stream, data)
        else:
            one.read_end = True
            self._send(END, stream)
        self._follow(stream, one)

    def _end(self, stream: int, one: _Connection) -> None:
        """Stop reading from it, as nobody takes its output; pending input is still written."""
        one.read_end, one.input.closing = True, True
        self._pour(one.input)

    def _drop(self, stream: int, one: _Connection) -> None:
        self._heed(one.sock.fileno(), 0)
        one.sock.close()
        self._connections.pop(stream, None)
        self._send(KILL, stream)

    # ---- limits ------------------------------------------------------------------------------

    def _watch(self, pause: float) -> None:
        """End what exceeds the sandbox's limits, all its processes together."""
        now = time.monotonic()
        if now - self._looked < pause:
            return
        self._looked = now
        limits = self._spec["limits"]
        pids = _list_here()
        pids = [pid for pid in pids if pid != os.getpid() and pid not in self._ground.own]
        # before their sizes: one that the kernel ends meanwhile is still known as its command's
        stats = {pid: stat for pid in pids if (stat := _read_stat(pid))}
        sessions = {pid: stat[3] for pid, stat in stats.items()}
        pids = list(sessions)
        self._occupied = bool(pids)
        self._put_behind(sessions)
        self._killed &= sessions.keys()
        if len(pids) > limits["processes"]:
            self._stop_largest(sessions, dict.fromkeys(pids, 1), "processes")
        taken = {pid: _measure_memory(pid) for pid in pids}
        shared = sum(map(_count_shared, pids)) if pids else 0
        if sum(taken.values()) + shared > limits["memory"]:
            taken = {pid: size + _measure_shared(pid) for pid, size in taken.items()}
        if sum(taken.values()) > limits["memory"] or self._counters.count_new("memory"):
            self._stop_largest(sessions, taken, "memory")
        alive = {pid for pid, stat in stats.items() if stat[0] != "Z"} - self._killed
        self._report_running({pid: int(stats[pid][1]) for pid in alive})
        if self._spec["folders"] and self._is_size_due(now):
            began = time.monotonic()
            size = _measure_nameless(pids)
            size += _measure_folders(self._spec["folders"], limits["disk"] - size)
            self._sized = time.monotonic() + 10 * (time.monotonic() - began)
            if size > limits["disk"]:
                for command in self._commands.values():
                    command.reason = command.reason or "disk"
                self._killed.update(pids)
                self._kill_all(self._ground.own)

    def _report_running(self, parents: dict[int, int]) -> None:
        """Tell the gateway what stays after its command, if that has changed. `parents`: of all
        processes here."""
        now = time.monotonic()
        self._seen = {pid: self._seen.get(pid, now) for pid in parents}
        commands = {one.pid: one for one in self._commands.values() if not one.ended}
        old = {pid for pid, first in self._seen.items() if now - first >= _SECONDS_OF_A_JOB}
        jobs = {pid for pid in old if (one := commands.get(parents[pid])) and one.holds}
        strays = {pid for pid, parent in parents.items() if parent not in parents} - set(commands)
        stay = {pid for pid, one in commands.items() if one.stays and pid in parents}
        roots = sorted(jobs | strays | stay)[:MAX_NAMED]
        if roots == self._roots and now - self._listed < _SECONDS_BETWEEN_PORTS:
            return
        self._roots, self._listed = roots, now
        inner = _list_children(parents)
        named: list[object] = []
        for root in roots:
            ports = _list_ports(_list_below(root, inner))
            named.append({"words": _read_words(root), "ports": ports})
        if named != self._named:
            self._named = named
            self._send(RUNS, 0, json.dumps(named).encode())

    def _put_behind(self, sessions: dict[int, str]) -> None:
        """Commands go behind the gateway; many processes of one sandbox behind everything."""
        crowded = len(sessions) > CROWD
        nice = CROWD_NICE if crowded else NICE
        ahead = {pid for pid in sessions if self._behind.get(pid, -1) < nice}
        leaders = {pid for pid in ahead if sessions[pid] == str(pid)}
        self._behind = {pid: self._behind[pid] for pid in self._behind.keys() & sessions.keys()}
        self._behind |= {pid: nice for pid in leaders if _put_behind(pid, nice)}
        for pid in sessions if crowded else ():
            with suppress(OSError):
                os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))

    def _is_size_due(self, now: float) -> bool:
        """Sizes are slow to find out: now and then, and at once where the disk fills."""
        free = sum(_measure_free(folder) for folder in self._spec["folders"])
        fills = free < self._free - self._spec["limits"]["disk"] // 50
        due = fills or now - self._sized >= _SECONDS_BETWEEN_SIZES
        self._free = free if due else self._free
        return due

    def _stop_largest(self, sessions: dict[int, str], taken: dict[int, int], reason: str) -> None:
        """End the command whose processes use most, or what belongs to no command if that uses
        more. `sessions`: of all processes here."""
        of_command: dict[int, set[int]] = {}
        for stream, command in self._commands.items():
            own = {pid for pid, session in sessions.items() if session == str(command.pid)}
            of_command[stream] = own.union(_list_tree(command.pid)) & sessions.keys()
        strays = set(sessions).difference(*of_command.values())
        sums = {one: sum(taken[pid] for pid in own) for one, own in of_command.items()}
        largest = max(sums, key=lambda one: sums[one], default=None)
        if largest is not None and sum(taken[pid] for pid in strays) <= sums[largest]:
            command, strays = self._commands[largest], of_command[largest]
            command.reason = command.reason or reason
            self._kill(command)
        self._killed |= strays
        for pid in strays:
            _kill_one(pid)


def give_way() -> None:
    """Let the gateway and the supervisors go first when the processors are busy."""
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _put_behind(pid: int, nice: int) -> bool:
    """Set the nice value of the process's session: the kernel shares processors among sessions."""
    try:
        with open(f"/proc/{pid}/autogroup", "w") as file:
            file.write(str(nice))
    except BlockingIOError:  # at most ten per second
        return False
    except OSError:
        pass
    return True


def exec_command(spec: dict, files: tuple[int, int, int, int]) -> None:  # type: ignore[type-arg]
    """Be the command, with these open files as `spawn` says; never returns."""
    try:
        os.setsid()
        give_way()
        for number in (*_IGNORED, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        stdin, output, errors, channel = files
        reads = stdin if stdin >= 0 else os.open(os.devnull, os.O_RDONLY)
        complains = errors if errors >= 0 else output
        for at, one in enumerate((reads, output, complains, channel)[: 4 if channel >= 0 else 3]):
            os.dup2(one, at)
        for name, value in spec["rlimits"].items():
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
        os.chdir(spec["cwd"])
        os.execve(spec["argv"][0], spec["argv"], spec["env"])
    except Exception as error:  # noqa: BLE001  # boundary: never a second supervisor
        os.write(2, f"Not started: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(126)


def _close(*files: int) -> None:
    for one in files:
        if one >= 0:
            os.close(one)


def _kill_one(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _list_all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _list_here() -> list[int]:
    """Return the processes of the sandbox, this one among them."""
    return _list_all() if os.getpid() == 1 else list_alive(os.getpid())


def _read_stat(pid: int) -> list[str]:
    """Return state, parent, group, session, … of a process; [] if it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []


def _list_tree(root: int) -> list[int]:
    """A process and all below it."""
    found = ((pid, _read_stat(pid)) for pid in _list_all())
    return _list_below(root, _list_children({pid: int(stat[1]) for pid, stat in found if stat}))


def _list_children(parents: dict[int, int]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    return children


def _list_below(root: int, children: dict[int, list[int]]) -> list[int]:
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found


def _read_words(pid: int) -> str:
    """Return what a process runs: the text of a shell, or its arguments."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read(PIECE).decode("utf-8", "replace").rstrip("\0").split("\0")
        is_text = len(words) > 2 and os.path.basename(words[0]) in _SHELLS and words[1] == "-c"
        return (words[2] if is_text else " ".join(words))[:_MAX_WORDS]
    return ""


def _list_ports(pids: list[int]) -> list[int]:
    """Return the ports at which these processes listen."""
    opened = set()
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    opened.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    sockets = {one[8:-1] for one in opened if one.startswith("socket:[")}
    return sorted({port for inode, port in _list_servers() if inode in sockets}) if sockets else []


def _list_servers() -> Iterator[tuple[str, int]]:
    """Yield the socket's number and the port of each server that is seen here."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/self/net/{name}") as file:
            for words in map(str.split, file):
                if words[3] == _LISTENS:
                    yield words[9], int(words[1].rpartition(":")[2], 16)


def list_alive(root: int) -> list[int]:
    """Return a process and its descendants, without dead ones."""
    return [pid for pid in _list_tree(root) if (stat := _read_stat(pid)) and stat[0] != "Z"]


def count_tasks(root: int) -> int:
    """Count the processes and threads below a process, including zombies."""
    threads = (_read_stat(pid)[17:18] for pid in _list_tree(root)[1:])
    return sum(int(one) or 1 for found in threads for one in found)


def _measure_memory(pid: int) -> int:
    """Bytes that are this process's alone."""
    with suppress(OSError), open(f"/proc/{pid}/statm") as file:
        resident, shared = file.read().split()[1:3]
        return (int(resident) - int(shared)) * _PAGE
    return 0


def _measure_shared(pid: int) -> int:
    """Return the bytes of its share of shared memory that is in no file."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        found = next((line for line in file if line.startswith("Pss_Shmem:")), "")
        return int(found.split()[1]) << 10 if found else 0
    return 0


def _count_shared(pid: int) -> int:
    """Bytes at most that it has together with others; quick to find out."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[2]) * _PAGE
    return 0


def _measure_free(folder: str) -> int:
    with suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize + found.f_favail * _LEAST
    return 0


class Counters:
    """Counts how often the kernel held a limit of this control group. `files`: open ones, by the
    limits; without them, those of this namespace, if it shows any."""

    def __init__(self, files: dict[str, int]) -> None:
        self._files = dict(files)
        for kind, (controller, _, new, old) in () if files else COUNTED.items():
            for name in (new, f"{controller}/{old}"):
                with suppress(OSError):
                    self._files[kind] = os.open(f"/sys/fs/cgroup/{name}", os.O_RDONLY)
                    break
        self._before = {kind: self._count(kind) for kind in COUNTED}

    def find_met(self) -> str:
        """Return the limit that was met since the last call, "" for none."""
        return next((kind for kind in COUNTED if self.count_new(kind)), "")

    def count_new(self, kind: str) -> int:
        """Count what the kernel ended, or refused, that was not reported yet."""
        before, self._before[kind] = self._before[kind], self._count(kind)
        return self._before[kind] - before

    def _count(self, kind: str) -> int:
        with suppress(OSError, ValueError, KeyError):
            words = os.pread(self._files[kind], PIECE, 0).decode().split()
            return int(words[words.index(COUNTED[kind][1]) + 1])
        return 0


def _measure_folders(folders: list[str], enough: int) -> int:
    """Bytes on disk below the folders; not further once it is enough, which it also is where a
    folder is below more others than can be opened. A long path is opened in parts."""
    total = 0
    left: list[tuple[int, str]] = [(-1, one) for one in folders]
    while left:
        base, path = left.pop()
        if not path:  # everything below it was visited
            os.close(base)
        if total > enough or not path:
            continue
        try:
            here = _open_folder(base, path)
        except OSError as error:
            total += enough + 1 if error.errno == errno.EMFILE else 0
            continue
        size, inner = _measure_entries(here)
        total += size
        if len(path) < _LONG:
            os.close(here)
            left += ((base, f"{path}/{name}") for name in inner)
        else:
            left += ((here, ""), *((here, name) for name in inner))
    return total


def _open_folder(base: int, path: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, dir_fd=base if base >= 0 else None)


def _measure_entries(folder: int) -> tuple[int, list[str]]:
    """Return the bytes of what is in an open folder, and the folders in it."""
    total, inner = 0, []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                total += max(entry.stat(follow_symlinks=False).st_blocks * 512, _LEAST)
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
    return total, inner


def _measure_nameless(pids: list[int]) -> int:
    """Bytes on disk of removed files that processes still have open or mapped."""
    opened: dict[tuple[int, int], int] = {}
    mapped: dict[tuple[int, int], int] = {}
    for pid in pids:
        for file, size in _list_mapped(pid):
            mapped[file] = max(size, mapped.get(file, 0))
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    info = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(info.st_mode) and not info.st_nlink:
                        opened[info.st_dev, info.st_ino] = info.st_blocks * 512
    in_memory = _list_memory_devices()
    found = {**mapped, **opened}.items()
    return sum(size for (device, _), size in found if device not in in_memory)


def _list_mapped(pid: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield each removed file that the process has mapped, with the bytes up to the last one."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/maps", errors="replace") as maps:
        for line in maps:
            if line.endswith(" (deleted)\n"):
                span, _, offset, device, inode = line.split(maxsplit=5)[:5]
                first, _, last = span.partition("-")
                major, _, minor = device.partition(":")
                file = os.makedev(int(major, 16), int(minor, 16)), int(inode)
                yield file, int(offset, 16) + int(last, 16) - int(first, 16)


def _list_memory_devices() -> set[int]:
    """Return the devices whose files are in memory, and count there."""
    found = set()
    with suppress(OSError):
        file = os.memfd_create("device")
        found.add(os.fstat(file).st_dev)
        os.close(file)
    with suppress(OSError):
        found.add(os.stat("/dev/shm").st_dev)  # noqa: S108  # a look, no file
    return found


def set_up() -> None:
    """Get out of the reach of commands, and adopt their orphans."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # processes here cannot read or trace this process
    if os.getpid() != 1:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # so that orphans are reparented to it
    for one in _IGNORED:
        signal.signal(one, signal.SIG_IGN)


def read_spec() -> dict:  # type: ignore[type-arg]
    """Return the configuration."""
    counters = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    return {**json.loads(sys.argv[1]), "counters": counters}


def take_link(spec: dict) -> tuple[int, int]:  # type: ignore[type-arg]
    """Return the files to read and to write; standard input and output become /dev/null. Other
    files are leftovers of the starter: no command may inherit them, copies of the link least of
    all."""
    kept = sorted(spec["counters"].values())
    end = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16)
    for first, last in zip((2, *kept), (*kept, end), strict=True):
        os.closerange(first + 1, last)
    for one in kept:
        os.set_inheritable(one, False)
    one_socket = stat.S_ISSOCK(os.fstat(0).st_mode)
    reads, writes = os.dup(0), os.dup(0 if one_socket else 1)
    for one in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), one)
    return reads, writes


def main() -> None:
    """Serve the gateway."""
    spec = read_spec()
    reads, writes = take_link(spec)
    ground = Ground()
    set_up()
    Supervisor(reads, writes, spec, ground).run()


if __name__ == "__main__":
    main()
