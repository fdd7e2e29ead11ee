"""Each benchmark still runs, at its smallest: what it prints is a figure, not a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMALL = ("parked 4 8 2", "replay 1", "jobs 5 0.1 1", "importing 1", "faults 30")


@pytest.mark.pick("benchmarks")
@pytest.mark.parametrize("command", SMALL)
def test_it_runs(command: str) -> None:
    name, *sizes = command.split()
    run = [sys.executable, "-m", f"benchmarks.{name}", *sizes]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert json.loads(done.stdout.splitlines()[0])
