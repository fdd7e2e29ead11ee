"""Reads documents as text, each in a program of its own with limits on memory and time. A malicious
file can break that program alone."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from typing import BinaryIO

from agent_core.documents import limits
from agent_core.documents.kinds import MODULES, Container, Kind, read_ending
from agent_core.documents.limits import CUT, MAX_BYTES, MAX_TEXT, REFUSED, WALL
from agent_core.errors import ToolFailed

ABSENT = (
    "{path} is a document, and what reads it is not installed here. An operator installs it with "
    "the extra `documents`: pip install 'turnkeeper[documents]'."
)
BROKEN = "{path} cannot be read: it is damaged, or too large to be unpacked."


def read_document(path: str, kind: Kind | Container, file: BinaryIO) -> str:
    """The text of the document in `file`, its pages, sheets and slides marked. `path` is its name
    in errors. Blocks; raises ToolFailed."""
    module = next((name for one, name in MODULES.items() if one == kind), "")
    if module and find_spec(module) is None:
        raise ToolFailed(ABSENT.format(path=path))
    if os.fstat(file.fileno()).st_size > MAX_BYTES:
        raise ToolFailed(f"{path} is larger than {MAX_BYTES >> 20} MB.")
    os.lseek(file.fileno(), 0, os.SEEK_SET)  # `file` may only have moved in its buffer
    # a program looked up like this one, in an otherwise empty environment
    env = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-m", "agent_core.documents.child", kind, read_ending(path)]
    try:
        with subprocess.Popen(
            program,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd="/",
            start_new_session=True,
        ) as child:
            try:
                said, told = child.communicate(timeout=WALL)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                raise ToolFailed(f"{path} takes too long to read.") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be read: {error.strerror}.") from None
    if child.returncode == REFUSED:
        raise ToolFailed(f"{path} cannot be read: {told.decode(errors='replace').strip()}")
    if child.returncode == limits.ABSENT:
        raise ToolFailed(ABSENT.format(path=path))
    if child.returncode:
        raise ToolFailed(BROKEN.format(path=path))
    text = said.decode(errors="replace")
    return text if len(text) < MAX_TEXT else f"{text[:MAX_TEXT]}\n{CUT}"
