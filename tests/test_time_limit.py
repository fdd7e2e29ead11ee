"""A test that hangs fails and ends; the limit counts on the loop that the gateway runs on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests import time_limit
from tests.conftest import (
    pytest_asyncio_loop_factories, pytest_exception_interact, pytest_runtest_protocol,
    pytest_timeout_cancel_timer, pytest_timeout_set_timer,
)

time_limit.GRACE = {grace}
"""
HANGING = """
import asyncio, threading
import pytest

async def test_waits():
    await asyncio.Event().wait()

async def test_waits_for_others():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.Event().wait())

async def test_is_busy():
    while True:
        pass

def test_has_no_loop():
    threading.Event().wait()

@pytest.fixture
async def made():
    yield
    await asyncio.Event().wait()

async def test_hangs_at_its_end(made):
    pass

async def test_fails_and_hangs_at_its_end(made):
    assert False
"""
DEAF = """
import asyncio, contextlib

async def test_does_not_let_go():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
"""
MUTE = """
import signal, threading

def test_hears_no_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()
"""
MUTE_AT_ITS_END = """
import signal, threading
import pytest

@pytest.fixture
def made():
    yield
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()

def test_fails_and_hears_no_signal_at_its_end(made):
    assert False
"""


SLOW = """
import time
import pytest

@pytest.mark.timeout(0.3)
def test_takes_long():
    time.sleep(0.6)
"""


def run(folder: Path, tests: str, grace: float, *more: str) -> tuple[int, str]:
    """Exit code and words of a run of these tests, of which each may take 0.3 s."""
    (folder / "conftest.py").write_text(CONFTEST.format(grace=grace))
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\ntimeout = 0.3\n")
    (folder / "test_hanging.py").write_text(tests)
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-o", "asyncio_default_fixture_loop_scope=function", *more),
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.pick("a test that hangs")
def test_each_test_that_hangs_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    code, said = run(tmp_path, HANGING, grace=30.0)
    assert code == 1 and "5 failed, 1 passed" in said and "2 errors" in said, said
    assert said.count("took more than 0.3 s") >= 6, said


@pytest.mark.pick("a test that hangs")
def test_a_test_that_does_not_let_go_ends_its_process(tmp_path: Path) -> None:
    code, said = run(tmp_path, DEAF, grace=0.3)
    assert code == 1 and "passed" not in said and "failed" not in said
    assert "in test_does_not_let_go" in said, said


@pytest.mark.pick("a test that hangs")
@pytest.mark.parametrize(
    ("tests", "stands"), [(MUTE, "test_hears_no_signal"), (MUTE_AT_ITS_END, "made")]
)
def test_one_that_hears_no_signal_ends_its_process_too(
    tmp_path: Path, tests: str, stands: str
) -> None:
    code, said = run(tmp_path, tests, grace=0.3)
    assert code == 1 and "passed" not in said and "failed" not in said
    assert f"in {stands}" in said, said


@pytest.mark.pick("a test that hangs")
@pytest.mark.parametrize(("limit", "expected"), [("", 1), ("30", 0), ("0.1", 1)])
def test_the_limit_of_a_run_holds_for_tests_with_a_shorter_one(
    tmp_path: Path, limit: str, expected: int
) -> None:
    code, said = run(tmp_path, SLOW, 30.0, *([f"--timeout={limit}"] if limit else ()))
    assert code == expected, said
