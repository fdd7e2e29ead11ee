"""Processes of commands, found by a mark in their words."""

import asyncio
import itertools
import os

import psutil

from tests.fakes.waiting import PATIENCE

_marks = itertools.count(1)


def a_mark() -> str:
    """Seconds to sleep that no other test sleeps, in any process."""
    return f"7{os.getpid()}.{next(_marks)}"


def leave_behind(mark: str) -> str:
    """A command that leaves a process running, and ends once `alive` finds that."""
    found = f"grep -qzx {mark} /proc/$!/cmdline"  # a word of its own: not that of the shell before
    return f"sleep {mark} >/dev/null 2>&1 & until {found}; do :; done"


def alive(mark: str) -> list[psutil.Process]:
    """Processes with `mark` among their words."""
    found = []
    for one in psutil.process_iter():
        try:
            if mark in one.cmdline() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


async def gone(mark: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while alive(mark):
            await asyncio.sleep(0.02)


async def there(mark: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not alive(mark):
            await asyncio.sleep(0.02)
