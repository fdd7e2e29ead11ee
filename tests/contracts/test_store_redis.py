"""What only the Redis store has to show: lost replies, lost scripts, lost servers, hints."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Connection, Redis

from gateway.errors import Fenced, StoreFailed
from gateway.ports import account_scope
from gateway.store import redis_wire
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.redis_scripts import COMMANDS, MOVE, run
from gateway.store.rows import AuditRow, Changes, ConversationRow
from tests.contracts.conftest import RedisWorld
from tests.contracts.redis_server import RedisServer, Relay, redis_server
from tests.contracts.store_values import (
    NOTHING,
    START,
    having_work,
    keys_of,
    letter,
    outcome,
    place,
    question,
    record,
    said,
    spoken,
    take,
    turn,
    view,
)
from tests.fakes.ports import free_port
from tests.fakes.redis_proxy import RedisProxy, Words
from tests.fakes.waiting import PATIENCE
from tests.sampling import one_of

C1 = place().id
HIDDEN = [b"INFO", b"memory"]


@pytest.fixture
async def raw(server: RedisServer) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
async def relay(redis_world: RedisWorld, tmp_path: Path) -> AsyncIterator[tuple[Relay, RedisStore]]:
    """A store behind a relay, and another client's view of the same data in `redis_world`."""
    async with Relay(redis_world.server, tmp_path) as between:
        store = await RedisStore.open(between.url)
        yield between, store
        await store.close()


async def settled(store: Store) -> None:
    """What the store tells its server without waiting has been told."""
    await store.renew([], 30)


# ---- a reply is lost: the command is sent again, and done once ---------------------------------


async def test_a_commit_whose_reply_was_lost_stands_once(relay: tuple[Relay, RedisStore]) -> None:
    between, store = relay
    lease = await take(store)
    between.lose_reply_to(b"value 0")
    changes = Changes(turns=(turn(),), records=(record(0),), questions=(question("q", START),))
    assert await outcome(store.submit(lease, changes)) is True
    assert between.lost == 1
    await store.submit(lease, Changes(records=(record(1),)))
    assert keys_of(await store.records("t1")) == ["k0", "k1"]


async def test_a_commit_that_may_stand_ends_its_lease(relay: tuple[Relay, RedisStore]) -> None:
    """It stands, and nobody could tell its writer: what comes after it must not."""
    between, store = relay
    lease = await take(store)
    between.lose_reply_to(b"value 0", cut=True)
    first = store.submit(lease, Changes(records=(record(0),), turns=(turn(),)))
    second = store.submit(lease, Changes(row=ConversationRow(rev=1)))
    assert await outcome(first) is StoreFailed
    between.cut = False
    assert await outcome(second) is StoreFailed
    assert await outcome(store.submit(lease, Changes(records=(record(1),)))) is StoreFailed
    assert keys_of(await store.records("t1")) == ["k0"]
    await take(store)


@pytest.mark.parametrize("newer", [False, True])
async def test_a_release_whose_reply_was_lost(relay: tuple[Relay, RedisStore], newer: bool) -> None:
    between, store = relay
    lease = await take(store)
    if newer:
        await store.accept([said(1)])
    between.lose_reply_to(b"last words")
    line = AuditRow(at=START, who="a", what="last words", detail="")
    assert await store.release(lease, 0, Changes(audit=(line,))) is not newer
    assert between.lost == 1
    assert await store.audit(9) == (line,)
    assert await having_work(store, "me") == ((C1,) if newer else ())


async def test_an_accept_whose_reply_was_lost_is_fresh(relay: tuple[Relay, RedisStore]) -> None:
    between, store = relay
    between.lose_reply_to(b"hello")
    (one,) = await store.accept([said(1)])
    assert between.lost == 1
    assert one.fresh
    assert [row.seq for row in await store.arrivals(C1, 0)] == [one.seq]
    assert not (await store.accept([said(1)]))[0].fresh


async def test_an_acquire_whose_reply_was_lost_is_no_crash(relay: tuple[Relay, RedisStore]) -> None:
    between, store = relay
    await store.accept([said(1)])
    between.lose_reply_to(b"owner-x")
    opened = await store.acquire(C1, "owner-x", 30)
    assert between.lost == 1
    assert opened is not None
    assert (opened.crashed, opened.lease.token) == (False, 1)
    await store.submit(opened.lease, NOTHING)


async def test_a_compare_and_set_whose_reply_was_lost(relay: tuple[Relay, RedisStore]) -> None:
    between, store = relay
    await store.put("k", b"old")
    between.lose_reply_to(b"brand new")
    assert await store.put("k", b"brand new", expected=b"old")
    assert between.lost == 1


# ---- what the server may lose ------------------------------------------------------------------


async def test_scripts_that_the_server_forgot_are_loaded_again(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    lease = await take(store)
    await raw.script_flush()
    futures = [store.submit(lease, Changes(records=(record(n),))) for n in range(9)]
    assert [await outcome(future) for future in futures] == [True] * 9
    await raw.script_flush()
    assert len(await store.records("t1")) == 9
    assert await store.views(C1, 0, 5) == ()


async def test_a_killed_server_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    """As it is told to: one that writes each second acknowledges what a slow disk has not yet."""
    server = redis_server(tmp_path, "--appendfsync", "always")
    try:
        store = await RedisStore.open(server.url)
        lease = await take(store)
        for n in range(50):
            await store.submit(lease, Changes(records=(record(n),)))
        (one,) = await store.accept([said(1)])
        server.kill()
        server.start()
        await store.submit(lease, Changes(records=(record(50),), turns=(turn(),)))
        assert keys_of(await store.records("t1")) == [f"k{n}" for n in range(51)]
        assert not (await store.accept([said(1)]))[0].fresh
        assert [row.seq for row in await store.arrivals(C1, 0)] == [one.seq]
        await store.close()
    finally:
        server.end()


async def test_without_a_server_nothing_passes_until_a_new_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_wire, "PAUSES", (0.01, 0.02, 0.03))
    server = redis_server(tmp_path)
    try:
        store = await RedisStore.open(server.url)
        lease = await take(store)
        server.kill()
        first = store.submit(lease, Changes(records=(record(0),)))
        second = store.submit(lease, Changes(records=(record(1),)))
        assert [await outcome(first), await outcome(second)] == [StoreFailed] * 2
        for call in (store.accept([said(1)]), store.acquire(C1, "me", 30), store.work("me")):
            assert await outcome(call) is StoreFailed
        server.start()
        assert await outcome(store.submit(lease, Changes(records=(record(2),)))) is StoreFailed
        assert await outcome(store.release(lease, 0, NOTHING)) is StoreFailed
        again = await take(store)
        await store.submit(again, Changes(records=(record(0),)))
        assert keys_of(await store.records("t1")) == ["k0"]
        await store.close()
    finally:
        server.end()


async def test_a_lost_commit_is_noticed(redis_world: RedisWorld, raw: Redis) -> None:
    """A failover took the last commit away: the lease that wrote it writes no more."""
    store = redis_world.store
    lease = await take(store)
    await store.submit(lease, Changes(records=(record(0),)))
    await store.submit(lease, Changes(records=(record(1),)))
    await raw.hset(f"tk:{{{C1}}}", "number", 1)
    assert await outcome(store.submit(lease, Changes(records=(record(2),)))) is StoreFailed


async def test_a_token_given_twice_is_good_once(redis_world: RedisWorld, raw: Redis) -> None:
    """A failover took an acquire away, and another replica got the same token."""
    store = redis_world.store
    lease = await take(store)
    await raw.hset(f"tk:{{{C1}}}", "nonce", "another's")
    assert await outcome(store.submit(lease, NOTHING)) is Fenced
    assert await store.renew([lease], 30) == frozenset()


async def test_numbers_never_go_back(redis_world: RedisWorld, raw: Redis) -> None:
    store = redis_world.store
    assert isinstance(store, RedisStore)
    await raw.set("tk:seq", 10_000)
    before = await store.accept([said(1), said(2), said(3)])
    lease = await take(store)
    await store.submit(lease, Changes(letters=(letter("message", str(before[0].seq), said(1)),)))
    await raw.set("tk:seq", 0)
    (one,) = await store.accept([said(4)])
    assert one.seq > before[-1].seq
    assert store.losses == 1
    await raw.set("tk:seq", 0)
    assert await store.resubmit(str(before[0].seq)) == C1
    rows = await store.arrivals(C1, one.seq)
    assert [row.inbound for row in rows] == [said(1)]


async def test_a_turn_that_runs_again_keeps_its_journal(
    redis_world: RedisWorld, raw: Redis
) -> None:
    lease = await take(redis_world.store)
    ended = Changes(turns=(turn(status="done"),), records=(record(0),))
    await redis_world.store.submit(lease, ended)
    journal = f"tk:{{{C1}}}:r:t1"
    assert await raw.ttl(journal) == 30 * 86_400
    await redis_world.store.submit(lease, Changes(turns=(turn(),)))
    assert await raw.ttl(journal) == -1


async def test_a_server_that_may_evict_is_refused(tmp_path: Path) -> None:
    server = redis_server(tmp_path, "--maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreFailed, match="noeviction"):
            await RedisStore.open(server.url)
    finally:
        server.end()
    with pytest.raises(StoreFailed, match="cannot open"):
        await RedisStore.open(server.url)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--appendonly", "no"), "REDIS_WITHOUT_LOG"),
        (("--cluster-enabled", "yes", "--port", "PORT"), "Cluster"),
    ],
)
async def test_a_server_that_would_not_do_is_refused(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    port = str(free_port())
    server = redis_server(tmp_path, *(one.replace("PORT", port) for one in options))
    try:
        with pytest.raises(StoreFailed, match=why):
            await RedisStore.open(server.url)
        if "--appendonly" in options:
            store = await RedisStore.open(server.url, without_log=True)
            await store.close()
    finally:
        server.end()


POLICIES = ("lru", "lfu", "random")
LACKS = (
    *(("maxmemory-policy", f"allkeys-{how}", "noeviction") for how in POLICIES),
    *(("maxmemory-policy", f"volatile-{how}", "noeviction") for how in (*POLICIES, "ttl")),
    ("appendonly", "no", "yes"),
)


@pytest.mark.parametrize(("setting", "bad", "good"), LACKS)
async def test_a_server_that_is_changed_in_use_is_reported_once(
    redis_world: RedisWorld, raw: Redis, caplog: pytest.LogCaptureFixture, *,
    setting: str, bad: str, good: str,
) -> None:  # fmt: skip
    caplog.set_level("INFO", "turnkeeper.store")
    caplog.clear()
    try:
        await redis_world.store.sweep(START)
        await raw.config_set(setting, bad)
        for _ in range(3):
            await redis_world.store.sweep(START)
        (told,) = caplog.records
        assert told.getMessage() == "redis_unfit" and setting in told.__dict__["why"]
    finally:
        await raw.config_set(setting, good)
    for _ in range(3):
        await redis_world.store.sweep(START)
    assert [one.getMessage() for one in caplog.records] == ["redis_unfit", "redis_fit_again"]


@pytest.mark.parametrize("reply", [b"", b"x", b":", b"\r\n" * 9, b"maxmemory_policy"])
async def test_a_server_that_hides_its_state_is_swept(server: RedisServer, reply: bytes) -> None:
    def hide(words: Words, told: bytes, before: list[bytes]) -> bytes:
        return b"$%d\r\n%b\r\n" % (len(reply), reply) if words[:2] == HIDDEN else told

    async with RedisProxy(server.socket) as proxy:
        store = await RedisStore.open(proxy.url)
        proxy.mix = hide
        assert await store.sweep(START) == 0
        await store.close()


async def test_a_server_that_syncs_each_second_is_told_of(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = await RedisStore.open(server.url)
    await store.close()
    assert [one.message for one in caplog.records] == ["redis_syncs_late"]


async def test_a_full_server_refuses_and_nothing_is_half_written(tmp_path: Path) -> None:
    server = redis_server(tmp_path)
    try:
        store = await RedisStore.open(server.url)
        lease = await take(store)
        async with Redis.from_url(server.url) as client:
            await client.config_set("maxmemory", 1)
            changes = Changes(records=(record(0),), turns=(turn(),))
            assert await outcome(store.submit(lease, changes)) is StoreFailed
            assert await outcome(store.accept([said(1)])) is StoreFailed
            assert await store.renew([lease], 30) == {C1}
            assert await store.records("t1") == ()
            await client.config_set("maxmemory", 0)
        again = await take(store)
        await store.submit(again, changes)
        assert (await store.accept([said(1)]))[0].fresh
        await store.close()
    finally:
        server.end()


# ---- indexes outside of the conversation's slot ------------------------------------------------


async def test_the_index_of_work_is_empty_when_all_is_quiet(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    for n in range(5):
        (one,) = await store.accept([said(n, f"c{n}")])
        lease = await take(store, f"c{n}")
        assert await store.release(lease, one.seq, Changes(done=(one.seq,)))
    await settled(store)
    assert await raw.zcard("tk:active") == 0


async def test_an_entry_made_anew_is_not_removed(redis_world: RedisWorld, raw: Redis) -> None:
    await raw.zadd("tk:active", {C1: 5})
    sha = run(MOVE, "tk:active")[1]
    assert await raw.evalsha(str(sha), 1, "tk:active", C1, 4, "") == 0
    assert await raw.zscore("tk:active", C1) == 5
    assert await raw.evalsha(str(sha), 1, "tk:active", C1, 5, "") == 1
    assert await raw.zcard("tk:active") == 0


async def test_an_accept_that_ended_half_way_leaves_nothing(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    await raw.zadd("tk:active", {C1: 0})
    assert await having_work(store, "me") == ()
    await settled(store)
    assert await raw.zcard("tk:active") == 0
    await store.accept([said(1)])
    assert await having_work(store, "me") == (C1,)


async def test_a_scan_between_the_steps_of_an_accept_strands_nothing(
    redis_world: RedisWorld,
) -> None:
    """Scans that clean up at any moment, against accepts: nobody's work is unlisted."""
    store, other = redis_world.store, await redis_world.replica()

    async def scan() -> None:
        for _ in range(150):
            await having_work(other, "me")

    async def serve() -> None:
        for n in range(60):
            (one,) = await store.accept([said(n)])
            assert C1 in await having_work(store, "me")
            lease = await take(store)
            assert await store.release(lease, one.seq, Changes(done=(one.seq,)))

    await asyncio.gather(scan(), serve())


async def test_audit_lines_of_a_writer_that_ended_are_not_lost(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    lease = await take(store)
    line = AuditRow(at=START, who="a", what="b", detail="c")
    await store.submit(lease, Changes(audit=(line,)))
    assert await store.audit(1) == (line,)
    (member,) = await raw.zrange("tk:audit", 0, -1)
    assert await raw.exists(f"tk:{{{C1}}}:audit") == 0
    await raw.delete("tk:audit")
    _, name, body = str(member).split(" ", 2)
    await raw.hset(f"tk:{{{C1}}}:audit", name, f"{START} {body}")
    again = await take(store)
    await store.submit(again, NOTHING)
    assert await store.audit(9) == (line,)


async def test_a_closed_question_leaves_the_index(redis_world: RedisWorld, raw: Redis) -> None:
    store = redis_world.store
    lease = await take(store)
    await store.submit(lease, Changes(questions=(question("q", START),)))
    await raw.zadd("tk:due", {f"{C1} ghost": START - 5})
    assert [row.id for _, row in await store.due(START, 1)] == ["q"]
    assert await raw.zcard("tk:due") == 2
    redis_world.clock.time += 100_000
    await store.submit(lease, Changes(questions=(question("q", START, "expired"),)))
    assert await store.next_due() is None
    assert await raw.zcard("tk:due") == 0


async def test_every_key_of_a_conversation_has_its_tag(redis_world: RedisWorld, raw: Redis) -> None:
    store = redis_world.store
    await store.accept([said(1)])
    lease = await take(store)
    await store.submit(lease, Changes(turns=(turn(),), records=(record(0),)))
    await store.put("k", b"v")
    keys = {key async for key in raw.scan_iter()}
    named = {"tk:version", "tk:seq", "tk:active", "tk:conversations", "tk:of:t1", "tk:{directory}"}
    named |= {
        "tk:lineage",
        "tk:lists:filled",
        "tk:{directory}:names",
        "tk:l:a:test:bot",
        f"tk:l:c:{C1}",
    }
    rest = {key for key in keys - named if not key.startswith("tk:{directory}:once:")}
    assert named <= keys
    assert all(key.startswith(f"tk:{{{C1}}}") for key in rest)
    assert 86_000 < await raw.ttl(f"tk:{{{C1}}}:e:test:bot:e1") <= 86_400


# ---- hints -------------------------------------------------------------------------------------


async def test_hints_name_conversations_and_come_again_after_a_cut(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    assert isinstance(store, RedisStore)
    heard: asyncio.Queue[str] = asyncio.Queue()
    # Not the server's count of subscribers: a client that was cut subscribes once and gives up.
    connected = asyncio.Semaphore(0)
    listening = asyncio.create_task(store.hints(heard.put_nowait, connected.release))
    async with asyncio.timeout(PATIENCE):
        await connected.acquire()
        other = await redis_world.replica()
        await other.accept([said(1)])
        assert await heard.get() == C1
        await raw.client_kill_filter(_type="pubsub")
        await connected.acquire()
        await other.accept([said(2, "c2")])
        assert await heard.get() == place("c2").id
    listening.cancel()
    assert await outcome_of(listening) is asyncio.CancelledError


async def outcome_of(task: asyncio.Task[None]) -> type[BaseException] | None:
    try:
        await task
    except asyncio.CancelledError:
        return asyncio.CancelledError
    return None


async def test_leases_run_out_by_the_servers_clock(redis_world: RedisWorld, raw: Redis) -> None:
    """Whatever the clocks of two replicas say."""
    one, other = redis_world.store, await redis_world.replica()
    redis_world.clock.ahead = 3_600.0
    await take(one, owner="a", ttl=30)
    seconds, _ = await raw.time()
    expires = float(await raw.hget(f"tk:{{{C1}}}", "expires") or 0)
    assert 29 < expires - seconds <= 31
    redis_world.clock.ahead = -3_600.0
    assert await other.acquire(C1, "b", 30) is None
    redis_world.clock.time += 31
    redis_world.clock.ahead = -7_200.0
    assert await other.acquire(C1, "b", 30) is not None


@pytest.mark.parametrize("back", [10.0, 3_600.0, 90 * 86_400.0])
async def test_a_server_whose_clock_was_set_back_keeps_no_lease(
    redis_world: RedisWorld, back: float
) -> None:
    """Nor does one that was promoted, and goes by another clock."""
    one, other = redis_world.store, await redis_world.replica()
    await one.accept([said(1)])
    ended, lives = await take(one, owner="a"), await take(one, "c2", owner="a")
    redis_world.clock.time -= back
    for _ in range(3):
        assert await having_work(other, "b") == ()
        redis_world.clock.time += 9
        assert await one.renew([lives], 30) == {lives.conversation}
    redis_world.clock.time += 15
    assert await having_work(other, "b") == (ended.conversation,)
    assert await other.acquire(ended.conversation, "b", 30) is not None


async def test_the_stores_clock_is_the_servers(redis_world: RedisWorld, raw: Redis) -> None:
    redis_world.clock.ahead = 3_600.0
    seconds, _ = await raw.time()
    assert seconds <= await redis_world.store.now() <= seconds + 2


async def test_what_an_index_names_and_is_gone_stops_no_search(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    await store.accept([said(1)])
    lease = await take(store)
    views, rows = tuple(view(f"v{n}v", rev=n) for n in (1, 2)), (spoken(1), spoken(2))
    await store.submit(lease, Changes(views=views, transcript=rows))
    for kind in ("views", "transcript"):
        fields = await raw.hgetall(f"tk:{{{C1}}}:{kind}")
        (gone,) = (field for field, body in fields.items() if "v2v" in body or "line 2" in body)
        await raw.hdel(f"tk:{{{C1}}}:{kind}", gone)
    for words, count in (("v1v", 1), ("v2v", 0)):
        assert len(await store.recent(account_scope(place()), 5, words)) == count
    assert await store.find_holding([C1], frozenset({"line"}), 5) == ((C1, (spoken(1),)),)


async def test_a_long_search_survives_that_its_connection_was_ended(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    await store.accept([said(1)])
    lease = await take(store)
    await store.submit(lease, Changes(views=tuple(view(f"v{n}v", rev=n) for n in range(1, 41))))
    for word, count in (("v1v", 1), ("v0v", 0)):
        assert len(await store.recent(account_scope(place()), 5, word)) == count
        await raw.client_kill_filter(_type="normal", skipme=True)


async def test_what_is_given_back_is_told_to_all_replicas(
    redis_world: RedisWorld, raw: Redis
) -> None:
    lease = await take(redis_world.store)
    async with raw.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe("tk:hints")
        await channel.get_message(timeout=5.0)
        await redis_world.store.give_back(lease)
        message = await channel.get_message(ignore_subscribe_messages=True, timeout=5.0)
    assert message is not None and message["data"] == C1


@pytest.mark.parametrize("lost", [1, 5, 40])
async def test_a_failover_that_lost_acquires_costs_one_more(
    redis_world: RedisWorld, raw: Redis, lost: int
) -> None:
    """The promoted copy has a lower token, and the lease that is taken there is good."""
    store = redis_world.store
    assert isinstance(store, RedisStore)
    for _ in range(lost + 1):
        old = await take(store)
    await raw.hset(f"tk:{{{C1}}}", mapping={"token": 1, "nonce": "earlier"})
    assert await store.renew([old], 30) == frozenset()
    assert store.losses == 1
    new = await take(store)
    assert await outcome(store.submit(new, Changes(records=(record(0),)))) is True
    assert await store.renew([new], 30) == {C1}
    assert await outcome(store.submit(old, Changes(records=(record(1),)))) is Fenced


async def test_a_lease_with_the_token_of_a_lost_one_is_another(
    redis_world: RedisWorld, raw: Redis
) -> None:
    store = redis_world.store
    old = await take(store)
    await raw.delete(f"tk:{{{C1}}}")
    new = await take(store)
    assert new.token == old.token
    assert await outcome(store.submit(old, Changes(records=(record(0),)))) is Fenced
    assert await outcome(store.submit(new, Changes(records=(record(0),)))) is True


async def test_commits_of_many_conversations_share_round_trips(redis_world: RedisWorld) -> None:
    store = redis_world.store
    assert isinstance(store, RedisStore)
    leases = [await take(store, f"c{n}") for n in range(100)]
    before = store.trips
    await asyncio.wait([store.submit(lease, NOTHING) for lease in leases])
    assert store.trips - before <= 2


# ---- the wire ------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["redis://a", "rediss://a", "unix:///a"])
def test_hiredis_writes_commands_as_the_client_does(url: str) -> None:
    connection = redis_wire.connect(url).connection_pool.make_connection()
    assert type(connection).__module__ == redis_wire.__name__
    for command in (
        ("SCRIPT LOAD", "return 1"),
        (b"HMGET", b"k\x00\xff", *(b"id%d" % n for n in range(5_000))),
        ("SET", "schlüssel", b"x" * 200_000, "PX", 10, 0, -1, 1.5, 1e-7, 0.1 + 0.2, float("inf")),
    ):
        own = b"".join(Connection.pack_command(connection, *command))
        assert b"".join(connection.pack_command(*command)) == own


@pytest.mark.parametrize("forbidden", one_of(*(name for name in COMMANDS if name != "TIME")))
async def test_a_commit_that_may_not_do_all_does_nothing(
    redis_world: RedisWorld, raw: Redis, forbidden: str
) -> None:
    """The user of the store loses one right: no message is done whose answer is not there."""

    async def read_all() -> dict[str, str]:
        async with Redis.from_url(redis_world.server.url) as client:
            return {
                repr(name): repr(await client.dump(name))
                async for name in client.scan_iter("tk:{test*")
            }

    await raw.execute_command("ACL", "SETUSER", "tk", "on", ">pw", "~tk:*", "&tk:*", "+@all")
    store = await RedisStore.open(f"unix://tk:pw@{redis_world.server.socket}")
    try:
        await store.accept([said(1)])
        lease = await take(store)
        await store.submit(lease, Changes(turns=(turn(),), records=(record(0),)))
        before = await read_all()
        await raw.execute_command("ACL", "SETUSER", "tk", f"-{forbidden}")
        all_of_it = Changes(
            turns=(turn("t1", "done"),), records=(record(1),), done=(1,), unheard=("m9",),
            views=(view("a", 1, sent=False), view("b", 2)), transcript=(spoken(0),),
            questions=(question("q1"), question("q2", status="answered")), row=ConversationRow(),
            letters=(letter("turn", "t1"),), audit=(AuditRow(at=START, who="", what="", detail=""),),
        )  # fmt: skip
        for write in (store.submit(lease, all_of_it), store.accept([said(2)])):
            if await outcome(write) is StoreFailed:
                assert await read_all() == before
            before = await read_all()
    finally:
        await raw.execute_command("ACL", "SETUSER", "tk", f"+{forbidden}")
        await store.close()
