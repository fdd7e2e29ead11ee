"""read_file, write_file, list_files."""

import os
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.tools import paths
from agent_core.tools.files import (
    ListFilesArguments,
    ReadFileArguments,
    WriteFileArguments,
    entries,
    file_tools,
    preview,
    read,
    write,
)
from agent_core.tools.toolbox import Toolbox


def test_write_keeps_a_backup_and_shows_the_diff(tmp_path: Path) -> None:
    assert "Created d/a.txt" in write(WriteFileArguments(path="d/a.txt", content="one\n"), tmp_path)
    os.chmod(tmp_path / "d/a.txt", 0o755)
    assert "+two" in preview(WriteFileArguments(path="d/a.txt", content="two\n"), tmp_path)
    said = write(WriteFileArguments(path="d/a.txt", content="two\n"), tmp_path)
    assert "-one" in said and "+two" in said
    assert (tmp_path / "d/a.txt").read_text() == "two\n"
    assert (tmp_path / "d/a.txt").stat().st_mode & 0o777 == 0o755
    nothing, backup = sorted((tmp_path / ".turnkeeper/backups/d").iterdir())
    assert nothing.name.startswith("a.txt.") and nothing.name.endswith(".new")
    assert backup.read_text() == "one\n" and backup.name.startswith("a.txt.")
    assert "nothing changed" in write(WriteFileArguments(path="d/a.txt", content="two\n"), tmp_path)


def test_twenty_backups_and_no_temporary_files(tmp_path: Path) -> None:
    for n in range(25):
        write(WriteFileArguments(path="a", content=str(n)), tmp_path)
    kept = sorted((tmp_path / ".turnkeeper/backups").iterdir())
    assert [path.read_text() for path in kept] == [str(n) for n in range(4, 24)]
    assert {path.name for path in tmp_path.iterdir()} == {"a", ".turnkeeper"}


def test_a_long_diff_is_cut_with_a_count(tmp_path: Path) -> None:
    said = write(WriteFileArguments(path="a", content="x\n" * 9_000), tmp_path)
    assert len(said) < 4_200 and "characters of the diff left out" in said


def test_reading_in_pages(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("".join(f"line {n}\n" for n in range(1, 2_600_000)))
    first = read(ReadFileArguments(path="big"), tmp_path)
    assert first.startswith("line 1\n") and len(first) < 10_000 and "offset=" in first
    page = read(ReadFileArguments(path="big", offset=1_000_000, limit=2), tmp_path)
    assert page.startswith("line 1000000\nline 1000001\n\n[Lines 1000000 to 1000001")
    with pytest.raises(ToolFailed, match="only 2599999 lines"):
        read(ReadFileArguments(path="big", offset=9_000_000), tmp_path)


def test_empty_binary_and_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "image").write_bytes(b"\x89PNG\0\0\0" + os.urandom(100))
    assert "0 bytes" in read(ReadFileArguments(path="empty"), tmp_path)
    assert "binary (PNG image" in read(ReadFileArguments(path="image"), tmp_path)
    for path in ("none", ".", "none/x"):
        with pytest.raises(ToolFailed):
            read(ReadFileArguments(path=path), tmp_path)


def test_listing(tmp_path: Path) -> None:
    for name in ("b.py", "a.txt", "d/c.py", "d/e/f.py", ".turnkeeper/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12")
    (tmp_path / "l").symlink_to("/etc")
    lines = entries(ListFilesArguments(), tmp_path).splitlines()
    assert lines == [
        "name\tpath\ttype\tsize",
        *("a.txt\ta.txt\tfile\t2", "b.py\tb.py\tfile\t2", "d\td\tfolder\t0", "l\tl\tlink\t0"),
    ]
    found = entries(ListFilesArguments(pattern="**/*.py"), tmp_path)
    assert found.count(".py\tfile") == 3 and "d/e/f.py" in found
    assert "f.py\td/e/f.py" in entries(ListFilesArguments(path="d", pattern="*/*"), tmp_path)
    assert entries(ListFilesArguments(pattern="*.rs"), tmp_path) == "Nothing found."
    for arguments in (
        ListFilesArguments(pattern="../*"),
        ListFilesArguments(path=".."),
        ListFilesArguments(path="l"),
        ListFilesArguments(pattern="/etc/*"),
    ):
        with pytest.raises(ToolFailed):
            entries(arguments, tmp_path)


def test_at_most_a_thousand_entries(tmp_path: Path) -> None:
    for n in range(1_100):
        (tmp_path / str(n)).touch()
    assert len(entries(ListFilesArguments(), tmp_path).splitlines()) == 1_002


def test_schemas_are_small() -> None:
    box = Toolbox(file_tools())
    assert len(str(box.specs(box.names))) < 1_500


def test_a_file_that_is_being_written_is_in_no_list(tmp_path: Path) -> None:
    (tmp_path / paths.temporary_name()).touch()
    (tmp_path / ".mine.tmp").touch()
    listed = entries(ListFilesArguments(pattern="*"), tmp_path)
    assert ".mine.tmp" in listed and listed.count("\n") == 1
