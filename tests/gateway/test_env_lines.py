"""A `.env` in any form that is read is written so that it is read as meant, its other lines as
before."""

import os
from pathlib import Path

import pytest

from gateway.cli.env_file import check_writable, write_settings
from gateway.settings import Settings

OLD = "openai/old"
NAMES = ("PRO_MODEL", "pro_model", "export PRO_MODEL", "export\tPro_Model", "\ufeffPRO_MODEL")
ENDS = ("\n", "\r\n", "\r")
COMMENTS = ("", "# mine", "# a\u2028b", "# a\x0cb", "# a\x85b", "# schön 🙂")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("comment", COMMENTS)
def test_any_file_that_is_read_is_written_as_it_is_read(
    tmp_path: Path, name: str, end: str, comment: str
) -> None:
    path = tmp_path / ".env"
    lines = [f"{name} = '{OLD}' # old", comment, "THEIRS=x#y", f"pro_MODEL={OLD}"]
    for value in ("openai/new", ""):
        for last in ("", end):
            path.write_text(end.join(lines) + last, "utf-8", newline="")
            assert Settings.read({}, tmp_path).env["PRO_MODEL"] == OLD
            write_settings(path, {"PRO_MODEL": value})
            found = Settings.read({}, tmp_path).env
            assert (found.get("PRO_MODEL", ""), found["THEIRS"]) == (value, "x#y")
            text = path.read_text("utf-8")
            assert OLD not in text and comment in text


@pytest.mark.parametrize("kind", ["pipe", "null"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    path, real = tmp_path / ".env", tmp_path / "real"
    if kind == "pipe":
        os.mkfifo(real)
    else:
        real = Path(os.devnull)
    path.symlink_to(real)
    with pytest.raises(OSError, match="no plain file"):
        check_writable(path)
    assert not real.is_file() and not real.with_name(f"{real.name}.new").exists()
