"""A backup and a restore that are killed, in the process that does them: the data folder is as it was or
as it was backed up, a gateway starts there, and nothing lies about."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from gateway.ops.backup import SCRATCH
from gateway.ops.lock import UNFINISHED
from gateway.ops.restore_swap import UNPACKED
from tests.fakes.waiting import until
from tests.gateway.process import PERSON, ROOT, START, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
KILLS_ITSELF = """
import os, signal
plain, left = os.replace, [int(os.environ["KILL_AT"])]
def replace(source, to, **given):
    if any(word in f"{source} {to}" for word in ("restore-", "turnkeeper-backup-")):
        if not left[0]:
            os.kill(os.getpid(), int(os.environ["KILL_WITH"]))
        left[0] -= 1
    return plain(source, to, **given)
os.replace = replace
"""
"""Imported by each Python that finds it."""
MAX_STEPS = 20


def kill_at(world: World, step: int, how: signal.Signals = signal.SIGKILL) -> dict[str, str]:
    """Settings of a process that kills itself before it renames something for the `step`-th time."""
    place = world.folder / "kills"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(KILLS_ITSELF)
    return {"PYTHONPATH": f"{place}:{ROOT}", "KILL_AT": str(step), "KILL_WITH": str(int(how))}


async def talk(world: World, *words: str) -> None:
    for one in words:
        world.telegram.say(PERSON, one)
        await world.telegram.wait_text(PERSON, f"ack {one}", START)


async def make_states(world: World) -> Path:
    """A backup of an earlier state, and the folder of a later one, which this gives."""
    run = await world.start()
    await talk(world, "first")
    home = world.folder / ".turnkeeper"
    (home / "workspaces" / "w").mkdir(parents=True, exist_ok=True)
    (home / "workspaces" / "w" / "mark").write_text("earlier")
    assert (await world.command("backup", str(world.folder / "all.backup")))[0] == 0
    (home / "workspaces" / "w" / "mark").write_text("later")
    await talk(world, "second")
    assert await run.end() == 0
    shutil.copytree(home, world.folder / "later")
    return home


def read_state(home: Path) -> tuple[str, str]:
    """Of which state the files are, and of which the database."""
    mark = (home / "workspaces" / "w" / "mark").read_text()
    with contextlib.closing(sqlite3.connect(home / "turnkeeper.db", timeout=START)) as store:
        said = b"".join(body for (body,) in store.execute("SELECT body FROM transcript"))
    assert b"first" in said
    return mark, "later" if b"second" in said else "earlier"


async def check_start(world: World, home: Path, step: int) -> str:
    """Of which state the folder is, once a gateway has started there and answered."""
    run = await world.start()
    state = read_state(home)
    assert state[0] == state[1], "a mixture"
    assert not (home / UNFINISHED).exists() and not list(home.glob(f"{UNPACKED}*"))
    await talk(world, f"again {step}")
    assert await run.end() == 0
    return state[0]


async def test_a_restore_that_is_killed_is_whole_after_the_start(world: World) -> None:
    home = await make_states(world)
    seen: list[tuple[bool, str]] = []
    for step in range(MAX_STEPS):
        shutil.rmtree(home)
        shutil.copytree(world.folder / "later", home)
        words = ("restore", str(world.folder / "all.backup"), "--force")
        code, _ = await world.command(*words, **kill_at(world, step))
        begun = (home / UNFINISHED).exists()
        seen.append((begun, await check_start(world, home, step)))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert seen[0] == (False, "later") and seen[-1] == (False, "earlier")
    assert len(seen) > 6 and all(one == (True, "earlier") for one in seen[1:-1])


async def test_a_gateway_that_is_killed_while_it_restores_is_whole_after_the_start(
    world: World,
) -> None:
    home = await make_states(world)
    for step in (0, 1, 4, 7):
        shutil.rmtree(home)
        shutil.copytree(world.folder / "later", home)
        run = await world.start(**kill_at(world, step))
        await world.command("restore", str(world.folder / "all.backup"), "--force")
        assert await run.ended() == -signal.SIGKILL
        assert (home / UNFINISHED).exists() == (step > 0)
        assert await check_start(world, home, step) == ("earlier" if step else "later")


@pytest.mark.parametrize("how", ["stop", "SIGTERM", "SIGINT"])
async def test_a_gateway_that_is_ended_before_it_restores_does_so_and_ends(
    world: World, how: str
) -> None:
    home = await make_states(world)
    drains = (world.folder / "log.txt").read_text().count("draining")
    run = await world.start()
    world.model.gate = asyncio.Event()
    world.telegram.say(PERSON, "third")
    await world.model.wait_inflight()
    code, said = await world.command("restore", str(world.folder / "all.backup"), "--force")
    assert code == 0, said
    await until(lambda: run.log.count("draining") > drains, START)
    code, said = await world.command("restore", str(world.folder / "all.backup"), "--force")
    assert code == 1 and "Another restore is under way" in said
    if how == "stop":
        code, said = await world.command("stop")
        assert code == 0, said
    else:
        run.signal(signal.Signals[how])
    world.model.gate.set()
    assert await run.ended() == 0
    assert run.out.count("is ready") == 1 and read_state(home) == ("earlier", "earlier")


@pytest.mark.parametrize("step", [0, 2, 5])
async def test_a_gateway_that_is_ended_while_it_restores_does_so_and_ends(
    world: World, step: int
) -> None:
    home = await make_states(world)
    run = await world.start(**kill_at(world, step, signal.SIGTERM))
    await world.command("restore", str(world.folder / "all.backup"), "--force")
    assert await run.ended() == 0
    assert read_state(home) == ("earlier", "earlier")


async def test_a_backup_that_is_killed_leaves_the_one_before_and_nothing_else(
    world: World,
) -> None:
    home = await make_states(world)
    file, before = world.folder / "all.backup", (world.folder / "all.backup").read_bytes()
    code, _ = await world.command("backup", str(file), **kill_at(world, 0))
    assert code == -signal.SIGKILL
    assert file.read_bytes() == before and list(world.folder.glob(f"{SCRATCH}*"))
    with (home / "workspaces" / "w" / "large").open("wb") as large:
        for _ in range(64):
            large.write(os.urandom(1 << 20))
    run = await world.start()
    killed = []

    def kill_in_between() -> bool:
        if any(one.stat().st_size for one in world.folder.glob(f"{SCRATCH}*/part")):
            run.signal(signal.SIGKILL)
            killed.append(True)
        return bool(killed)

    shutil.rmtree(next(world.folder.glob(f"{SCRATCH}*")))  # so that what is seen is of the next
    asked = world.command("backup", str(file))
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(asked)
        await until(kill_in_between, START)
    assert answer.result()[0] != 0 and await run.ended() == -signal.SIGKILL
    assert file.read_bytes() == before and list(world.folder.glob(f"{SCRATCH}*"))
    assert await check_start(world, home, 1) == "later"
    code, said = await world.command("backup", str(file))
    assert code == 0 and file.read_bytes() != before, said
    assert not list(world.folder.glob(f"{SCRATCH}*"))
