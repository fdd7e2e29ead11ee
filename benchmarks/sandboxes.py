"""What a place to work costs: a new sandbox, a command in a warm one, snapshots, memory.

`python -m benchmarks.sandboxes [times]` prints JSON and a row for benchmarks/README.md, for the best
tier of this machine.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil

from agent_core.sandboxes.cgroups.groups import open_control_groups
from agent_core.sandboxes.detect import detect
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.snapshots import Snapshots

GOALS = {
    "warm_ms": 15.0,
    "new_ms": 60.0,
    "unchanged_ms": 20.0,
    "snapshot_ms": 1_000.0,
    "restore_ms": 3_000.0,
    "memory_mib": 1_024.0,
}
SANDBOXES = 20
FILES, SIZE = 500, 100_000
"""50 MB in files, as a project has them."""


async def measure_commands(times: int, root: Path) -> dict[str, float]:
    """p50 of `true` in a warm sandbox, of a new one, and the memory of twenty."""
    groups = open_control_groups()
    pool = SandboxPool(await detect(groups=groups))
    new, warm = [], []
    try:
        for n in range(SANDBOXES):
            place = root / str(n)
            place.mkdir()
            began = time.perf_counter()
            await pool.run("true", place, 10, lambda _: None)
            new.append(time.perf_counter() - began)
        for _ in range(times):
            began = time.perf_counter()
            await pool.run("true", root / "0", 10, lambda _: None)
            warm.append(time.perf_counter() - began)
        memory = sum(
            one.memory_full_info().pss for one in psutil.Process().children(recursive=True)
        )
    finally:
        await pool.close()
        groups.close()
    return {
        "warm_ms": sorted(warm)[len(warm) // 2] * 1e3,
        "new_ms": sorted(new)[len(new) // 2] * 1e3,
        "memory_mib": memory / (1 << 20),
    }


def measure_snapshots(place: Path) -> dict[str, float]:
    """The first snapshot of 50 MB, one of a workspace as it was, and all of it brought back."""
    place.mkdir()
    for n in range(FILES):
        folder = place / f"part-{n % 20}"
        folder.mkdir(exist_ok=True)
        (folder / f"{n}.bin").write_bytes(os.urandom(SIZE))
    keeper, found = Snapshots(), {}
    began = time.perf_counter()
    before = keeper.take(place, "t.before")
    found["snapshot_ms"] = (time.perf_counter() - began) * 1e3
    began = time.perf_counter()
    keeper.take(place, "u.before")
    found["unchanged_ms"] = (time.perf_counter() - began) * 1e3
    for path in place.glob("part-*/*"):
        path.unlink()
    after = keeper.take(place, "t.after")
    began = time.perf_counter()
    assert len(keeper.take_back(place, before, after).restored) == FILES
    found["restore_ms"] = (time.perf_counter() - began) * 1e3
    return found


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as root:
        found = asyncio.run(measure_commands(times, Path(root)))
        found |= measure_snapshots(Path(root) / "files")
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))
    print("| " + " | ".join(f"{found[name]:.1f}" for name in GOALS) + " |")
    missed = [name for name, goal in GOALS.items() if found[name] > goal]
    for name in missed:
        print(f"missed: {name} {found[name]:.1f} > {GOALS[name]:g}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
