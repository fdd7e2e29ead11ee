"""Copies of files that the agent sends, where a platform wants them uploaded."""

from pathlib import Path

from gateway.errors import Rejected


def find_copy(outputs: Path | None, ref: str, name: str) -> Path:
    """Return the file `ref` below the folder `outputs`; Rejected if there is none. No link leads
    out."""
    if outputs is None:
        raise Rejected("files cannot be sent: no folder for them is set")
    root = outputs.resolve()
    path = (root / ref).resolve()
    if not path.is_relative_to(root):
        raise Rejected(f"the file {name} is not one of mine")
    if not path.is_file():
        raise Rejected(f"the file {name} is not there any more")
    return path
