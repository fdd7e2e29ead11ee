"""A real Docker engine of the tests' own: private socket, no network, one image without a registry.

The image holds files of this machine: Debian's packages that the tests run inside, with all that
they depend on. What the engine stores is kept between runs (`~/.cache/turnkeeper-tests`), so only
the first one makes the image. Processes that run tests at the same time have stores of their own.
"""

import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

from agent_core.sandboxes.docker.tier import IMAGE

PACKAGE = "docker." + "io"
"""Debian's package of the engine, which is called as a registry is."""
NEEDED = ("python3", "bash", "dash", "coreutils")
PACKAGES = (
    *NEEDED,
    *("util-linux", "mount", "procps", "grep", "sed"),
    *("findutils", "tar", "gzip", "git", "curl", "npm", "python3-pip"),
)
STORES = Path("~/.cache/turnkeeper-tests").expanduser()
BASE = "turnkeeper-tests"
MAX_STORES = 16
SECONDS_TO_START, SECONDS_TO_STOP = 20.0, 20.0
_LINKS = ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin/sh", "/etc/ld.so.cache")
_LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/")
_TREE = "/usr/lib/node_modules"
"""npm renews itself, and then is not as its package has it."""
_MADE = ("/etc/ssl/certs/ca-certificates.crt",)
"""Files that packages make when they are installed."""
_ACCOUNTS = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}


class EngineNotStarted(Exception):
    """This machine runs no engine; the text says why."""


@contextmanager
def run_engine() -> Iterator[str]:
    """An engine with the sandboxes' image, by its address as DOCKER_HOST has it; it has ended, and
    nothing of it is mounted, after the block. EngineNotStarted."""
    if shutil.which("dockerd") is None:
        raise EngineNotStarted(f"needs the package {PACKAGE}: there is no dockerd")
    if os.geteuid() != 0:
        raise EngineNotStarted(f"needs the package {PACKAGE}, and root to start it")
    found = _find_packages() if shutil.which("dpkg-query") else []
    if lost := sorted(set(NEEDED) - set(found)):
        words = f"needs the package {PACKAGE}, and for its image {', '.join(lost)} of Debian"
        raise EngineNotStarted(words)
    with _take_store() as store, tempfile.TemporaryDirectory(prefix="tk-engine-") as folder:
        place = Path(folder)
        (place / "none.json").write_text("{}")  # whatever this machine's own engine is told
        with (place / "log").open("wb") as log:
            engine = subprocess.Popen(_words(store, place), stdout=log, stderr=log)
        try:
            _await_engine(engine, place)
            if not _has_image(place / "socket"):
                _make_image(place)
            yield f"unix://{place}/socket"
        finally:
            _stop(engine, store, place)


def _words(store: Path, place: Path) -> tuple[str, ...]:
    return (
        *("setpriv", "--pdeathsig", "TERM"),  # it ends with the tests, however they end
        *("dockerd", "--data-root", f"{store}", "--exec-root", f"{place}/exec"),
        *("--host", f"unix://{place}/socket", "--pidfile", f"{place}/pid"),
        *("--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"),
        *("--ip-masq=false", "--config-file", f"{place}/none.json", "--shutdown-timeout", "3"),
    )


@contextmanager
def _take_store() -> Iterator[Path]:
    """A folder of the cache that no other process uses now."""
    STORES.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_STORES):
        with (STORES / f"engine-{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield STORES / f"engine-{number}"
            return
    raise EngineNotStarted(f"all stores in {STORES} are in use")


def _await_engine(engine: "subprocess.Popen[bytes]", place: Path) -> None:
    late = time.monotonic() + SECONDS_TO_START
    while engine.poll() is None and time.monotonic() < late:
        with suppress(OSError):
            call_engine(place / "socket", "GET", "/_ping")
            return
        time.sleep(0.05)
    said = (place / "log").read_text(errors="replace").strip().splitlines()[-3:]
    raise EngineNotStarted(f"the package {PACKAGE} is there, and dockerd says: {' '.join(said)}")


def _stop(engine: "subprocess.Popen[bytes]", store: Path, place: Path) -> None:
    engine.terminate()
    try:
        engine.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()
    for pid in _list_running(place):  # what an engine that was killed could not end
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    late = time.monotonic() + SECONDS_TO_STOP
    while _list_running(place) and time.monotonic() < late:
        time.sleep(0.05)
    for target in reversed(_list_mounted(store, place)):
        subprocess.run(("umount", "--lazy", target), stderr=subprocess.DEVNULL)
    left = [*_list_mounted(store, place), *_list_running(place)]
    assert not left, f"the engine left: {left}"


def _list_mounted(store: Path, place: Path) -> list[str]:
    targets = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
    own = (f"{store}/", f"{place}/")
    return [one for one in targets if f"{one}/".startswith(own)]


def _list_running(place: Path) -> list[int]:
    """Processes of this one engine, by the folder in their words that no other has."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(place) + b"/" in one.read_bytes():
                found.append(int(one.parent.name))
    return found


# ---- the image -----------------------------------------------------------------------------


def _has_image(at: Path) -> bool:
    """The image of these packages is there, and called as the product calls it."""
    return call_image(at, f"{BASE}:{_name_packages()}")


def call_image(at: Path, name: str) -> bool:
    """Call an image as the product calls it; False if there is none of that name."""
    if call_engine(at, "GET", f"/images/{name}/json")[0] != 200:
        return False
    repository, _, tag = IMAGE.partition(":")
    query = urlencode({"repo": repository, "tag": tag})
    return call_engine(at, "POST", f"/images/{name}/tag?{query}")[0] == 201


def _make_image(place: Path) -> None:
    at = place / "socket"
    for image in json.loads(call_engine(at, "GET", "/images/json")[1]):  # of other packages
        call_engine(at, "DELETE", f"/images/{image['Id']}?force=true")
    with (place / "base.tar").open("w+b") as file:
        _pack(file)
        file.seek(0)
        query = urlencode({"fromSrc": "-", "repo": BASE, "tag": _name_packages()})
        status, said = call_engine(at, "POST", f"/images/create?{query}", file)
    (place / "base.tar").unlink()
    if status != 200 or not _has_image(at):
        raise EngineNotStarted(f"the engine takes no image: {said[-300:]!r}")


def _name_packages() -> str:
    lines = _query("-W", "-f", "${Package}=${Version}\n", *_find_packages())
    lines += [f"{one} {one.stat().st_mtime_ns}" for one in Path(_TREE).glob("*")]
    lines += filter(os.path.isfile, _MADE)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def _pack(file: object) -> None:
    """Write the packages' files as the engine takes them: each once, by its real path."""
    files = {os.path.normpath(one) for one in _query("-L", *_find_packages()) if one[:1] == "/"}
    real = {
        os.path.join(os.path.realpath(os.path.dirname(one)), os.path.basename(one))
        for one in files
        if os.path.lexists(one) and not f"{one}/".startswith(_LEFT_OUT)
    }
    real |= {str(one) for one in Path(_TREE).rglob("*")} | {*filter(os.path.isfile, _MADE)}
    chosen = sorted((real | {*filter(os.path.lexists, _LINKS)} | _list_alternatives()) - {"/"})
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for one in chosen:
            if one.removeprefix("/") not in _ACCOUNTS:
                tar.add(one, recursive=False)
        for name, data in _ACCOUNTS.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            with tempfile.TemporaryFile() as given:
                given.write(data)
                given.seek(0)
                tar.addfile(info, given)


def _list_alternatives() -> set[str]:
    return {str(one) for one in Path("/etc/alternatives").glob("*") if one.is_symlink()}


def _find_packages() -> list[str]:
    """The packages, and what they depend on, as far as it is installed."""
    needs: dict[str, list[list[str]]] = {}
    provides: dict[str, str] = {}
    form = "${Package}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    for line in _query("-W", "-f", form):
        name, status, depends, provided = line.split("\t")
        if status != "installed":
            continue
        needs[name] = [
            [_name(one) for one in choice.split("|")] for choice in depends.split(",") if choice
        ]
        provides |= {_name(one): name for one in provided.split(",") if one}
    found: list[str] = []
    wanted = list(PACKAGES)
    while wanted:
        name = wanted.pop()
        name = name if name in needs else provides.get(name, "")
        if name and name not in found:
            found.append(name)
            for choice in needs[name]:
                wanted += [one for one in choice if one in needs or one in provides][:1]
    return sorted(found)


def _name(words: str) -> str:
    return re.split(r"[ :(]", words.strip())[0]


def _query(*words: str) -> list[str]:
    done = subprocess.run(("dpkg-query", *words), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


# ---- the engine's API ----------------------------------------------------------------------


class _Connection(http.client.HTTPConnection):
    def __init__(self, at: Path) -> None:
        super().__init__("engine", timeout=60)
        self._at = at

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._at))


def call_engine(at: Path, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Its status and what it says; the body is a tar, or JSON where it is a text."""
    connection = _Connection(at)
    try:
        kind = "json" if isinstance(body, str) else "x-tar"
        headers = {"Content-Type": f"application/{kind}"} if body is not None else {}
        connection.request(method, path, body, headers)  # type: ignore[arg-type]
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def list_containers(address: str) -> list[dict[str, object]]:
    """All containers of an engine."""
    at = Path(address.removeprefix("unix://"))
    return json.loads(call_engine(at, "GET", "/containers/json?all=true")[1])  # type: ignore[no-any-return]
