"""Rigs of the adapters' tests."""

import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing, and so is its package axe-core")
    command = (npm, "install", "--no-save", "--no-audit", "--no-fund", "axe-core@4")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=90)  # noqa: S603
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not bring its package axe-core in time")
    source = folder / "node_modules/axe-core/axe.min.js"
    if done.returncode or not source.is_file():
        pytest.skip("npm could not bring its package axe-core")
    return source.read_text()
