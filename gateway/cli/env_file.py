"""Writes settings into `.env`, and leaves its other lines alone."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_ODD = re.compile(r"""[\s#$'"\\]""")
"""Characters with a special meaning for shells or Docker's Compose."""


def write_settings(path: Path, chosen: Mapping[str, str]) -> None:
    """Set the names in the file in place; a name that occurs twice is set once. Only its owner may
    read the file."""
    path = path.resolve()  # keep symbolic links
    left, lines = dict(chosen), []
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines():
        name = line.strip().removeprefix("export ").partition("=")[0].strip()
        if name not in chosen:
            lines.append(line)
        elif name in left:
            lines.append(f"{name}={quote(left.pop(name))}")
    lines += [f"{name}={quote(value)}" for name, value in left.items()]
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(new, path)


def quote(value: str) -> str:
    """The value as `.env` has it."""
    if not _ODD.search(value):
        return value
    mark = '"' if "'" in value else "'"
    return f"{mark}{value}{mark}"
