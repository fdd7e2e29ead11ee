"""This process: out of reach of others of the same user, and not in its own way."""

import ctypes
import gc
import sys

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
