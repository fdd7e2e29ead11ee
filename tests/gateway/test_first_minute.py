"""What `make run` does in a new clone: it installs what running needs, says so, and starts."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("Makefile", "pyproject.toml", "constraints.txt")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone, as far as make looks at it."""
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def list_commands(clone: Path, target: str) -> list[str]:
    """What make would do for a target."""
    words = ("make", "--no-print-directory", "-n", "PYTHON=python3", target)
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def install(clone: Path, *made: str) -> None:
    for name in made:
        (clone / ".venv").mkdir(exist_ok=True)
        (clone / ".venv" / name).touch()


def test_run_installs_what_running_needs_and_says_so(clone: Path) -> None:
    done = list_commands(clone, "run")
    (pip,) = (line for line in done if " pip install " in line)
    assert "'.[documents]'" in pip and "--quiet" not in pip and "-c constraints.txt" in pip
    assert any(line.startswith('echo "Installing') for line in done)
    assert done[-1] == "exec .venv/bin/turnkeeper run"
    (pip,) = (line for line in list_commands(clone, "check") if " pip install " in line)
    assert "'.[dev]'" in pip


def test_what_is_installed_is_not_installed_again(clone: Path) -> None:
    install(clone, "runs")
    assert list_commands(clone, "run") == ["exec .venv/bin/turnkeeper run"]
    assert any(" pip install " in line for line in list_commands(clone, "check"))
    done = list_commands(clone, "check")
    assert "touch .venv/runs .venv/ready" in done, "what tests need holds what running needs"
