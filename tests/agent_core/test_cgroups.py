"""Control groups: where they may be made, what is written into them, and that the kernel holds it.

Both versions are tried for real where this machine lets groups be made: of version 2, where pytest
is alone in a group of its own. What is written is tried on folders of the test's own everywhere.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.cgroups.groups import (
    PREFIX,
    ControlGroups,
    SandboxGroup,
    open_control_groups,
    remove_left,
)
from agent_core.sandboxes.cgroups.hierarchy import GroupPlace, find_places, read_processes
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.fakes.processes import a_mark, alive, gone, there
from tests.fakes.sandboxes import can_make_groups, make_sandboxes
from tests.fakes.waiting import PATIENCE, until
from tests.sampling import one_of

ALL = frozenset({"cpu", "memory", "pids"})
LIMITS = SandboxLimits(memory=200 << 20, processes=40, cpus=1)
NEEDS_GROUPS = pytest.mark.skipif(
    not can_make_groups(), reason="control groups for memory and pids cannot be made here"
)
UNIFIED = Path("/sys/fs/cgroup/unified")
NEEDS_UNIFIED = pytest.mark.skipif(
    not os.access(UNIFIED, os.W_OK), reason="version 2 is not writable beside version 1 here"
)


# ---- where ---------------------------------------------------------------------------------


class Machine:
    """A machine's hierarchies below a folder, as the kernel shows them to a process."""

    def __init__(self, root: Path) -> None:
        self.root, self.proc = root, root / "proc"
        self.proc.mkdir()
        self._mounts, self._own = list[str](), list[str]()
        self.show()

    def add(self, number: int, names: str, path: str, root: str = "/", options: str = "rw") -> Path:
        """Mount a hierarchy whose `root` is shown, this process in its group `path`; the place
        where it is mounted."""
        place = self.root / f"of {names or 'all'}"
        place.mkdir()
        kind, more = ("cgroup", f",{names}") if number else ("cgroup2", "")
        shown = str(place).replace(" ", "\\040")
        self._mounts.append(f"3{number} 31 0:9 {root} {shown} rw,nosuid - {kind} x {options}{more}")
        self._own.append(f"{number}:{names}:{path}")
        self.show()
        return place

    def show(self) -> None:
        others = ["23 1 8:1 / / rw - ext4 /dev/sda rw"]
        (self.proc / "mountinfo").write_text("\n".join(others + self._mounts))
        (self.proc / "cgroup").write_text("\n".join(self._own))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_of_version_1_each_controller_has_its_place(machine: Machine) -> None:
    memory = machine.add(4, "memory", "/outer/own", root="/outer")
    cpu = machine.add(3, "cpu,cpuacct", "/")
    (memory / "own").mkdir()
    machine.add(2, "freezer", "/")
    machine.add(5, "pids", "/elsewhere", root="/docker/1")
    assert find_places(machine.proc) == [
        GroupPlace(memory / "own", frozenset({"memory"}), False),
        GroupPlace(cpu, frozenset({"cpu"}), False),
    ], "what is mounted without the own group is no place"


def test_a_machine_without_control_groups_has_no_place(machine: Machine) -> None:
    assert find_places(machine.proc) == [] == find_places(machine.root / "nothing")


def lay_unified(machine: Machine, controllers: str, *processes: int) -> Path:
    own = machine.add(0, "", "/service") / "service"
    own.mkdir()
    (own / "cgroup.controllers").write_text(controllers)
    (own / "cgroup.procs").write_text("".join(f"{one}\n" for one in processes))
    return own


def test_of_version_2_the_gateway_moves_into_a_leaf_first(machine: Machine) -> None:
    with subprocess.Popen(("/bin/cat",), stdin=subprocess.PIPE) as child:
        own = lay_unified(machine, "cpuset cpu io memory pids\n", os.getpid(), child.pid)
        assert find_places(machine.proc) == [GroupPlace(own, ALL, True)]
    moved = (own / "turnkeeper.gateway/cgroup.procs").read_text()
    assert moved == str(child.pid), "one write a process, the last one stays in a plain file"
    assert (own / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_of_version_2_one_that_moved_already_has_the_group_above(machine: Machine) -> None:
    own = machine.add(0, "", "/service/turnkeeper.gateway") / "service"
    (own / "turnkeeper.gateway").mkdir(parents=True)
    (own / "turnkeeper.gateway/cgroup.procs").write_text(f"{os.getpid()}\n{os.getppid()}\n")
    (own / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert find_places(machine.proc) == [GroupPlace(own, ALL, True)]
    assert [one.name for one in (own / "turnkeeper.gateway").iterdir()] == ["cgroup.procs"]


def test_a_group_that_holds_others_processes_is_left_as_it_is(machine: Machine) -> None:
    own = lay_unified(machine, "cpu memory pids", os.getpid(), os.getppid())
    assert find_places(machine.proc) == []
    assert {one.name for one in own.iterdir()} == {"cgroup.controllers", "cgroup.procs"}


def test_where_both_versions_are_version_2_has_what_is_left(machine: Machine) -> None:
    pids = machine.add(8, "pids", "/")
    own = lay_unified(machine, "memory pids", os.getpid())
    left = GroupPlace(own, frozenset({"memory"}), True)
    assert find_places(machine.proc) == [GroupPlace(pids, frozenset({"pids"}), False), left]
    assert (own / "cgroup.subtree_control").read_text() == "+memory"


# ---- what is written -----------------------------------------------------------------------


def read_all(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in folder.iterdir() if one.is_file()}


@pytest.mark.parametrize("unified", [True, False])
def test_a_sandbox_has_its_limits_and_all_of_them_a_share(unified: bool, tmp_path: Path) -> None:
    groups = ControlGroups([GroupPlace(tmp_path, ALL, unified)])
    (own,) = tmp_path.iterdir()
    group = groups.open(LIMITS)
    assert groups.limit_holder == "kernel" and own.name.startswith(PREFIX)
    size = str(200 << 20)
    if unified:
        assert read_all(own) == {
            "cgroup.subtree_control": "+cpu +memory +pids",
            "cpu.weight": "50",
        }
        assert read_all(own / "1") == {
            "cpu.max": "100000 100000", "memory.max": size, "memory.swap.max": "0",
            "pids.max": "144",
        }  # fmt: skip
    else:
        assert read_all(own) == {"cpu.shares": "512"}
        assert read_all(own / "1") == {
            "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000",
            "memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size, "pids.max": "144",
        }  # fmt: skip
    assert str(own / "1/cgroup.procs") in group.entry


def test_without_a_group_a_sandbox_runs_all_the_same(tmp_path: Path) -> None:
    groups = ControlGroups([GroupPlace(tmp_path, ALL, True)])
    (own,) = tmp_path.iterdir()
    (own / "1").write_text("in the way")
    group = groups.open(LIMITS)
    assert group.entry == () and group.open_counters() == {}
    assert groups.open(LIMITS).entry, "the next one has one again"


def test_only_groups_whose_gateway_is_gone_are_removed(tmp_path: Path) -> None:
    ControlGroups([GroupPlace(tmp_path, frozenset(), False)])
    living = set(tmp_path.iterdir())
    for name in (f"{PREFIX}gone", "other"):
        (tmp_path / name / "1").mkdir(parents=True)
    for one in (tmp_path / f"{PREFIX}gone").rglob("*"):
        assert one.is_dir()
    remove_left(tmp_path)
    assert set(tmp_path.iterdir()) == living | {tmp_path / "other"}


def test_a_group_that_was_taken_for_a_leftover_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(prefix: str, dir: Path) -> str:
        own = dir / f"{prefix}{len(made)}"
        own.mkdir()
        made.append(own)
        if len(made) < 3:
            own.rmdir()
        return str(own)

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    groups = ControlGroups([GroupPlace(tmp_path, frozenset(), False)])
    assert find_folders(groups) == [made[2]] == list(tmp_path.iterdir())


# ---- the kernel ----------------------------------------------------------------------------


@pytest.fixture
def groups() -> Iterator[ControlGroups]:
    made = open_control_groups()
    yield made
    made.close()


def find_folders(groups: ControlGroups) -> list[Path]:
    return [one.folder for one in groups._places]


KINDS = [
    pytest.param("bwrap", marks=NEEDS_BWRAP),
    pytest.param("landlock", marks=NEEDS_LANDLOCK),
    "unsafe",
]


@pytest.fixture
def tier(request: pytest.FixtureRequest, groups: ControlGroups, tmp_path: Path) -> Tier:
    tmp_path.chmod(0o755)
    made = (BwrapTier(groups), LandlockTier(groups=groups), UnsafeTier(groups))
    return next(one for one in made if one.name.startswith(request.param))


grouped = pytest.mark.parametrize("tier", one_of(*KINDS), indirect=True)


async def run(tier: Tier, command: str, place: Path) -> ProcessResult:
    return await make_sandboxes(tier, LIMITS).run(command, place, 60.0, lambda _: None)


@NEEDS_GROUPS
@grouped
async def test_all_that_a_sandbox_starts_is_in_its_group(
    tier: Tier, groups: ControlGroups, tmp_path: Path
) -> None:
    mark = a_mark()
    pool = make_sandboxes(tier, LIMITS)
    await pool.run(
        f"setsid sh -c 'sleep {mark} & sleep {mark}' >/dev/null 2>&1 &", tmp_path, 20, print
    )
    await until(lambda: len(alive(mark)) == 2)
    for folder in find_folders(groups):
        inside = set(read_processes(folder / "1"))
        assert {one.pid for one in alive(mark)} < inside and os.getpid() not in inside
    await pool.close()
    await gone(mark)

    def sweep() -> bool:
        groups.end(SandboxGroup([]))
        return not any((one / "1").exists() for one in find_folders(groups))

    await until(sweep)


SPIKE = """python3 - <<'X'
import os, sys
taken, takes = os.pipe()
ends, end = os.pipe()
children = []
for _ in range(2):
    children.append(os.fork())
    if not children[-1]:
        os.close(end)
        held = bytearray(120 << 20)
        os.close(takes)
        os.read(ends, 1)
        os._exit(0)
os.close(takes)
os.read(taken, 1)
os.close(end)
sys.exit(any([os.waitpid(one, 0)[1] for one in children]))
X"""
"""Two processes that take 240 MB together, and end at once."""


@NEEDS_GROUPS
@grouped
async def test_the_kernel_holds_memory_however_short_it_is_taken(
    tier: Tier, tmp_path: Path
) -> None:
    done = await run(tier, SPIKE, tmp_path)
    assert done.reason == "memory" and "over 200 MB of memory in all" in done.output


SWARM = """for n in $(seq 40); do
python3 -c 'import time; x = bytearray(2 << 20); time.sleep(600)' &
done; wait"""


@NEEDS_GROUPS
@grouped
@pytest.mark.slow
async def test_a_swarm_of_small_processes_does_not_end_the_sandbox(
    tier: Tier, tmp_path: Path
) -> None:
    """Each is smaller than the supervisor, and the kernel ends the largest."""
    pool = make_sandboxes(tier, SandboxLimits(memory=128 << 20))
    done = await pool.run(SWARM, tmp_path, 60, lambda _: None)
    assert done.reason == "memory" and "over 128 MB of memory in all" in done.output
    assert (await pool.run("echo still", tmp_path, 60, lambda _: None)).output == "still\n"


ENDED = """
import os, signal, socket, sys, time
from agent_core.sandboxes import supervisor as s

near, far = socket.socketpair()
spec = {"limits": {"memory": 1 << 30, "processes": 100}, "counters": {}, "folders": []}
one = s.Supervisor(far.fileno(), far.fileno(), spec, s.Ground())
command = {"env": {}, "cwd": "/", "rlimits": {}, "stdin": False, "errors": False, "channel": 0}
one._start(1, {**command, "argv": ("/bin/sh", "-c", "sleep 60 & wait; sleep 60")})
one._start(3, {**command, "argv": ("/bin/sleep", "60")})
while not (child := next((pid for pid in s._list_all() if s._read_stat(pid)[1:2] == [str(
    one._commands[1].pid)]), 0)):
    time.sleep(0.01)
while os.readlink(f"/proc/{child}/exe").endswith("sh"):
    time.sleep(0.01)
name, moment = sys.argv[1:]
met = []
def end():
    if not met:
        met.append(1)
        os.kill(child, signal.SIGKILL)
        while s._read_stat(child)[:1] not in ([], ["Z"]) or os.path.exists(f"/proc/{child}"):
            time.sleep(0.01)
def look(*given):
    if moment == "before" and given in ((), (child,)):
        end()
    found = looked(*given)
    if moment == "after" and given in ((), (child,)):
        end()
    return found
sizes = {child: 100 << 20, one._commands[1].pid: 50 << 20}
s._measure_memory = lambda pid: sizes.get(pid, 0) if s._read_stat(pid) else 0
looked = getattr(s, name)
setattr(s, name, look)
one._counters.count_new = lambda kind: len(met) if kind == "memory" else 0
one._watch(0)
print([command.reason for command in one._commands.values()])
one._kill_all(frozenset())
"""
"""A supervisor in whose look the kernel ends a process of its first command's, the largest."""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("look", ["_list_all", "_read_stat", "_measure_memory"])
def test_a_process_ended_during_a_look_is_counted_to_its_command(look: str, moment: str) -> None:
    done = subprocess.run((sys.executable, "-c", ENDED, look, moment), capture_output=True)
    assert done.stdout == b"['memory', '']\n", done.stderr.decode()


@NEEDS_GROUPS
@grouped
async def test_a_refused_process_is_told(tier: Tier, groups: ControlGroups, tmp_path: Path) -> None:
    pool = make_sandboxes(tier, LIMITS)
    await pool.run("true", tmp_path, 20, print)
    (folder,) = [one for one in find_folders(groups) if (one / "1/pids.max").exists()]
    (folder / "1/pids.max").write_text(str(len(read_processes(folder / "1")) + 1))
    done = await pool.run("exec python3 -c 'import os; os.fork()'", tmp_path, 60, lambda _: None)
    assert done.reason == "tasks" and "[Refused: over 144 processes and threads" in done.output
    (folder / "1/pids.max").write_text("100")
    assert (await pool.run("true | true", tmp_path, 20, print)).reason == ""


@NEEDS_GROUPS
async def test_what_a_killed_supervisor_leaves_ends_with_the_group(
    groups: ControlGroups, tmp_path: Path
) -> None:
    """Nothing else would end it where no namespace does."""
    mark = a_mark()
    pool = make_sandboxes(UnsafeTier(groups), LIMITS)
    await pool.run(f"setsid sleep {mark} >/dev/null 2>&1 &", tmp_path, 20, print)
    await there(mark)
    (child,) = alive(mark)
    os.kill(child.ppid(), signal.SIGKILL)
    await pool.close()
    await gone(mark)


GATEWAY = """
    import asyncio, sys
    from pathlib import Path
    from agent_core.sandboxes.cgroups.groups import open_control_groups
    from agent_core.sandboxes.pool import SandboxPool
    from agent_core.sandboxes.unsafe import UnsafeTier

    async def main():
        groups = open_control_groups()
        pool = SandboxPool(UnsafeTier(groups))
        await pool.run("setsid sleep {mark} >/dev/null 2>&1 &", Path({place!r}), 20, print)
        print(*(one.folder for one in groups._places), sep="\\n", flush=True)
        print("made", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


@NEEDS_GROUPS
@pytest.mark.slow
async def test_groups_of_a_killed_gateway_go_with_the_next(tmp_path: Path) -> None:
    mark = a_mark()
    code = textwrap.dedent(GATEWAY.format(mark=mark, place=str(tmp_path)))
    words = (sys.executable, "-c", code)
    gateway = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert gateway.stdout is not None
    async with asyncio.timeout(PATIENCE):
        made = (await gateway.stdout.readuntil(b"made\n")).decode().split("\n")[:-2]
    open_control_groups().close()
    assert made and all(Path(one).exists() for one in made), "it is still in use"
    gateway.send_signal(signal.SIGKILL)
    await gateway.wait()
    await gone(mark)

    def sweep() -> bool:
        open_control_groups().close()
        return not any(Path(one).exists() for one in made)

    await until(sweep)


# ---- version 2 without controllers ---------------------------------------------------------


@NEEDS_UNIFIED
async def test_version_2_kills_a_group_at_once() -> None:
    groups = ControlGroups([GroupPlace(UNIFIED, frozenset(), True)])
    (folder,) = find_folders(groups)
    try:
        group = groups.open(LIMITS)
        words = (*group.entry, "/bin/sh", "-c", "sleep 600 & echo in; wait")
        with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline() == b"in\n"
            assert len(read_processes(folder / "1")) == 2
            group.remove()
            assert child.wait() == -signal.SIGKILL
    finally:
        await until(group.remove)
        groups.close()
    assert not folder.exists()
