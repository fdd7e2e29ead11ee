"""What each tier keeps in: attacks, each tried for real in every tier that starts on this machine.

The rows are what `docs/security.md` says: `GOLDENS=write pytest tests/agent_core/test_containment.py`
writes its table anew. Where nothing isolates, each attack gets through: so each row can fail.
"""

import ctypes
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.docker.tier import DockerTier
from agent_core.sandboxes.landlock import calls
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.monty.tier import MontyTier
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.tier import Leak, Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools import paths
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.fakes.processes import a_mark, alive, gone, there
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, UNSAFE, make_sandboxes
from tests.sampling import some_and_every, take

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
MARKED = re.compile(r"(<!-- containment -->\n).*?(<!-- end -->\n)", re.DOTALL)
TIERS: tuple[type[Tier], ...] = (BwrapTier, DockerTier, LandlockTier, MontyTier)
HELD, OPEN = "held", "**open**"
CODE = ".turnkeeper/code/code.py"
SYSTEM_ADMIN = 21
"""The capability to mount."""
NEAR, SIX = ("127.0.0.1", 0), ("::1", 0)


def has_six() -> bool:
    """The machine has a localhost by IPv6."""
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(SIX)
        except OSError:
            return False
    return True


def has_vsock() -> bool:
    """The kernel has sockets to the machine that hosts it."""
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


HAS_SIX = socket.has_ipv6 and has_six()
FAMILY = socket.AF_INET6 if HAS_SIX else socket.AF_INET
CALL = """import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    done = libc.syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in words))
    sys.exit(done < 0 and ctypes.get_errno() in (errno.EPERM, errno.EACCES, errno.ENOENT, errno.ENOSYS, errno.ESRCH))
"""
CONNECT = """import socket
def connect(family, address, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.settimeout(2)
    s.connect(address)
"""


def python(code: str) -> str:
    """A command that runs code; it ends with 0 where the code does."""
    return f"python3 -I - <<'X'\n{code}\nX"


class Attack(NamedTuple):
    """`about`: what it tries, as the page says it. `command` ends with 0 if it got through; facts
    of the bait stand in braces. `of`: what a tier may say that it cannot keep; `code`: the same for
    a tier of Python alone, which has no commands. `root`: it needs rights to get through at all."""

    about: str
    command: str
    of: Leak | None = None
    code: str = ""
    root: bool = False

    def is_held(self, tier: type[Tier]) -> bool:
        """What the page says."""
        return self.of is None or self.of not in tier.cannot


FILES = (
    Attack(
        "read a file outside that anybody may read",
        "cat {outside}/file",
        code="print(open('{outside}/file').read())",
    ),
    Attack(
        "read a file of the gateway's",
        "cat {outside}/secret",
        code="print(open('../../../../../../{outside}/secret').read())",
    ),
    Attack(
        "read the machine's passwords",
        "grep root /etc/shadow",
        code="open('/etc/shadow')",
        root=True,
    ),
    Attack("list a folder outside", "ls {outside}", code="import os; os.listdir('{outside}')"),
    Attack(
        "ask for a file's size and date whose path is known",
        "stat {outside}/file",
        of="names",
        code="import os; os.stat('{outside}/file')",
    ),
    Attack(
        "write to a file outside",
        "echo x >> {outside}/file",
    ),
    Attack("make a file outside", "touch {outside}/new"),
    Attack("change a file's mode outside", "chmod 600 {outside}/file"),
    Attack("change a file's date outside", "touch -d 2001-01-01 {outside}/file"),
    Attack("move a file from outside", "mv {outside}/moved ."),
    Attack(
        "follow a link that it puts into the workspace",
        "ln -s {outside} way && cat way/file",
        code="print(open('link/file').read())",
    ),
    Attack("link a file from outside (a hard link)", "ln {outside}/file mine && cat mine"),
    Attack("reach files by another process's folder", "cat /proc/{pid}/cwd/file"),
    Attack(
        "have a git hook run outside",
        "git init -q . && printf '#!/bin/sh\\ntouch {outside}/hooked\\n' "
        "> .git/hooks/pre-commit && chmod 755 .git/hooks/pre-commit && git -c user.name=a "
        "-c user.email=a@b commit -q --allow-empty -m x && test -e {outside}/hooked",
    ),
    Attack(
        "have root's rights by a set-uid file",
        "set -- ./rights -p -c 'test $(id -u) = 0'; "
        'setpriv --reuid=65534 true 2>/dev/null && set -- setpriv --reuid=65534 "$@"; "$@"',
        root=True,
    ),
    Attack("make a device", "mknod device c 1 3 && echo x > device", root=True),
    Attack(
        "change the gateway's copies for undo", "mv .turnkeeper x && mv x .turnkeeper", of="copies"
    ),
    Attack(
        "read a secret file in the workspace (`.env`) without being asked about",
        "grep secret .env",
        of="secrets",
        code="print(open('.env').read())",
    ),
)
OTHERS = (
    Attack("read another conversation's workspace", "cat {other}/note", code="open('{other}/note')"),
    Attack("read another conversation's HOME", "cat {other}/.turnkeeper/sandbox/home/note"),
    Attack("reach another conversation's server", "true < /dev/tcp/127.0.0.1/{served}"),
    Attack("end what another conversation runs", "kill -9 {theirs}"),
    Attack("see that another process exists", "test -d /proc/{pid}", of="processes"),
    Attack("read the words that another process was called with", "cat /proc/{pid}/cmdline"),
    Attack(
        "read another process's environment (the gateway's keys)",
        "grep -q canary /proc/{pid}/environ",
        code="import os\nassert os.environ",
    ),
    Attack(
        "read another process's memory",
        python(f"{CALL}b = ctypes.create_string_buffer(16)\n"
               "call(310, {pid}, (ctypes.c_void_p * 2)(ctypes.addressof(b), 16), 1, "
               "(ctypes.c_void_p * 2)(ctypes.addressof(b), 16), 1, 0)"),
        code="import ctypes",
        root=True,
    ),
    Attack("trace another process", python(f"{CALL}call(101, 0x4206, {{pid}}, 0, 0)"), root=True),
    Attack("send another process a signal", "kill -0 {pid}", code="import os\nos.kill({pid}, 0)"),
    Attack("end another process", "kill -9 {prey}", code="import os\nos.kill({prey}, 9)"),
    Attack("change another process's limits",
           "python3 -c 'import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE)'"),
    Attack("share memory with the machine's programs", python(f"{CALL}call(29, {{key}}, 0, 0)")),
    Attack("put keys where others' commands find them", python(f"{CALL}call(250, 0, -4, 1, 0, 0)")),
)  # fmt: skip
VSOCK = "reach the machine that hosts this one (AF_VSOCK)"
NETWORK = (
    Attack("reach a server at this machine's localhost", "true < /dev/tcp/127.0.0.1/{port}",
           code="import socket"),
    Attack("reach it by IPv6", "true < /dev/tcp/::1/{six}"),
    Attack("reach it by the machine's own address", "true < /dev/tcp/{host}/{wide}"),
    Attack("send datagrams", "echo x > /dev/udp/{host}/{wide}"),
    Attack("find a way to other machines, and to a cloud's metadata",
           python(f"{CONNECT}connect(2, ('169.254.169.254', 80), socket.SOCK_DGRAM)")),
    Attack("reach a Unix socket of the machine", python(f"{CONNECT}connect(1, '{{outside}}/socket')")),
    Attack("reach one without a file (abstract)", python(f"{CONNECT}connect(1, chr(0) + '{{abstract}}')")),
    Attack("open raw packets", python("import socket; socket.socket(17, 3)"), root=True),
    Attack(VSOCK, python("import socket; socket.socket(40, 1)")),
    Attack("listen to the kernel's devices and firewall (AF_NETLINK)",
           python("import socket; [socket.socket(16, 3, one) for one in (15, 12)]")),
    Attack("see the machine's network interfaces",
           python("import socket\nif len(socket.if_nameindex()) < 2: raise SystemExit(1)")),
)  # fmt: skip
KERNEL = (
    Attack("make a user namespace", "unshare --user true", root=True),
    Attack("mount something", "mkdir -p m && mount -t tmpfs none m && umount m", root=True),
    Attack("load code into the kernel (BPF)", python(f"{CALL}call(321, 0, 0, 0)"), root=True),
    Attack("use io_uring", python(f"{CALL}call(425, 8, 0)")),
    Attack("watch page faults (userfaultfd)", python(f"{CALL}call(323, 0)"), root=True),
    Attack("measure other processes (perf)", python(f"{CALL}call(298, 0, 0, -1, -1, 0)"), root=True),
    Attack("change a setting of the kernel",
           "cat /proc/sys/vm/swappiness > v && cat v > /proc/sys/vm/swappiness", root=True),
    Attack("make a control group",
           "for at in /sys/fs/cgroup/pids /sys/fs/cgroup; do mkdir $at/turnkeeper-test-{pid} && "
           "rmdir $at/turnkeeper-test-{pid} && exit 0; done; exit 1", root=True),
    Attack("leave its control group, with its limits",
           "for at in /sys/fs/cgroup/pids /sys/fs/cgroup; do echo 0 >$at/cgroup.procs && exit 0; "
           "done; exit 1", root=True),
    Attack("read the machine's memory or log", "dd if=/dev/mem bs=1 count=1 || dd if=/dev/kmsg bs=8192 count=1", root=True),
    Attack("rename the machine",
           python("import socket; socket.sethostname(socket.gethostname())"), root=True),
    Attack("change a program of the system", "touch -c -a /usr/bin/env", root=True),
)  # fmt: skip
ATTACKS = {"files": FILES, "others": OTHERS, "network": NETWORK, "kernel": KERNEL}
ALL = [one for part in ATTACKS.values() for one in part]


class Limit(NamedTuple):
    """`command` takes more than `LIMITS`, and is told so; with wide ones it ends with 0."""

    about: str
    command: str
    told: str


LIMITS = SandboxLimits(memory=200 << 20, disk=64 << 20, processes=40)
_TAKE = "python3 -c 'import time; x = bytearray({size} << 20); time.sleep(2)'"
KEPT = (
    Limit("take more memory than the limit, by several processes",
          " & ".join([_TAKE.format(size=60)] * 5) + " & wait", "over 200 MB of memory in all"),
    Limit("take it by a session of its own",
          f"setsid {_TAKE.format(size=180)} & {_TAKE.format(size=100)}", "over 200 MB of memory"),
    Limit("make more processes than the limit", "for n in $(seq 60); do sleep 2 & done; wait",
          "over 40 processes in all"),
    Limit("fill the disk beyond the limit",
          "for n in 1 2 3; do head -c 30000000 /dev/zero > f$n; done; sleep 4", "over 64 MB of disk"),
)  # fmt: skip
LOOSE = (
    "x = 'x' * (2 << 30)",
    "def climb():\n    return climb()\nclimb()",
    "while True:\n    pass",
)
LEFT = "leave a process behind when the gateway ends it"


# ---- what lies outside ---------------------------------------------------------------------


class Bait(NamedTuple):
    """What must not be reached. `facts` stand in attacks."""

    facts: dict[str, object]
    outside: Path

    def fill(self, command: str) -> str:
        for name, value in self.facts.items():
            command = command.replace(f"{{{name}}}", str(value))
        return command


@contextmanager
def lay_bait(folder: Path) -> Iterator[Bait]:
    """Files, servers and processes of this machine; `folder` holds the workspaces too."""
    outside, other = folder / "outside", folder / "other"
    (other / ".turnkeeper/sandbox/home").mkdir(parents=True, exist_ok=True)
    outside.mkdir()
    for name in ("file", "moved", "secret"):
        (outside / name).write_text("x")
        (outside / name).chmod(0o600 if name == "secret" else 0o666)
    for place in (other, other / ".turnkeeper/sandbox/home"):
        (place / "note").write_text("x")
    outside.chmod(0o777)
    words = ["/bin/sleep", "600"]
    processes = [subprocess.Popen(words, cwd=outside, env={"canary": "x"}) for _ in range(2)]
    libc, key = ctypes.CDLL(None, use_errno=True), 0x7000_0000 | os.getpid()
    segment = libc.shmget(key, 4096, 0o1666)
    abstract = f"turnkeeper-{os.getpid()}"
    try:
        with (
            socket.create_server(NEAR) as near,
            socket.create_server(SIX if HAS_SIX else NEAR, family=FAMILY) as six,
            socket.create_server(("", 0)) as wide,
            socket.socket(socket.AF_UNIX) as named,
            socket.socket(socket.AF_UNIX) as nameless,
        ):
            named.bind(f"{outside}/socket")
            nameless.bind(f"\0{abstract}")
            for one in (named, nameless):
                one.listen()
            (outside / "socket").chmod(0o777)
            ports = {"port": near, "six": six, "wide": wide}
            pids = dict(zip(("pid", "prey"), (one.pid for one in processes), strict=True))
            facts: dict[str, object] = {"outside": outside, "other": other, "key": key, **pids}
            facts |= {name: one.getsockname()[1] for name, one in ports.items()}
            yield Bait(facts | {"abstract": abstract, "host": find_address()}, outside)
    finally:
        libc.shmctl(segment, 0, None)
        for one in processes:
            one.kill()
            one.wait()


def find_address() -> str:
    """The machine's own address, as others see it."""
    found = (one for all_ in psutil.net_if_addrs().values() for one in all_)
    known = [one.address for one in found if one.family == socket.AF_INET]
    return min(known, key=lambda one: one.startswith("127."))


def look(outside: Path) -> dict[str, object]:
    """What stands there."""
    return {
        one.name: (one.stat().st_mode, one.stat().st_mtime, one.stat().st_size)
        for one in sorted(outside.iterdir())
    }


async def run(pool: SandboxPool, command: str, place: Path, limit: float = 30.0) -> ProcessResult:
    return await pool.run(command, place, limit, lambda _: None)


async def run_code(pool: SandboxPool, code: str, place: Path, limit: float = 30.0) -> ProcessResult:
    """As the tools for code do."""
    paths.put_file(place, place / CODE, code.encode(), 0o644)
    return await run(pool, f"PYTHONPATH=. exec python3 -u {CODE}", place, limit)


SERVE = """import socket, os
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True: s.accept()[0].sendall(b"through")
"""


async def open_other(pool: SandboxPool, bait: Bait) -> dict[str, object]:
    """Have another conversation's sandbox run a server: its port, its process."""
    other, mark = Path(str(bait.facts["other"])), a_mark()
    serve = f"python3 -u -c {shlex.quote(SERVE)} {mark} >port 2>&1 & until [ -s port ]; do :; done"
    done = await run(pool, f"{serve}; cat port", other)
    assert done.exit_code == 0, done
    return {"served": done.output.split()[-1], "theirs": alive(mark)[0].pid}


def prepare(place: Path) -> None:
    """What a workspace holds before the first attack."""
    (place / ".turnkeeper").mkdir(exist_ok=True)
    (place / ".env").write_text("secret")
    (place / "link").symlink_to(place.parent / "outside")
    (place / "rights").write_bytes(Path("/bin/sh").read_bytes())
    (place / "rights").chmod(0o4755)


async def find_through(
    pool: SandboxPool, tier: Tier, attacks: list[Attack], folder: Path
) -> dict[str, ProcessResult]:
    """The attacks that got through, each with how it went."""
    place = folder / "workspace"
    place.mkdir()
    folder.chmod(0o755)
    through = {}
    with lay_bait(folder) as bait:
        await run(pool, "true", place)
        prepare(place)
        before = look(bait.outside)
        if not isinstance(tier, MontyTier):
            bait.facts.update(await open_other(pool, bait))
        for one in attacks:
            alone = isinstance(tier, MontyTier) and one.code
            work = run_code(pool, bait.fill(one.code), place) if alone else None
            done = await (work or run(pool, bait.fill(one.command), place))
            if done.exit_code == 0:
                through[one.about] = done
        if tier.isolated:
            assert look(bait.outside) == before
    return through


def list_able() -> list[Attack]:
    """The attacks that get through where nothing isolates: some need rights, some a network."""
    has_rights = os.geteuid() == 0 and SYSTEM_ADMIN in calls.list_capabilities()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:
        has_way = far.connect_ex(("169.254.169.254", 80)) == 0
    lacks = (
        *(("IPv6", HAS_SIX), ("AF_VSOCK", has_vsock())),
        *(("to other machines", has_way), ("network interfaces", has_way)),
    )
    return [
        one
        for one in ALL
        if (has_rights or not one.root)
        and not any(words in one.about and not has for words, has in lacks)
    ]


# ---- each row, in each tier ----------------------------------------------------------------

SOME = 8
"""Attacks that a quick run tries in a tier."""
in_each = pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, DOCKER], indirect=True)


@in_each
@some_and_every(SOME)
async def test_an_attack_gets_no_further_than_the_page_says(
    tier: Tier, some: int, tmp_path: Path
) -> None:
    tried = take(ALL, some or len(ALL), "containment", tier.name)
    through = await find_through(make_sandboxes(tier), tier, tried, tmp_path)
    said = [one.about for one in tried if not one.is_held(type(tier))]
    assert list(through) == said, through


@pytest.mark.slow
async def test_python_alone_gets_no_further(tmp_path: Path) -> None:
    pytest.importorskip("pydantic_monty")
    tier = MontyTier()
    assert not await find_through(make_sandboxes(tier), tier, ALL, tmp_path)


@some_and_every(SOME)
async def test_each_attack_gets_through_where_nothing_isolates(some: int, tmp_path: Path) -> None:
    """Else a row would say nothing."""
    able = list_able()
    tried = take(able, some or len(able), "containment", "none")
    tier = UnsafeTier()
    through = await find_through(make_sandboxes(tier), tier, tried, tmp_path)
    assert list(through) == [one.about for one in tried]


# ---- limits --------------------------------------------------------------------------------


@pytest.mark.pick("limits of sandboxes", 3)
@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, UNSAFE, DOCKER], indirect=True)
@pytest.mark.parametrize("limit", KEPT, ids=[one.about for one in KEPT])
async def test_a_limit_that_is_met_is_told(tier: Tier, limit: Limit, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, LIMITS)
    other = await pool.start("sleep 60; echo fine", tmp_path, 120)
    done = await run(pool, limit.command, tmp_path, 60)
    assert limit.told in done.output and not done.timed_out, done
    if "disk" not in limit.told:
        assert other.done is None, "what took little goes on"
    other.kill()


@NEEDS_BWRAP
@NEEDS_LANDLOCK
@pytest.mark.slow
@pytest.mark.timeout(420)
async def test_no_more_than_5_gb_of_disk_are_taken(tmp_path: Path) -> None:
    """Six are written within the limits of the product; in one tier after the other, so that a disk
    with 7 suffices."""
    fill = "for n in 1 2 3 4 5 6; do dd if=/dev/zero of=f$n bs=8M count=128 status=none; done"
    for tier in (BwrapTier(), LandlockTier()):
        pool, place = make_sandboxes(tier), tmp_path / tier.name
        place.mkdir()
        try:
            done = await run(pool, f"{fill}; sleep 9; echo written", place, 180)
            taken = sum(one.stat().st_blocks * 512 for one in place.glob("f?"))
            after = await run(pool, "rm f? && echo on", place, 60)
        finally:
            await pool.close()
            shutil.rmtree(place)
        assert "over 5 GB of disk in all" in done.output, (tier.name, done)
        assert "written" not in done.output and not done.timed_out, (tier.name, done)
        assert 4 << 30 < taken <= 6 << 30, tier.name
        assert after.output == "on\n", (tier.name, after)


@pytest.mark.slow
@pytest.mark.parametrize("limit", KEPT, ids=[one.about for one in KEPT])
async def test_what_is_within_the_limits_is_not_stopped(limit: Limit, tmp_path: Path) -> None:
    done = await run(make_sandboxes(UnsafeTier()), limit.command, tmp_path, 60)
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("code", LOOSE)
async def test_python_alone_has_limits(code: str, tmp_path: Path) -> None:
    pytest.importorskip("pydantic_monty")
    done = await run_code(make_sandboxes(MontyTier()), code, tmp_path, 3)
    assert done.exit_code != 0 and re.search("MemoryError|RecursionError|Time|over|^$", done.output)


@pytest.mark.pick("sandboxes that are closed")
@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, UNSAFE, DOCKER], indirect=True)
async def test_nothing_is_left_when_it_is_closed(tier: Tier, tmp_path: Path) -> None:
    pool, mark = make_sandboxes(tier), a_mark()
    await run(pool, f"setsid sh -c 'sleep {mark} & wait' >/dev/null 2>&1 &", tmp_path)
    await there(mark)
    await pool.close()
    await gone(mark)


# ---- what the page says --------------------------------------------------------------------


def write_table() -> str:
    """The table of the page."""
    tiers = (*TIERS, UnsafeTier)
    lines = ["| what runs inside tries to | " + " | ".join(one.name for one in tiers) + " |"]
    lines.append("| --- |" + " --- |" * len(tiers))
    for one in ALL:
        cells = [HELD if tier.isolated and one.is_held(tier) else OPEN for tier in tiers]
        lines.append(f"| {one.about} | {' | '.join(cells)} |")
    everywhere = f" | {' | '.join([HELD] * len(tiers))} |"
    lines += [f"| {about}{everywhere}" for about in (*(one.about for one in KEPT), LEFT)]
    return "\n".join(lines)


def test_the_page_says_what_is_tried() -> None:
    page = PAGE.read_text()
    written, places = MARKED.subn(lambda at: f"{at[1]}\n{write_table()}\n\n{at[2]}", page)
    assert places == 1
    if os.environ.get("GOLDENS") == "write":
        PAGE.write_text(written)
    assert PAGE.read_text() == written, "GOLDENS=write writes the table anew"


def test_each_thing_that_a_tier_cannot_keep_stands_in_its_words_and_in_a_row() -> None:
    said = {tier.name: {one.of for one in ALL if one.of in tier.cannot} for tier in TIERS}
    assert said == {tier.name: set(tier.cannot) for tier in TIERS}
    page = PAGE.read_text().partition("Its limitations compared with bubblewrap:")[2]
    told = {"processes": "hide that other processes exist", "copies": "keep `.turnkeeper`",
            "names": "hide that files exist", "secrets": "hide secret files"}  # fmt: skip
    assert all(words in page for words in told.values()) and told.keys() == LandlockTier.cannot
