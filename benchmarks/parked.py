"""What a turn costs that waits for a person: memory, disk, and the time from press to tool.

`python -m benchmarks.parked [first] [all] [presses]` parks `first` turns, then `all` in total, each
in a conversation of its own; prints JSON and a row for benchmarks/README.md.
"""

import asyncio
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.quiet import WAVE, Quiet, percentiles

GOAL_BYTES = 1024
GOAL_MS = 200.0


def rss() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def park(gateway: Quiet, start: int, end: int) -> float:
    """Park rooms `start` to `end` in waves; seconds it took."""
    began = time.perf_counter()
    for first in range(start, end, WAVE):
        await gateway.say(range(first, min(first + WAVE, end)), "do deploy", "m")
        await gateway.quiet()
    return time.perf_counter() - began


def state(gateway: Quiet) -> dict[str, int]:
    """What the process holds now."""
    gc.collect()
    return {
        "rss": rss(),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "disk": gateway.disk(),
    }


def _set(event: asyncio.Event) -> Callable[[str], None]:
    return lambda name: event.set()


async def resume(gateway: Quiet, rooms: list[int]) -> tuple[list[float], list[float]]:
    """Press in each room, one after the other: seconds to the running tool, to the answer."""
    to_tool, to_reply = [], []
    for n in rooms:
        question = gateway.question(n)
        ran, replied = asyncio.Event(), asyncio.Event()
        gateway.agent.on_tool = _set(ran)
        gateway.adapter.on_reply = _set(replied)
        began = time.perf_counter()
        await gateway.press(n, question)
        async with asyncio.timeout(30):
            await ran.wait()
            to_tool.append(time.perf_counter() - began)
            await replied.wait()
            to_reply.append(time.perf_counter() - began)
        await gateway.quiet()
    return to_tool, to_reply


async def measure(first: int, total: int, presses: int) -> dict[str, object]:
    """Park, look, park more, look again, press."""
    with tempfile.TemporaryDirectory() as folder:
        async with Quiet(Path(folder)).living() as gateway:
            await park(gateway, 0, WAVE)  # everything is imported and every cache is warm
            took = await park(gateway, WAVE, first)
            before = state(gateway)
            took += await park(gateway, first, total)
            after = state(gateway)
            rooms = random.Random(1).sample(range(total), presses)
            to_tool, to_reply = await resume(gateway, rooms)
    more = total - first
    return {
        "parked": total,
        "rss_bytes_per_turn": round((after["rss"] - before["rss"]) / more, 1),
        "objects_per_turn": round((after["objects"] - before["objects"]) / more, 3),
        "disk_bytes_per_turn": round((after["disk"] - before["disk"]) / more),
        "tasks": [before["tasks"], after["tasks"]],
        "threads": [before["threads"], after["threads"]],
        "rss_mib": [round(before["rss"] / 2**20, 1), round(after["rss"] / 2**20, 1)],
        "parks_per_second": round((total - WAVE) / took, 1),
        "press_to_tool": percentiles(to_tool),
        "press_to_answer": percentiles(to_reply),
    }


def main() -> int:
    """0 if every goal is met."""
    numbers = [int(word) for word in sys.argv[1:]] + [1_000, 10_000, 50][len(sys.argv) - 1 :]
    found = asyncio.run(measure(*numbers))
    print(json.dumps(found))
    tool, answer = found["press_to_tool"], found["press_to_answer"]
    tasks, threads = found["tasks"], found["threads"]
    assert isinstance(tool, dict) and isinstance(answer, dict)
    assert isinstance(tasks, list) and isinstance(threads, list)
    print(
        f"| {found['parked']} | {found['rss_bytes_per_turn']} B | {found['disk_bytes_per_turn']} B "
        f"| {tasks[0]} → {tasks[1]} | {threads[0]} → {threads[1]} "
        f"| {tool['p50_ms']} / {tool['p95_ms']} / {tool['max_ms']} ms | {answer['p50_ms']} ms |"
    )
    met = (
        float(str(found["rss_bytes_per_turn"])) <= GOAL_BYTES
        and tool["max_ms"] < GOAL_MS
        and tasks[0] == tasks[1]
        and threads[0] == threads[1]
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
