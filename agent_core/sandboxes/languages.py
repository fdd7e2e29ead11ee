"""The languages that this machine can run code in, found once."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache

from agent_core.sandboxes.port import Language

_PATIENCE = 5.0
_STRIPS, _BY_FLAG = (23, 6), (22, 6)
"""Versions of node from which TypeScript runs as it is, and by an option."""
_OTHERS = ("tsx", "bun", "ts-node")


@lru_cache(maxsize=8)
def find_languages(path: str) -> Mapping[Language, str]:
    """The languages whose programs are on `path`, with the words before a file's path."""
    programs: dict[Language, str] = {}
    if shutil.which("python3", path=path):
        programs["python"] = "python3 -u"
    node = shutil.which("node", path=path)
    if node:
        programs["javascript"] = "node"
    if typescript := _typescript(node, path):
        programs["typescript"] = typescript
    if shutil.which("/bin/bash"):
        programs["bash"] = "/bin/bash"
    return programs


def _typescript(node: str | None, path: str) -> str:
    version = _version(node) if node else (0, 0)
    if version >= _STRIPS:
        return "node"
    if version >= _BY_FLAG:
        return "node --experimental-strip-types --no-warnings"
    return next((name for name in _OTHERS if shutil.which(name, path=path)), "")


def _version(node: str) -> tuple[int, int]:
    """Takes milliseconds: it ends before it is a runtime."""
    command = (node, "--version")
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE, check=True, env={}, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return (0, 0)
    said = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return (int(said[1]), int(said[2])) if said else (0, 0)
