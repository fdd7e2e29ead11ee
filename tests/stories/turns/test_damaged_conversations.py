"""A conversation whose entries in Redis are damaged: its person is told, and the others, also those
of the same batch, are served."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from gateway.conversation.outage import Outage
from gateway.messages import Conversation, MessageReceived
from gateway.store.redis import RedisStore
from gateway.store.redis_lease import key
from gateway.views import Abilities
from tests.contracts.redis_server import RedisServer, redis_server
from tests.fakes.world import ANN, ROOM, Life

OTHER = replace(ROOM, channel="other")
PARTS = (
    "",
    ":in",
    ":waiting",
    ":e:m2",
    ":turns",
    ":open",
    ":views",
    ":rev",
    ":transcript",
    ":live",
)
FIELDS = ("last", "epoch", "token", "seen")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisServer]:
    running = redis_server(tmp_path)
    yield running
    running.end()


async def spoil(client: Redis, part: str, how: str) -> None:
    """Put something else where the conversation has its entries."""
    name = key(ROOM.id) + part
    if how == "field":
        await client.hset(key(ROOM.id), part, "no number")
        return
    await client.delete(name)
    match how:
        case "string":
            await client.set(name, "x")
        case "list":
            await client.rpush(name, "x")
        case "hash":
            await client.hset(name, "x", "y")
        case _:
            await client.sadd(name, "x")


def say(where: Conversation, event: str) -> MessageReceived:
    return MessageReceived(
        conversation=where, sender=ANN, event=event, message=event, text=f"hello {event}"
    )


def shown(one: Life, where: Conversation, text: str = "") -> bool:
    return any(text in str(view) for view in one.screen(where).values())


@pytest.mark.parametrize(
    ("part", "how"),
    [
        *itertools.product(PARTS, ("string", "list", "hash", "set")),
        *((field, "field") for field in FIELDS),
    ],
)
async def test_a_damaged_conversation_delays_no_other(
    tmp_path: Path, server: RedisServer, part: str, how: str
) -> None:
    one = Life(tmp_path, lambda _: RedisStore.open(server.url))
    one.adapter.abilities = Abilities(edit_interval=0.02)
    one.prepares.append(
        lambda: one.equip(outage=Outage({"test": one.adapter}, one.services.access, one.host.spawn))
    )
    async with one.living():
        await one.host.accept([say(ROOM, "m1")])
        await one.until(lambda: shown(one, ROOM, "ack hello m1"))
        await one.quiet()
        async with Redis.from_url(server.url) as client:
            await spoil(client, part, how)
        before = len(one.ledger.read_screen(ROOM))
        await one.host.accept([say(ROOM, "m2"), say(OTHER, "n1")])
        await one.until(lambda: shown(one, OTHER, "ack hello n1"))
        await one.until(lambda: len(one.ledger.read_screen(ROOM)) > before)
