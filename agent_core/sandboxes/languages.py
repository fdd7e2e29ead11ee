"""The languages that a machine can run code in: this one, found once, or a sandbox's own."""

import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from functools import lru_cache

from agent_core.sandboxes.port import Language

_PATIENCE = 5.0
"""Seconds for a program to tell its version."""
_STRIPS, _BY_FLAG = (23, 6), (22, 6)
"""Versions of node from which TypeScript runs as it is, and by an option."""
_OTHERS = ("tsx", "bun", "ts-node")


PROGRAMS = ("bash", "python3", "node", *_OTHERS)
"""Programs to look for; bash as /bin/bash."""


@lru_cache(maxsize=8)
def find_languages(path: str) -> Mapping[Language, str]:
    """Return the languages whose programs are on `path`, with the words before a file's path."""
    wanted = {name: "/bin/bash" if name == "bash" else name for name in PROGRAMS}
    found = {name for name, called in wanted.items() if shutil.which(called, path=path)}
    return choose_languages(found, _ask_version(path) if "node" in found else "")


def choose_languages(found: Collection[str], node_version: str) -> Mapping[Language, str]:
    """Return the languages of those PROGRAMS that were found; `node_version` as node prints it."""
    programs: dict[Language, str] = {}
    if "python3" in found:
        programs["python"] = "python3 -u"
    if "node" in found:
        programs["javascript"] = "node"
    if typescript := _choose_typescript(found, node_version):
        programs["typescript"] = typescript
    if "bash" in found:
        programs["bash"] = "/bin/bash"
    return programs


def _choose_typescript(found: Collection[str], node_version: str) -> str:
    said = re.match(r"v(\d+)\.(\d+)", node_version)
    version = (int(said[1]), int(said[2])) if said else (0, 0)
    if version >= _STRIPS:
        return "node"
    if version >= _BY_FLAG:
        return "node --experimental-strip-types --no-warnings"
    return next((name for name in _OTHERS if name in found), "")


def _ask_version(path: str) -> str:
    """Ask for the version, which takes milliseconds, as no runtime is started."""
    command = (shutil.which("node", path=path) or "node", "--version")
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE, check=True, env={}, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
