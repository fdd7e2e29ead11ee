"""This process: out of reach of others of the same user, and not in its own way."""

import ctypes
import gc
import os
import sys
from io import TextIOWrapper
from typing import Literal, TextIO

_PR_SET_DUMPABLE = 4
YOUNG = 100_000
"""Threshold of the youngest generation of the garbage collector. Modules and turns make thousands
of long-lived objects, next to none in a cycle: Python's own 700 costs a tenth of a start and of a
burst, 20,000 a twentieth."""
SWITCH = 0.0005
"""Switch interval of threads, in seconds: the store's thread waits between two statements. With
Python's 0.005 a whole step of the loop comes first, and the slowest answers take a tenth longer."""


def forbid_inspection() -> None:
    """Keep other processes of this user from reading our environment and memory and from tracing
    us, and disable core files. Child processes start without it. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def tune_interpreter() -> None:
    """Search for cycles once in `YOUNG` objects; let no thread wait longer than `SWITCH`."""
    gc.set_threshold(YOUNG)
    sys.setswitchinterval(SWITCH)


def open_standard_streams() -> None:
    """Open what a starter has closed of standard input, output and error, onto nothing. Otherwise
    the next file or socket has its number, and what a child process prints goes there.

    A sign that a terminal's encoding does not have is printed as `?`."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number
    sys.stdin = sys.stdin or _open_stream(0, "r")
    sys.stdout = sys.stdout or _open_stream(1, "w")
    sys.stderr = sys.stderr or _open_stream(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def discard_unwritten() -> None:
    """Let what could not be written to standard output or error, and all after it, go nowhere.
    Otherwise Python tries it again at its end, and its exit code is 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)


def _open_stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    return open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)
