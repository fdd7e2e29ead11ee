"""Remembers the browser's page in the workspace's own folder: enough to say where it was, and to
verify an approved action. Cookies and sign-ins are not kept."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools import backups, paths

PLACE = f"{paths.OWN}/browser.json"


class RememberedPage(Struct, frozen=True, kw_only=True):
    """The current page, "" for none, and the labels of its elements by number."""

    url: str = ""
    labels: dict[str, str] = {}


def note(workspace: Path, what: RememberedPage) -> None:
    """Remember it. Blocks."""
    paths.make(workspace)
    real = Path(os.path.realpath(workspace)) / PLACE
    backups.store(workspace, real, msgspec.json.encode(what), 0o600)


def recall(workspace: Path) -> RememberedPage:
    """Read what was remembered last. Blocks."""
    try:
        with paths.open_read(workspace, PLACE) as file:
            return msgspec.json.decode(file.read(), type=RememberedPage)
    except (ToolFailed, OSError, msgspec.DecodeError, RecursionError):
        return RememberedPage()
