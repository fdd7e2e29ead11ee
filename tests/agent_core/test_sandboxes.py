"""Sandboxes: one a workspace, what stays in it, what it keeps in, and its limits."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from agent_core.errors import ToolFailed
from agent_core.sandboxes import bwrap, self_test, supervisor
from agent_core.sandboxes import pool as pools
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.docker.tier import DockerTier
from agent_core.sandboxes.link import SandboxLimits, SupervisorSpec
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.seccomp import build_filter, build_guarded_filter
from agent_core.sandboxes.self_test import PROBE_LIMITS, find_leaks
from agent_core.sandboxes.tier import SUPERVISOR, Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.paths import OWN
from tests.fakes.docker_engine import list_containers
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.fakes.processes import a_mark, alive, gone, leave_behind, there
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, UNSAFE, make_sandboxes
from tests.fakes.waiting import PATIENCE, until
from tests.sampling import one_of

each = pytest.mark.parametrize("tier", one_of(BWRAP, LANDLOCK, UNSAFE, DOCKER), indirect=True)
contained = pytest.mark.parametrize("tier", one_of(BWRAP, LANDLOCK, DOCKER), indirect=True)
SERVER = "python3 -u -m http.server {port} --bind 127.0.0.1 > log 2>&1 &"
WAIT = "for n in $(seq 100); do (echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep 0.05; done"


async def run(
    pool: SandboxPool, command: str, workspace: Path, limit: float = 20.0
) -> ProcessResult:
    return await pool.run(command, workspace, limit, lambda _: None)


@pytest.fixture
def port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# ---- what stays ----------------------------------------------------------------------------


@each
async def test_a_server_is_reached_by_the_next_command_and_from_outside(
    tier: Tier, tmp_path: Path, port: int
) -> None:
    pool = make_sandboxes(tier)
    (tmp_path / "page.txt").write_text("found")
    done = await run(pool, SERVER.format(port=port) + WAIT.format(port=port), tmp_path)
    assert done.exit_code == 0, done
    code = (
        f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/page.txt').read())"
    )
    assert "found" in (await run(pool, f'python3 -c "{code}"', tmp_path)).output
    reader, writer = await pool.connect(tmp_path, port)
    writer.write(b"GET /page.txt HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"found")
    writer.close()
    pool.halt(tmp_path)
    async with asyncio.timeout(PATIENCE):
        while (
            "free"
            not in (
                await run(pool, f"(echo > /dev/tcp/127.0.0.1/{port}) || echo free", tmp_path)
            ).output
        ):
            await asyncio.sleep(0.05)
    with pytest.raises(ToolFailed, match="Nothing answers at port"):
        await pool.connect(tmp_path, port)


DEAF = """import socket, time
server = socket.create_server(("127.0.0.1", {port}), backlog=0)
open("ready", "w").close()
time.sleep(60)
"""


@each
async def test_a_server_that_accepts_nothing_holds_up_nobody_else(
    tier: Tier, port: int, tmp_path: Path
) -> None:
    pool = make_sandboxes(tier)
    await run(pool, f"python3 - <<'X' >log 2>&1 &\n{DEAF.format(port=port)}\nX", tmp_path)
    await until((tmp_path / "ready").exists)
    tries = [asyncio.ensure_future(pool.connect(tmp_path, port)) for _ in range(30)]
    await asyncio.sleep(0)
    began = time.monotonic()
    assert (await run(pool, "echo fine", tmp_path)).output == "fine\n"
    assert time.monotonic() - began < 10, "30 waits of a second each"
    await run(pool, SERVER.format(port=port + 1), tmp_path)
    await run(pool, WAIT.format(port=port + 1), tmp_path)
    _, writer = await pool.connect(tmp_path, port + 1)
    writer.close()
    for one in tries:
        one.cancel()
    await asyncio.wait(tries)


@each
async def test_a_repository_has_nothing_of_the_gateways_folder(tier: Tier, tmp_path: Path) -> None:
    """Whatever lies there: outputs that all may read, copies that nobody may."""
    for name in ("outputs", "backups", "snapshots/ab"):
        place = tmp_path / OWN / name
        place.mkdir(parents=True)
        (place / "one.txt").write_text("kept")
    (tmp_path / OWN / "backups").chmod(0o700)
    (tmp_path / "mine.txt").write_text("mine")
    pool = make_sandboxes(tier)
    done = await run(pool, "git init -q . && git status --short", tmp_path)
    assert done.output == "?? mine.txt\n" and done.exit_code == 0
    done = await run(pool, "git add -A . && git ls-files", tmp_path)
    assert done.output == "mine.txt\n" and done.exit_code == 0
    await pool.close()


@contained
async def test_home_and_tmp_stay_and_belong_to_one_workspace(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    tmp = "cd ${TMPDIR:-/tmp}; "
    await run(pool, f"{tmp} echo a > a; echo b > ~/b", one)
    assert (await run(pool, f"{tmp} cat a ~/b", one)).output == "a\nb\n"
    assert (await run(pool, f"{tmp} ls . ~ | grep -x '[ab]'", other)).output == ""
    await pool.close()
    assert (await run(pool, f"{tmp} cat a ~/b", one)).output == "a\nb\n", "a lost one's come back"
    if tier.name != "landlock":
        assert (await run(pool, "ls -A .turnkeeper/sandbox | wc -l", one)).output == "0\n"
    await pool.close()
    os.utime(one / ".turnkeeper/sandbox", (1, 1))
    told = (await run(pool, f"{tmp} ls -A . ~ | grep -x '[ab]'", one)).output.splitlines()
    assert len(told) == 1 and "HOME and /tmp were not used for a day and begin empty" in told[0]


@each
async def test_much_goes_through_a_connection_both_ways(
    tier: Tier, tmp_path: Path, port: int
) -> None:
    """More than any window, read late: nothing is lost, and nothing else waits for it."""
    pool = make_sandboxes(tier)
    echo = (
        "import socket, threading\n"
        f"s = socket.create_server(('127.0.0.1', {port}))\n"
        "c = s.accept()[0]\n"
        "while d := c.recv(65536): c.sendall(d)\n"
    )
    (tmp_path / "echo.py").write_text(echo)
    await pool.start("python3 echo.py", tmp_path, 60)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                reader, writer = await pool.connect(tmp_path, port)
                break
            except ToolFailed:
                await asyncio.sleep(0.05)
    sent = os.urandom(1 << 20) * 8

    async def give() -> None:
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    giving = asyncio.ensure_future(give())
    await asyncio.sleep(0.2)
    assert (await run(pool, "echo quick", tmp_path)).output == "quick\n"
    assert await reader.read() == sent
    await giving
    writer.close()


@each
async def test_a_lost_sandbox_is_told_and_made_anew(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    running = await pool.start("echo begun; sleep 60", tmp_path, 60)
    async with asyncio.timeout(PATIENCE):
        while "begun" not in running.output():
            await asyncio.sleep(0.02)
    await pool.close()
    done = await running.wait(5)
    assert done is not None and done.exit_code == 137 and "[The sandbox ended.]" in done.output
    assert (await run(pool, "echo again", tmp_path)).output.endswith("again\n")


@each
async def test_who_comes_next_is_told_that_a_sandbox_was_lost(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    await run(pool, "true", tmp_path)
    pool._places[tmp_path, False].sandbox.link.close()  # type: ignore[union-attr]
    async with asyncio.timeout(PATIENCE):
        while not pool._places[tmp_path, False].sandbox.link.gone.done():  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
    told = (await run(pool, "echo first", tmp_path)).output
    assert told.startswith("[A new sandbox: the one before broke down.") and told.endswith(
        "first\n"
    )
    assert (await run(pool, "echo second", tmp_path)).output == "second\n"


@each
async def test_a_command_has_no_file_of_the_supervisors(tier: Tier, tmp_path: Path) -> None:
    """The gateway's loop leaves some open: with the link to the gateway, a command would have the
    secrets of others."""
    code = (
        "import os\n"
        "for n in range(200):\n"
        "  try: os.fstat(n); print(n, end=' ')\n"
        "  except OSError: pass"
    )
    pool = make_sandboxes(tier)
    done = await run(pool, f"python3 -I -c {shlex.quote(code)}", tmp_path)
    assert done.output == "0 1 2 "
    shell = await pool.open_shell(tmp_path, 10)
    ran = await shell.run(f"python3 -I -c {shlex.quote(code)}", 10, lambda _: None)
    assert ran.done.output == "0 1 2 "
    shell.close()


@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, UNSAFE], indirect=True)
async def test_the_interpreter_is_the_gateways_with_its_library(tier: Tier, tmp_path: Path) -> None:
    """The text comes from the shared library, where it has one: not from the machine's."""
    words = f"{tier.python} -I -c 'import sys; print(sys.version)'"
    done = await run(make_sandboxes(tier), words, tmp_path)
    assert done.output == f"{sys.version}\n"


async def test_an_idle_sandbox_ends(tmp_path: Path) -> None:
    pool = make_sandboxes(UnsafeTier(), idle=0.2)
    mark = a_mark()
    await run(pool, leave_behind(mark), tmp_path)
    await gone(mark)
    assert "was idle for" in (await run(pool, "true", tmp_path)).output


async def use_by_shell(pool: SandboxPool, place: Path) -> str:
    shell = await pool.open_shell(place, 20)
    said = [
        (await shell.run("sleep 0.3; echo one", 20, lambda _: None)).done.output for _ in range(4)
    ]
    return "".join(said)


async def use_long(pool: SandboxPool, place: Path) -> str:
    shell = await pool.open_shell(place, 20)
    return (await shell.run("sleep 1.2; echo one", 20, lambda _: None)).done.output


async def use_in_background(pool: SandboxPool, place: Path) -> str:
    done = await (await pool.start("sleep 1.2; echo one", place, 20)).wait(20)
    return done.output if done is not None else ""


@each
@pytest.mark.parametrize("use", [use_by_shell, use_long, use_in_background])
async def test_one_in_which_something_runs_is_not_idle(
    tier: Tier, use: Callable[[SandboxPool, Path], Awaitable[str]], tmp_path: Path
) -> None:
    pool = SandboxPool(tier, idle=0.6)
    try:
        assert (await use(pool, tmp_path)).startswith("one\n")
        await until(lambda: not pool._places)
    finally:
        await pool.close()


async def test_the_one_idle_longest_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MAX_OPEN", 2)
    pool = make_sandboxes(UnsafeTier())
    marks = [a_mark() for _ in range(3)]
    for n, mark in enumerate(marks):
        (tmp_path / str(n)).mkdir()
        await run(pool, leave_behind(mark), tmp_path / str(n))
    await gone(marks[0])
    assert alive(marks[1]) and alive(marks[2])


@each
async def test_nothing_is_left_of_a_killed_gateway(tier: Tier, tmp_path: Path) -> None:
    """The kernel tells the supervisor, whatever the gateway had no time for."""
    mark = a_mark()
    address = f"unix://{tier.facts.engine.socket}" if isinstance(tier, DockerTier) else ""
    made = f"await find_docker({address!r})" if address else f"{type(tier).__name__}()"
    code = f"""
        import asyncio
        from pathlib import Path
        from {type(tier).__module__} import *
        from agent_core.sandboxes.pool import SandboxPool

        async def main():
            pool, place = SandboxPool({made}), Path({str(tmp_path)!r})
            await pool.run("setsid sleep {mark} >/dev/null 2>&1 & disown", place, 5, print)
            await pool.start("(sleep {mark} & sleep {mark}) | cat", place, 60)
            await pool.run("sleep {mark}", place, 60, print)

        asyncio.run(main())
    """
    gateway = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    try:
        async with asyncio.timeout(PATIENCE):
            while len(alive(mark)) < 4:
                await asyncio.sleep(0.05)
    finally:
        gateway.send_signal(signal.SIGKILL)
        gateway.wait()
    await gone(mark)
    async with asyncio.timeout(PATIENCE):
        while address and list_containers(address):
            await asyncio.sleep(0.05)


async def test_a_supervisor_speaks_by_two_pipes_as_well() -> None:
    spec = SupervisorSpec(limits=SandboxLimits(), folders=())
    words = (sys.executable, "-I", "-S", "-c", SUPERVISOR.read_text(), spec.encode())
    one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert one.stdin and one.stdout

    def start(stream: int, command: str) -> None:
        given = {"argv": ["/bin/sh", "-c", command], "env": {}, "cwd": "/", "rlimits": {}}
        data = json.dumps(given | {"stdin": False, "channel": 0, "errors": False}).encode()
        one.stdin.write(supervisor.HEAD.pack(supervisor.START, stream, len(data)) + data)
        one.stdin.flush()

    def take() -> tuple[int, int, bytes]:
        kind, stream, length = supervisor.HEAD.unpack(one.stdout.read(supervisor.HEAD.size))
        return kind, stream, one.stdout.read(length)

    assert take()[0] == supervisor.READY
    start(1, "head -c 3000000 /dev/zero; cat; echo $(readlink /proc/self/fd/0)")
    got = b""
    while (frame := take())[0] != supervisor.EXIT:
        got += frame[2]
    assert len(got.rstrip(b"\n/devnul")) == 3_000_000 and got.endswith(b"/dev/null\n")
    mark = a_mark()
    start(3, f"sleep {mark} & setsid sleep {mark}")
    async with asyncio.timeout(PATIENCE):
        while len(alive(mark)) < 2:
            await asyncio.sleep(0.02)
    one.stdin.close()
    await gone(mark)
    one.wait(10)
    one.stdout.close()


# ---- what it keeps in ----------------------------------------------------------------------


OWN_WALLS = (
    "kill -9 1 && sleep 0.2 && ! kill -0 1",
    "kill -STOP 1; kill -INT 1; cat /proc/1/environ",
    "cat /proc/1/mem",
    "ls /proc/1/fd/",
    "taskset -pc 0 $$",
    "touch /usr/x",
    "touch /opt/turnkeeper/supervisor.py",
    "touch /etc/x",
    "su -c true",
    "renice 19 {pid}",
    "unshare --map-root-user true",
    "python3 -c 'import socket; socket.socket(40, 1)'",
)


@contained
async def test_what_keeps_it_in_is_out_of_reach(tier: Tier, tmp_path: Path) -> None:
    """What lies outside is tried in test_containment.py."""
    pool = make_sandboxes(tier)
    for attack in OWN_WALLS:
        done = await run(pool, attack.replace("{pid}", str(os.getpid())), tmp_path)
        assert done.exit_code != 0, (attack, done)
        assert (await run(pool, "echo alive", tmp_path)).output == "alive\n", attack


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "attack", ["touch .turnkeeper/x", "mv .turnkeeper y", "ls .turnkeeper/sandbox/home"]
)
async def test_what_the_gateway_keeps_is_out_of_reach(attack: str, tmp_path: Path) -> None:
    assert (await run(make_sandboxes(BwrapTier()), attack, tmp_path)).exit_code != 0


def test_each_machine_has_its_filter() -> None:
    assert len(build_filter("x86_64")) % 8 == 0 and len(build_filter("aarch64")) > 300
    assert build_filter("other") == build_guarded_filter(1, scoped=True, machine="other") == b""
    assert len(build_guarded_filter(1, scoped=False, machine="aarch64")) > 2_000


# ---- limits --------------------------------------------------------------------------------


HUNGRY = "python3 -c 'import time; x = bytearray({size} << 20); time.sleep(30)'"


@each
async def test_what_a_command_leaves_is_within_the_limits_too(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, SandboxLimits(memory=150 << 20))
    mark = a_mark()
    takes = HUNGRY.format(size=200)
    await run(pool, f"setsid sh -c '{takes.replace(chr(39), chr(34))}; sleep {mark}' &", tmp_path)
    await there(mark)
    assert (await run(pool, "echo fine", tmp_path)).output == "fine\n"


@pytest.mark.parametrize("tier", one_of(BWRAP, UNSAFE, DOCKER), indirect=True)
async def test_where_memory_is_short_the_kernel_ends_commands_first(
    tier: Tier, tmp_path: Path
) -> None:
    """Not the supervisor, which tells of that. A child inherits the score of its command."""
    scores = "cat /proc/$PPID/oom_score_adj /proc/self/oom_score_adj"
    told, ended = (await run(make_sandboxes(tier), scores, tmp_path)).output.split()
    assert int(told) < int(ended)


PREEMPTED = """
import os, time
from agent_core.sandboxes import supervisor as s

write = s.OomScore._write
def write_late(score, value):
    time.sleep(0.3 if value == score._own else 0)
    write(score, value)
s.OomScore._write = write_late
words = ("/bin/sh", "-c", "cat /proc/$PPID/oom_score_adj /proc/self/oom_score_adj")
pid = s.Ground().spawn({"argv": words, "env": {}, "cwd": "/", "rlimits": {}}, (-1, 1, -1, -1))
os.waitpid(pid, 0)
"""
"""A supervisor that has no processor while it should take its own score back."""


def test_a_command_begins_when_its_supervisor_has_its_own_score_again() -> None:
    done = subprocess.run((sys.executable, "-c", PREEMPTED), capture_output=True, text=True)
    told, ended = done.stdout.split()
    assert int(told) < int(ended), done.stderr


@each
async def test_what_a_command_left_behind_is_held_to_the_limits(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, SandboxLimits(memory=100 << 20))
    mark = a_mark()
    hungry = f"x = bytearray(60 << 20); import time; time.sleep({mark})"
    command = f"(setsid python3 -c '{hungry}' {mark} & setsid python3 -c '{hungry}' {mark} &) >/dev/null 2>&1"
    assert (await run(pool, command, tmp_path)).exit_code == 0
    await gone(mark)


SHARES = """python3 -c '
import mmap, os, time
held = [mmap.mmap(-1, {size} << 20) for _ in range({count})]
for one in held:
    one.write(bytes([1]) * len(one))
for _ in range({forks}):
    os.fork() or time.sleep(1) or os._exit(0)
time.sleep({seconds})
print("held")'"""


@pytest.mark.slow
@contained
async def test_memory_that_processes_share_counts_once(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, SandboxLimits(memory=100 << 20))
    takes = SHARES.format(size=40, count=1, forks=3, seconds=2)
    assert (await run(pool, takes, tmp_path)).output == "held\n"
    takes = SHARES.format(size=30, count=6, forks=0, seconds=60)
    assert "[Stopped: over 100 MB of memory in all.]" in (await run(pool, takes, tmp_path)).output
    assert (await run(pool, "echo fine", tmp_path)).output == "fine\n"


@pytest.mark.slow
@contained
async def test_files_without_end_are_too_much_though_they_are_empty(
    tier: Tier, tmp_path: Path
) -> None:
    pool = make_sandboxes(tier, SandboxLimits(disk=20 << 20))
    makes = "import os, time\nos.mkdir('many')\nfor n in range(10_000): os.mknod(f'many/{n}')\n"
    (tmp_path / "makes.py").write_text(f"{makes}time.sleep(60)\n")
    told = (await run(pool, "python3 makes.py", tmp_path)).output
    assert "[Stopped: over 20 MB of disk in all.]" in told
    await run(pool, "rm -r many; true", tmp_path)
    assert (await run(pool, "echo fine", tmp_path)).output == "fine\n"


HELD = "import mmap, os, time\n"
DISK = {
    "below more folders than a path can name": "for _ in range(40): os.mkdir('d' * 200); "
    "os.chdir('d' * 200)\n"
    "for n in range(3): open(f'f{n}', 'wb').write(bytes(20_000_000))\n",
    "in files without a name": "files = [open('f', 'wb', buffering=0) for n in range(3) "
    "if not (os.path.exists('f') and os.unlink('f'))]\n"
    "os.unlink('f')\nfor one in files: one.write(bytes(20_000_000))\n",
    "in one that is only mapped": "f = open('f', 'w+b'); f.truncate(60_000_000); "
    "m = mmap.mmap(f.fileno(), 0); f.close(); os.unlink('f')\n"
    "for at in range(0, 60_000_000, 4096): m[at] = 1\n",
}


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder whose files do not count as memory, as they would in /dev/shm."""
    with TemporaryDirectory(dir="/var/tmp") as made:  # noqa: S108  # for a test
        yield Path(made)


@pytest.mark.pick("disks of sandboxes", 2)
@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, DOCKER], indirect=True)
@pytest.mark.parametrize("fills", DISK.values(), ids=DISK.keys())
async def test_a_disk_is_filled_nowhere_beyond_the_limit(
    tier: Tier, fills: str, on_disk: Path
) -> None:
    pool = make_sandboxes(tier, SandboxLimits(disk=40 << 20))
    (on_disk / "fills.py").write_text(f"{HELD}{fills}time.sleep(60)\n")
    told = (await run(pool, "python3 fills.py", on_disk)).output
    assert "[Stopped: over 40 MB of disk in all.]" in told
    await run(pool, "rm -rf d*; true", on_disk)
    assert (await run(pool, "echo fine", on_disk)).output.endswith("fine\n")


@contained
async def test_two_processors_at_most(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, SandboxLimits(cpus=1))
    assert (await run(pool, "nproc", tmp_path)).output == "1\n"


# ---- the self-test -------------------------------------------------------------------------


@contained
async def test_a_tier_that_contains_is_found_to(tier: Tier) -> None:
    pool = make_sandboxes(tier)
    assert not pool.contains
    await pool.check()
    assert pool.contains and pool.leaks == ()
    found = await find_leaks(make_sandboxes(tier, PROBE_LIMITS), tier)
    assert set(found) == tier.cannot, "what it says of itself is so"


class LooseTier(BwrapTier):
    """Without one of its walls: the words at which it is called, and how many of them go."""

    def __init__(self, word: str, count: int = 1, more: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.word, self.count, self.more = word, count, more

    def enclose(self, workspace: Path, refusals: int, *, root: bool) -> tuple[str, ...]:
        words = super().enclose(workspace, refusals, root=root)
        at = words.index(self.word)
        return (*words[:at], *words[at + self.count :], *self.more)


TMP = ("--bind", "/tmp", "/tmp")


@NEEDS_BWRAP
@pytest.mark.skipif(os.geteuid() != 0, reason="the words differ where a user namespace is made")
@pytest.mark.parametrize(
    ("loose", "leaks"),
    [
        (LooseTier("--unshare-net"), {"network", "sockets"}),
        (LooseTier("--as-pid-1", 1), set()),
        (LooseTier("--seccomp", 2), {"namespaces"}),
        (LooseTier("--chdir", 0, TMP), {"files", "names", "sockets"}),
    ],
    ids=["network", "first process", "filter", "files"],
)  # fmt: skip
@pytest.mark.parametrize("longest", [False, True])
async def test_what_leaks_is_found(
    loose: Tier,
    leaks: set[str],
    longest: bool,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Also in a temporary folder whose path is too long for a socket's address."""
    if longest:
        made = tempfile.TemporaryDirectory(prefix="t" * 108, dir="/tmp")
        request.addfinalizer(made.cleanup)
        os.chmod(made.name, 0o755)  # so that only the tier is in the way
        monkeypatch.setattr(tempfile, "tempdir", made.name)
    monkeypatch.setattr(bwrap, "PORT", free_port())  # where the network is this machine's
    pool = make_sandboxes(loose)
    await pool.check()
    assert set(pool.leaks) == leaks and pool.contains is not bool(leaks)


class FullPool(SandboxPool):
    """Whose commands meet a limit, which is said below what they print."""

    async def run(self, *given: Any, **named: Any) -> ProcessResult:
        done = await super().run(*given, **named)
        return replace(done, output=f"{done.output}\n\n[Stopped: over 5 GB of disk in all.]")


@NEEDS_BWRAP
async def test_what_leaks_is_read_also_where_a_limit_is_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bwrap, "PORT", free_port())  # where the network is this machine's
    loose = LooseTier("--unshare-net") if os.geteuid() == 0 else BwrapTier()
    plain = await find_leaks(make_sandboxes(loose, PROBE_LIMITS), loose)
    assert await find_leaks(FullPool(loose, PROBE_LIMITS), loose) == plain != ("start",)


class KillingPool(SandboxPool):
    """In which the kernel ends every process that takes memory, at once."""

    async def run(self, command: str, *_: Any) -> ProcessResult:
        shell = await asyncio.create_subprocess_exec("/bin/bash", "-c", command)
        code = await shell.wait()
        reason = "memory" if "bytearray" in command and code else "processes"
        return ProcessResult(exit_code=code, output=PROBE_LIMITS.describe(reason), timed_out=False)


async def test_a_limit_by_which_all_is_ended_counts_as_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell that waits for them tells that they failed."""
    monkeypatch.setattr(self_test, "_FORKS", "true")
    monkeypatch.setattr(UnsafeTier, "python", "sh -c 'kill -9 $$' --")
    tier = UnsafeTier()
    found = await self_test._find_loose_limits(KillingPool(tier, PROBE_LIMITS), tier, tmp_path)
    assert found == []


async def test_one_that_claims_nothing_is_not_tried() -> None:
    pool = make_sandboxes(UnsafeTier())
    await pool.check()
    assert not pool.contains and pool.leaks == ()
