"""This process, out of reach of others of the same user."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def forbid_inspection() -> None:
    """Let no other process of this user read our environment and memory, or trace us, and let no
    core file hold them. A program that we start begins without it. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
