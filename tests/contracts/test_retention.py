"""What is past its period leaves nothing behind, in both stores, wherever a removal was cut off;
and what lives stays as it is."""

import dataclasses
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol, cast

import pytest
from msgspec import json
from msgspec.structs import replace
from redis.asyncio import Redis

from agent_core.sandboxes.folders import will_be_emptied
from gateway.declaration import SettingsError
from gateway.messages import Conversation, digest
from gateway.ops.backup import unpack_backup
from gateway.ops.stored_contents import make_contents, make_removal, make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.services.audit_trail import AuditTrail
from gateway.services.retention import Retention
from gateway.services.workspaces import Workspaces
from gateway.settings import Settings
from gateway.store.audit_chain import AuditSigner
from gateway.store.port import Directory, Store
from gateway.store.redis import RedisStore
from gateway.store.removal.periods import BEFORE, CREATED, Periods, RetentionSettings
from gateway.store.removal.port import Mark, Position, Removal
from gateway.store.rows import AuditRow, Changes, ConversationRow, Letter, LetterKind
from gateway.store.sqlite import SqliteStore
from tests.contracts.conftest import RedisWorld, SqliteWorld
from tests.contracts.store_values import (
    DAY,
    SENDER,
    START,
    ManualClock,
    letter,
    place,
    question,
    record,
    said,
    spoken,
    turn,
    view,
)

SIGNER = AuditSigner(("a key of the tests",))
PERIODS = Periods(conversations=90 * DAY, audit=365 * DAY)
ROWS = 230
"""Of each kind in the long conversation: more than a piece takes."""
COUNTERS = ("tk:seq", "sqlite_sequence", ":once:")
"""What stays, and what Redis itself drops after some minutes."""
LIVING = ("parked", "waits", "asked", "held", "young", "job")


class RetentionWorld(Protocol):
    """A store whose whole content can be looked at."""

    clock: ManualClock
    store: Store

    async def age(self, days: float) -> None: ...


async def dump(world: RetentionWorld) -> set[str]:
    """Every row, field and member of the store as text."""
    if isinstance(world, RedisWorld):
        async with Redis.from_url(world.server.url, protocol=2) as client:
            return {line async for line in read_redis(client)}
    assert isinstance(world, SqliteWorld)
    connection = sqlite3.connect(world._path)
    try:
        return set(read_sqlite(connection))
    finally:
        connection.close()


def read_sqlite(connection: sqlite3.Connection) -> Iterator[str]:
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for (table,) in connection.execute(tables).fetchall():
        yield from (f"{table} {row!r}" for row in connection.execute(f"SELECT * FROM {table}"))


async def read_redis(client: Redis) -> AsyncIterator[str]:
    async for name in client.scan_iter():
        match await client.type(name):
            case b"hash":
                for field, value in (await client.hgetall(name)).items():
                    if field != b"expires":  # the manual clock moves it
                        yield f"{name!r} {field!r} {value!r}"
            case b"zset":
                for member, score in await client.zrange(name, 0, -1, withscores=True):
                    yield f"{name!r} {member!r} {score!r}"
            case b"set":
                for member in await client.smembers(name):
                    yield f"{name!r} {member!r}"
            case _:
                yield f"{name!r} {await client.get(name)!r}"


def where(name: str) -> Conversation:
    return replace(place(name), private=name != "crowd")


async def live(store: Store, name: str, rows: int = 2) -> None:
    """A conversation with rows of all kinds, at rest."""
    own = where(name)
    (kept,) = await store.accept([replace(said(f"{name}0", name), conversation=own)])
    opened = await store.acquire(own.id, "me", 30)
    assert opened is not None
    turns = tuple(turn(f"{name}-t{n}", "done") for n in range(rows))
    gone = replace(letter("message", str(kept.seq), {"text": name}), conversation=own.id)
    asked = (
        replace(question(f"{name}-q{n}", START, "answered"), turn=turns[0].id) for n in range(rows)
    )
    line = AuditRow(at=START, who=SENDER.key, what="allowed", detail=name, where=own.id)
    lines, end = SIGNER.link(None, (line, replace(line, at=START + 1)))
    rest = Changes(
        turns=turns,
        records=tuple(record(n, turns[0].id) for n in range(rows)),
        views=tuple(replace(view(f"v{n}", n + 1), turn=turns[n % rows].id) for n in range(rows)),
        questions=tuple(asked),
        transcript=tuple(spoken(n) for n in range(rows)),
        letters=(gone,),
        row=ConversationRow(end=rows, title=name, audited=end),
        audit=lines,
    )  # fmt: skip
    assert await store.release(opened.lease, kept.seq, rest)


async def busy(store: Store) -> None:
    """Conversations of the same age in which something is left."""
    for name in LIVING:
        await live(store, name)
    changes = {
        "parked": Changes(turns=(turn("p", "parked"),)),
        "waits": Changes(),
        "asked": Changes(questions=(question("open", START + 1000 * DAY),)),
    }
    await store.accept([replace(said("w", "waits"), conversation=where("waits"))])
    for name, change in changes.items():
        opened = await store.acquire(where(name).id, "me", 30)
        assert opened is not None
        await store.release(opened.lease, opened.last, change)
    assert await store.acquire(where("held").id, "me", 1000 * DAY) is not None


def retained(world: RetentionWorld, tmp_path: Path, removal: Removal | None = None) -> Retention:
    async def keeps() -> frozenset[str]:
        return frozenset({where("job").id})

    found = removal or make_removal(world.store)
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    return Retention(found, PERIODS, keeps, Workspaces(tmp_path / "workspaces"), trail)


async def until_done(world: RetentionWorld, retention: Retention) -> None:
    while await world.store.sweep(world.clock.time):
        continue
    await retention.sweep(world.clock.time)


async def test_nothing_is_left_of_what_is_past_its_time_and_all_of_what_lives(
    world: RetentionWorld, tmp_path: Path
) -> None:
    await busy(world.store)
    await live(world.store, "gone", ROWS)
    await live(world.store, "crowd")
    await world.age(100)
    await world.store.accept([replace(said("y", "young"), conversation=where("young"))])
    while await world.store.sweep(world.clock.time):
        continue
    before = await dump(world)
    retention = retained(world, tmp_path)
    assert await retention.count(world.clock.time) == 6, "but for the young one and the job's"
    assert await retention.sweep(world.clock.time) == 2
    after = await dump(world)
    notes = {line for line in after - before if "audit-end:" in line or ":once:" in line}
    assert after - notes <= before and notes
    for line in before - after:
        assert not [name for name in LIVING if f"{name}-" in line or where(name).id in line]
    assert not [line for line in after if is_left(line) and "allowed" not in line]
    await world.age(300)
    await until_done(world, retained(world, tmp_path))
    assert not list(filter(is_left, await dump(world)))


async def test_what_a_job_installed_stays(world: RetentionWorld, tmp_path: Path) -> None:
    for name in ("job", "other"):
        state = tmp_path / "workspaces" / digest(where(name).id.encode()) / ".turnkeeper/sandbox"
        (state / "home").mkdir(parents=True)
        (state / "home" / "installed").touch()
        os.utime(state, (0, 0))
    await retained(world, tmp_path).tidy(world.store, world.clock.time)
    emptied = {
        name: will_be_emptied(tmp_path / "workspaces" / digest(where(name).id.encode()))
        for name in ("job", "other")
    }
    assert emptied == {"job": False, "other": True}


async def test_a_message_after_the_last_period_leaves_no_row(
    world: RetentionWorld, tmp_path: Path
) -> None:
    """All there is was there before: the store is as it was made."""
    empty = {line.split()[0] for line in await dump(world)}
    await live(world.store, "gone", ROWS)
    await world.age(400)
    await until_done(world, retained(world, tmp_path))
    left = {line for line in await dump(world) if line.split()[0] not in empty}
    assert not {line for line in left if not any(name in line for name in COUNTERS)}


def is_left(line: str) -> bool:
    return "gone" in line or "crowd" in line


class Cut(Exception):
    """The process ended here."""


class CutOff:
    """A removal that ends with its process after so many steps."""

    def __init__(self, removal: Removal, steps: int) -> None:
        self._removal, self.left = removal, steps

    async def _step(self, made: Awaitable[bool]) -> bool:
        if self.left <= 0:
            if hasattr(made, "close"):
                made.close()
            raise Cut
        self.left -= 1
        return await made

    async def find_idle(self, before: float, limit: int, after: Position) -> tuple[Position, ...]:
        return await self._removal.find_idle(before, limit, after)

    async def begin(self, conversation: str, before: float | None) -> bool:
        return await self._step(self._removal.begin(conversation, before))

    async def remove_piece(self, conversation: str) -> bool:
        return await self._step(self._removal.remove_piece(conversation))

    async def find_marked(self) -> tuple[str, ...]:
        return await self._removal.find_marked()

    async def drop_audit(self, before: float, mark: Mark) -> bool:
        return await self._removal.drop_audit(before, mark)


async def test_it_may_end_after_each_piece(world: RetentionWorld, tmp_path: Path) -> None:
    empty = await dump(world)
    kinds = {line.split()[0] for line in empty}
    await live(world.store, "gone", ROWS)
    await world.age(400)
    cuts = 0
    while True:
        cut = CutOff(make_removal(world.store), 1)
        try:
            await until_done(world, retained(world, tmp_path, cut))
        except Cut:
            cuts += 1
            assert cuts < 100
            continue
        break
    assert cuts > 3
    left = {line for line in await dump(world) if line.split()[0] not in kinds}
    assert not {line for line in left if not any(name in line for name in COUNTERS)}


async def test_nobody_takes_a_conversation_that_is_being_removed(
    world: RetentionWorld, tmp_path: Path
) -> None:
    """What arrives meanwhile waits, and begins it anew."""
    own = where("gone")
    await live(world.store, "gone", ROWS)
    await world.age(100)
    removal = make_removal(world.store)
    assert await removal.begin(own.id, world.clock.time - 90 * DAY)
    assert await removal.remove_piece(own.id)
    (kept,) = await world.store.accept([replace(said("new", "gone"), conversation=own)])
    assert await world.store.acquire(own.id, "me", 30) is None
    assert own.id in [name for name, _ in await world.store.work("me")]
    await until_done(world, retained(world, tmp_path))
    opened = await world.store.acquire(own.id, "me", 30)
    assert opened is not None
    assert [row.seq for row in opened.inbox] == [kept.seq]
    assert opened.row == ConversationRow() and not opened.turns and not opened.crashed
    await world.store.submit(opened.lease, Changes(transcript=(spoken(0),), done=(kept.seq,)))
    assert [row.n for row in await world.store.newest(own.id, 10)] == [0]


@pytest.mark.parametrize("kind", ["message", "turn", "view", "question"])
async def test_a_letter_is_not_resubmitted_into_what_is_being_removed(
    world: RetentionWorld, tmp_path: Path, kind: LetterKind
) -> None:
    """Otherwise it would outlive the erasure of who wrote it."""
    own = where("gone")
    await live(world.store, "gone")
    body = json.encode({"kind": "what they wrote"})
    one = Letter(
        id="7", kind=kind, conversation=own.id, name="7", at=START, why="bug", payload=body
    )
    await world.store.keep_letter(one)
    removal = make_removal(world.store)
    await world.age(31)
    assert await removal.begin(own.id, None)
    assert await world.store.resubmit("7") is None
    while await removal.remove_piece(own.id):
        pass
    assert await world.store.resubmit("7") is None
    assert not [line for line in await dump(world) if "they wrote" in line]


async def test_whoever_held_it_writes_no_more(world: RetentionWorld) -> None:
    own = where("gone")
    await live(world.store, "gone")
    old = await world.store.acquire(own.id, "me", 30)
    assert old is not None
    removal = make_removal(world.store)
    assert not await removal.begin(own.id, None), "it is held"
    world.clock.time += 31
    assert await removal.begin(own.id, None)
    with pytest.raises(Exception, match="token"):
        await world.store.submit(old.lease, Changes(row=ConversationRow(title="late")))


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("created", [False, True])
def test_an_older_installation_drops_nothing_before_it_is_chosen(
    chosen: bool, created: bool
) -> None:
    settings = RetentionSettings(periods=PERIODS, chosen=chosen)
    assert settings.in_force(created=created) == (PERIODS if chosen or created else BEFORE)
    assert BEFORE.conversations is None and BEFORE.audit is None


async def test_a_new_store_says_that_it_is_one(world: RetentionWorld, tmp_path: Path) -> None:
    assert await world.store.get(CREATED) == str(START).encode()
    if isinstance(world, RedisWorld):
        await world.store.put(CREATED, None)
        again: Callable[[], Awaitable[Store]] = lambda: RedisStore.open(world.server.url)  # noqa: E731
    else:
        old = sqlite3.connect(tmp_path / "old.db")
        old.execute(
            "CREATE TABLE directory(key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
        )
        old.close()
        again = lambda: SqliteStore.open(tmp_path / "old.db")  # noqa: E731
    store = await again()
    assert await store.get(CREATED) is None
    await store.close()


async def test_doctor_counts_what_would_go(world: RetentionWorld, tmp_path: Path) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    await live(world.store, "gone")
    await live(world.store, "young")
    await world.age(100)
    await world.store.accept([replace(said("y", "young"), conversation=where("young"))])
    new = await StoreUpkeep(
        settings, world.store, make_trail(settings, world.store)
    ).report_retention()
    assert new == "conversations go after 90 days; 1 are older now."
    await world.store.put(CREATED, None)
    old = await StoreUpkeep(
        settings, world.store, make_trail(settings, world.store)
    ).report_retention()
    assert "no conversation goes" in old and "up to 1 would go" in old
    given = {"TURNKEEPER_HOME": str(tmp_path), "RETENTION_AUDIT_DAYS": "never"}
    chosen = await StoreUpkeep(
        Settings.read(given, tmp_path), world.store, make_trail(settings, world.store)
    ).report_retention()
    assert chosen == new


async def test_a_backup_says_where_the_store_is_if_it_is_not_in_it(
    world: RetentionWorld, tmp_path: Path
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    if isinstance(world, SqliteWorld):
        settings = dataclasses.replace(settings, home=tmp_path / "home")
        (tmp_path / "home").mkdir()
        await (await SqliteStore.open(tmp_path / "home" / "turnkeeper.db")).close()
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).back_up(
        tmp_path / "b", lambda text: None
    )
    manifest = unpack_backup(tmp_path / "b", tmp_path / "to", lambda text: None)
    shared = isinstance(world, RedisWorld)
    assert manifest.store == ("redis" if shared else "sqlite")
    assert ("turnkeeper.db" in manifest.files) is not shared
    assert (".rdb" in said) is shared


@pytest.mark.parametrize("value", ["0", "-1", "soon", "1.5", "36501", "٣"])
def test_what_no_period_can_be(value: str, tmp_path: Path) -> None:
    given = {"TURNKEEPER_HOME": str(tmp_path), "RETENTION_CONVERSATIONS_DAYS": value}
    with pytest.raises(SettingsError, match="RETENTION_CONVERSATIONS_DAYS"):
        Settings.read(given, tmp_path)


async def test_documents_about_what_is_over_go(world: RetentionWorld, tmp_path: Path) -> None:
    store, now = world.store, world.clock.time
    await store.put("quota:test:1", f'[[{now - 3 * DAY},"e"]]'.encode())
    await store.put("quota:test:2", f'[[{now - 3 * DAY},"e"],[{now},"f"]]'.encode())
    await store.put("wrong:test:1", f'{{"times":1,"until":{now - 3 * DAY}}}'.encode())
    await store.put("linkcode:A", f'{{"until":{now}}}'.encode())
    await store.put("code:B", b"of another version")
    await store.put("memory:own:test:1", b"{}")
    await retained(world, tmp_path).tidy(store, now)
    left = await store.keys("")
    assert set(left) == {"quota:test:2", "linkcode:A", "code:B", "memory:own:test:1", CREATED}


class Slow:
    """A directory that stops answering after a number of documents, in each round."""

    def __init__(self, store: Directory) -> None:
        self._store = store
        self.left = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def get(self, key: str) -> bytes | None:
        self.left -= 1
        if self.left < 0:
            raise TimeoutError
        return await self._store.get(key)


async def test_documents_of_many_people_go_in_several_rounds(
    world: RetentionWorld, tmp_path: Path
) -> None:
    """A round has a limit in time; the next one continues where it ended."""
    store, now, retention = world.store, world.clock.time, retained(world, tmp_path)
    slow = Slow(store)
    for n in range(30):
        await store.put(f"quota:test:{n:02}", f'[[{now},"e"]]'.encode())
        await store.put(f"accounts:{n:02}", b'{"keys": []}')
    for _ in range(7):
        slow.left = 10
        with suppress(TimeoutError):
            await retention.tidy(cast(Directory, slow), now)
    assert await store.keys("accounts:") == ()
    assert len(await store.keys("quota:")) == 30
