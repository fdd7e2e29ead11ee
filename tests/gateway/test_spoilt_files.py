"""Files of the data folder that cannot be read stop nothing, and are kept."""

from pathlib import Path

import pytest

from gateway.ops import lock
from gateway.services.spoilt_files import MARK
from gateway.services.vault import FILE, Vault

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


def test_a_name_and_keys_that_cannot_be_read_are_made_anew(tmp_path: Path) -> None:
    for name in ("replica_id", lock.AUDIT_KEYS):
        (tmp_path / name).write_bytes(SPOILT)
    assert lock.replica_id(tmp_path, lambda: "new") == "new" == lock.replica_id(tmp_path, str)
    keys = lock.read_audit_keys(tmp_path, ())
    assert len(keys) == 1 and lock.read_audit_keys(tmp_path, ()) == keys
    assert list_kept(tmp_path, "replica_id") == list_kept(tmp_path, lock.AUDIT_KEYS) == [SPOILT]
