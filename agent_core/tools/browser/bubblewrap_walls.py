"""Walls of bubblewrap for the browser.

A gateway that is root applies the commands' filter of system calls; Chromium's own sandbox does not
work then, as it does not for root anyway. For another gateway Chromium isolates pages by its own
sandbox besides, which that filter would refuse.
"""

import os
import shlex

from agent_core.sandboxes import seccomp
from agent_core.sandboxes.bwrap import enclose_program, find_inside_python
from agent_core.sandboxes.network import PORT
from agent_core.tools.browser import chromium
from agent_core.tools.browser.enclosure import PROGRAM, USER, WAYS_INSIDE, EnclosedFolders

_INSIDE = "/opt/turnkeeper/inside.py"
_OF_BROWSERS = ("/etc/chromium", "/etc/chromium.d", "/opt/google")
"""Files of browsers outside of /usr."""
_FILTER = 9
"""The open file of the filter: a shell opens no higher one."""


class BubblewrapWalls:
    """Namespaces of this kernel, around this machine's Chromium."""

    name = "bwrap"

    @property
    def nests(self) -> bool:
        """See the port."""
        return os.geteuid() != 0

    def find_browser(self) -> str:
        """See the port: /usr is the same inside."""
        return chromium.find()

    def write_call(self, folders: EnclosedFolders) -> str:
        """See the port."""
        root = os.geteuid() == 0
        above = reversed(folders.downloads.parents[:-1])  # empty inside, and writable by everybody
        binds = (
            *(word for one in above for word in ("--perms", "0755", "--dir", str(one))),
            *(word for one in _OF_BROWSERS for word in ("--ro-bind-try", one, one)),
            *("--ro-bind", str(PROGRAM), _INSIDE),
            *("--bind", str(folders.ways), WAYS_INSIDE),
            *("--bind", str(folders.downloads), str(folders.downloads)),
        )
        words = (
            *enclose_program(binds, USER if root else None, _FILTER if root else None),
            *(find_inside_python(), "-I", "-S", "-B", _INSIDE),
            *("pipes", WAYS_INSIDE, str(PORT), str(folders.memory)),
        )
        refusals = folders.home / "filter"
        if root:
            refusals.write_bytes(seccomp.build_filter())
        opened = f"exec {_FILTER}<{shlex.quote(str(refusals))}\n" if root else ""
        return f"{opened}exec {shlex.join(words)}"
