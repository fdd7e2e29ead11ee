"""Other users that a test's processes can be, as `setpriv` makes them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.needs import IN_CI

_ROOT = Path(__file__).parents[2]
_SETPRIV = ("--inh-caps=-all", "--bounding-set=-all")
SOMEBODY = ("--reuid=10001", "--regid=10001", "--clear-groups")
WHO = {
    "root without capabilities": _SETPRIV,
    "somebody": (*_SETPRIV, *SOMEBODY, "--no-new-privs"),
    "root of a container": (
        _SETPRIV[0], "--bounding-set=-all,+chown,+dac_override,+fowner,+kill,+setgid,+setuid,+setpcap",
    ),
}  # fmt: skip


class SharedPython(NamedTuple):
    """An interpreter that everybody can start, and the variables by which it finds our modules."""

    program: str
    env: dict[str, str]


@cache
def find_shared_python() -> SharedPython:
    """This interpreter, or the system's where this one is in a folder of root's."""
    packages = (one for one in sys.path if "site-packages" in one or "dist-packages" in one)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT), *packages)), "HOME": "/nowhere"}
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (sys.executable, f"/usr/bin/python{version}"):
        words = ("setpriv", *WHO["somebody"], "--", program, "-B", "-c", "import gateway, msgspec")
        with_nothing = subprocess.run(words, env=env, cwd="/", capture_output=True, check=False)
        if with_nothing.returncode == 0:
            return SharedPython(program, env)
    why = f"needs the package python{version}: this interpreter is in a folder of root's"
    if IN_CI:
        pytest.fail(why)
    pytest.skip(why)
