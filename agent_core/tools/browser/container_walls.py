"""Walls of Docker for the browser: a container of its own, of the sandboxes' image, with Chromium
from there.

Its starter (`contained.py`) holds the connection to the engine. When that ends, with the gateway,
however it ends, the engine closes the first process's input, and the container goes. Chromium's own
sandbox does not work there: containers may make no namespaces.
"""

import os
import shlex
import sys

import msgspec

from agent_core.sandboxes.docker.tier import DockerTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.network import PORT
from agent_core.tools.browser import chromium
from agent_core.tools.browser.enclosure import PROGRAM, USER, WAYS_INSIDE, EnclosedFolders

PROCESSES = 512


class ContainerWalls:
    """A container of the engine that commands have, too."""

    name = "docker"
    nests = False

    def __init__(self, tier: DockerTier) -> None:
        self._tier = tier

    def find_browser(self) -> str:
        """See the port: the image's."""
        return self._tier.browser

    def write_call(self, folders: EnclosedFolders) -> str:
        """See the port."""
        root = os.geteuid() == 0
        user = (USER, USER) if root else (os.geteuid(), os.getegid())
        limits = SandboxLimits(memory=folders.memory, processes=PROCESSES)
        words = ("standard", WAYS_INSIDE, str(PORT), str(folders.memory))
        binds = ((folders.ways, WAYS_INSIDE), (folders.downloads, str(folders.downloads)))
        program = PROGRAM.read_text(encoding="utf-8")
        spec = self._tier.describe_program(program, words, user, limits, binds) | {
            "Env": [f"{name}={text}" for name, text in chromium.ENV_INSIDE.items()],
        }
        place = folders.home / "container.json"
        place.write_bytes(msgspec.json.encode(spec))
        call = (sys.executable, "-I", "-m", "agent_core.tools.browser.contained")
        given = (*call, self._tier.facts.engine.socket, str(place))
        return f"exec {shlex.join((*chromium.words_that_die_with_parent(), *given))}"
