"""The lines of a `.env`, for whoever reads and whoever writes the file."""

import re
from typing import NamedTuple

_END = re.compile(r"\r\n|\n|\r")
"""Ends of lines; other programs take none of Unicode's others for one."""
_EXPORT = re.compile(r"^export\s+")


class EnvLine(NamedTuple):
    """A line NAME=value. `name` is in capitals, "" for a line without one; `value` None: no '='."""

    name: str
    value: str | None


def split_lines(text: str) -> list[str]:
    """The lines, without their ends."""
    lines = _END.split(text)
    return lines if lines[-1] else lines[:-1]


def read_env_line(line: str) -> EnvLine | None:
    """Read `NAME=value` with quotes, `export` and comments as in a shell; None for a comment or an
    empty line."""
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    name, equals, value = _EXPORT.sub("", line).partition("=")
    name = name.strip().upper()
    if not equals:
        return EnvLine(name, None)
    value = value.strip()
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return EnvLine(name, value[1:end])
    return EnvLine(name, re.sub(r"(^|\s+)#.*", "", value))
