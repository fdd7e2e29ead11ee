"""What strangers write is fed on by what it makes the code do: nothing crashes, nothing takes long."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.fuzz_targets import TARGETS, list_seeds
from tests.sampling import dice

SECONDS, MAX_SECONDS = 60, 10
"""Of one target, and of one text."""
ROOT = Path(__file__).parents[2]
NEEDS_ATHERIS = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="needs the package atheris"
)


@NEEDS_ATHERIS
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_text_crashes_or_holds_up(name: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for n, seed in enumerate(list_seeds(name)):
        (corpus / str(n)).write_bytes(seed)
    options = (
        f"-max_total_time={SECONDS}", f"-timeout={MAX_SECONDS}", "-max_len=1200",
        f"-seed={dice('fuzzed', name).randrange(1, 2**31)}", f"-artifact_prefix={tmp_path}/", str(corpus),
    )  # fmt: skip
    command = [sys.executable, "-m", "tests.attacks.fuzz_targets", name, *options]
    paths = os.pathsep.join((str(ROOT), *filter(None, sys.path)))
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": paths}
    )
    found = [one.read_bytes() for one in tmp_path.iterdir() if one.is_file()]
    assert done.returncode == 0, (found, done.stderr[-3_000:].decode(errors="replace"))
