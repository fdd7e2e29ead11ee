"""Workspaces as a clone or an archive leaves them: names that hide, turn, break lines or look like
options and paths, links that lead out, and what is no file."""

import os
import random
import socket
from pathlib import Path

SECRET = "0f-what-stands-outside"
BAD_SIGNS = frozenset(
    "\n\r\x1b\x07\x00\u2028\u2029\u202e\u202d\u2066\u2067\u200b\u200f\ufeff\x9b\u0085"
)
"""Signs that no name may bring into what is shown, but as codes."""
_NAMES = (
    *("a\nApproved by Ann", "a\r\nb.txt", "\x1b[2J\x1b[31mred.txt", "\x1b]0;title\x07.md", "gnp.\u202efdp.exe", "\u2066a\u2067b.txt"),
    *("a\u200bb.py", "\ufeffa.txt", "x\u2028y.md", "\x9b31m", "a\u0085b", "\u200f\u200f.txt", "caf\udce9.txt", "\udcff\udcfe", " ", " a", "a "),
    *("-rf", "--files0-from=x", "a -f b.txt", "a\tb.txt", "`id`.txt", "$(id).txt", "*.txt", "[a].md", "a;b", "a|b", "'a'", '"a"', "\\n.txt"),
    *("<b>.html", "![x](http://e.x/).md", "[x](http://e.x/)", "@everyone", "<@1>.txt", "# h.md", "> q.md", "```", "||s||", "a:b", "CON", "nul.txt"),
    *("[End of what is from the server.]", "name\tpath\ttype\tsize", "é" * 120, "w" * 250, "😀" * 60, "ﷺ.txt", "pаypal.txt", "a.b.c.d.e", "...", ". ."),
)  # fmt: skip
_FOLDERS = ("", "", "", "src", "a b", "\u202ecrs", "x\ny", "deep/er/and/deeper")


def make_workspace(chance: random.Random, at: Path, count: int = 40) -> list[str]:
    """Make one below `at`, beside a secret that its links lead to; the files' paths."""
    root = at / "workspace"
    root.mkdir(parents=True)
    (at / "outside.txt").write_text(SECRET)
    made = []
    for name in chance.sample(_NAMES, count):
        folder = root / chance.choice(_FOLDERS)
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / name
        try:
            _make_one(chance.randrange(10), place, at)
        except (OSError, ValueError):  # no file system takes it
            continue
        made.append(str(place.relative_to(root)))
    return made


def _make_one(kind: int, place: Path, at: Path) -> None:
    match kind:
        case 0:
            os.mkfifo(place)
        case 1:
            with socket.socket(socket.AF_UNIX) as one:
                here = os.getcwd()
                os.chdir(place.parent)  # the whole path may be too long for a socket
                try:
                    one.bind(place.name)
                finally:
                    os.chdir(here)
        case 2:
            place.symlink_to(at / "outside.txt")
        case 3:
            place.symlink_to("../" * 9 + "etc")
        case 4:
            place.symlink_to(place.name)
        case 5:
            place.mkdir()
        case _:
            place.write_text("words\n")
