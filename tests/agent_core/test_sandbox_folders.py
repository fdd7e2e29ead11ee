"""HOME and /tmp of a sandbox: they go when nothing has used them for a day, and nothing waits."""

import os
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.sandboxes import pool as pools
from agent_core.sandboxes.folders import KEPT, WAITS, note_use, prepare, will_be_emptied
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.tools.paths import OWN
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, make_sandboxes
from tests.fakes.waiting import until

DAY_LATER = KEPT + 60.0


def age(path: Path, seconds: float) -> None:
    then = ambient.now() - seconds
    os.utime(path, (then, then))


def use(workspace: Path, *snapshots: tuple[str, float]) -> Path:
    """A file in HOME, as left a day ago, with snapshots by their names and ages in seconds."""
    workspace.mkdir()
    prepare(workspace, root=False)
    for name, seconds in snapshots:
        Snapshots().take(workspace, name)
        age(workspace / OWN / "snapshots" / name, seconds)
    made = workspace / OWN / "sandbox/home/made"
    made.write_text("by an earlier command")
    age(workspace / OWN / "sandbox", DAY_LATER)
    return made


@pytest.mark.parametrize(
    ("snapshots", "stays"),
    [
        ((), False),
        (((name_before("parked"), DAY_LATER),), True),
        (((name_before("parked"), 3 * KEPT), (name_before("new"), 1.0)), True),
        (((name_before("new"), WAITS / 60),), False),
        (((name_before("done"), DAY_LATER), (name_after("done"), DAY_LATER)), False),
    ],
    ids=["nothing", "a turn that waits", "three days", "the turn itself", "a finished turn"],
)
def test_they_stay_while_a_turn_waits(
    snapshots: tuple[tuple[str, float], ...], stays: bool, tmp_path: Path
) -> None:
    made = use(tmp_path / "workspace", *snapshots)
    assert will_be_emptied(tmp_path / "workspace") != stays
    prepare(tmp_path / "workspace", root=False)
    assert made.exists() == stays


def test_they_stay_where_something_used_them(tmp_path: Path) -> None:
    made = use(tmp_path / "workspace")
    note_use(tmp_path / "workspace")
    prepare(tmp_path / "workspace", root=False)
    assert made.exists()


def test_a_use_follows_no_link_and_makes_nothing(tmp_path: Path) -> None:
    other, workspace = tmp_path / "other", tmp_path / "workspace"
    for one in (other, workspace):
        one.mkdir()
    note_use(workspace)
    assert not will_be_emptied(workspace) and not list(workspace.iterdir())
    age(other, DAY_LATER)
    (workspace / OWN).mkdir()
    (workspace / OWN / "sandbox").symlink_to(other)
    note_use(workspace)
    assert other.stat().st_mtime < ambient.now() - KEPT


@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, DOCKER], indirect=True)
async def test_the_next_command_is_told_when_they_begin_empty(tier: Tier, tmp_path: Path) -> None:
    pool, state = make_sandboxes(tier, idle=0.0), tmp_path / OWN / "sandbox"

    async def run(command: str) -> str:
        done = await pool.run(command, tmp_path, 20, lambda _: None)
        await until(lambda: not pool._places)
        return done.output

    await run("echo here > ~/here")
    assert (await run("cat ~/here")).endswith("as they were.]\nhere\n")
    age(state, DAY_LATER)
    told = await run("ls ~")
    assert told.startswith("[A new sandbox. HOME and /tmp were not used for a day and begin empty")
    assert "HOME and /tmp are as they were" not in told and "here" not in told.splitlines()
    age(state, DAY_LATER)
    assert "begin empty" not in await run("true"), "nothing was in them"


async def test_a_sandbox_that_is_in_use_for_days_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "SECONDS_UNTOUCHED", 0.0)
    pool, state = make_sandboxes(UnsafeTier()), tmp_path / OWN / "sandbox"
    state.mkdir(parents=True)
    for use in ("run", "shell"):
        shell = await pool.open_shell(tmp_path, 20)
        age(state, DAY_LATER)
        if use == "run":
            await pool.run("true", tmp_path, 20, lambda _: None)
        else:
            await shell.run("true", 20, lambda _: None)
        assert state.stat().st_mtime > ambient.now() - KEPT
