"""A workspace folder's notes about its machine at E2B; without E2B's SDK."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.sandboxes import folders
from agent_core.tools import paths

_STATE = f"{paths.OWN}/{folders.STATE}/e2b.json"


class BoxState(Struct, frozen=True, kw_only=True):
    """Notes about the machine. `calls`: commands that ended since the snapshot, newest last."""

    box: str = ""
    snapshot: str = ""
    snapshot_at: float = 0.0
    calls: tuple[str, ...] = ()


def load_state(workspace: Path) -> BoxState:
    """Read the workspace folder's notes."""
    try:
        with paths.open_plain(workspace, Path(os.path.realpath(workspace)) / _STATE) as file:
            return msgspec.json.decode(file.read(), type=BoxState)
    except (OSError, ToolFailed, msgspec.DecodeError, RecursionError):
        return BoxState()


def store_state(workspace: Path, state: BoxState) -> None:
    """Write the notes; a machine without them is not found again."""
    with suppress(OSError, ToolFailed):
        place = Path(os.path.realpath(workspace)) / _STATE
        paths.put_file(workspace, place, msgspec.json.encode(state), 0o600)
