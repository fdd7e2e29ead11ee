"""The tier without namespaces: what it keeps in, and what it says that it cannot."""

import os
import shutil
import signal
import socket
import subprocess
import textwrap
from pathlib import Path

import psutil
import pytest

from agent_core.sandboxes.landlock import calls
from agent_core.sandboxes.landlock import tier as tiers
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.self_test import PROBE_LIMITS, find_leaks
from tests.fakes.needs import NEEDS_LANDLOCK
from tests.fakes.processes import a_mark, alive, gone, there
from tests.fakes.sandboxes import make_sandboxes
from tests.fakes.users import WHO, find_shared_python

pytestmark = NEEDS_LANDLOCK
ROOT = Path(__file__).parents[2]
OLDEST = calls.FILES


async def run(pool: SandboxPool, command: str, workspace: Path) -> ProcessResult:
    return await pool.run(command, workspace, 20.0, lambda _: None)


def python(code: str) -> str:
    return f"python3 - <<'X'\n{textwrap.dedent(code)}\nX"


# ---- what it keeps in ----------------------------------------------------------------------

CALL = """
    import ctypes, os, sys
    libc = ctypes.CDLL(None, use_errno=True)
    def call(*words):
        done = libc.syscall(*words)
        print(done, os.strerror(ctypes.get_errno()) if done < 0 else "done")
        sys.exit(done < 0)
"""
FILES = {
    "a file that all may read": "cat {outside}/file",
    "a list of them": "ls {outside}",
    "the people of the machine": "cat /etc/passwd",
    "to write": "echo x >> {outside}/file",
    "a new file": "touch {outside}/new",
    "to make it shorter": python("import os; os.truncate('{outside}/file', 0)"),
    "a link to it": "ln {outside}/file mine",
    "to move it here": "mv {outside}/file mine",
    "its mode": "chmod 000 {outside}/file",
    "its mode, by a link": "ln -s {outside}/file l && chmod 000 l",
    "its mode, by another way": python("import os; os.chmod('/proc/self/cwd/{outside}/file', 0)"),
    "its times": "touch -d 2001-01-01 {outside}/file",
    "its times, by a link": "ln -s {outside}/file l && touch -d 2001-01-01 l",
    "its owner": "chown nobody {outside}/file",
    "more about it": "setfattr -n user.x -v y {outside}/file",
    "what it is told of": python(CALL + "call(254, libc.inotify_init(), b'{outside}', 0xfff)"),
    "/tmp": "touch /tmp/turnkeeper-test",
    "memory by name": "touch /dev/shm/turnkeeper-test",
    "terminals": "ls /dev/pts",
    "the times of what the gateway keeps": "touch -d 2001-01-01 .turnkeeper/snapshots",
}  # fmt: skip
OTHERS = {
    "processes": "ls /proc",
    "what it is called with": "cat /proc/{pid}/cmdline",
    "its environment": "cat /proc/{pid}/environ",
    "its files": "ls /proc/{pid}/fd/",
    "its memory": python(CALL + "call(310, {pid}, b'', 0, b'', 0, 0)"),
    "to trace it": python(CALL + "call(101, 16, {pid}, 0, 0)"),
    "a signal": "kill -0 {pid}",
    "a signal to all": "kill -0 -1",
    "a signal to its group": "kill -0 -- -{pid}",
    "a signal by its descriptor": python("import os, signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 0)"),
    "a signal for a file": python("import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, {pid})"),
    "its limits": python("import resource; resource.prlimit({pid}, resource.RLIMIT_CPU, (0, 0))"),
    "its place": "renice 19 {pid}",
    "its processors": "taskset -pc 0 {pid}",
    "the supervisor": "kill -9 $PPID",
    "shared memory": python(CALL + "call(29, 0, 4096, 0o1600)"),
    "semaphores": python(CALL + "call(64, 0, 1, 0o1600)"),
    "messages": python(CALL + "call(68, 0, 0o1600)"),
    "a queue of messages": python(CALL + "call(240, b'q', 0o102, 0o600, 0)"),
    "a ring of keys": python(CALL + "call(250, 0, -3, 1, 0, 0)"),
}  # fmt: skip
NETWORK = {
    "a port of the machine": "cat < /dev/tcp/127.0.0.1/{port}",
    "one that is open to all": "cat < /dev/tcp/127.0.0.1/{wide}",
    "the same at another name": "cat < /dev/tcp/0.0.0.0/{wide}",
    "the same by IPv6": "cat < /dev/tcp/::1/{wide}",
    "the machine's own address": "cat < /dev/tcp/{host}/{wide}",
    "its way out, as others see it": "cat < /dev/tcp/{host}/3128",
    "datagrams": "echo x > /dev/udp/127.0.0.1/9",
    "raw packets": python("import socket; socket.socket(2, 3, 1)"),
    "packets of a link": python("import socket; socket.socket(17, 3)"),
    "the kernel's own": python("import socket; socket.socket(16, 3)"),
    "a virtual machine's": python("import socket; socket.socket(40, 1)"),
    "TCP of another kind": python("import socket; socket.socket(2, 1, 262)"),
    "a connection with the first bytes": python(
        "import socket; s = socket.socket(); s.sendto(b'x', 0x20000000, ('127.0.0.1', {wide}))"
    ),
    "to be reached from outside": python(
        "import socket; s = socket.socket(); s.bind(('{host}', 0)); s.listen()"
    ),
    "a socket with a name": python("import socket; socket.socket(1, 1).connect('{outside}/socket')"),
    "a nameless one that sends": python(
        "import socket; a, b = socket.socketpair(1, 2); a.sendto(b'x', '{outside}/datagrams')"
    ),
}  # fmt: skip


@pytest.mark.pick("out of Landlock", 3)
@pytest.mark.parametrize("abi", [tiers.NEWEST, OLDEST], ids=["newest", "oldest"])
@pytest.mark.parametrize("attacks", [FILES, OTHERS, NETWORK], ids=["files", "others", "network"])
async def test_it_does_not_get_out(attacks: dict[str, str], abi: int, tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "file").write_text("x")
    (outside / "file").chmod(0o666)
    os.utime(outside / "file", (1, 1))
    outside.chmod(0o777)
    pool = make_sandboxes(LandlockTier(abi))
    await run(pool, "true", workspace)
    prey = subprocess.Popen(["/bin/sleep", "100"], start_new_session=True)
    addresses = [
        one.address
        for all_ in psutil.net_if_addrs().values()
        for one in all_
        if one.family == socket.AF_INET
    ]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("", 0)) as wide,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        named.bind(f"{outside}/socket")
        named.listen()
        datagrams.bind(f"{outside}/datagrams")
        datagrams.setblocking(False)
        facts = {
            "pid": prey.pid, "outside": outside, "port": server.getsockname()[1],
            "wide": wide.getsockname()[1], "host": max(addresses, key=lambda one: not one.startswith("127.")),
        }  # fmt: skip
        got = {}
        for name, attack in attacks.items():
            for key, value in facts.items():
                attack = attack.replace(f"{{{key}}}", str(value))
            done = await run(pool, attack, workspace)
            if done.exit_code == 0:
                got[name] = done
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)
    prey.kill()
    assert prey.wait() == -signal.SIGKILL, "it lived until then"
    assert not got
    left = (outside / "file").stat()
    assert (left.st_mode & 0o777, left.st_mtime, left.st_size) == (0o666, 1, 1)
    assert (await run(pool, "echo alive", workspace)).output == "alive\n"


async def test_two_sandboxes_do_not_meet(tmp_path: Path) -> None:
    """Each has its own localhost: the same port in both, and neither at the other's."""
    pool = make_sandboxes(LandlockTier())
    one, other = tmp_path / "one", tmp_path / "other"
    serve = python("""
        import socket, os
        s = socket.create_server(("", 8765))
        if os.fork(): os._exit(0)
        os.setsid()
        for n in (0, 1, 2): os.dup2(os.open("/dev/null", 2), n)
        while True: s.accept()[0].sendall(os.getcwd().encode())
    """)
    read = "cat < /dev/tcp/127.0.0.1/8765"
    for place in (one, other):
        place.mkdir()
    assert (await run(pool, serve, one)).exit_code == 0
    assert (await run(pool, read, other)).exit_code != 0
    assert (await run(pool, serve, other)).exit_code == 0
    for place in (one, other):
        assert (await run(pool, read, place)).output == str(place)
    address = python("""
        import socket
        with socket.create_connection(("127.0.0.1", 8765)) as s: print(s.getpeername()[0])
    """)
    at = (await run(pool, address, one)).output.strip()
    assert at.startswith("127.") and at != "127.0.0.1"
    reached = await run(pool, f"cat < /dev/tcp/{at}/8765", other)
    assert reached.output == str(other), "every loopback address is its own"


# ---- what works inside ---------------------------------------------------------------------

WORKS = {
    "touch a && chmod 700 a && touch -d 2001-01-01T00:00Z a && stat -c '%a %Y' a": "700 978307200\n",
    "mkdir -p d/e && touch d/e/f && mv d/e g && ls g && cp -a g h && rm -r d g && ls h": "f\nf\n",
    python("import os; os.utime('a', (5, 6)); f = open('a'); os.fchmod(f.fileno(), 0o600);"
           "os.utime(f.fileno(), (7, 8)); print(os.stat('a').st_mtime, oct(os.stat('a').st_mode))"): "8.0 0o100600\n",
    "cd h && chmod 640 f && ln -s f l && touch -h l && cd .. && stat -c %a h/f": "640\n",
    "sleep 100 & kill $!; wait $!; echo $?": "143\n",
    "(setsid sleep 99 & echo $! > p) ; kill $(cat p) && echo ended": "ended\n",
    "cat <(echo one) < /dev/null; echo two > /dev/stderr": "one\ntwo\n",
    python("import socket\nfor n in range(600): socket.socket().close()\nprint('closed')"): "closed\n",
    python("import socket as s; a = s.socket(); a.bind(('', 0)); p = a.getsockname()[1]; a.close()\n"
           "b = s.create_server(('127.0.0.1', p)); c = s.create_connection(('localhost', p)); print('again')"): "again\n",
    python("import socket as s; a = s.create_server(('::', 0), family=10, dualstack_ipv6=True)\n"
           "c = s.create_connection(('::1', a.getsockname()[1])); d = s.create_connection(('127.0.0.1', a.getsockname()[1])); print('both')"): "both\n",
    python("import socket as s; a = s.socket(); a.listen(); c = s.create_connection(a.getsockname()); print('unbound')"): "unbound\n",
    python("import socket as s; a = s.socket(); a.setblocking(False); print(a.connect_ex(('127.0.0.1', 1)) in (111, 115))"): "True\n",
    python("import socket as s; a = s.socket()\nfor n in (1, 2): print(a.connect_ex(('127.0.0.1', 1)))"): "111\n111\n",
    python("import asyncio\nasync def main():\n    async def f(r, w): w.write(await r.readline()); w.close()\n"
           "    at = (await asyncio.start_server(f, '', 0)).sockets[0].getsockname()\n"
           "    r, w = await asyncio.open_connection(*at[:2]); w.write(b'hi\\n'); print(await r.read())\nasyncio.run(main())"): "b'hi\\n'\n",
}  # fmt: skip


@pytest.mark.pick
@pytest.mark.parametrize("abi", [tiers.NEWEST, OLDEST], ids=["newest", "oldest"])
async def test_what_is_asked_is_done(abi: int, tmp_path: Path) -> None:
    pool = make_sandboxes(LandlockTier(abi))
    wrong = {}
    for command, said in WORKS.items():
        done = await run(pool, command, tmp_path)
        if done.output != said:
            wrong[command] = done
    assert not wrong


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ps aux | head -3", "shows neither processes"),
        ("top -b -n1 | head -2; true", "shows neither processes"),
        ("killall sleep; echo on", "shows neither processes"),
        ("ls /proc | head -3", "shows neither processes"),
        ("echo x > /tmp/log & wait; echo started", "no /tmp in this sandbox"),
        ("ls -la /tmp; echo on", "no /tmp in this sandbox"),
        ('python3 -c \'open("/tmp/x", "w")\' 2>&1 | tail -1', "no /tmp in this sandbox"),
        ("sleep 60 & pgrep -fl sleep | cut -c1-40; kill $!", "find none, whatever"),
        ("pkill -f app.py || echo none", "find none, whatever"),
        ("pidof python3; echo on", "find none, whatever"),
        ("echo 'the log: /tmp was Permission denied'", ""),
        ("printf 'doc/a.md:3: /proc: x\\n' | grep -c proc", ""),
        ("true", ""),
    ],
)
async def test_it_says_what_is_not_seen_also_where_the_last_program_succeeds(
    command: str, says: str, tmp_path: Path
) -> None:
    done = await run(make_sandboxes(LandlockTier()), command, tmp_path)
    assert done.exit_code == 0 and not done.timed_out, done
    assert says in done.output if says else "[" not in done.output, done.output


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("touch /tmp/turnkeeper-x", "use $TMPDIR"),
        ("cat /proc/1/cmdline", "shows neither processes"),
        (python("import multiprocessing as m; m.Lock()"), "has no shared memory"),
        ("echo x > /dev/udp/127.0.0.1/9; false", ""),
    ],
)
async def test_it_says_what_to_do_instead(command: str, advice: str, tmp_path: Path) -> None:
    done = await run(make_sandboxes(LandlockTier()), command, tmp_path)
    assert done.exit_code != 0 and advice in done.output
    assert bool(advice) is ("sandbox" in done.output)


# ---- how it ends ---------------------------------------------------------------------------


async def test_nothing_is_left_of_a_killed_supervisor(tmp_path: Path) -> None:
    pool = make_sandboxes(LandlockTier())
    mark = a_mark()
    running = await pool.start(f"sleep {mark}", tmp_path, 60)
    await there(mark)
    supervisor = alive(mark)[0].parent()
    assert supervisor is not None
    supervisor.kill()
    await gone(mark)
    done = await running.wait(5)
    assert done is not None and "[The sandbox ended.]" in done.output
    assert "again" in (await run(pool, "echo again", tmp_path)).output


@pytest.mark.parametrize("planted", ["home", "tmp", "bin", ""])
async def test_a_planted_link_opens_nothing(planted: str, tmp_path: Path) -> None:
    """What a command puts in place of the sandbox's own folders is not followed."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    outside.chmod(0o700)
    pool = make_sandboxes(LandlockTier())
    await run(pool, "true", workspace)
    place = f".turnkeeper/sandbox/{planted}".rstrip("/")
    taken = f"mv .turnkeeper old; mkdir -p {Path(place).parent} && ln -s {outside} {place}"
    assert (await run(pool, taken, workspace)).exit_code == 0
    before = outside.stat()
    await pool.close()
    done = await run(pool, f"cd {outside} && touch x || touch {outside}/x", workspace)
    assert done.exit_code != 0 and not list(outside.iterdir())
    assert (outside.stat().st_uid, outside.stat().st_mode) == (before.st_uid, before.st_mode)


# ---- where it works ------------------------------------------------------------------------

PROGRAM = """
    import asyncio
    from agent_core.sandboxes.landlock.tier import LandlockTier
    from agent_core.sandboxes.pool import SandboxPool
    async def main():
        pool = SandboxPool(LandlockTier())
        await pool.check()
        print(pool.contains, pool.leaks)
    asyncio.run(main())
"""


@pytest.mark.pick
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs the package util-linux")
@pytest.mark.parametrize("who", WHO.values(), ids=WHO)
def test_it_contains_whoever_the_gateway_is(who: tuple[str, ...]) -> None:
    """As `cap_drop: ALL` and `no-new-privileges` leave it."""
    python = find_shared_python()
    command = ("setpriv", *who, "--", python.program, "-B", "-c", textwrap.dedent(PROGRAM))
    done = subprocess.run(command, capture_output=True, text=True, env=python.env, cwd="/")
    assert done.stdout == "True ()\n", done.stderr


async def test_an_older_kernel_contains_too() -> None:
    pool = make_sandboxes(LandlockTier(OLDEST))
    await pool.check()
    assert pool.contains and pool.leaks == ()


async def test_a_kernel_without_it_is_said(tmp_path: Path) -> None:
    done = make_sandboxes(LandlockTier(OLDEST - 1))
    with pytest.raises(Exception, match=r"no Landlock, or not enough of it \(Linux 6.2\)"):
        await run(done, "true", tmp_path)


# ---- the self-test -------------------------------------------------------------------------

WALLS = {
    "Landlock": (
        "calls.restrict = lambda rules, abi: calls.forbid_new_privileges()",
        {"files", "environment", "memory", "signals"},
    ),
    "the scope of signals": ("calls._SCOPES = 0", {"signals"}),
    "what is asked": ("seccomp.ASKED = ()", {"files"}),
    "what a socket may be": (
        "seccomp.ASKED = (); seccomp._judge_socket = lambda: [(6, 0, 0, 0x7FFF0000)]",
        {"files", "sockets"},
    ),
    "whose limits": ("seccomp._OF_ONESELF = ()", {"signals"}),
    "where modes are changed": ("guard.SyscallGuard._may_change = lambda *_: True", {"files"}),
    "where something listens": (
        "guard.SyscallGuard.find_place = lambda self, port: ('127.0.0.1', port)", {"network"},
    ),
}  # fmt: skip


@pytest.mark.pick("a hole in Landlock", 3)
@pytest.mark.parametrize(("hole", "leaks"), WALLS.values(), ids=WALLS)
async def test_what_leaks_is_found(
    hole: str, leaks: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same supervisor, without one of its walls."""
    program = tmp_path / "supervisor.py"
    program.write_text(
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from agent_core.sandboxes import seccomp\n"
        "from agent_core.sandboxes.landlock import calls, guard, supervisor\n"
        f"{hole}\nsupervisor.main()\n"
    )
    monkeypatch.setattr(tiers, "_PROGRAM", program)
    tier = LandlockTier()
    found = await find_leaks(make_sandboxes(tier, PROBE_LIMITS), tier)
    assert set(found) >= leaks | tier.cannot
