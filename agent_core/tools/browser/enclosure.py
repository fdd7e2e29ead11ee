"""The browser's own sandbox: Chromium's view of the machine, and its way out.

It has no network: a port inside leads to a guarded proxy over a Unix socket, a different one at
each address of loopback. It sees the system's programs and one folder, for its downloads. Its
profile is in memory. It is separate from the sandboxes of commands: nothing that runs there can
drive it, or use its way out. It is made of walls: bubblewrap's, or those of Docker. A gateway that
is root runs it as a user of its own.
"""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agent_core.sandboxes.network import PORT
from agent_core.tools.web.proxy import GuardedProxy
from agent_core.unix_sockets import bind_socket

MEMORY = 4 << 30
"""Bytes that all of the browser may take."""
USER = 65533
"""The browser's user where the gateway is root."""
WEB = "127.0.0.1"
"""The address at which the browser meets the proxy for the web."""
PROGRAM = Path(__file__).with_name("inside.py")
"""The first process inside."""
WAYS_INSIDE = "/opt/turnkeeper/ways"


class EnclosedFolders(Struct, frozen=True, kw_only=True):
    """The folders of an enclosure. `home`: the gateway's alone; `ways`: the sockets of proxies;
    `downloads`: called the same inside. `memory`: bytes that all inside may take."""

    home: Path
    ways: Path
    downloads: Path
    memory: int


class Walls(Protocol):
    """The walls of a browser's sandbox."""

    @property
    def name(self) -> str:
        """The tier of sandboxes that they are of."""

    @property
    def nests(self) -> bool:
        """Chromium's own sandbox isolates pages besides, inside."""

    def find_browser(self) -> str:
        """Return Chromium's path inside, "" if there is none."""

    def write_call(self, folders: EnclosedFolders) -> str:
        """Prepare the sandbox; return the shell's words that start a program inside, with their
        files 3 and 4 as the driver's. OSError."""


class Enclosure:
    """The sandbox that a browser is started in, by `walls`. `folder`: the browser's home."""

    def __init__(self, folder: Path, walls: Walls) -> None:
        self.walls = walls
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
        return await self.add_way(WEB, proxy)

    async def add_way(self, address: str, proxy: GuardedProxy) -> str:
        """A way to one more proxy, at another address of loopback. OSError."""
        place = self._folder / "ways" / address
        place.unlink(missing_ok=True)
        self._ways[address] = await asyncio.start_unix_server(proxy.take, sock=bind_socket(place))
        if os.geteuid() == 0:
            os.chown(place, USER, USER)
        return f"http://{address}:{PORT}"

    def remove_way(self, address: str) -> None:
        """Accept no more connections there; existing ones are the proxy's to end."""
        if (server := self._ways.pop(address, None)) is not None:
            server.close()
            (self._folder / "ways" / address).unlink(missing_ok=True)

    def close(self) -> None:
        """Accept no more connections."""
        for address in list(self._ways):
            self.remove_way(address)

    def write_wrapper(self, path: str) -> Path:
        """Write a program that starts the browser at `path` inside, with its own arguments."""
        ways = self._folder / "ways"
        folders = EnclosedFolders(
            home=self._folder, ways=ways, downloads=self.downloads, memory=MEMORY
        )
        call = self.walls.write_call(folders)
        place = self._folder / "chromium"
        new = place.with_suffix(".new")
        new.write_text(f'#!/bin/sh\n{call} {shlex.quote(path)} "$@"\n')
        new.chmod(0o700)
        os.replace(new, place)
        return place
