"""Marks for tests that need a program of the system. Where it is missing they are skipped and say so;
with CI=true they fail."""

import os
import shutil

import pytest

from agent_core.sandboxes.landlock import calls
from tests.fakes.browser import MISSING, find

IN_CI = os.environ.get("CI") == "true"
NEEDS_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None and not IN_CI, reason="needs the package bubblewrap"
)
NEEDS_LANDLOCK = pytest.mark.skipif(
    calls.find_abi() < calls.FILES,
    reason="needs a kernel with Landlock, Linux 6.2 or newer",
)
NEEDS_CHROMIUM = pytest.mark.skipif(find() is None and not IN_CI, reason=MISSING)


def needs_program(name: str, package: str) -> pytest.MarkDecorator:
    """A mark for tests that run a program of the system in a sandbox."""
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    return pytest.mark.skipif(found is None and not IN_CI, reason=f"needs the package {package}")


NEEDS_PIP = needs_program("pip", "python3-pip")
NEEDS_NPM = needs_program("npm", "npm")
NEEDS_GIT = needs_program("git", "git")
NEEDS_CURL = needs_program("curl", "curl")
