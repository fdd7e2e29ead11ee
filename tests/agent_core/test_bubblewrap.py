"""Bubblewrap's sandboxes, whoever the gateway is."""

import os
import shutil
import subprocess
import textwrap

import pytest

from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.users import WHO, find_shared_python

pytestmark = [
    NEEDS_BWRAP,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs the package util-linux"),
]
PROGRAM = """
    import asyncio, tempfile
    from pathlib import Path
    from agent_core.sandboxes.bwrap import BwrapTier
    from agent_core.sandboxes.pool import SandboxPool
    LOOK = '''python3 - <<'X'
    import os
    for place, folders, names in os.walk("/"):
        folders[:] = [one for one in folders if os.path.join(place, one) not in ("/proc", "/usr")]
        for one in [place] + [os.path.join(place, name) for name in names]:
            if not os.path.islink(one) and os.access(one, os.W_OK) and not one.startswith("/dev/"):
                print(one)
    for place in ("/", "/etc", "/dev", "/dev/shm", "/home", "/opt", "/opt/turnkeeper", "/run"):
        try:
            open(os.path.join(place, "written"), "w").close()
            print("written", place)
        except OSError:
            pass
    X'''
    async def main():
        with tempfile.TemporaryDirectory() as folder:
            pool = SandboxPool(BwrapTier())
            await pool.check()
            print(pool.contains, pool.leaks)
            done = await pool.run(LOOK, Path(folder), 60, None)
            print(done.output)
            await pool.close()
    asyncio.run(main())
"""


def run_as(who: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    python = find_shared_python()
    command = ("setpriv", *who, "--", python.program, "-B", "-c", textwrap.dedent(program))
    return subprocess.run(command, capture_output=True, text=True, env=python.env, cwd="/")


def test_the_self_test_notices_places_without_a_size() -> None:
    broken = PROGRAM.replace("    LOOK =", "    import agent_core.sandboxes.bwrap as b; b._SEAL = ()\n    LOOK =")  # fmt: skip
    assert run_as(WHO["somebody"], broken).stdout.startswith("False ('limits',)\n")


@pytest.mark.parametrize("who", [(), WHO["somebody"]], ids=["root", "somebody"])
def test_only_the_folders_with_a_size_can_be_written(who: tuple[str, ...]) -> None:
    done = run_as(who, PROGRAM)
    contains, *lines = done.stdout.split("\n")
    assert contains == "True ()", done.stderr
    writable = {line.split("/")[1] for line in lines if line.startswith("/")}
    assert writable <= {"home", "tmp", "workspace"}, done.stdout
    homes = [line for line in lines if line.startswith("/home")]
    assert all(line.startswith(f"{min(homes, key=len)}") and line != "/home" for line in homes)
    assert [line for line in lines if line.startswith("written")] == ["written /dev/shm"]
