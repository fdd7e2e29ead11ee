"""This process: out of reach of others of the same user, and not in its own way."""

import ctypes
import gc
import sys

_PR_SET_DUMPABLE = 4
YOUNG = 100_000
"""New objects before the youngest are searched for cycles. Modules and turns make thousands that
live as long as they do, next to none in a cycle: Python's own 700 costs a tenth of a start and of a
burst, 20,000 a twentieth."""
SWITCH = 0.0005
"""Seconds after which a thread that waits for the interpreter gets it: the store's waits between
two statements. With Python's own 0.005 a whole step of the loop comes first, and the slowest
answers are a tenth later."""


def forbid_inspection() -> None:
    """Let no other process of this user read our environment and memory, or trace us, and let no
    core file hold them. A program that we start begins without it. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def tune_interpreter() -> None:
    """Search for cycles once in `YOUNG` objects; let no thread wait longer than `SWITCH`."""
    gc.set_threshold(YOUNG)
    sys.setswitchinterval(SWITCH)
