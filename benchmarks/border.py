"""How soon chats are answered while strangers besiege the HTTP door, and commands the machine.

    .venv/bin/python -m benchmarks.border [messages] [rest tokens half bodies bwrap landlock]

The gateway is a process of its own, and so is who besieges it; Telegram and the model are servers
here. Messages of different people come one after the other: at rest, then during 10,000 wrong
tokens, 5,000 half-open connections, 1,000 bodies of 64 MB; and, in a gateway for each tier that
works here, at rest and during 100 fork bombs, four at a time, of people whose commands run unasked.
Goal: of 99 in 100, at most twice the
time at rest. Prints one line of JSON and one row for each; ends with 1 if a goal is missed.
"""

import asyncio
import gc
import json
import math
import signal
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from tests.fakes.model_steps import Call, Say
from tests.gateway.process import ROOT, START, World, peopled

GOAL = 2.0
"""Times what it is at rest."""
TOKEN = "a-token-of-the-page-0123456789"
SIEGES = {"tokens": 10_000, "half": 5_000, "bodies": 1_000}
BOMBS, AT_ONCE = 100, 4
BOMBERS = range(501, 501 + AT_ONCE)
TIERS = ("bwrap", "landlock")
BOMB = 'n=f; eval "$n() { $n | $n & }; $n"; sleep 600'
"""In words that no guardrail asks about."""
BOUND = 120.0
"""Seconds that a bomb may take to be answered, and a start where the machine is busy."""


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


async def blow_up(world: World, person: int, bombs: list[int]) -> None:
    """Have one bomb after the other run as a command of `person`."""
    while bombs:
        number = bombs.pop()
        call = Call("run_command", json.dumps({"command": BOMB}), id=f"bomb{number}")
        world.model.by_text[f"bomb {number:03}"] = [call, Say(f"blown {number:03}")]
        world.telegram.say(person, f"bomb {number:03}")
        await world.telegram.wait_text(person, f"blown {number:03}", BOUND)


def describe(took: list[float], got: object) -> dict[str, object]:
    return {
        "messages": len(took), "p50": sorted(took)[len(took) // 2], "p99": find_p99(took),
        "max": max(took), "got": got,
    }  # fmt: skip


async def measure_bombs(tier: str, messages: int) -> dict[str, dict[str, object]]:
    """At rest and while bombs go off, in a gateway whose commands run by `tier`."""
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with peopled(Path(folder)) as world:
            admins = ",".join(map(str, BOMBERS))
            run = await world.start(
                TELEGRAM_ALLOWED_USERS="*", TELEGRAM_ADMIN_USERS=admins, SANDBOX_PROVIDER=tier
            )
            people = iter(range(1_000, 1_000_000))
            await probe(world, next(people))
            rest = [await probe(world, next(people)) for _ in range(messages)]
            found[f"rest, {tier}"] = describe(rest, {})
            bombs, took = list(range(BOMBS)), list[float]()
            async with asyncio.TaskGroup() as group:
                blown = [group.create_task(blow_up(world, one, bombs)) for one in BOMBERS]
                while not all(one.done() for one in blown):
                    took.append(await probe(world, next(people)))
            said = [message["text"] for one in BOMBERS for message in world.telegram.chats[one]]
            stopped = sum("over 512 processes" in str(one.body) for one in world.model.requests)
            ends = sum("blown" in text for text in said)
            found[f"bombs, {tier}"] = describe(took, {"answered": ends, "stopped": stopped})
            await run.end(signal.SIGTERM)
    return found


async def measure(messages: int, sieges: list[str]) -> dict[str, dict[str, object]]:
    """Of each siege: the seconds to the answers, and what became of the siege."""
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with peopled(Path(folder)) as world:
            run = await world.start(TELEGRAM_ALLOWED_USERS="*", TURNKEEPER_TOKEN=TOKEN)
            people = iter(range(1_000, 1_000_000))
            await probe(world, next(people))
            for what in ("rest", *(one for one in SIEGES if one in sieges)):
                besieger = await besiege(run.url, what, SIEGES[what]) if what in SIEGES else None
                took: list[float] = []
                while len(took) < messages or (besieger and what != "half" and len(took) < 2_000):
                    took.append(await probe(world, next(people)))
                    if besieger and besieger.stdout and besieger.stdout.at_eof():
                        break
                got = "{}"
                if besieger is not None:
                    got = await end(besieger, what)
                found[what] = describe(took, json.loads(got))
            await run.end(signal.SIGTERM)
    return found


def told(what: str, row: dict[str, object], rest: float) -> bool:
    """Prints; whether the goal is met."""
    print(json.dumps({"siege": what, **row}))
    p50, p99, most = (float(str(row[name])) * 1000 for name in ("p50", "p99", "max"))
    times = p99 / 1000 / rest
    print(f"| {what} | {row['messages']} | {p50:.0f} / {p99:.0f} / {most:.0f} ms | {times:.1f} |")
    return times <= GOAL


async def main(messages: int, *sieges: str) -> int:
    gc.disable()  # a full collection here would be measured as the gateway's
    wanted = list(sieges) or [*SIEGES, *TIERS]
    found = await measure(messages, wanted) if not set(wanted) <= set(TIERS) else {}
    for tier in (one for one in TIERS if one in wanted):
        found |= await measure_bombs(tier, messages)
    rests = {name: float(str(row["p99"])) for name, row in found.items() if "rest" in name}
    met = [
        told(what, row, rests["rest" + what[what.find(",") :] if "," in what else "rest"])
        for what, row in found.items()
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(uvloop.run(main(int(sys.argv[1]) if sys.argv[1:] else 200, *sys.argv[2:])))
