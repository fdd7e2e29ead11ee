"""The browser's own sandbox, by bubblewrap: what Chromium sees of the machine, and its way out.

It has no network: a port inside leads to the guarded proxy over a Unix socket. It sees the system's
programs and one folder, where its downloads go. Its profile is in memory. It is apart from the
sandboxes of commands: nothing that runs there can drive it, or use its way out.

A gateway that is root lets it be a user that nobody else is, behind the filter of system calls that
commands have; Chromium's own sandbox does not work then, as it does not for root anyway. For
another gateway Chromium isolates pages by its own sandbox besides, which that filter would refuse.
"""

import asyncio
import os
import shlex
from pathlib import Path

from agent_core.sandboxes import seccomp
from agent_core.sandboxes.bwrap import enclose_program, find_inside_python
from agent_core.sandboxes.network import PORT
from agent_core.tools.web.proxy import GuardedProxy

MEMORY = 4 << 30
"""Bytes that all of the browser may take."""
USER = 65533
"""Who the browser is where the gateway is root."""
ADDRESS = f"http://127.0.0.1:{PORT}"
"""The proxy, as the browser calls it."""
PROGRAM = Path(__file__).with_name("inside.py")
_INSIDE, _WAY_OUT = "/opt/turnkeeper/inside.py", "/opt/turnkeeper/proxy"
_OF_BROWSERS = ("/etc/chromium", "/etc/chromium.d", "/opt/google")
"""What browsers have outside of /usr."""
_FILTER = 9
"""The open file of the filter: a shell opens no higher one."""


class Enclosure:
    """The sandbox that a browser is started in. `folder`: the browser's home."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.downloads = self._folder / "downloads"
        self._server: asyncio.Server | None = None

    async def open(self, proxy: GuardedProxy) -> None:
        """Make the folders, and the way out to `proxy`. OSError."""
        root = os.geteuid() == 0
        self.downloads.mkdir(parents=True, exist_ok=True, mode=0o700)
        way_out = self._folder / "proxy"
        way_out.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(proxy.take, way_out)
        if root:
            os.chown(self.downloads, USER, USER)
            os.chown(way_out, USER, USER)
            (self._folder / "filter").write_bytes(seccomp.build_filter())

    def close(self) -> None:
        """No connection comes in any more; those that are there are the proxy's to end."""
        if self._server is not None:
            self._server.close()
        (self._folder / "proxy").unlink(missing_ok=True)

    def write_wrapper(self, path: str) -> Path:
        """A program that starts the browser at `path` inside, with what it is given itself."""
        root = os.geteuid() == 0
        above = reversed(self.downloads.parents[:-1])  # inside they are empty, and anybody's
        binds = (
            *(word for one in above for word in ("--perms", "0755", "--dir", str(one))),
            *(word for one in _OF_BROWSERS for word in ("--ro-bind-try", one, one)),
            *("--ro-bind", str(PROGRAM), _INSIDE),
            *("--bind", str(self._folder / "proxy"), _WAY_OUT),
            *("--bind", str(self.downloads), str(self.downloads)),
        )
        words = (
            *enclose_program(binds, USER if root else None, _FILTER if root else None),
            *(find_inside_python(), "-I", "-S", "-B", _INSIDE),
            *(_WAY_OUT, str(PORT), str(MEMORY), path),
        )
        refusals = f"exec {_FILTER}<{shlex.quote(str(self._folder / 'filter'))}\n" if root else ""
        place = self._folder / "chromium"
        new = place.with_suffix(".new")
        new.write_text(f'#!/bin/sh\n{refusals}exec {shlex.join(words)} "$@"\n')
        new.chmod(0o700)
        os.replace(new, place)
        return place
