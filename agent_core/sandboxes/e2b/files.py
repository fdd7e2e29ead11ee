"""The program inside of a sandbox by E2B that compares, packs and unpacks the workspace's copy.

Standard library only; it is started by its file, with a word and a number:

`compare` reads `manifest`: what the workspace has, by path. What it has not is removed here, but
for what programs install; the answer is the paths that are to be sent.
`apply N` unpacks `packed`, and removes the paths that `removed` lists; with 0 all that is there now
is known.
`collect N` answers what changed since the answer with the number N, and packs it.

A state is [kind, mode, digest or target of a link]; all answers are JSON on standard output.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress

PLACE, WORKSPACE, OWN = ".turnkeeper", "workspace", ".turnkeeper"
MAX_FILE, MAX_ALL, MAX_FILES = 100 << 20, 256 << 20, 20_000
MAX_INLINE = 1 << 20
"""Maximum bytes of a packed answer within the answer's text."""


def scan(avoided: frozenset) -> Iterator[tuple[str, os.stat_result]]:  # type: ignore[type-arg]
    """Yield what is in the copy by path, a folder before its content."""
    waiting, count = [""], 0
    while waiting:
        prefix = waiting.pop()
        try:
            found = sorted(os.scandir(f"{WORKSPACE}/{prefix}"), key=lambda one: one.name)
        except OSError:
            continue
        for entry in found:
            path = prefix + entry.name
            if path == OWN or entry.name in avoided:
                continue
            try:
                info = entry.stat(follow_symlinks=False)
                path.encode()
            except (OSError, UnicodeEncodeError):
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield path, info
            if stat.S_ISDIR(info.st_mode):
                waiting.append(f"{path}/")


def describe(path: str, info: os.stat_result) -> list:  # type: ignore[type-arg]
    """Return the state of a path; its kind is "" if it is neither file, folder nor link."""
    place, mode = f"{WORKSPACE}/{path}", stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode):
        return ["folder", mode, ""]
    if stat.S_ISLNK(info.st_mode):
        return ["link", mode, os.readlink(place)]
    if not stat.S_ISREG(info.st_mode):
        return ["", 0, ""]
    with open(place, "rb") as file:
        return ["file", mode, hashlib.file_digest(file, "sha256").hexdigest()]


def is_same(one: list, other: list) -> bool:  # type: ignore[type-arg]
    """Return True for the same content, executable by the same."""
    runs = bool(one[1] & 0o111) == bool(other[1] & 0o111)
    return one[0] == other[0] and one[2] == other[2] and (runs or one[0] != "file")


def remove(path: str) -> None:
    """Remove a path of any kind."""
    place = f"{WORKSPACE}/{path}"
    with suppress(OSError):
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place, ignore_errors=True)
        else:
            os.unlink(place)


def load(name: str, default: object) -> dict:  # type: ignore[type-arg]
    """Load one of our own files."""
    try:
        with open(f"{PLACE}/{name}") as file:
            return json.load(file)  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return default  # type: ignore[return-value]


def store(name: str, value: object) -> None:
    """Write one of our own files."""
    with open(f"{PLACE}/{name}", "w") as file:
        json.dump(value, file)


def remember(avoided: frozenset) -> dict:  # type: ignore[type-arg]
    """Return the present state, in a form that detects changes."""
    return {path: sign(info) for path, info in scan(avoided)}


def sign(info: os.stat_result) -> list:  # type: ignore[type-arg]
    """Return a signature that changes with every write; of a folder, when it is replaced."""
    kind = stat.S_IFMT(info.st_mode)
    if stat.S_ISDIR(kind):
        return [kind, info.st_mode]
    return [kind, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def compare() -> object:
    """Remove what the workspace lacks, and return what is missing here."""
    given = load("manifest", {})
    avoided, wanted = frozenset(given["avoided"]), given["files"]
    store("avoided", given["avoided"])
    known = {}
    for path, info in list(scan(avoided)):
        if path not in wanted or wanted[path][0] != (state := describe(path, info))[0]:
            remove(path)
        else:
            known[path] = state
    return [path for path, one in wanted.items() if not is_same(one, known.get(path, ["", 0, ""]))]


def apply(anew: bool) -> object:
    """Unpack the files received; they become the known state, or with `anew` everything there
    does."""
    given, done = load("removed", []), []
    for path in given:
        remove(path)
    with tarfile.open(f"{PLACE}/packed") as tar:
        for one in tar:
            unpack(tar, one)
            done.append(one.name)
    os.unlink(f"{PLACE}/packed")
    now = remember(frozenset(load("avoided", [])))
    known = load("known", {"number": 0, "files": {}})
    if anew:
        known = {"number": 0, "files": now}
    for path in given:
        known["files"].pop(path, None)
    for path in done:
        known["files"][path] = now.get(path)
    store("known", known)
    return len(done)


def unpack(tar: tarfile.TarFile, one: tarfile.TarInfo) -> None:
    """Extract one member, replacing what is there."""
    place = f"{WORKSPACE}/{one.name}"
    if not one.isdir() or os.path.islink(place) or not os.path.isdir(place):
        remove(one.name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if one.isdir():
        os.makedirs(place, exist_ok=True)
    elif one.issym():
        os.symlink(one.linkname, place)
        return
    else:
        held = tar.extractfile(one)
        with open(place, "wb") as file:
            shutil.copyfileobj(held, file)  # type: ignore[arg-type]
    os.chmod(place, one.mode | (0o700 if one.isdir() else 0o600))


def collect(number: int) -> object:
    """Return the changes since then. `left`: files that are too large to be transferred."""
    avoided = frozenset(load("avoided", []))
    known, waiting = load("known", {"number": 0, "files": {}}), load("waiting", {"number": -1})
    if waiting["number"] == number:
        known = waiting
        store("known", known)
    now = remember(avoided)
    changed = [path for path, state in now.items() if known["files"].get(path) != state]
    removed = [path for path in known["files"] if path not in now]
    packed, left = pack(changed)
    if changed or removed:
        store("waiting", {"number": number + 1, "files": now})
    inline = base64.b64encode(packed).decode() if len(packed) <= MAX_INLINE else None
    if inline is None:
        with open(f"{PLACE}/changed", "wb") as file:
            file.write(packed)
    some = bool(changed or removed)
    return {
        "number": number + some,
        "removed": removed,
        "left": left,
        "packed": inline if some else "",
    }


def pack(paths: list) -> tuple:  # type: ignore[type-arg]
    """Return files, folders and links as a tar, and those that are too large."""
    held, left, total = io.BytesIO(), [], 0
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in paths:
            place = f"{WORKSPACE}/{path}"
            with suppress(OSError):
                info = os.lstat(place)
                size = info.st_size if stat.S_ISREG(info.st_mode) else 0
                if size > MAX_FILE or total + size > MAX_ALL:
                    left.append(path)
                    continue
                total += size
                if stat.S_IFMT(info.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                    tar.add(place, path, recursive=False)
    return held.getvalue(), left


def main() -> None:
    """Do as the word says."""
    os.chdir(os.path.expanduser("~"))
    os.makedirs(WORKSPACE, exist_ok=True)
    word, number = sys.argv[1], int(sys.argv[2])
    answer: object
    if word == "collect":
        answer = collect(number)
    else:
        answer = apply(number == 0) if word == "apply" else compare()
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
