"""Commands that run what lies in a file, and ways to have another thing lie there between the card
and the press."""

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

GOOD, EVIL = "good.txt", "evil.txt"
"""What each leaves where it ran."""


class Way(Struct, frozen=True, kw_only=True):
    """A command, and the file of the workspace that says what it does; `text` makes `{}`."""

    command: str
    file: str = "run.sh"
    text: str = "touch {}\n"


_PYTHON = "open('{}', 'w').close()\n"
WAYS: dict[str, Way] = {
    "sh": Way(command="sh run.sh"),
    "by its path": Way(command="./run.sh", text="#!/bin/sh\ntouch {}\n"),
    "sourced": Way(command=". ./run.sh"),
    "in a string": Way(command="sh -c 'sh run.sh'"),
    "as input": Way(command="sh < run.sh"),
    "through a pipe": Way(command="cat run.sh | sh"),
    "substituted": Way(command='eval "$(cat run.sh)"'),
    "below": Way(command="cd sub && sh run.sh && mv *.txt ..", file="sub/run.sh"),
    "with a folder": Way(command="sh sub/run.sh", file="sub/run.sh"),
    "behind env": Way(command="env A=1 timeout 9 sh run.sh"),
    "found": Way(command="find . -name 'run.sh' -exec sh {} \\;"),
    "by a wildcard": Way(command="sh ru*.sh"),
    "in a loop": Way(command="for f in *.sh; do sh $f; done"),
    "by xargs": Way(command="ls *.sh | xargs -n1 sh"),
    "python": Way(command="python3 run.py", file="run.py", text=_PYTHON),
    "a module": Way(command="python3 -m tool", file="tool.py", text=_PYTHON),
    "a package": Way(command="python3 -m tool", file="tool/__main__.py", text=_PYTHON),
    "an import": Way(command="python3 -c 'import helper'", file="helper.py", text=_PYTHON),
    "make": Way(command="make", file="Makefile", text="all:\n\ttouch {}\n"),
    "make -f": Way(command="make -s -f build.mk", file="build.mk", text="all:\n\ttouch {}\n"),
    "awk": Way(command="awk -f run.awk", file="run.awk", text='BEGIN { system("touch {}") }\n'),
    "a name in a file": Way(command="touch $(cat name)", file="name", text="{}\n"),
    "copied": Way(command="cp run.sh b.txt && sh b.txt"),
    "behind a variable": Way(command="x=run.sh; sh $x"),
    "in a function": Way(command="f() { sh run.sh; }; f"),
    "by what lies there": Way(command="sh $(ls | head -n 1)", file="a.txt"),
    "by a made name": Way(command="python3 -c \"exec(open('a'+'.txt').read())\"", file="a.txt", text=_PYTHON),
    "a picture": Way(command="sh $(find . -name 'x*')", file="x.png"),
    "a picture by its place": Way(command="sh $(ls | tail -n 1)", file="x.png"),
    "a document by its place": Way(command="sh $(ls | tail -n 1)", file="x.pdf", text="%PDF-1.4\ntouch {}\n"),
    "a document by a made name": Way(
        command="python3 -c \"exec(open('x'+'.pdf').read()[9:])\"", file="x.pdf", text="%PDF-1.4\n" + _PYTHON
    ),
    "later in the line": Way(command="ls && true; sh run.sh"),
}  # fmt: skip


def plant(workspace: Path, way: Way, makes: str = GOOD) -> None:
    """Write the file of a way."""
    place = workspace / way.file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(way.text.replace("{}", makes))
    place.chmod(0o755)


def _rewrite(workspace: Path, way: Way) -> None:
    plant(workspace, way, EVIL)


def _keep_time_and_size(workspace: Path, way: Way) -> None:
    place = workspace / way.file
    info = place.stat()
    plant(workspace, way, EVIL)
    os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))


def _move_over(workspace: Path, way: Way) -> None:
    other = workspace / "other"
    other.mkdir(exist_ok=True)
    plant(other, way, EVIL)
    os.replace(other / way.file, workspace / way.file)


def _link(workspace: Path, way: Way) -> None:
    other = workspace / "other"
    plant(other, way, EVIL)
    (workspace / way.file).unlink()
    (workspace / way.file).symlink_to(other / way.file)


SWAPS: dict[str, Callable[[Path, Way], None]] = {
    "rewritten": _rewrite,
    "of the same size and time": _keep_time_and_size,
    "moved over": _move_over,
    "linked": _link,
}
assert len(GOOD) == len(EVIL)
