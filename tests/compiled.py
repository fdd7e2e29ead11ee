"""Compiles the modules once for all workers of a run; otherwise each of them would compile all.

Only a fresh clone is slow: what is compiled is kept beside the sources.
"""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).parents[1]
FOLDERS = ("adapters", "agent_core", "cron", "gateway", "tests")


def compile_share(config: pytest.Config) -> None:
    """Compile the part of the sources that falls to this worker, before it imports any."""
    worker: dict[str, object] = getattr(config, "workerinput", {})
    if not worker or sys.dont_write_bytecode:
        return
    number, count = int(str(worker["workerid"])[2:]), int(str(worker["workercount"]))
    sources = sorted(source for name in FOLDERS for source in (ROOT / name).rglob("*.py"))
    for source in sources[number::count]:
        if source.name.startswith("test_"):
            _rewrite(source, config)
        elif not Path(cache_from_source(str(source))).exists():
            py_compile.compile(str(source), doraise=True)


def _rewrite(source: Path, config: pytest.Config) -> None:
    """Compile a module of tests as pytest does, which rewrites its asserts."""
    folder = rewrite.get_cache_dir(source)
    kept = folder / f"{source.stem}{rewrite.PYC_TAIL}"
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(source, kept) is None:
        digest, code = rewrite._rewrite_test(source, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)
