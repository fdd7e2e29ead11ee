"""Names that make an option, or a list of more words, out of a wildcard that finds them."""

import re
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.attacks.reading_grammar import CANARY

PATTERNS = ("*", "-- *", "*.txt", "-- *.txt", "*/*", "-- */*", "*/*.txt", "* *.txt")
_BEFORE = {
    "cut": "-c1-", "gzip": "-dc", "gunzip": "-c", "grep": "x", "egrep": "x", "fgrep": "x", "zgrep": "x",
    "jq": ".", "rg": "x", "awk": "1", "sed": "p", "unzip": "-l", "xmllint": "--noout",
}  # fmt: skip
_PLACES = ("..", ".", "deep")
_SCRIPT = "#!/bin/sh\ntouch planted-ran\n"


def list_lines(verb: str) -> list[str]:
    """Commands that hand a wildcard to the program."""
    before = f"{verb} {_BEFORE[verb]}" if verb in _BEFORE else verb
    return [f"{before} {pattern}" for pattern in PATTERNS]


def list_names(verb: str) -> list[str]:
    """Names that are an option of the program, as it tells them itself, with a file for a value."""
    told = "".join(_read_help(verb, option) for option in ("--help", "--long-help"))
    long = sorted(set(re.findall(r"--[a-z][a-z0-9-]+", told)))
    short = [f"-{one}" for one in string.ascii_letters]
    return [*_spell(["@"], ""), *_spell(long, "="), *_spell(short, "")]


def _read_help(verb: str, option: str) -> str:
    done = subprocess.run(
        [verb, option], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def _spell(options: list[str], sign: str) -> Iterator[str]:
    for option in options:
        yield from (option, f"{option}.txt", f"{option}{sign}.env", f"{option}{sign}list.txt")
        yield from (f"{option}{sign}{place}/list.txt" for place in _PLACES)


def make_planted_world(at: Path) -> Path:
    """A folder with secret files and lists of words in it and around it; that folder."""
    here = at / "here"
    (here / "deep").mkdir(parents=True)
    words = "--plugin=./run.sh\n../list.txt\n.env\n--include=*\n"
    files = {
        "a.txt": "x\n",
        "b.txt": "a.txt\n",
        ".env": CANARY,
        "run.sh": _SCRIPT,
        "../list.txt": CANARY,
    }
    for name, text in files.items():
        (here / name).write_text(text)
    for place in ("", "deep/"):
        (here / f"{place}list.txt").write_text(words)
    (here / "run.sh").chmod(0o755)
    return here


def plant(here: Path, name: str) -> Path | None:
    """The file of that name, in a folder of the part before the slash; None where it cannot be."""
    file = here / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")
    except OSError:
        return None
    return file
