"""The time limit of a test. pytest-timeout raises in a signal's handler, which uvloop swallows while
it waits: an async test that hangs would hang for ever."""

import asyncio
import faulthandler
import os
import signal
import sys
from types import FrameType

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from pytest_timeout import is_debugging

GRACE = 20.0
"""Seconds in which a test that is over its limit may end by itself."""


def set_timer(item: pytest.Item, limit: float) -> None:
    """After `limit` seconds let the test fail where it stands. One that does not end even so ends
    its process, which xdist reports and replaces."""
    rings = 0

    def ring(_signal: int, _frame: FrameType | None) -> None:
        nonlocal rings
        if is_debugging():
            return
        rings += 1
        loop = asyncio._get_running_loop()
        if rings > 1:
            item.config.pluginmanager.getplugin("capturemanager").suspend_global_capture()
            _show_stacks(loop)
            os._exit(1)
        _show_stacks(loop)
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        why = f"{item.nodeid} took more than {limit:g} s"
        if loop is not None:
            loop.call_soon_threadsafe(_cancel_all, loop, why)
        pytest.fail(why)  # a loop that waits swallows it

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    watch(item, limit)


def watch(item: pytest.Item, limit: float) -> None:
    """Also where no Python runs any more, as in the end of a loop: end the process some time after
    `limit` seconds."""
    if not is_debugging():
        out = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(limit + 2 * GRACE, exit=True, file=out)


def cancel_timer() -> None:
    """The test has ended."""
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _show_stacks(loop: asyncio.AbstractEventLoop | None) -> None:
    faulthandler.dump_traceback(all_threads=True)
    for task in asyncio.all_tasks(loop) if loop is not None else ():
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()


def _cancel_all(loop: asyncio.AbstractEventLoop, why: str) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel(why)
