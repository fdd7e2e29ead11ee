"""Files of the data folder that cannot be read: kept under another name, they stop nothing."""

import logging
import os
from pathlib import Path

from agent_core import ambient

log = logging.getLogger("turnkeeper.files")

MARK = "unreadable"


def set_aside(path: Path, error: Exception) -> None:
    """Keep a file of ours whose content cannot be read beside its place, and say so."""
    kept = path.with_name(f"{path.name}.{MARK}-{ambient.new_id()}")
    os.replace(path, kept)
    log.error("file_set_aside", extra={"path": str(path), "kept": kept.name, "why": str(error)})


def read_text(path: Path) -> str:
    """The text of a file of ours, "" if there is none. What is no text is set aside. OSError."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        set_aside(path, error)
        return ""
