"""The clock."""

import subprocess
import sys

import pytest

LATER = "import time; from agent_core import ambient; print(ambient.monotonic() - time.monotonic())"


def test_time_that_the_machine_slept_counts() -> None:
    """A time namespace whose boot was an hour before its monotonic clock began, as after a sleep."""
    asleep = ("unshare", "--map-root-user", "--time", "--boottime", "3600")
    try:
        subprocess.run([*asleep, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no time namespace here: {error}")
    told = subprocess.run(
        [*asleep, sys.executable, "-c", LATER], check=True, capture_output=True, text=True
    )
    assert 3599 < float(told.stdout) - slept() < 3601


def slept() -> float:
    """Seconds that this machine slept itself."""
    told = subprocess.run([sys.executable, "-c", LATER], check=True, capture_output=True, text=True)
    return float(told.stdout)
