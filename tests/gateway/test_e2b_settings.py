"""SANDBOX_PROVIDER=e2b: what is missing is told, with the setting and the mend."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.e2b_server import E2BServer, serve_e2b
from tests.gateway.process import ROOT, World

pytestmark = pytest.mark.pick("settings of e2b")


@pytest.fixture
async def e2b(tmp_path: Path) -> AsyncIterator[E2BServer]:
    async with serve_e2b(tmp_path / "e2b") as server:
        yield server


async def test_without_a_key_nothing_starts(world: World) -> None:
    code, said = await world.command("run", SANDBOX_PROVIDER="e2b")
    assert code == 2 and "E2B_API_KEY: SANDBOX_PROVIDER=e2b needs a key" in said
    assert "Traceback" not in said


async def test_a_key_that_is_refused_is_told_and_not_shown(world: World, e2b: E2BServer) -> None:
    wrong = "e2b_ffffffffffffffffffffffffffffffffffffffff"
    for command, expected in (("run", 2), ("doctor", 1)):
        code, said = await world.command(command, **e2b.env(E2B_API_KEY=wrong))
        assert code == expected and "SANDBOX_PROVIDER=e2b" in said, said
        assert "refuses the key" in said and "E2B_API_KEY" in said and wrong not in said
        assert "Traceback" not in said


async def test_without_the_extra_the_way_to_install_it_is_told(
    world: World, e2b: E2BServer, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "e2b").mkdir(parents=True)
    (hidden / "e2b" / "__init__.py").write_text("raise ImportError('not installed')\n")
    path = f"{hidden}:{ROOT}"
    code, said = await world.command("run", PYTHONPATH=path, **e2b.env())
    assert code == 2 and "SANDBOX_PROVIDER=e2b: does not work here" in said
    assert "pip install 'turnkeeper[e2b]'" in said and "Traceback" not in said


async def test_doctor_says_what_is_within_reach(world: World, e2b: E2BServer) -> None:
    """The sandboxes on loopback are processes of this machine, and the self-test finds that out."""
    code, said = await world.command("doctor", **e2b.env())
    assert code == 0 and "sandbox: e2b. On a machine at E2B" in said, said
    assert "within reach are files" in said
    assert not e2b.boxes, "the one that was tried is ended"


async def test_auto_never_takes_it(world: World, e2b: E2BServer) -> None:
    await world.command("doctor", **e2b.env(SANDBOX_PROVIDER="auto"))
    assert not e2b.asked


def test_its_library_is_imported_only_where_it_is_used() -> None:
    words = "import sys, gateway.wiring.assembly; print({'e2b', 'pydantic_monty'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "set()\n", done.stderr
