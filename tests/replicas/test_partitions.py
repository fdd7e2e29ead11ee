"""Three replicas over one Redis while networks break and clocks are wrong: nothing is begun under a
lease that was not renewed, no stale write stands, nothing acknowledged is lost."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.conversation import host
from gateway.delivery import outbox
from gateway.store import redis_wire
from tests.contracts.redis_server import (
    all_is_copied,
    demote,
    follow,
    promote,
    redis_pair,
    redis_server,
)
from tests.fakes.world import ROOM
from tests.replicas import rig
from tests.replicas.rig import TTL, Fleet, SkewedClocks
from tests.sampling import SEED

CLOCKS = (0.0, 3_600.0, -3_600.0)


@pytest.fixture(autouse=True)
def scaled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tenth of the product's times, as the lease has."""
    monkeypatch.setattr(redis_wire, "PATIENCE", 0.3)
    monkeypatch.setattr(redis_wire, "MAX_SECONDS", 0.6)
    monkeypatch.setattr(outbox, "SEND_LIMIT", 1.0)
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 0.5)
    monkeypatch.setattr(host, "RETRY_DELAY", 0.1)
    ambient.use(SkewedClocks())
    yield
    ambient.use(SystemClock())


async def disturb(fleet: Fleet, rng: random.Random, rounds: int) -> None:
    """Break one network after another, for less and for more than a lease lasts."""
    for _ in range(rounds):
        replica = rng.choice(fleet.replicas)
        proxy = replica.proxy
        match rng.choice(("cut", "blink", "stall", "replies", "slow")):
            case "cut":
                proxy.cut()
            case "blink":
                proxy.cut(refuse=False)
            case "stall":
                proxy.stall()
            case "replies":
                proxy.lose_replies()
            case "slow":
                proxy.delay = rng.uniform(0.05, 0.4)
        await asyncio.sleep(rng.choice((0.2, 0.5, 1.0, TTL * 1.3)))
        if rng.random() < 0.7:
            proxy.heal()
        if all(one.proxy.broken for one in fleet.replicas):
            fleet.heal()


async def talk(fleet: Fleet, rng: random.Random, prefix: str, stop: asyncio.Event) -> None:
    """People write, now here, now there."""
    n = 0
    while not stop.is_set():
        n += 1
        what = rng.choice((f"hello {prefix}{n}", f"do note look {prefix}{n}"))
        await fleet.say(what if what.startswith("hello") else f"do note|look\n{prefix}{n}", n)
        await asyncio.sleep(rng.uniform(0.05, 0.6))


async def judge(fleet: Fleet, lost: Sequence[str] = ()) -> None:
    """Everything but what was `lost` is answered once all is well."""
    fleet.heal()
    await fleet.say("hello at the end")
    await fleet.until(lambda: _shown(fleet, "at the end"))
    await fleet.quiet()
    assert fleet.witness.late == []
    assert fleet.witness.stale == []
    store = fleet.replicas[0].store
    assert await store.arrivals(ROOM.id, 0) == ()
    heard = str([row.messages for row in await store.newest(ROOM.id, 10_000)])
    words = str(fleet.lines("send")) + str(fleet.lines("edit"))
    missing = {text for text in fleet.accepted if text.split()[-1] not in heard + words}
    missing -= set(lost)
    assert missing == set(), "acknowledged, and lost"
    assert await store.letters(50) == ()


def _shown(fleet: Fleet, text: str) -> bool:
    return any(text in str(one["view"]) for what in ("send", "edit") for one in fleet.lines(what))


async def play(folder: Path, seed: str, rounds: int) -> None:
    rng = random.Random(seed)
    server = redis_server(folder)
    try:
        fleet = Fleet(folder, server.socket)
        async with fleet.running(CLOCKS):
            stop = asyncio.Event()
            talking = asyncio.create_task(talk(fleet, rng, "m", stop))
            await disturb(fleet, rng, rounds)
            fleet.heal()
            stop.set()
            await talking
            try:
                await judge(fleet)
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
    finally:
        server.kill()


@pytest.mark.timeout(120)
@pytest.mark.pick("a fleet of replicas")
async def test_partitions_for_a_while(tmp_path: Path) -> None:
    await play(tmp_path, SEED, 6)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(12))
async def test_partitions(tmp_path: Path, seed: int) -> None:
    await play(tmp_path, f"partitions {seed}", 40)


@pytest.mark.pick("a fleet of replicas")
async def test_the_work_of_who_is_cut_off_goes_on_elsewhere(tmp_path: Path) -> None:
    """In the middle of a tool: who is cut off begins nothing more, another one takes over."""
    server = redis_server(tmp_path)
    try:
        fleet = Fleet(tmp_path, server.socket)
        async with fleet.running(CLOCKS):
            for one in fleet.replicas:
                one.life.agent.delays["note"] = 0.4
            await fleet.say("do note|look|add", 0)
            await fleet.until(lambda: fleet.lines("tool"))
            (first,) = {line["replica"] for line in fleet.lines("tool")}
            fleet.replicas[int(first) - 1].proxy.stall()
            await fleet.until(lambda: _shown(fleet, "done note"))
            assert {line["replica"] for line in fleet.lines("tool")} != {first}
            assert [line["name"] for line in fleet.lines("tool")].count("note") == 1
            await judge(fleet)
    finally:
        server.kill()


@pytest.mark.pick("a fleet of replicas")
async def test_who_cannot_renew_begins_nothing_though_its_commits_pass(tmp_path: Path) -> None:
    server = redis_server(tmp_path)
    try:
        fleet = Fleet(tmp_path, server.socket)
        async with fleet.running(CLOCKS):
            for one in fleet.replicas:
                one.life.agent.delays.update(note=0.3, look=0.3)
            await fleet.say("do " + "|".join(["note", "look"] * 8), 0)
            await fleet.until(lambda: fleet.lines("tool"))
            (first,) = {line["replica"] for line in fleet.lines("tool")}
            fleet.replicas[int(first) - 1].mute = True
            token = fleet.witness.token
            await fleet.until(lambda: _shown(fleet, "done note"))
            assert fleet.witness.token > token  # given back: another one took it
            fleet.replicas[int(first) - 1].mute = False
            await judge(fleet)
    finally:
        server.kill()


@pytest.mark.pick("a fleet of replicas")
async def test_what_is_given_back_is_taken_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An orderly stop: another one goes on, not with its next scan, for which nobody waits."""
    monkeypatch.setattr(rig, "TTL", 1_000.0)
    server = redis_server(tmp_path)
    try:
        fleet = Fleet(tmp_path, server.socket)
        async with fleet.running((0.0, 0.0)):
            for one in fleet.replicas:
                one.life.agent.delays["model"] = 60.0
            await fleet.say("hello you", 0)
            await fleet.until(lambda: fleet.lines("model"))
            (holder,) = (int(line["replica"]) - 1 for line in fleet.lines("model"))
            fleet.replicas[1 - holder].life.agent.delays["model"] = 0.0
            await fleet.replicas[holder].life.host.drain(0.0)
            async with Redis.from_url(server.url) as client:
                assert await client.zcard("tk:active") == 1
            await fleet.until(lambda: _shown(fleet, "ack hello you"))
    finally:
        server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0.0, 0.3, 1.0])
@pytest.mark.timeout(120)
async def test_a_failover_to_a_copy_that_lags(tmp_path: Path, lag: float) -> None:
    """What the copy never had is gone, and seen to be; nothing hangs on it."""
    with redis_pair(tmp_path) as (old, new):
        await follow(old, new)
        fleet = Fleet(tmp_path, ("127.0.0.1", old.port))
        async with fleet.running(CLOCKS):
            stop = asyncio.Event()
            talking = asyncio.create_task(talk(fleet, random.Random(lag), "f", stop))
            await fleet.until(lambda: len(fleet.accepted) >= 4)
            known = len(fleet.accepted)
            await all_is_copied(old)
            await promote(new)  # it copies no more
            await asyncio.sleep(lag)
            for one in fleet.replicas:
                one.proxy.retarget(("127.0.0.1", new.port))
            await demote(old, new)
            # acknowledged by a server that was no copy's master any more, or just being so
            lost = [*fleet.accepted[known:], *fleet.on_their_way]
            await asyncio.sleep(TTL / 2)
            stop.set()
            await talking
            await judge(fleet, lost)
