"""Files of the data folder that cannot be read stop nothing, and are kept."""

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway import settings
from gateway.declaration import SettingsError
from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.jobfile import Faulty
from gateway.ops import control, lock
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.operator_rules import OperatorRules
from gateway.services.spoilt_files import MARK
from gateway.services.vault import FILE, Vault
from gateway.settings import Settings

SPOILT = b"\xff\x00garbage"


def list_kept(home: Path, name: str) -> list[bytes]:
    return [one.read_bytes() for one in home.glob(f"{name}.{MARK}-*")]


@pytest.mark.parametrize("spoilt", [SPOILT, b"", b'["a"]'])
def test_secrets_that_cannot_be_read_are_kept_aside(tmp_path: Path, spoilt: bytes) -> None:
    vault = Vault(tmp_path)
    vault.keep("a", "TOKEN", "hunter2-old")
    assert vault.hide("hunter2-old") == "[TOKEN]"
    (tmp_path / FILE).write_bytes(spoilt)
    assert vault.names("a") == () and Vault(tmp_path).names("a") == ()
    assert list_kept(tmp_path, FILE) == [spoilt]
    vault.keep("a", "OTHER", "hunter3-new")
    assert Vault(tmp_path).names("a") == ("OTHER",) and vault.hide("hunter3-new") == "[OTHER]"


def test_secrets_stay_hidden_when_their_file_is_spoilt(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.keep("a", "TOKEN", "hunter2-old")
    vault.names("a")
    (tmp_path / FILE).write_bytes(SPOILT)
    assert vault.hide("hunter2-old") == "[TOKEN]"


def plant(kind: str, place: Path) -> None:
    """What is no file stands in a file's place."""
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case "loop":
            place.symlink_to(place.name)
        case _:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(os.path.relpath(place))


KINDS = pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "socket"])


@KINDS
def test_what_is_no_file_is_set_aside_where_ours_should_be(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("replica_id", lock.AUDIT_KEYS, FILE):
        plant(kind, tmp_path / name)
    assert lock.replica_id(tmp_path, lambda: "new") == "new" == lock.replica_id(tmp_path, str)
    assert len(lock.read_audit_keys(tmp_path, ())) == 1
    vault = Vault(tmp_path)
    vault.keep("a", "TOKEN", "hunter2-old")
    assert vault.names("a") == ("TOKEN",)
    assert len([one for one in tmp_path.iterdir() if f".{MARK}-" in one.name]) == 3


@KINDS
async def test_what_is_no_file_is_told_where_the_operators_should_be(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "PIPE_PATIENCE", 0.01)
    home = tmp_path / "home"
    readers: dict[str, Callable[[], object]] = {
        "policy.toml": lambda: OperatorRules(home, ()).load(),
        "instructions.md": lambda: OperatorInstructions(home).load(""),
        ".env": lambda: Settings.read({"TURNKEEPER_HOME": str(home)}, home),
        "turnkeeper.toml": lambda: Settings.read({"TURNKEEPER_HOME": str(home)}, tmp_path),
        "lock": lambda: lock.hold(home).__enter__(),
    }
    for name, read in readers.items():
        home.mkdir()
        plant(kind, home / name)
        with pytest.raises(SettingsError, match=name.partition(".")[0] or "env"):
            read()
        shutil.rmtree(home)
    home.mkdir()
    plant(kind, home / "jobs.toml")
    with pytest.raises(Faulty) as raised:
        await JobFile(home, None, frozenset()).apply()  # type: ignore[arg-type]
    assert [one.text.partition(":")[0] for one in raised.value.faults] == ["It cannot be read"]


@pytest.mark.parametrize("pieces", [("LOG_LEVEL=warning\n",), ("LOG_", "LEVEL=war", "ning"), ()])
def test_settings_come_through_a_pipe(tmp_path: Path, pieces: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / ".env")

    def write() -> None:
        with open(tmp_path / ".env", "w") as pipe:
            for piece in pieces:
                print(piece, end="", file=pipe, flush=True)

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        read = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
        written.result()
    assert read.log_level == ("warning" if pieces else "info")


def test_a_link_to_null_is_an_empty_file(tmp_path: Path) -> None:
    for name in (".env", "turnkeeper.toml", "policy.toml"):
        (tmp_path / name).symlink_to("/dev/null")
    assert Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path).home == tmp_path
    rules = OperatorRules(tmp_path, ())
    rules.load()
    assert rules.rules == ()


async def test_a_folder_in_the_place_of_the_control_socket_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / control.SOCKET).mkdir()
    operations = control.Operations(store=None, pairing=None)  # type: ignore[arg-type]
    async with control.serve(tmp_path, operations):
        told = await asyncio.to_thread(control.ask, tmp_path, control.STATUS)
    assert told is not None and told.text == control.NOT_RUNNING


def test_a_name_and_keys_are_written_in_the_place_of_a_link_to_nothing(tmp_path: Path) -> None:
    for name in ("replica_id", lock.AUDIT_KEYS):
        (tmp_path / name).symlink_to(tmp_path / "gone" / name)
    assert lock.replica_id(tmp_path, lambda: "new") == "new" == lock.replica_id(tmp_path, str)
    keys = lock.read_audit_keys(tmp_path, ())
    assert len(keys) == 1 and lock.read_audit_keys(tmp_path, ()) == keys
    assert not (tmp_path / "gone").exists()


def test_a_name_and_keys_that_cannot_be_read_are_made_anew(tmp_path: Path) -> None:
    for name in ("replica_id", lock.AUDIT_KEYS):
        (tmp_path / name).write_bytes(SPOILT)
    assert lock.replica_id(tmp_path, lambda: "new") == "new" == lock.replica_id(tmp_path, str)
    keys = lock.read_audit_keys(tmp_path, ())
    assert len(keys) == 1 and lock.read_audit_keys(tmp_path, ()) == keys
    assert list_kept(tmp_path, "replica_id") == list_kept(tmp_path, lock.AUDIT_KEYS) == [SPOILT]
