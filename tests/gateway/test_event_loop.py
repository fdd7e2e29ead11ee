"""Child processes of the gateway's event loop."""

import asyncio
import os
import resource
import signal
from asyncio.subprocess import PIPE

import pytest
import uvloop

from gateway.ops.event_loop import EventLoop
from tests.fakes.waiting import PATIENCE


async def test_what_goes_in_comes_out() -> None:
    sent = os.urandom(1 << 20)
    child = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    async with asyncio.timeout(PATIENCE):
        assert await child.communicate(sent) == (sent, None)
    assert child.returncode == 0


@pytest.mark.parametrize("has_files", [True, False])
async def test_its_end_is_seen(has_files: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_files:
        monkeypatch.delattr(os, "pidfd_open")
    await (await asyncio.create_subprocess_exec("true", stdin=PIPE)).wait()  # uvloop keeps a file
    before = set(os.listdir("/proc/self/fd"))
    children = [
        await asyncio.create_subprocess_exec("sh", "-c", f"echo {n} >&2; exit {n}", stderr=PIPE)
        for n in range(20)
    ]
    asleep = await asyncio.create_subprocess_exec("sleep", "60", stdin=PIPE, stdout=PIPE)
    assert asleep.returncode is None
    async with asyncio.timeout(PATIENCE):
        said = [(await one.communicate())[1] for one in children]
        asleep.kill()
        assert await asleep.wait() == await asleep.wait() == -signal.SIGKILL
    assert said == [b"%d\n" % n for n in range(20)]
    assert [one.returncode for one in children] == list(range(20))
    await asyncio.sleep(0)
    assert set(os.listdir("/proc/self/fd")) == before


async def test_what_it_leaves_behind_is_not_waited_for() -> None:
    left = "sleep 60 & echo $!; exit 3"
    child = await asyncio.create_subprocess_exec("sh", "-c", left, stdout=PIPE, stderr=PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(PATIENCE):
        assert await child.wait() == 3
        os.kill(int(await child.stdout.readline()), signal.SIGKILL)
        assert await child.communicate() == (b"", b"")


async def test_a_program_that_is_not_there_is_told() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError, match="/nowhere/at-all"):
        await asyncio.create_subprocess_exec("/nowhere/at-all", stdin=PIPE, stdout=PIPE)
    with pytest.raises(PermissionError):
        await asyncio.create_subprocess_exec(__file__, stdin=PIPE, stdout=PIPE)
    assert set(os.listdir("/proc/self/fd")) == before


async def _measure_starts() -> float:
    """The seconds of a processor that it takes to start five programs."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(5):
        await (await asyncio.create_subprocess_exec("true")).wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def test_a_start_costs_a_large_gateway_no_more_than_a_small_one() -> None:
    large = [bytearray(1_000) for _ in range(200_000)]
    costs = []
    for factory in (EventLoop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            costs.append(runner.run(_measure_starts()))
    assert costs[0] * 2 < costs[1], (costs, len(large))
