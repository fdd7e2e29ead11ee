"""Marks for tests that need a program of the system. Where it is missing they are skipped and say so;
with CI=true they fail."""

import os
import shutil

import pytest

from tests.fakes.browser import MISSING, find

IN_CI = os.environ.get("CI") == "true"
NEEDS_BWRAP = pytest.mark.skipif(
    shutil.which("bwrap") is None and not IN_CI, reason="needs the package bubblewrap"
)
NEEDS_CHROMIUM = pytest.mark.skipif(find() is None and not IN_CI, reason=MISSING)
