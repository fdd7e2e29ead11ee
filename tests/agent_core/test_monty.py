"""Python alone, by Monty: what code may, what it may not, and what it is told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.sandboxes import detect
from agent_core.sandboxes.monty.runner import find_files
from agent_core.sandboxes.monty.tier import find_monty
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import ProcessResult
from agent_core.sandboxes.tier import TierUnusable
from agent_core.tools import paths

COMMAND = "PYTHONPATH=. exec python3 -u .turnkeeper/code/code.py"


@pytest.fixture
async def pool() -> AsyncIterator[SandboxPool]:
    pool = SandboxPool(find_monty())
    yield pool
    await pool.close()


async def run(pool: SandboxPool, place: Path, code: str, limit: float = 30.0) -> ProcessResult:
    paths.put_file(place, place / ".turnkeeper" / "code" / "code.py", code.encode(), 0o644)
    return await pool.run(COMMAND, place, limit, lambda _: None)


async def test_it_is_tried_out_and_contains(pool: SandboxPool) -> None:
    await pool.check()
    assert pool.contains and pool.leaks == () and [*pool.programs] == ["python"]


async def test_code_runs_with_copies_of_the_files_that_it_names(
    pool: SandboxPool, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.csv").write_text("a,b\n1,2\n")
    done = await run(pool, tmp_path, "print(open('sub/data.csv').read().split())")
    assert done.exit_code == 0 and done.output == "['a,b', '1,2']\n"
    done = await run(
        pool, tmp_path, "open('sub/data.csv', 'w').write('x'); open('new', 'w').write('y')"
    )
    assert "What it wrote to" in done.output and "write_file" in done.output
    assert (tmp_path / "sub" / "data.csv").read_text() == "a,b\n1,2\n"
    assert not (tmp_path / "new").exists()


def test_files_for_secrets_and_links_are_not_given(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=secret")
    (tmp_path / "plain").write_text("plain")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert [*find_files(tmp_path, "open('.env'); open('plain'); open('link')")] == ["plain"]


@pytest.mark.pick("what Monty lacks", 2)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import numpy", "No module named 'numpy'"),
        ("import subprocess", "No module named 'subprocess'"),
        ("import os\nos.system('id')", "no attribute 'system'"),
        ("def f():\n    yield 1", "does not yet support yield"),
    ],
)
async def test_what_it_lacks_is_told_with_what_to_do(
    pool: SandboxPool, tmp_path: Path, code: str, words: str
) -> None:
    done = await run(pool, tmp_path, code)
    assert done.exit_code == 1 and words in done.output
    assert "[This is Monty, a small Python" in done.output and "bubblewrap" in done.output


@pytest.mark.pick("what code may not at Monty", 2)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 'x' * (2 << 30)", "MemoryError"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("open('/etc/passwd').read()", "FileNotFoundError"),
        ("raise ValueError('of its own')", "ValueError: of its own"),
    ],
)
async def test_what_it_may_not_is_an_error(
    pool: SandboxPool, tmp_path: Path, code: str, words: str
) -> None:
    done = await run(pool, tmp_path, code)
    assert done.exit_code == 1 and words in done.output


async def test_code_that_goes_on_for_ever_is_ended(pool: SandboxPool, tmp_path: Path) -> None:
    done = await run(pool, tmp_path, "while True:\n    pass", 1.0)
    assert done.exit_code != 0 and (done.timed_out or "TimeoutError" in done.output)


@pytest.mark.pick("a command at Monty", 2)
@pytest.mark.parametrize(
    "command", ["ls", f"ls; {COMMAND}", f"{COMMAND}; ls", f"{COMMAND}\nls", f"{COMMAND} $(ls)", ""]
)
async def test_a_command_is_told_what_runs_here(
    pool: SandboxPool, tmp_path: Path, command: str
) -> None:
    paths.put_file(tmp_path, tmp_path / ".turnkeeper" / "code" / "code.py", b"print('ran')", 0o644)
    done = await pool.run(command, tmp_path, 30, lambda _: None)
    assert done.exit_code == 126 and "runs Python alone" in done.output
    assert "bubblewrap" in done.output and "\nran" not in done.output


async def test_auto_takes_it_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def find_fault(tier: object) -> str:
        return "not on this machine"

    monkeypatch.setattr(detect, "find_fault", find_fault)
    nowhere = f"unix://{tmp_path}/nothing"
    assert (await detect.detect(nowhere)).name == "monty"

    def find_none() -> None:
        raise TierUnusable("it needs the extra monty")

    monkeypatch.setattr(detect, "find_monty", find_none)
    tier = await detect.detect(nowhere)
    assert isinstance(tier, detect.MissingTier) and "extra monty" in tier.faults["monty"]
