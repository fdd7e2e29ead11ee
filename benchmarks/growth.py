"""What a gateway costs with 1,000 and with 100,000 conversations in its store.

    .venv/bin/python -m benchmarks.growth [few] [many] [inbox rows]

SQLite, then Redis where redis-server is there. Conversations of two plain turns each are copied into
the store in bulk, row for row as the gateway wrote those of the first one; the messages that are
measured go through the real host and store, with a scripted agent, for each size in a process of its
own. Bytes written are read from /proc, of a whole gateway process and messages that are sent alone.
Prints one line of JSON for each store and size and the rows of a table; ends with 1 if a goal is
missed.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent_core.models.catalog import Price
from agent_core.models.port import ModelReply, ModelRequest, Usage
from agent_core.orchestration.settings import Limits
from benchmarks.quiet import Quiet, room
from gateway.ports import person_scope
from gateway.services.ledger import Ledger, Payer
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.rows import Changes, OutboxRow
from gateway.store.sqlite import SqliteStore
from gateway.views import ReplyView as ReplyView
from tests.contracts.redis_server import RedisServer
from tests.fakes.model_server import Say
from tests.fakes.world import ANN
from tests.gateway.process import PERSON, peopled

ALONE, BURST, CALLS, PEOPLE, VIEWS, LETTERS = 60, 1_000, 200, 2_000, 20_000, 480_000
GOALS = {"list_ms": 20.0, "press_ms": 50.0, "search_ms": 50.0, "resume_ms": 50.0,
         "long_search_ms": 50.0, "budgets_s": 0.2, "sweep_piece_ms": 10.0, "start_ms": 60.0,
         "start_mb": 2.0, "full_kib": 200.0}  # fmt: skip


def copy_sqlite(path: Path, count: int) -> None:
    """`count` conversations as the first one, which had its turns."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    tables = ("conversations", "lists", "inbox", "turns", "records", "outbox", "transcript")
    rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    turns = [row[0] for row in rows["turns"]]
    (last,) = connection.execute("SELECT max(seq) FROM inbox").fetchone()
    connection.execute("BEGIN")
    for n in range(1, count):
        renamed = [(room(0).channel, f"room-{n}x"), *((t, f"{n:06d}{t[6:]}") for t in turns)]
        for table, known in rows.items():
            for row in known:
                values = [_rename(value, renamed) for value in row]
                if table == "inbox":
                    values[0] += n * last
                    values[2:4] = [f"{value}-{n}" for value in values[2:4]]
                if table == "lists":
                    values[1] -= n
                if table == "conversations":
                    values[-2] -= n
                marks = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO {table} VALUES({marks})", values)
    connection.execute("COMMIT")
    connection.close()


def _rename(value: Any, pairs: list[tuple[str, str]]) -> Any:
    for old, new in pairs:
        if isinstance(value, bytes):
            value = value.replace(old.encode(), new.encode())
        elif isinstance(value, str):
            value = value.replace(old, new)
    return value


async def copy_redis(url: str, count: int) -> None:
    """As `copy_sqlite`: keys of the conversation, and its entries in what names all."""
    async with Redis.from_url(url) as client:
        own: list[Any] = [key async for key in client.scan_iter(f"tk:{{{room(0).id}}}*")]
        names: Any = await client.hkeys(f"tk:{{{room(0).id}}}:turns")
        turns = [one.decode() for one in names]
        own += [f"tk:of:{turn}".encode() for turn in turns]
        types: dict[Any, Any] = {key: await client.type(key) for key in own}
        values = {key: await _value(client, key, types[key]) for key in own}
        named = [(key, await client.zscore(key, room(0).id)) for key in await _lists(client)]
        pipe = client.pipeline(transaction=False)
        for n in range(1, count):
            pairs = [(room(0).channel, f"room-{n}x"), *((t, f"{n:06d}{t[6:]}") for t in turns)]
            for key, value in values.items():
                _put(pipe, str(_rename(key.decode(), pairs)), types[key], value, pairs)
            for key, score in named:
                pipe.zadd(key, {str(_rename(room(0).id, pairs)): float(score or 0) - n})
            if n % 200 == 0:
                await pipe.execute()
        await pipe.execute()
        await settle(client)


async def _lists(client: Redis) -> list[bytes]:
    return [b"tk:conversations", *[key async for key in client.scan_iter("tk:l:*")]]


async def _value(client: Redis, key: bytes, kind: bytes) -> Any:
    match kind:
        case b"hash":
            return await client.hgetall(key)
        case b"zset":
            return await client.zrange(key, 0, -1, withscores=True)
        case b"set":
            return await client.smembers(key)
        case _:
            return await client.get(key)


def _put(pipe: Pipeline, key: str, kind: bytes, value: Any, pairs: list[tuple[str, str]]) -> None:
    match kind:
        case b"hash":
            pipe.hset(key, mapping={_rename(k, pairs): _rename(v, pairs) for k, v in value.items()})
        case b"zset":
            pipe.zadd(key, {_rename(member, pairs): score for member, score in value})
        case b"set":
            pipe.sadd(key, *(_rename(member, pairs) for member in value))
        case _:
            pipe.set(key, _rename(value, pairs))


async def settle(client: Redis) -> None:
    """Until Redis has rewritten its log, which filling made it do."""
    while (await client.info("persistence"))["aof_rewrite_in_progress"]:
        await asyncio.sleep(0.2)


async def timed(call: Callable[[], Awaitable[object]], times: int = 5) -> float:
    """Milliseconds, the median of some calls after the first."""
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1000)
    return round(sorted(took[1:])[times // 2], 2)


def memory() -> float:
    """Resident MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def written(process: int | str = "self") -> int:
    """Bytes that a process gave to its disk."""
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("write_bytes")))


class Growing(Quiet):
    """A gateway over either store."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self.url = url

    async def open_store(self) -> Store:
        if self.url:
            return await RedisStore.open(self.url)
        return await SqliteStore.open(self.folder / "store.db")

    async def ask(self, n: int, event: str) -> float:
        """Milliseconds until a message is answered and its conversation quiet."""
        answered = asyncio.Event()
        self.adapter.on_reply = lambda where: answered.set()
        began = time.perf_counter()
        await self.say((n,), "hello", event)
        await answered.wait()
        took = (time.perf_counter() - began) * 1000
        await self.quiet()
        return took

    async def burst(self, count: int, first: int) -> float:
        """Messages a second, each of another conversation."""
        left, done = count, asyncio.Event()

        def on_reply(where: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()

        self.adapter.on_reply = on_reply
        began = time.perf_counter()
        await self.say(range(first, first + count), "hello", "burst")
        await done.wait()
        await self.quiet()
        return count / (time.perf_counter() - began)


async def spend_at_once(store: Store) -> float:
    """Seconds for CALLS model calls at once, of a day on which PEOPLE paid before."""
    ledger = Ledger(store, Limits(day=1e6))
    request, price = ModelRequest(model="m", system="", messages=()), Price(input=1.0, output=1.0)

    async def call() -> ModelReply:
        return ModelReply(parts=(), model="m", provider="p", usage=Usage(cost=0.001))

    def pay(n: int) -> Awaitable[object]:
        payer = Payer(turn=f"t{n}", person=f"p{n}", spent=0.0)
        return ledger.pay(payer, request, price, call)

    for start in range(0, PEOPLE, 100):
        async with asyncio.TaskGroup() as group:
            for n in range(start, start + 100):
                group.create_task(_await(pay(n)))
    before = (await ledger.today())["all"]
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for n in range(CALLS):
            group.create_task(_await(pay(n)))
    took = time.perf_counter() - began
    assert abs((await ledger.today())["all"] - before - CALLS * 0.001) < 1e-6, "kept exactly"
    return took


async def _await(work: Awaitable[object]) -> None:
    await work


async def lengthen(store: Store, n: int, views: int) -> None:
    """Many answers in one conversation."""
    opened = await store.acquire(room(n).id, "bench", 600.0)
    assert opened is not None
    text = "what was answered here, some words long " * 10
    for start in range(0, views, 500):
        rows = tuple(
            OutboxRow(turn=f"long{k}", name="reply", position=1_000 + k, version=1, sent=1,
                      view=ReplyView(text=f"{text}{k}"), at=1.0, final=True, rev=1_000 + k)
            for k in range(start, start + 500)
        )  # fmt: skip
        last = store.submit(opened.lease, Changes(views=rows))
    await last
    await store.release(opened.lease, opened.last, Changes())


async def sweep_pieces(path: Path, rows: int) -> float:
    """The longest time in milliseconds that a write waits while `rows` old rows are swept."""
    store = await SqliteStore.open(path)
    await store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    body = b'{"kind":"message","text":"' + b"x" * 300 + b'"}'
    connection.executemany(
        "INSERT INTO inbox(conversation, event, message, state, at, body) VALUES(?, ?, ?, 1, 1, ?)",
        ((room(n % 1000).id, f"test:a:e{n}", f"test:a::c:m{n}", body) for n in range(rows)),
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    store = await SqliteStore.open(path)
    pieces: list[float] = []
    plain = store._sweep.work

    def measured(c: sqlite3.Connection, now: float, journals: float | None) -> tuple[int, bool]:
        began = time.perf_counter()
        try:
            return plain(c, now, journals)
        finally:
            pieces.append((time.perf_counter() - began) * 1000)

    store._sweep.work = measured  # type: ignore[assignment,method-assign]
    for _ in range(10):
        await store.sweep(time.time())
    await store.close()
    pieces.sort()
    return round(pieces[int(len(pieces) * 0.99)], 2)


async def measure(folder: Path, url: str, count: int) -> dict[str, float]:
    """All figures of a store that holds `count` conversations."""
    growing = Growing(folder, url)
    before = memory()
    began = time.perf_counter()
    store = await growing.open_store()
    found = {"start_ms": round((time.perf_counter() - began) * 1000, 1)}
    found["start_mb"] = round(memory() - before, 1)
    await store.close()
    async with growing.living():
        store = growing.store
        await growing.ask(0, "warm")
        alone = sorted([await growing.ask(0, f"alone{n}") for n in range(ALONE)])
        found["alone_ms"] = round(alone[ALONE // 2], 2)
        found["burst_per_s"] = round(await growing.burst(BURST, 10**7))
        own = person_scope(ANN.key)
        found["list_ms"] = await timed(lambda: store.recent(own, 20))
        found["search_ms"] = await timed(lambda: store.recent(own, 20, "no-such-word"))
        found["press_ms"] = await timed(lambda: store.latest(room(0).id, 200))
        places = [one.conversation for one in await store.recent(own, 500)]
        words = frozenset({"no-such-word"})
        found["resume_ms"] = await timed(lambda: store.find_holding(places, words, 2_000))
        found["budgets_s"] = round(await spend_at_once(store), 3)
        await lengthen(store, 0, VIEWS)
        await growing.ask(0, "now it is the newest")
        found["long_press_ms"] = await timed(lambda: store.latest(room(0).id, 200))
        found["long_search_ms"] = await timed(lambda: store.recent(own, 20, "no-such-word"))
    return found


async def write(folder: Path, letters: int) -> dict[str, float]:
    """KiB written by a gateway process for a message sent alone: with no history, and with so many
    letters of it."""
    async with peopled(folder) as world:
        run = await world.start(
            TELEGRAM_ALLOWED_USERS="*", LOG_LEVEL="warning", CONTEXT_COMPRESSION_ENABLED="off"
        )

        async def ask(n: int, text: str) -> None:
            world.model.steps.append(Say(f"answer {n}."))
            world.telegram.say(PERSON, text)
            await world.telegram.wait_text(PERSON, f"answer {n}.", 30.0)
            await asyncio.sleep(0.1)  # its last commit comes after the answer is shown

        async def each(first: int) -> float:
            before = written(run.pid)
            for n in range(first, first + 20):
                await ask(n, "hello")
            return round((written(run.pid) - before) / 20 / 1024, 1)

        await ask(1, "hello")
        found = {"empty_kib": await each(100)}
        for n in range(letters // 30_000):
            await ask(200 + n, "x" * 30_000)
        found["full_kib"] = await each(300)
    return found


async def fill(folder: Path, url: str, count: int) -> None:
    """A store with `count` conversations of two plain turns."""
    growing = Growing(folder, url)
    async with growing.living():
        await growing.ask(0, "first")
        await growing.ask(0, "second")
    if url:
        await copy_redis(url, count)
    else:
        copy_sqlite(folder / "store.db", count)


def in_process(what: str, folder: Path, url: str, count: int) -> dict[str, float]:
    """`what` in a process of its own: what it measures is of one store alone."""
    command = (sys.executable, "-m", "benchmarks.growth", f"--{what}", str(folder), url, str(count))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    return dict(json.loads(lines[-1])) if lines else {}


def compare(few: dict[str, float], many: dict[str, float]) -> list[str]:
    """The goals that are missed."""
    missed = [name for name, goal in GOALS.items() if many.get(name, 0.0) > goal]
    if many["alone_ms"] > 1.3 * few["alone_ms"]:
        missed.append("alone_ms")
    if many.get("full_kib", 0.0) > 1.2 * many.get("empty_kib", 0.0):
        missed.append("full_kib")
    if many["burst_per_s"] < 0.9 * few["burst_per_s"]:
        missed.append("burst_per_s")
    return missed


@contextlib.contextmanager
def redis(folder: Path):  # type: ignore[no-untyped-def]
    """The address of a server of its own, "" for the file."""
    folder.mkdir()
    server = RedisServer(folder)
    try:
        yield server.url
    finally:
        server.end()


def run(few: int, many: int, rows: int) -> int:
    """Measure both stores at both sizes; 1 if a goal is missed."""
    wrong = 0
    stores = ["SQLite", *(["Redis"] if shutil.which("redis-server") else [])]
    if len(stores) == 1:
        print("Redis is left out: there is no redis-server here.")
    for name in stores:
        found = []
        for count in (few, many):
            with tempfile.TemporaryDirectory() as top, contextlib.ExitStack() as stack:
                folder = Path(top)
                server = redis(folder / "redis") if name == "Redis" else None
                url = stack.enter_context(server) if server is not None else ""
                in_process("fill", folder, url, count)
                one = in_process("measure", folder, url, count)
            found.append(one)
            print(json.dumps({"store": name, "conversations": count} | one), flush=True)
        if name == "SQLite":
            with tempfile.TemporaryDirectory() as top:
                piece = in_process("sweep", Path(top), "", rows)
                wrote = in_process("write", Path(top), "", LETTERS)
            found[1] |= piece | wrote
            print(json.dumps({"store": name, "inbox_rows": rows} | piece | wrote), flush=True)
        for figure in found[1]:
            print(f"| {name}: {figure} | {found[0].get(figure, '')} | {found[1][figure]} |")
        missed = compare(*found)
        print(f"{name}: missed {', '.join(missed) or 'nothing'}", flush=True)
        wrong += len(missed)
    return int(wrong > 0)


def main(arguments: list[str]) -> int:
    """The whole benchmark, or one part of it in this process."""
    if not arguments or not arguments[0].startswith("--"):
        sizes = [*map(int, arguments), *(1_000, 100_000, 1_000_000)[len(arguments) :]]
        return run(*sizes)
    what, folder, url, count = arguments
    match what:
        case "--fill":
            uvloop.run(fill(Path(folder), url, int(count)))
        case "--write":
            print(json.dumps(uvloop.run(write(Path(folder), int(count)))))
        case "--measure":
            print(json.dumps(uvloop.run(measure(Path(folder), url, int(count)))))
        case _:
            piece = uvloop.run(sweep_pieces(Path(folder) / "sweep.db", int(count)))
            print(json.dumps({"sweep_piece_ms": piece}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
