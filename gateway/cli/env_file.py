"""Writes settings into `.env`, and leaves its other lines alone."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from agent_core.config.env_lines import read_env_line, split_lines

_ODD = re.compile(r"""[\s#$'"\\]""")
"""Characters with a special meaning for shells or Docker's Compose."""


def check_writable(path: Path) -> None:
    """Raise OSError, with the mend, if the file cannot be written in its folder, or is another
    program's pipe, or a device, of which a file in its place would make an end."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no plain file, so it is not written: set what you want there.")
    try:
        with _open_new(path.resolve()):
            pass
        _name_new(path.resolve()).unlink()
    except OSError as error:
        mend = f"cannot be written ({error.strerror}): change to a folder that is yours."
        raise OSError(f"{path} {mend}") from None


def write_settings(path: Path, chosen: Mapping[str, str]) -> None:
    """Set the names in the file in place; a name that occurs twice is set once. Only its owner may
    read the file."""
    path = path.resolve()  # keep symbolic links
    left, lines = dict(chosen), []
    text = path.read_text("utf-8-sig") if path.exists() else ""
    for line in split_lines(text):
        read = read_env_line(line)
        if read is None or read.name not in chosen:
            lines.append(line)
        elif read.name in left:
            lines.append(f"{read.name}={quote(left.pop(read.name))}")
    lines += [f"{name}={quote(value)}" for name, value in left.items()]
    with _open_new(path) as file:
        file.write("\n".join(lines) + "\n")
    os.replace(_name_new(path), path)


def _name_new(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _open_new(path: Path) -> TextIO:
    new = _name_new(path)
    new.unlink(missing_ok=True)
    made = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(made, "w", encoding="utf-8")


def quote(value: str) -> str:
    """The value as `.env` has it."""
    if not _ODD.search(value):
        return value
    mark = next((one for one in ("'", '"') if one not in value), "")
    return f"{mark}{value}{mark}"
