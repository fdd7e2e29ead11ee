"""Stores the folder of a workspace's shell, in the workspace's own place."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools import backups, paths

_FILE = f"{paths.OWN}/shell.json"


class ShellPlace(Struct, frozen=True, kw_only=True):
    """`folder`: from the workspace's. `opened`: there was a shell, so another one is a new one."""

    folder: str = "."
    opened: bool = False


def locate_within(folder: str, top: str) -> str:
    """`folder` from the workspace's, which is called `top` there; "" if it is outside."""
    relative = os.path.relpath(folder, top) if folder and top else ".."
    return "" if relative == ".." or relative.startswith("../") else relative


def recall(workspace: Path) -> ShellPlace:
    """Read what was stored."""
    try:
        with paths.open_read(workspace, _FILE) as file:
            return msgspec.json.decode(file.read(10_000), type=ShellPlace)
    except (ToolFailed, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ShellPlace()


def remember(workspace: Path, place: ShellPlace) -> None:
    """Keep it."""
    real = Path(os.path.realpath(workspace)) / _FILE
    backups.store(workspace, real, msgspec.json.encode(place), 0o600)
