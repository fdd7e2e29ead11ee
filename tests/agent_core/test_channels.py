"""Commands that talk with the gateway by a socket that is their open file 3."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.port import ChannelCommand
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.sandboxes import make_sandboxes

BWRAP = pytest.param(BwrapTier(), marks=NEEDS_BWRAP)
both = pytest.mark.parametrize("tier", [BWRAP, UnsafeTier()], ids=["bwrap", "unsafe"])


async def start(tier: Tier, workspace: Path, command: str, limit: float = 20.0) -> ChannelCommand:
    return await make_sandboxes(tier).channels.start_talking(command, workspace, limit)


async def read_all(command: ChannelCommand) -> bytes:
    read = b""
    while data := await command.channel.read():
        read += data
    return read


@both
async def test_it_asks_and_is_answered(tier: Tier, tmp_path: Path) -> None:
    command = await start(
        tier, tmp_path, "echo asked >&3; read line <&3; echo got $line; echo bad >&2; exit 4"
    )
    assert await command.channel.read() == b"asked\n"
    await command.channel.write(b"answer\n")
    done = await command.wait(10)
    assert done is not None and done.exit_code == 4
    assert (command.output(), command.errors()) == ("got answer\n", "bad\n")
    assert await command.channel.read() == b"", "it has ended"


REAPED = """
import os, socket
from agent_core.sandboxes import supervisor as s

(near, far), (wake, wakes) = socket.socketpair(), socket.socketpair()
one = s.Supervisor(far.fileno(), far.fileno(), {"limits": {}, "counters": {}}, s.Ground())
words = ("/bin/sh", "-c", "echo one; echo two >&3")
command = {"argv": words, "env": {}, "cwd": "/", "rlimits": {}, "stdin": False, "errors": False}
one._start(1, {**command, "channel": 3})
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
wakes.send(b"!")
one._reap(wake, 0)
data, kinds = near.recv(1 << 16), []
while data:
    kind, stream, length = s.HEAD.unpack_from(data)
    kinds.append((kind, stream))
    data = data[s.HEAD.size + length :]
print(kinds.index((s.DATA, 1)), kinds.index((s.DATA, 3)) < kinds.index((s.EXIT, 1)))
"""
"""A supervisor that learns of a command's end before it has looked at its channel."""


def test_its_last_words_on_the_channel_come_before_its_end() -> None:
    done = subprocess.run((sys.executable, "-c", REAPED), capture_output=True, text=True)
    assert done.stdout == "0 True\n", done.stderr


@both
async def test_what_it_leaves_running_does_not_hold_the_channel(tier: Tier, tmp_path: Path) -> None:
    command = await start(tier, tmp_path, "setsid sleep 60 & echo bye >&3")
    assert await read_all(command) == b"bye\n"
    assert await command.wait(5) is not None


@both
async def test_a_closed_channel_ends_nothing_else(tier: Tier, tmp_path: Path) -> None:
    command = await start(tier, tmp_path, "exec 3>&-; sleep 0.2; echo on")
    assert await command.channel.read() == b""
    await command.channel.write(b"nobody hears it\n" * 100_000)
    done = await command.wait(10)
    assert done is not None and (done.exit_code, command.output()) == (0, "on\n")


@both
async def test_much_goes_both_ways(tier: Tier, tmp_path: Path) -> None:
    size = 3_000_000
    code = "import sys; data = open(3, 'rb', buffering=0, closefd=False).read; "
    code += f"got = 0\nwhile got < {size}: got += len(data(65536))\n"
    code += f"open(3, 'wb', closefd=False).write(b'x' * {size}); print(got); data(1)"
    command = await start(tier, tmp_path, f'exec python3 -c "{code}"')
    await command.channel.write(b"y" * size)
    read = b""
    while len(read) < size and (data := await command.channel.read()):
        read += data
    assert read == b"x" * size
    await command.channel.write(b"!")
    assert await read_all(command) == b""
    assert await command.wait(10) is not None, "its output may come after the channel's end"
    assert command.output() == f"{size}\n"


@both
async def test_its_time_stands_still_while_it_is_paused(tier: Tier, tmp_path: Path) -> None:
    command = await start(tier, tmp_path, "read line <&3; sleep 60", limit=0.3)
    command.pause()
    assert await command.wait(0.6) is None
    command.resume()
    done = await command.wait(10)
    assert done is not None and done.timed_out


@both
async def test_errors_are_shown_between_output_and_bounded(tier: Tier, tmp_path: Path) -> None:
    seen: list[str] = []
    command = await start(
        tier, tmp_path, "read line <&3; echo one; echo two >&2; head -c 70000000 /dev/zero >&2"
    )
    command.show(seen.append)
    await command.channel.write(b"go\n")
    done = await command.wait(20)
    assert done is not None and done.exit_code != 0, "it wrote too much"
    assert "one\n" in "".join(seen) and "two\n" in "".join(seen)
    assert len(command.errors()) < 2_000_000 and command.output() == "one\n"


@both
async def test_it_ends_with_its_sandbox(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    command = await pool.channels.start_talking("read line <&3", tmp_path, 20.0)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(command.channel.read())
        pool.halt(tmp_path)
    assert reading.result() == b""
    await command.channel.write(b"late\n")
    assert await command.wait(5) is not None
