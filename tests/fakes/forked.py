"""Servers of the tests as processes of their own, forked from one that has loaded what they import:
loading the SDK of MCP takes each of them a second."""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any

LOADED = ["tests.fakes.mcp_server", "tests.fakes.oauth_server"]
"""What the process that is forked has imported."""
LISTENS_WITHIN = 15.0

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(LOADED)


class Forked:
    """`run` with `arguments`, in a process of its own, from `start` to `stop`."""

    def __init__(self, run: Callable[..., None], *arguments: Any) -> None:
        self._run, self._arguments = run, arguments
        self._process: ForkServerProcess | None = None

    def start(self, *ports: int) -> None:
        """Until it listens on all `ports` of loopback."""
        self._process = _forks.Process(target=_run, args=(self._run, self._arguments), daemon=True)
        self._process.start()
        deadline = time.monotonic() + LISTENS_WITHIN
        for port in ports:
            while not _listens(port):
                assert time.monotonic() < deadline, "the server does not listen"
                time.sleep(0.01)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None


def _run(run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    run(*arguments)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
