"""A person is erased from both stores and from the folder: no byte of what they wrote is left, and
what others wrote is."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from gateway.access.access import Accounts, Identity
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.statements import encode
from tests.contracts.conftest import RedisWorld, SqliteWorld
from tests.contracts.erasure_rig import (
    ADA,
    ADA2,
    GROUP,
    NONCE,
    OTHER,
    SAID,
    SHORT,
    say,
    take_turn,
    talk,
)
from tests.contracts.store_values import place


async def read_everything(world: SqliteWorld | RedisWorld, home: Path) -> bytes:
    found = b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())
    if isinstance(world, RedisWorld):
        async with Redis.from_url(world.server.url, protocol=2) as client:
            async for name in client.scan_iter():
                found += name + (await client.dump(name) or b"")
                match await client.type(name):
                    case b"hash":
                        found += b"".join(b"".join(p) for p in (await client.hgetall(name)).items())
                    case b"zset":
                        found += b"".join(await client.zrange(name, 0, -1))
    return found


@pytest.mark.parametrize("old", [False, True])
async def test_nothing_of_them_is_left_and_all_of_the_others(
    world: SqliteWorld | RedisWorld, tmp_path: Path, old: bool
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    if old:
        await world.store.put("retention:since", None)
    await talk(world.store, tmp_path)
    assert NONCE.encode() in await read_everything(world, tmp_path)
    lines: list[str] = []
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        "web:ada2", lines.append
    )
    assert said.startswith("2 conversations") and lines

    left = await read_everything(world, tmp_path)
    assert NONCE.encode() not in left and SAID.encode() not in left
    assert SHORT.encode() not in left
    for name in ("denied", "short", "amended"):
        assert ADA.key not in str(await world.store.records(f"t-{name}")), "who answered"
    assert OTHER.encode() in left and b"likes tea" in left
    store = world.store
    entries = await store.newest(GROUP.id, 10)
    assert [bool(entry.messages) for entry in entries] == [False, True, False]
    opened = await store.acquire(GROUP.id, "me", 30)
    assert opened is not None
    assert not opened.turns and not opened.questions and not opened.damaged
    assert [row.inbound.text for row in opened.inbox] == [OTHER + " too"]  # type: ignore[union-attr]
    assert not await make_jobs(store).list_jobs()
    kept = {key for key in await store.keys("") if not key.startswith("audit-")}
    assert kept <= {"memory:own:test:bob", "retention:since"}
    audit = await store.audit(20)
    assert [line.what for line in audit].count("allowed") == 12
    erased = next(line for line in audit if line.what == "erased")
    assert "2 conversations" in erased.detail and "ada" not in erased.detail
    trail = make_trail(settings, store)
    flaws = {flaw.kind for flaw in (await trail.verify()).flaws}
    assert flaws <= {"foreign"}, "the lines of this test have no signature"
    again = await StoreUpkeep(settings, store, trail).erase("test:ada", lines.append)
    assert again.startswith("0 conversations")
    await store.give_back(opened.lease)


async def test_what_another_process_holds_is_named_and_left(
    world: SqliteWorld | RedisWorld, tmp_path: Path
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    own = replace(place("home"), private=True)
    await take_turn(world.store, say(ADA, own, SAID, "1"), "t1", 0)
    await world.store.put("identity:test:ada", encode(Identity(person="p1")))
    await world.store.put("identity:web:ada2", encode(Identity(person="p1")))
    await world.store.put("accounts:p1", encode(Accounts(keys=(ADA.key, ADA2.key))))
    assert await world.store.acquire(own.id, "other", 30) is not None
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        ADA.key, lambda text: None
    )
    assert own.id in said and "0 conversations" in said
    world.clock.time += 31
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        ADA2.key, lambda text: None
    )
    assert "1 conversations" in said
    kept = {key for key in await world.store.keys("") if not key.startswith("audit-")}
    assert kept <= {"retention:since"}


@pytest.mark.parametrize("body", [b"{damaged", b"[5]", b"\xff"])
async def test_what_cannot_be_read_of_them_goes_too(
    world: SqliteWorld | RedisWorld, tmp_path: Path, body: bytes
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    own = replace(place("home"), private=True)
    await take_turn(world.store, say(ADA, own, SAID, "1"), "t1", 0)
    kinds = ("shown", "linkshown", "identity", "quota", "memory:own", "standing", "person", "wrong")
    for kind in kinds:
        await world.store.put(f"{kind}:{ADA.key}", body)
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        ADA.key, lambda text: None
    )
    assert "1 conversations" in said
    left = {key for key in await world.store.keys("") if not key.startswith("audit-")}
    assert left <= {"retention:since"}
