"""How soon chats are answered while strangers besiege the HTTP door.

    .venv/bin/python -m benchmarks.border [messages]

The gateway is a process of its own, and so is who besieges it; Telegram and the model are servers
here. Messages of different people come one after the other: at rest, then during 10,000 wrong
tokens, 5,000 half-open connections, 1,000 bodies of 64 MB. Goal: of 99 in 100, at most twice the
time at rest. Prints one line of JSON and one row for each; ends with 1 if a goal is missed.
"""

import asyncio
import json
import math
import signal
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from tests.gateway.process import ROOT, START, World, peopled

GOAL = 2.0
"""Times what it is at rest."""
TOKEN = "a-token-of-the-page-0123456789"
SIEGES = {"tokens": 10_000, "half": 5_000, "bodies": 1_000}


async def probe(world: World, person: int) -> float:
    began = time.monotonic()
    world.telegram.say(person, f"hello {person}")
    await world.telegram.wait_text(person, f"ack hello {person}", START)
    return time.monotonic() - began


async def besiege(url: str, what: str, count: int) -> asyncio.subprocess.Process:
    place = urlsplit(url)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.flood", what, str(place.hostname), str(place.port)),
        str(count), cwd=ROOT, stdin=-1, stdout=-1,
    )  # fmt: skip
    assert process.stdout is not None
    await process.stdout.readline()
    return process


async def end(besieger: asyncio.subprocess.Process, what: str) -> str:
    """What the siege got, once it is over."""
    assert besieger.stdin is not None and besieger.stdout is not None
    if what == "half":
        besieger.stdin.write(b"\n")
    said = await besieger.stdout.read()
    await besieger.wait()
    return said.decode() or "{}"


def find_p99(took: list[float]) -> float:
    return sorted(took)[math.ceil(len(took) * 0.99) - 1]


async def measure(messages: int) -> dict[str, dict[str, object]]:
    """Of each siege: the seconds to the answers, and what became of the siege."""
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with peopled(Path(folder)) as world:
            run = await world.start(TELEGRAM_ALLOWED_USERS="*", TURNKEEPER_TOKEN=TOKEN)
            people = iter(range(1_000, 1_000_000))
            await probe(world, next(people))
            for what in ("rest", *SIEGES):
                besieger = await besiege(run.url, what, SIEGES[what]) if what in SIEGES else None
                took: list[float] = []
                while len(took) < messages or (besieger and what != "half" and len(took) < 2_000):
                    took.append(await probe(world, next(people)))
                    if besieger and besieger.stdout and besieger.stdout.at_eof():
                        break
                got = "{}"
                if besieger is not None:
                    got = await end(besieger, what)
                found[what] = {
                    "messages": len(took), "p50": sorted(took)[len(took) // 2],
                    "p99": find_p99(took), "max": max(took), "got": json.loads(got),
                }  # fmt: skip
            await run.end(signal.SIGTERM)
    return found


def told(what: str, row: dict[str, object], rest: float) -> bool:
    """Prints; whether the goal is met."""
    print(json.dumps({"siege": what, **row}))
    p50, p99, most = (float(str(row[name])) * 1000 for name in ("p50", "p99", "max"))
    times = p99 / 1000 / rest
    print(f"| {what} | {row['messages']} | {p50:.0f} / {p99:.0f} / {most:.0f} ms | {times:.1f} |")
    return times <= GOAL


async def main(messages: int = 200) -> int:
    found = await measure(messages)
    rest = float(str(found["rest"]["p99"]))
    met = [told(what, row, rest) for what, row in found.items()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(uvloop.run(main(*map(int, sys.argv[1:]))))
