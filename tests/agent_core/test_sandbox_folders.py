"""HOME and /tmp of a sandbox: they go when nothing has used them for a day, and nothing waits."""

import os
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.sandboxes.folders import KEPT, WAITS, prepare
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.tools.paths import OWN

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
    prepare(tmp_path / "workspace", root=False)
    assert made.exists() == stays
