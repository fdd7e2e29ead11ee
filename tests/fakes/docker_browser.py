"""The sandboxes' image of the tests' engine with this machine's Chromium in it: one layer more.

It takes what Chromium links, one font, and no package's scripts; the store keeps it between runs.
"""

import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from agent_core.sandboxes.docker.tier import IMAGE
from tests.fakes.docker_engine import call_engine, call_image

NAME = "turnkeeper-tests-browser"
_FOLDERS = ("/usr/lib/chromium", "/etc/chromium", "/etc/chromium.d", "/etc/fonts")
_SHARED = ("/usr/share/fontconfig", "/usr/share/fonts/truetype/dejavu")
_PROGRAMS = ("/usr/bin/chromium", "/usr/lib/chromium/chromium")
_LIBRARIES = "lib*3.so"
"""Of NSS, which Chromium opens by their names."""


@contextmanager
def put_browser_in(address: str) -> Iterator[None]:
    """Within the block the sandboxes' image has Chromium."""
    at = Path(address.removeprefix("unix://"))
    base = json.loads(call_engine(at, "GET", f"/images/{IMAGE}/json")[1])["Id"]
    version = hashlib.sha256(f"{base} {_describe()}".encode()).hexdigest()[:16]
    name = f"{NAME}:{version}"
    if not call_image(at, name):
        _make(at, version)
        assert call_image(at, name)
    try:
        yield
    finally:
        assert call_image(at, base)


def _describe() -> str:
    return " ".join(str(os.stat(one).st_mtime_ns) for one in _PROGRAMS)


def _make(at: Path, version: str) -> None:
    created = call_engine(
        at, "POST", "/containers/create", json.dumps({"Image": IMAGE, "Cmd": ["true"]})
    )
    container = json.loads(created[1])["Id"]
    try:
        with tempfile.TemporaryFile() as file:
            _pack(file)
            file.seek(0)
            status, said = call_engine(at, "PUT", f"/containers/{container}/archive?path=/", file)
            assert status == 200, said
        query = urlencode({"container": container, "repo": NAME, "tag": version})
        status, said = call_engine(at, "POST", f"/commit?{query}", "{}")
        assert status == 201, said
    finally:
        call_engine(at, "DELETE", f"/containers/{container}?force=true&v=true")


def _pack(file: object) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for one in sorted(_list_files()):
            place = os.path.join(os.path.realpath(os.path.dirname(one)), os.path.basename(one))
            tar.add(place, recursive=False)


def _list_files() -> set[str]:
    found = {_PROGRAMS[0]}
    for folder in (*_FOLDERS, *_SHARED):
        found |= {str(one) for one in Path(folder).rglob("*")}
    libraries = _list_libraries(_PROGRAMS[1])
    beside = {os.path.dirname(one) for one in libraries if "/libnss3.so" in one}
    named = {str(one) for folder in beside for one in Path(folder).glob(_LIBRARIES)}
    for one in named:
        libraries |= _list_libraries(one)
    for one in libraries | named:
        found |= {one, os.path.realpath(one)}
    return found


def _list_libraries(program: str) -> set[str]:
    said = subprocess.run(("ldd", program), capture_output=True, text=True, check=True).stdout
    words = (line.partition("=>")[2].split() for line in said.splitlines())
    return {one[0] for one in words if one and one[0].startswith("/")}
