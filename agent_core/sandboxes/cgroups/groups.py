"""Control groups of sandboxes: limits that the kernel holds for all processes of one together.

A gateway has one group of its own in each place, with one for each sandbox below. It is locked, by
which groups that a killed gateway left are recognised; the next one removes them. Who starts a
sandbox enters its group before anything of it runs, so that no process of it is ever outside.
"""

import itertools
import logging
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

from agent_core.sandboxes import owners, supervisor
from agent_core.sandboxes.cgroups.hierarchy import (
    PROCESSES,
    GroupPlace,
    find_places,
    give_controllers,
    read_processes,
    write,
)
from agent_core.sandboxes.link import LimitHolder, SandboxLimits

log = logging.getLogger("turnkeeper.sandboxes")

PREFIX = "turnkeeper-"
WEIGHT = 50
"""Per cent of the gateway's share of busy processors that all its sandboxes have together. With 25
a new sandbox beside other work takes four times as long as without a group."""
_PERIOD = 100_000
"""Microseconds in which a group uses up its share of processors."""
_ROUNDS = 50
_ENTER = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"'
"""A shell's words: be in the groups of these files, and become what follows `--`."""


class SandboxGroup:
    """One sandbox's group: a folder in each place."""

    def __init__(self, places: list[GroupPlace]) -> None:
        self._places = places

    @property
    def entry(self) -> tuple[str, ...]:
        """The words before a command that put it and all that it starts into the group."""
        if not self._places:
            return ()
        files = (str(one.folder / PROCESSES) for one in self._places)
        return ("/bin/sh", "-c", _ENTER, "sh", *files, "--")

    def open_counters(self) -> dict[str, int]:
        """Open the files that count met limits, by the supervisor's names of these."""
        opened: dict[str, int] = {}
        for place in self._places:
            for limit, (controller, _, new, old) in supervisor.COUNTED.items():
                if controller not in place.controllers:
                    continue
                file = place.folder / (new if place.unified else old)
                with suppress(OSError):  # then only the watch tells which limit was met
                    opened[limit] = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        return opened

    def remove(self) -> bool:
        """Kill what is left, and remove the group. Return False if some of it is still dying."""
        return all([_remove(place.folder) for place in self._places])


class ControlGroups:
    """The groups of this process's sandboxes."""

    def __init__(self, places: list[GroupPlace]) -> None:
        self._numbers = itertools.count(1)
        self._clearing, self._left = threading.Lock(), list[SandboxGroup]()
        self._places: list[GroupPlace] = []
        self._locks: list[int] = []
        try:
            for place in places:
                self._make_own(place)
        except OSError:
            self.close()
            raise

    @property
    def limit_holder(self) -> LimitHolder:
        """The holder of the limits of memory and processes, with these groups."""
        held = {name for one in self._places for name in one.controllers}
        return "kernel" if {"memory", "pids"} <= held else "watch"

    def _make_own(self, place: GroupPlace) -> None:
        own, lock = owners.make_held(place.folder, PREFIX)
        self._places.append(place._replace(folder=own))
        self._locks.append(lock)
        if place.unified:
            give_controllers(own, place.controllers)
        if "cpu" in place.controllers:
            weight = {"cpu.weight": str(WEIGHT)}
            write(own, weight if place.unified else {"cpu.shares": str(WEIGHT * 1024 // 100)})

    def open(self, limits: SandboxLimits) -> SandboxGroup:
        """Make a sandbox's group, and write its limits; one in no place if that fails."""
        self._clean()
        number = str(next(self._numbers))
        made = [one._replace(folder=one.folder / number) for one in self._places]
        group = SandboxGroup(made)
        try:
            for place in made:
                place.folder.mkdir()
                _limit(place, limits)
        except OSError as error:
            log.warning("no_control_group", extra={"error": str(error)})
            group.remove()
            return SandboxGroup([])
        return group

    def end(self, group: SandboxGroup) -> None:
        """Kill what is left in a group, and remove it, now or later."""
        with self._clearing:
            self._left.append(group)
        self._clean()

    def close(self) -> None:
        """Remove all groups, as far as nothing in them is still dying: the next gateway removes
        those."""
        self._clean()
        for place, lock in zip(self._places, self._locks, strict=True):
            _remove(place.folder)
            os.close(lock)
        self._places, self._locks = [], []

    def _clean(self) -> None:
        with self._clearing:
            self._left = [one for one in self._left if not one.remove()]


NO_GROUPS = ControlGroups([])
"""Where none may be made."""


def open_control_groups() -> ControlGroups:
    """Return the groups of this process's sandboxes, NO_GROUPS where it may make none. Those of
    killed processes are removed first. Blocks."""
    places = find_places()
    try:
        for place in places:
            remove_left(place.folder)
        return ControlGroups(places) if places else NO_GROUPS
    except OSError as error:
        log.warning("no_control_groups", extra={"error": str(error)})
        return NO_GROUPS


def remove_left(folder: Path) -> None:
    """Remove the groups of processes that are gone, and end what still runs in them."""
    owners.remove_left(folder, PREFIX, remove=_remove)


def _limit(place: GroupPlace, limits: SandboxLimits) -> None:
    """Write the limits; those that this kernel lacks are left out, others must succeed."""
    folder, quota = place.folder, str(limits.cpus * _PERIOD)
    memory, tasks = str(limits.memory), str(limits.tasks)
    if "memory" in place.controllers:
        write(folder, {"memory.max" if place.unified else "memory.limit_in_bytes": memory})
        with suppress(OSError):  # without swap, or without counting it
            one = {"memory.swap.max": "0"}
            write(folder, one if place.unified else {"memory.memsw.limit_in_bytes": memory})
    if "pids" in place.controllers:
        write(folder, {"pids.max": tasks})
    if "cpu" in place.controllers:
        with suppress(OSError):  # a group above has less
            one = {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota}
            write(folder, {"cpu.max": f"{quota} {_PERIOD}"} if place.unified else one)


def _kill(folder: Path) -> None:
    """Kill the group's processes; none of them can start another meanwhile."""
    with suppress(OSError):
        write(folder, {"cgroup.kill": "1"})
        return
    with suppress(OSError):
        write(folder, {"pids.max": "0"})
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        with suppress(OSError):
            new = set(read_processes(folder)) - killed
            for pid in new:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed |= new
            if new:
                continue
        return


def _remove(folder: Path) -> bool:
    """Kill what is in a group and in those below it, and remove them. Return False if some of it is
    still dying."""
    with suppress(OSError), os.scandir(folder) as entries:
        for one in [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]:
            _remove(one)
    for end in (lambda _: None, _kill):
        end(folder)
        with suppress(OSError):
            folder.rmdir()
    return not folder.exists()
