"""What starts processes without end is ended, takes no other sandbox along, and goes behind all."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.tier import Tier
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.processes import a_mark, alive, there
from tests.fakes.sandboxes import (
    BWRAP,
    LANDLOCK,
    UNSAFE,
    bwrap_sandbox,
    find_tier,
    make_sandboxes,
)
from tests.sampling import one_of

SMALL = SandboxLimits(processes=100)
BOMB = 'n=f; eval "$n() { $n | $n & }; $n"; sleep 600'
LONG = 60.0
"""Seconds that anything may take on a busy machine."""
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


@pytest.fixture
async def tier(request: pytest.FixtureRequest) -> Tier:
    return await find_tier(request)


@pytest.mark.parametrize("kind", [BwrapTier, LandlockTier])
def test_the_kernels_limit_leaves_room_for_the_sandboxs_own(kind: type[Tier]) -> None:
    """The kernel counts a user's processes, so those of all sandboxes: where that limit is met
    first, no sandbox is over its own, nothing is ended, and nobody can start anything."""
    assert kind().max_processes >= 8 * SandboxLimits().processes


def test_a_sandbox_has_the_limits_that_docs_name() -> None:
    limits = SandboxLimits()
    sizes = (limits.cpus, limits.memory, limits.disk, limits.processes)
    assert sizes == (2, 4 << 30, 5 << 30, 512) and bwrap_sandbox().limits == limits


THREADS = """python3 - <<'X'
import threading, time
begun = []
try:
    for n in range(1000):
        one = threading.Thread(target=time.sleep, args=(0.5,))
        one.start()
        begun.append(one)
except RuntimeError as error:
    print(error)
print(len(begun))
for one in begun: one.join()
again = threading.Thread(target=print, args=("again",))
again.start()
again.join()
X"""
FORKS = """python3 - <<'X'
import os, time
for n in range(2000):
    try:
        if not os.fork():
            time.sleep(60)
            os._exit(0)
    except OSError as error:
        print(error.strerror)
        break
    print(n + 1, flush=True)
X"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", [LANDLOCK], indirect=True)
async def test_a_sandbox_has_so_many_processes_and_threads_and_no_more(
    tier: Tier, tmp_path: Path
) -> None:
    """The kernel counts a user's; the supervisor is asked before each one of the sandbox's."""
    tmp_path.chmod(0o755)
    most = 2 * SMALL.processes + 64
    pool = make_sandboxes(tier, SMALL)
    done = await pool.run(THREADS, tmp_path, LONG, lambda _: None)
    refused, count, again = done.output.splitlines()
    assert refused == "can't start new thread" and again == "again"
    assert most - 10 < int(count) < most
    done = await pool.run(FORKS, tmp_path, LONG, lambda _: None)
    counts = [int(one) for one in done.output.split() if one.isdecimal()]
    assert SMALL.processes // 2 < max(counts) < most, done.output[-200:]


@pytest.mark.slow  # how soon the watch sees it depends on the machine
@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK], indirect=True)
async def test_a_bomb_is_ended_while_others_go_on(tier: Tier, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    places = [tmp_path / name for name in "ab"]
    for place in places:
        place.mkdir()
    pool = make_sandboxes(tier, SMALL)
    bomb = asyncio.ensure_future(pool.run(BOMB, places[0], LONG, None))
    while not bomb.done():
        other = await pool.run("echo still here | cat", places[1], LONG, None)
        assert (other.exit_code, other.output) == (0, "still here\n")
    done = await bomb
    assert "over 100 processes" in done.output and not done.timed_out
    after = await pool.run("echo again | cat", places[0], LONG, None)
    # A shell tries again as long as what was killed is on its way out, and says so.
    assert (after.exit_code, after.output.splitlines()[-1]) == (0, "again")


@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK], indirect=True)
async def test_commands_go_behind_the_gateway(tier: Tier, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = await make_sandboxes(tier).run("nice; nice -n -5 nice 2>/dev/null", tmp_path, LONG, None)
    behind = str(min(os.nice(0) + 5, 19))
    assert done.output.split() == [behind, behind], "and cannot go before it again"


@pytest.mark.parametrize("tier", one_of(BWRAP, LANDLOCK, UNSAFE), indirect=True)
async def test_commands_end_first_where_memory_is_short(tier: Tier, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    mark, pool = a_mark(), make_sandboxes(tier)
    await pool.run(f"sleep {mark} >/dev/null 2>&1 &", tmp_path, LONG, None)
    await there(mark)
    own = int(Path("/proc/self/oom_score_adj").read_text())
    (command,) = alive(mark)
    score = Path(f"/proc/{command.pid}/oom_score_adj").read_text()
    assert int(score) == min(own + 300, 1000)


@NEEDS_BWRAP
async def test_a_session_goes_behind_where_the_kernel_shares_by_sessions(tmp_path: Path) -> None:
    if not AUTOGROUP.exists() or AUTOGROUP.read_text().strip() != "1":
        pytest.skip("the kernel shares processors out among processes")
    tmp_path.chmod(0o755)
    wait = "until grep -q 'nice 5' /proc/self/autogroup; do sleep 0.05; done; echo behind"
    done = await bwrap_sandbox().run(wait, tmp_path, LONG, None)
    assert done.output == "behind\n"
