"""How soon Discord and Slack hear that something has come, while 50 turns run.

    .venv/bin/python -m benchmarks.acks [probes] [turns]

The gateway is a process of its own; the platforms and the model are servers here, which the figures
include. Both platforms give up after three seconds. Each transport is one life of the gateway, with
messages (Slack) or a slash command (Discord) one after the other. Prints one line of JSON and one
row for each; ends with 1 if a goal is missed.
"""

import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from tests.fakes.model_server import Json, ModelServer, Slow, Step
from tests.fakes.slack_server import SECRET
from tests.gateway.process import KEY, Run
from tests.stories.discord_slack_process import Chats

GOAL = 0.3
"""Seconds, of 99 in 100."""
OPEN = {"SLACK_ALLOWED_USERS": "*", "DISCORD_ALLOWED_USERS": "*"}
WORDS = "word " * 6_000

Probe = Callable[[Chats, int], Awaitable[float]]
Begin = Callable[[Chats, int], Awaitable[None]]


class Busy(Chats):
    """Its model talks on and on."""

    def _tells(self, body: Json) -> Step:
        return Slow(0.1, WORDS)


async def by_slack(world: Chats, person: int) -> float:
    slack, began = world.slack, time.monotonic()
    before = len(slack.acknowledged) + len(slack.answers)
    slack.say(f"D0P{person:03d}", "one more", f"U0P{person:03d}")
    await slack.wait(lambda: len(slack.acknowledged) + len(slack.answers) > before)
    return time.monotonic() - began


async def by_discord(world: Chats, person: int) -> float:
    discord = world.discord
    number = await discord.command(f"9000{100 + person}", "status", 100 + person)
    await discord.wait(lambda: number in discord.answers)
    return discord.delays[-1]


async def begin_slack(world: Chats, person: int) -> None:
    world.slack.say(f"D0P{person:03d}", f"talk {person}", f"U0P{person:03d}")


async def begin_discord(world: Chats, person: int) -> None:
    await world.discord.say(f"9000{100 + person}", f"talk {person}", 100 + person)


async def by_http(world: Chats) -> Run:
    run = await world.start(SLACK_APP_TOKEN="", SLACK_SIGNING_SECRET=SECRET, **OPEN)
    world.slack.hook = f"{run.url}slack/events"
    return run


async def by_socket(world: Chats) -> Run:
    run = await world.start(**OPEN)
    await world.discord.wait(lambda: world.discord.gateway.connected)
    await world.slack.wait(lambda: world.slack.connections)
    return run


WAYS: dict[str, tuple[Callable[[Chats], Awaitable[Run]], Begin, Probe]] = {
    "Slack, Socket Mode": (by_socket, begin_slack, by_slack),
    "Slack, HTTP": (by_http, begin_slack, by_slack),
    "Discord, gateway": (by_socket, begin_discord, by_discord),
}


async def measure(name: str, probes: int, turns: int) -> list[float]:
    """Seconds to each acknowledgement, sorted."""
    start, begin, probe = WAYS[name]
    model = ModelServer(KEY)
    with tempfile.TemporaryDirectory() as folder:
        world = Busy(Path(folder), model)
        world.model_url = await model.start()
        async with world.discord, world.slack:
            run = await start(world)
            try:
                for person in range(turns):
                    await begin(world, person)
                await model.wait(lambda: len(model.requests) >= turns)
                await probe(world, 0)
                took = [await probe(world, n % turns) for n in range(probes)]
                assert model.inflight == turns, "all of them still run"
            finally:
                await run.end(signal.SIGKILL)
                await model.close()
    return sorted(took)


def told(name: str, took: list[float]) -> bool:
    """Prints; whether the goal is met."""
    p50, p99 = took[len(took) // 2], took[math.ceil(len(took) * 0.99) - 1]
    row = {"way": name, "probes": len(took), "p50": p50, "p99": p99, "max": took[-1]}
    print(json.dumps(row))
    print(f"| {name} | {p50 * 1000:.0f} / {p99 * 1000:.0f} / {took[-1] * 1000:.0f} ms |")
    return p99 < GOAL


async def main(probes: int = 300, turns: int = 50) -> int:
    met = [told(name, await measure(name, probes, turns)) for name in WAYS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(uvloop.run(main(*map(int, sys.argv[1:]))))
