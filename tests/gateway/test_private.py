"""The data folder is its owner's alone, whatever it was before."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.declaration import SettingsError
from gateway.ops import lock
from tests.gateway.process import PERSON, START, peopled

FILES = ("turnkeeper.db", "turnkeeper.db-wal", "turnkeeper.db-shm", "secrets.json", "replica_id",
         "discord.json", "jobs.toml", "turnkeeper.toml", "lock")  # fmt: skip
FOLDERS = ("outputs", "uploads", "workspaces", "mcp", "browser")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("before", [0o755, 0o777, 0o750, 0o1777, 0o700])
def test_a_folder_that_was_there_becomes_private(tmp_path: Path, before: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in FILES:
        (home / name).write_text("x")
        (home / name).chmod(0o644)
    for name in FOLDERS:
        (home / name).mkdir(mode=0o755)
    (home / "run.sh").write_text("somebody's own")
    (home / "run.sh").chmod(0o755)
    home.chmod(before)
    with lock.hold(home):
        assert mode(home) == 0o700
        assert {name: mode(home / name) for name in FILES} == dict.fromkeys(FILES, 0o600)
        assert {name: mode(home / name) for name in FOLDERS} == dict.fromkeys(FOLDERS, 0o700)
        assert mode(home / "run.sh") == 0o755


def test_a_link_in_a_files_place_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "other").write_text("x")
    (tmp_path / "other").chmod(0o644)
    (home / "jobs.toml").symlink_to(tmp_path / "other")
    with lock.hold(home):
        assert mode(tmp_path / "other") == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    with (
        pytest.raises(SettingsError, match="belongs to another user") as refused,
        lock.hold(home),
    ):
        pass
    assert "TURNKEEPER_HOME" in str(refused.value)
    assert not list(home.iterdir())


async def test_a_running_gateway_lets_nobody_look(tmp_path: Path) -> None:
    async with peopled(tmp_path) as world:
        home = world.folder / ".turnkeeper"
        home.mkdir()
        home.chmod(0o755)
        with contextlib.closing(sqlite3.connect(home / "turnkeeper.db")) as store:
            store.execute("PRAGMA user_version = 0")
        (home / "turnkeeper.db").chmod(0o644)
        await world.start()
        world.telegram.say(PERSON, "hello")
        await world.telegram.wait_text(PERSON, "ack hello", START)
        _check(home)


def _check(home: Path) -> None:
    open_to_others = [
        path for path in (home, *home.rglob("*")) if not path.is_symlink() and mode(path) & 0o077
    ]
    assert not open_to_others


ASK = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
"""PR_GET_DUMPABLE: 0 is out of reach of others of the same user."""
LOOK = f"""
import subprocess, sys
from gateway.cli.main import main
main(["version"])
{ASK}
sys.stdout.flush()
subprocess.run([sys.executable, "-c", "{ASK}"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
def test_the_gateway_cannot_be_read_by_others_of_its_user_and_its_programs_can() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["0", "1"]
