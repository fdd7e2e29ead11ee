"""The hostile inputs, by group; empty where the shared folder is not there."""

import json
import os
from pathlib import Path

_SHARED = Path(os.environ.get("TURNKEEPER_SHARED", Path(__file__).parents[3] / "shared"))


def group(name: str) -> list[tuple[str, str]]:
    """(name, input) of each case."""
    file = _SHARED / "attacks.jsonl"
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [(row["name"], row["input"]) for row in rows if row["group"] == name]
