"""What is remembered of a browser in the workspace's own folder: enough to say where it was, and to
tell whether what was approved is what it was. Cookies and sign-ins are not kept."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools import paths

PLACE = f"{paths.OWN}/browser.json"


class Remembered(Struct, frozen=True, kw_only=True):
    """The page that was worked in, "" for none, and the labels of its elements by number."""

    url: str = ""
    labels: dict[str, str] = {}


def note(workspace: Path, what: Remembered) -> None:
    """Remember it. Blocks."""
    workspace.mkdir(parents=True, exist_ok=True)
    own = Path(os.path.realpath(workspace)) / paths.OWN
    with paths.folder(workspace, own, create=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open("browser.new", flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(msgspec.json.encode(what))
        os.replace("browser.new", "browser.json", src_dir_fd=folder, dst_dir_fd=folder)


def recall(workspace: Path) -> Remembered:
    """What was remembered last. Blocks."""
    try:
        with paths.open_read(workspace, PLACE) as file:
            return msgspec.json.decode(file.read(), type=Remembered)
    except (ToolFailed, OSError, msgspec.DecodeError):
        return Remembered()
