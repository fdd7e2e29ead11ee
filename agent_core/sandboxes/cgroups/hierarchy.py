"""The kernel's control groups that this process is in, as far as it may make groups below them.

Version 2 is one hierarchy with all controllers; of version 1 there is one for each. In version 2 a
group whose children have limits has no process of its own, so this process moves into a leaf first;
only if all processes of its group are its own, as in a unit of systemd with `Delegate=yes`.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent_core.sandboxes import supervisor

CONTROLLERS = frozenset({"cpu", "memory", "pids"})
PROCESSES, CONTROLS = "cgroup.procs", "cgroup.subtree_control"
_LEAF = "turnkeeper.gateway"
"""Not among the names of sandboxes' groups, which are removed with what is in them."""


class GroupPlace(NamedTuple):
    """A folder for groups, with the controllers that they have there. `unified`: version 2."""

    folder: Path
    controllers: frozenset[str]
    unified: bool


class _Mount(NamedTuple):
    """`root`: the path in the hierarchy that is mounted."""

    root: str
    place: Path
    kind: str
    options: frozenset[str]


def find_places(proc: Path = Path("/proc/self")) -> list[GroupPlace]:
    """Return the places where groups may be made; [] for none. `proc`: of this process."""
    found: list[GroupPlace] = []
    try:
        mounts = list(_read_mounts(proc))
        own = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
    except (OSError, ValueError):
        return []
    for number, names, path in own:
        has = CONTROLLERS & set(names.split(","))
        kind = "cgroup2" if number == "0" else "cgroup"
        for mount in mounts:
            if mount.kind == kind and (kind == "cgroup2" or has & mount.options):
                place = _find_folder(mount, path)
                if place is not None and os.access(place, os.W_OK):
                    found.append(GroupPlace(place, has, kind == "cgroup2"))
                break
    known = frozenset().union(*(one.controllers for one in found))
    taken = (_take_over(one, CONTROLLERS - known) for one in found)
    return [one for one in taken if one is not None]


def read_processes(folder: Path) -> list[int]:
    """Return the group's processes, without those that this namespace does not show. OSError."""
    return [pid for one in (folder / PROCESSES).read_text().split() if (pid := int(one)) > 0]


def write(folder: Path, values: dict[str, str]) -> None:
    """Write the group's files by their names. OSError."""
    for name, value in values.items():
        (folder / name).write_text(value)


def _read_mounts(proc: Path) -> Iterator[_Mount]:
    for line in (proc / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, place = before.split()[3:5]
        kind, _, *options = after.split()
        if kind in ("cgroup", "cgroup2"):
            shown = place.replace("\\040", " ")
            yield _Mount(root, Path(shown), kind, frozenset(",".join(options).split(",")))


def _find_folder(mount: _Mount, path: str) -> Path | None:
    """Return the folder of the group `path`; None if this mount does not show it."""
    root = mount.root.rstrip("/")
    if path != root and not path.startswith(f"{root}/"):
        return None
    return mount.place / path.removeprefix(root).lstrip("/")


def _take_over(place: GroupPlace, left: frozenset[str]) -> GroupPlace | None:
    """Return the place, prepared for groups with limits. `left`: controllers of version 2 that are
    of no use elsewhere; None if there is none, or the group is not this process's alone."""
    if not place.unified:
        return place
    with suppress(OSError):
        if place.folder.name == _LEAF:  # this process, or the one that started it, took it over
            above = place.folder.parent
            has = left & _read_words(above / CONTROLS)
            return GroupPlace(above, has, True) if has else None
        has = left & _read_words(place.folder / "cgroup.controllers")
        inside = read_processes(place.folder)
        if has and set(inside) <= set(supervisor.list_alive(os.getpid())):
            leaf = place.folder / _LEAF
            leaf.mkdir(exist_ok=True)
            for pid in inside:
                write(leaf, {PROCESSES: str(pid)})
            give_controllers(place.folder, has)
            return place._replace(controllers=has)
    return None


def _read_words(file: Path) -> frozenset[str]:
    return frozenset(file.read_text().split())


def give_controllers(folder: Path, controllers: frozenset[str]) -> None:
    """Let the groups below have limits. OSError."""
    write(folder, {CONTROLS: " ".join(f"+{one}" for one in sorted(controllers))})
