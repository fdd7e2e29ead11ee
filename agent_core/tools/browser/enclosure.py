"""The browser's own sandbox, by bubblewrap: what Chromium sees of the machine, and its way out.

It has no network: a port inside leads to a guarded proxy over a Unix socket, at each address of
loopback to another one. It sees the system's programs and one folder, where its downloads go. Its
profile is in memory. It is apart from the sandboxes of commands: nothing that runs there can drive
it, or use its way out.

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
WEB = "127.0.0.1"
"""The address at which the browser meets the proxy for the web."""
PROGRAM = Path(__file__).with_name("inside.py")
_INSIDE, _WAYS = "/opt/turnkeeper/inside.py", "/opt/turnkeeper/ways"
_OF_BROWSERS = ("/etc/chromium", "/etc/chromium.d", "/opt/google")
"""What browsers have outside of /usr."""
_FILTER = 9
"""The open file of the filter: a shell opens no higher one."""


class Enclosure:
    """The sandbox that a browser is started in. `folder`: the browser's home."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.downloads = self._folder / "downloads"
        self._ways: dict[str, asyncio.Server] = {}

    async def open(self, proxy: GuardedProxy) -> str:
        """Make the folders, and the way to `proxy`, as the browser calls it. OSError."""
        self.downloads.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "ways").mkdir(exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.downloads, USER, USER)
            os.chown(self._folder / "ways", USER, USER)
            (self._folder / "filter").write_bytes(seccomp.build_filter())
        return await self.add_way(WEB, proxy)

    async def add_way(self, address: str, proxy: GuardedProxy) -> str:
        """A way to one more proxy, at another address of loopback. OSError."""
        place = self._folder / "ways" / address
        place.unlink(missing_ok=True)
        self._ways[address] = await asyncio.start_unix_server(proxy.take, place)
        if os.geteuid() == 0:
            os.chown(place, USER, USER)
        return f"http://{address}:{PORT}"

    def remove_way(self, address: str) -> None:
        """No connection comes in there any more; those that are there are the proxy's to end."""
        if (server := self._ways.pop(address, None)) is not None:
            server.close()
            (self._folder / "ways" / address).unlink(missing_ok=True)

    def close(self) -> None:
        """No connection comes in any more."""
        for address in list(self._ways):
            self.remove_way(address)

    def write_wrapper(self, path: str) -> Path:
        """A program that starts the browser at `path` inside, with what it is given itself."""
        root = os.geteuid() == 0
        above = reversed(self.downloads.parents[:-1])  # inside they are empty, and anybody's
        binds = (
            *(word for one in above for word in ("--perms", "0755", "--dir", str(one))),
            *(word for one in _OF_BROWSERS for word in ("--ro-bind-try", one, one)),
            *("--ro-bind", str(PROGRAM), _INSIDE),
            *("--bind", str(self._folder / "ways"), _WAYS),
            *("--bind", str(self.downloads), str(self.downloads)),
        )
        words = (
            *enclose_program(binds, USER if root else None, _FILTER if root else None),
            *(find_inside_python(), "-I", "-S", "-B", _INSIDE),
            *(_WAYS, str(PORT), str(MEMORY), path),
        )
        refusals = f"exec {_FILTER}<{shlex.quote(str(self._folder / 'filter'))}\n" if root else ""
        place = self._folder / "chromium"
        new = place.with_suffix(".new")
        new.write_text(f'#!/bin/sh\n{refusals}exec {shlex.join(words)} "$@"\n')
        new.chmod(0o700)
        os.replace(new, place)
        return place
