"""Wherever its output goes, also nowhere: a gateway answers, and writes into no file of its own."""

import asyncio
import itertools
import signal
import sys
from pathlib import Path

import pytest

from tests.gateway.process import PERSON, START, Run, World

KINDS = ("closed", "full", "readerless")
REDIRECT = """
import os, sys
for number, kind in zip((1, 2), sys.argv[1:3]):
    if kind == "closed":
        os.close(number)
    elif kind == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)
    elif kind == "readerless":
        reader, writer = os.pipe()
        os.dup2(writer, number)
        os.close(reader)
os.execv(sys.executable, [sys.executable, "-m", "gateway.cli.main", *sys.argv[3:]])
"""


async def begin(
    world: World, out: str, error: str, *words: str, **settings: str
) -> asyncio.subprocess.Process:
    """A command whose standard output and error go there; elsewhere they can be read."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", REDIRECT, out, error, *words),
        cwd=world.folder, env=world.env(**settings),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.pick("outputs of a gateway", 2)
@pytest.mark.parametrize(("out", "error"), list(itertools.product((*KINDS, "kept"), repeat=2))[:-1])
async def test_a_gateway_answers_whatever_its_output_is(world: World, out: str, error: str) -> None:
    run = Run(process := await begin(world, out, error, "run"), world.folder)
    world.runs.append(run)
    for word in ("hello", "again"):
        world.telegram.say(PERSON, word)
        await world.telegram.wait_text(PERSON, f"ack {word}", START)
        run.signal(signal.SIGHUP)  # which is logged
    for number, kind in ((1, out), (2, error)):
        file = Path(f"/proc/{run.pid}/fd/{number}").readlink()
        assert kind != "closed" or str(file) == "/dev/null"  # and not the store
    run.signal(signal.SIGTERM)
    written, _ = await process.communicate()
    assert process.returncode == 0, written
    assert (b"ready: http" in written) == (out == "kept")
    assert (b"output_lost" in written) == (error == "kept" and out in ("full", "readerless"))
    assert b"Traceback" not in written


@pytest.mark.pick("outputs of a command", 4)
@pytest.mark.parametrize("words", [("version",), ("dead",), ("doctor",), ("policy", "explain")])
@pytest.mark.parametrize(("out", "error"), list(itertools.product((*KINDS, "kept"), repeat=2))[:-1])
async def test_a_command_tells_by_its_exit_code_that_it_could_not_print(
    world: World, out: str, error: str, words: tuple[str, ...]
) -> None:
    process = await begin(world, out, error, *words)
    async with asyncio.timeout(START):
        written, _ = await process.communicate()
    assert process.returncode == (0 if out in ("kept", "closed") else 1), written
    assert b"Traceback" not in written
    assert (b"No space left" in written) == (error == "kept" and out == "full")


@pytest.mark.pick("outputs of a command", 4)
@pytest.mark.parametrize("error", KINDS)
async def test_a_wrong_setting_ends_with_2_unseen_too(world: World, error: str) -> None:
    process = await begin(world, "kept", error, "run", TURNKEEPER_PORT="many")
    async with asyncio.timeout(START):
        written, _ = await process.communicate()
    assert process.returncode == 2, written
