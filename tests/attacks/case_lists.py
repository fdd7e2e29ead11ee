"""The lists of `lists/`: one case a line, kinds by `## `, ⏎ for a line end, ‹200b› for a sign by its
number."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "lists"
_SIGN = re.compile("‹([0-9a-f]+)›")


def read_cases(name: str) -> tuple[str, ...]:
    """All cases of the list, in order."""
    lines = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(_read_case(line) for line in lines if line and not line.startswith("## "))


def _read_case(line: str) -> str:
    return _SIGN.sub(lambda found: chr(int(found[1], 16)), line.replace("⏎", "\n"))
