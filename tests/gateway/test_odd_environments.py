"""The gateway works however its process was started: limits, streams, locale, folders, signals."""

import asyncio
import os
import re
import sys

import pytest

from tests.fakes.model_server import Call, Say
from tests.gateway.process import PERSON, START, Run, World

STARTS = {
    "umask 000": ("umask 000", {}),
    "umask 777": ("umask 777", {}),
    "no input": ("exec 0<&-", {}),
    "64 open files": ("ulimit -n 64", {}),
    "files of 1 MB": ("ulimit -f 1024", {}),
    "a small stack": ("ulimit -s 256", {}),
    "ignored signals": ("trap '' INT HUP CHLD PIPE", {}),
    "no HOME": ("unset HOME", {"TURNKEEPER_HOME": "data"}),
    "a HOME that is missing": ("", {"HOME": "/nonexistent", "TURNKEEPER_HOME": "data"}),
    "no PATH": ("unset PATH", {}),
    "an unknown locale": ("", {"LANG": "xx_YY", "LC_ALL": "zz"}),
    "plain ASCII": ("", {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
    "an unknown zone": ("", {"TZ": "Nowhere/City"}),
    "no temporary folder": ("", {"TMPDIR": "/nonexistent"}),
    "a folder that takes nothing": ("cd /proc", {}),
    "no docstrings": ("", {"PYTHONOPTIMIZE": "2"}),
    "warnings are errors": ("", {"PYTHONWARNINGS": "error"}),
}
"""What the shell does before, and what is in the environment."""


async def start(world: World, before: str, env: dict[str, str]) -> Run:
    """A gateway that a shell starts."""
    with (world.folder / "out.txt").open("w") as out, (world.folder / "log.txt").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *("/bin/bash", "-c", f'{before or ":"}; exec "$0" -m gateway.cli.main run'),
            sys.executable, cwd=world.folder, env=world.env(**env), stdout=out, stderr=log,
        )  # fmt: skip
    run = Run(process, world.folder)
    world.runs.append(run)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("start_as", STARTS)
async def test_it_answers(world: World, start_as: str) -> None:
    before, env = STARTS[start_as]
    run = await start(world, before, {"TELEGRAM_ADMIN_USERS": str(PERSON)} | env)
    async with asyncio.timeout(START):
        await run.ready()
    world.model.script(
        Call("run_command", '{"command": "umask; echo tea > f && cat f"}'), Say("made: 茶")
    )
    world.telegram.say(PERSON, "make tea")
    card = await world.telegram.wait_text(PERSON, "May this run?", START)
    token = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    world.telegram.press(PERSON, card["message_id"], token)
    await world.telegram.wait_text(PERSON, "made: 茶", START)
    (*_, result) = (
        one for one in world.model.requests[-1].body["messages"] if one["role"] == "tool"
    )
    assert "\n0077\ntea\n[exit code 0]" in result["content"]
    own = [one for one in world.folder.rglob("*") if one.name not in ("out.txt", "log.txt")]
    assert len(own) > 5
    assert not [one for one in own if "workspaces" not in one.parts and one.lstat().st_mode & 0o077]
    assert not re.findall(r"^\S+ (?:error|warning) .*|^Traceback", run.log, re.MULTILINE)
    assert await run.end() == 0


async def test_a_folder_that_is_gone_is_told(world: World) -> None:
    run = await start(world, 'mkdir gone; cd gone; rmdir "$PWD"', {"PYTHONPATH": os.getcwd()})
    assert await run.ended() == 2
    assert run.log == (
        "turnkeeper: the folder that this was started in is no more; go to another.\n"
    )
