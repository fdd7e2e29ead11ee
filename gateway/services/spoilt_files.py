"""Files of the data folder that cannot be read: kept under another name, they stop nothing."""

import errno
import logging
import os
from pathlib import Path

from agent_core import ambient
from agent_core.config.plain_files import read_plain

log = logging.getLogger("turnkeeper.files")

MARK = "unreadable"
NO_FILE = (errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO)
"""Errors for a pipe, a device, a folder, a socket, or a link to itself in a file's place."""


def set_aside(path: Path, error: Exception) -> None:
    """Move an unreadable file of the data folder aside and log it."""
    kept = path.with_name(f"{path.name}.{MARK}-{ambient.new_id()}")
    os.replace(path, kept)
    log.error("file_set_aside", extra={"path": str(path), "kept": kept.name, "why": str(error)})


def read_text(path: Path) -> str:
    """Return the text of a file of the data folder, "" if there is none. Anything else in its place
    is set aside. OSError."""
    try:
        return read_plain(path).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        set_aside(path, error)
    except OSError as error:
        if error.errno not in NO_FILE:
            raise
        set_aside(path, error)
    return ""
