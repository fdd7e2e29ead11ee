"""Limits the processes and threads of a sandbox where the kernel does not count them for one
sandbox.

RLIMIT_NPROC counts everything that a user runs, in all sandboxes together, and control groups are
seldom writable. So the supervisor is asked before each one begins. They are counted when as many
began as there was room for at the last count, since ended ones make room again.

Standard library only: see `agent_core.sandboxes.supervisor`.
"""

import os
import time

from agent_core.sandboxes import supervisor

_REST = 10
"""Counting takes at most one part in so many of the time."""


class TaskBudget:
    """`most`: processes and threads at once, including zombies."""

    def __init__(self, most: int) -> None:
        self._most, self._left, self._next = most, 0, 0.0

    def spend(self) -> bool:
        """May one more begin? Then it does."""
        if not self._left and (now := time.monotonic()) >= self._next:
            self._left = max(0, self._most - supervisor.count_tasks(os.getpid()))
            done = time.monotonic()
            self._next = done + _REST * (done - now)
        if not self._left:
            return False
        self._left -= 1
        return True
