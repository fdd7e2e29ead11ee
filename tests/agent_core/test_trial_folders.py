"""Folders that a gateway tries its sandbox in: one that is killed leaves none for good."""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.detect import find_fault
from agent_core.sandboxes.folders import NOBODY
from agent_core.sandboxes.owners import TRIAL, hold_trial
from agent_core.sandboxes.self_test import _bait
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.waiting import PATIENCE

TRIES = """
from agent_core.sandboxes.owners import hold_trial
from agent_core.sandboxes.self_test import _bait
with hold_trial() as workspace, _bait():
    (workspace / "half").write_text("made")
    print("trying", flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a longer path than a socket's address may be, 107 bytes."""
    made = tmp_path_factory.mktemp("t" * 108)
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


async def test_what_a_killed_trial_left_goes_with_the_next(temporary: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", TRIES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert child.stdout is not None
    async with asyncio.timeout(PATIENCE):
        await child.stdout.readline()
    made = set(temporary.iterdir())
    assert len(made) == 2 and all(one.name.startswith(TRIAL) for one in made)
    with hold_trial():
        assert made <= set(temporary.iterdir()), "it is still being worked in"
    child.send_signal(signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        await child.communicate()  # its pipes are closed too, before the loop is
    assert set(temporary.iterdir()) == made
    with hold_trial() as own:
        assert set(temporary.iterdir()) == {own}
    assert not list(temporary.iterdir())


def test_what_root_gave_to_the_user_of_its_sandboxes_is_removed(temporary: Path) -> None:
    owner = NOBODY if os.geteuid() == 0 else os.geteuid()
    left = temporary / f"{TRIAL}12345678"
    left.mkdir()
    os.chown(left, owner, -1)
    with hold_trial() as own:
        os.chown(own, owner, -1)
        assert set(temporary.iterdir()) == {own}
    assert not list(temporary.iterdir())


@NEEDS_BWRAP
async def test_a_sandbox_that_is_tried_leaves_nothing(temporary: Path) -> None:
    assert await find_fault(BwrapTier()) == ""
    assert not list(temporary.iterdir())


def test_what_is_not_ours_stays(temporary: Path) -> None:
    mine = [temporary / name for name in ("turnkeeper-data", "turnkeeper-ab12cd34", "other")]
    for one in mine:
        one.mkdir()
    elsewhere = temporary / "other"
    link, file = temporary / f"{TRIAL}link", temporary / f"{TRIAL}file"
    link.symlink_to(elsewhere)
    file.write_text("no folder")
    with hold_trial(), _bait():
        pass
    assert set(temporary.iterdir()) == {*mine, link, file}


async def test_each_trial_is_in_such_a_folder(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = temporary / f"{TRIAL}12345678"
    left.mkdir()
    monkeypatch.setattr(UnsafeTier, "isolated", True)
    assert await find_fault(UnsafeTier()) == "" and not list(temporary.iterdir())
