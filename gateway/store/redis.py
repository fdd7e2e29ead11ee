"""The store for replicas: Redis 7, every conversation in one hash slot, commits as Lua.

Differences from SQLite: an `accept` is atomic per conversation, not per call; events are
deduplicated per conversation; a lease works only in the object that took it; done inbox rows, event
ids and old journals expire by themselves. It is as durable as Redis: with `appendfsync everysec` a
power cut, or a kill while the disk is busy, may lose the last seconds, a failover what was not yet
replicated. A loss is noticed by the commit number, and the lease that wrote it writes no more.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import cast

import msgspec
from msgspec.structs import replace
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent_core import ambient
from gateway.errors import Fenced, StoreFailed, Unstorable
from gateway.messages import Inbound, dedupe_keys, read_conversation
from gateway.store.dead_letters import due_of, revive_turn, revive_view
from gateway.store.opening.redis_check import check_server, find_lack
from gateway.store.opening.redis_upgrade import upgrade
from gateway.store.redis_lease import (
    ACTIVE,
    DEAD,
    DIRECTORY,
    DUE,
    Commit,
    Held,
    flush_audit,
    key,
    resolve,
)
from gateway.store.redis_lists import (
    FILLED,
    KNOWN,
    find_persons,
    list_commands,
)
from gateway.store.redis_presence import Lineage, Presence
from gateway.store.redis_reads import LongReads, RedisReads, index_letter, read_opened
from gateway.store.redis_scripts import (
    ACCEPT,
    ACQUIRE,
    CARRY,
    HINTS,
    HOLD,
    LOOK,
    MOVE,
    PUT,
    RESUBMIT,
    REVIVE,
    SPEND,
    run,
)
from gateway.store.redis_wire import (
    MAX_SECONDS,
    PATIENCE,
    Command,
    Greeting,
    RedisWire,
    Reply,
    connect,
    connect_blocking,
    load,
)
from gateway.store.removal.periods import CREATED
from gateway.store.rows import (
    JOBS,
    AcceptedRow,
    AcquiredConversation,
    Changes,
    ConversationRow,
    Lease,
    Letter,
)
from gateway.store.spending import budgets
from gateway.store.spending.expenses import Expense

log = logging.getLogger("turnkeeper.store")

SEQ = "tk:seq"
JOURNALS = 30 * 86_400.0
"""Seconds for which the journals of finished turns are kept."""
SPENT_KEPT = 40 * 86_400
"""Seconds for which a day's spending is kept."""
CHUNK = 100
MAX_ROUNDS = 10
"""Trips of a write until its numbers are those that the server expects: two as a rule."""
DEAF_SECONDS = 15.0
"""Seconds without hints after replies that are none: work is looked for as often as that."""
EXACT = 1 << 53
"""Numbers below it are exact in scripts."""
UNSETTLED = "the store expects other numbers again and again"

_encode = msgspec.json.Encoder().encode


_REVIVE: dict[str, Callable[[bytes], object]] = {
    "view": revive_view,
    "turn": revive_turn,
    "question": lambda payload: None,
}


class RedisStore(RedisReads):
    """All store ports over one Redis. Open it with `await RedisStore.open(url)`."""

    def __init__(
        self, url: str, journals: float | None = JOURNALS, without_log: bool = False
    ) -> None:
        self._url = url
        self._without_log = without_log
        self._lack = ""
        """Why the server may lose what it acknowledges, as far as it was reported."""
        self._journals = None if journals is None else int(journals)
        self._wires: list[RedisWire] = []
        self._lineage = Lineage(SEQ)
        writes = self._wire(self._lineage.greet)
        super().__init__(self._wire(), writes, LongReads(connect_blocking(url)))
        self._renewals = self._wire()
        self._held: dict[str, Held] = {}
        self._newest = 0
        """The newest inbox row number given to this process."""
        self.losses = 0
        """Losses of acknowledged writes found on the server (after a failover)."""
        self._carried = ""
        """The day whose old document is counted."""

    @classmethod
    async def open(
        cls, url: str, *, without_log: bool = False, journals: float | None = JOURNALS
    ) -> "RedisStore":
        """The store at `url` (redis://, rediss://, unix://); StoreFailed if it cannot be used.
        `without_log`: also one that keeps nothing over a restart. `journals`: seconds that the
        journal of a turn stays from its end on, None for ever."""
        try:
            async with ambient.limit(MAX_SECONDS), aclosing(connect(url)) as client:
                await check_server(client, without_log=without_log)
                await load(client)
        except StoreFailed:
            raise
        except Exception as error:  # boundary: whatever is there need not be a Redis
            why = str(error) or "no answer in time"
            raise StoreFailed(f"cannot open the store at REDIS_URL: {why}") from error
        store = cls(url, journals, without_log)
        try:
            # over this connection, as one that is greeted writes: a newer store stays as it is
            (known,) = await store._reads.call(("EXISTS", FILLED, SEQ, KNOWN, DIRECTORY))
            await upgrade(store._reads)
            if not known:
                await store.put(CREATED, str(ambient.now()).encode(), b"")
        except BaseException:
            await store.close()
            raise
        return store

    def _wire(self, greet: Greeting | None = None) -> RedisWire:
        """Open a connection of its own, so that one that waits delays no other."""
        wire = RedisWire(connect(self._url, greet=greet), self._leave)
        self._wires.append(wire)
        return wire

    def presence(self, name: str) -> Presence:
        """The claim of this process on a name among replicas, over a connection of its own."""
        self._lineage.name = name
        return Presence(self._wire(Lineage(SEQ, name).greet), name)

    def _leave(self) -> None:
        """Leave the server on all wires: one was told that it is no master."""
        for wire in self._wires:
            wire.leave()
        self._long.leave()

    async def close(self) -> None:
        """Finish what is queued and close the connections."""
        for wire in self._wires:
            await wire.close()
        self._long.leave()

    @property
    def failed(self) -> str:
        """The reason why nothing can be written any more, "" while all is well."""
        return next((wire.failed for wire in self._wires if wire.failed), "")

    @property
    def trips(self) -> int:
        """Round trips of writes so far (each may hold many commits)."""
        return self._writes.trips

    async def hints(
        self, on_hint: Callable[[str], None], on_connected: Callable[[], None] = lambda: None
    ) -> None:
        """Call `on_hint` with each conversation that gets a row in any process, until cancelled.
        Hints are lost while this connects: `work` is the truth, and `on_connected` the moment to
        ask for it."""
        async with aclosing(connect(self._url, listening=True)) as client:
            while True:
                try:
                    await _listen(client, on_hint, on_connected)
                except (RedisError, OSError):
                    await ambient.wait(1.0)
                except Exception:  # boundary: whatever is sent there, it is no more than a hint
                    log.exception("hints_not_read")
                    await ambient.wait(DEAF_SECONDS)
                await client.connection_pool.disconnect()

    # ---- inbox ---------------------------------------------------------------------------

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
        """The lease is taken apart: it lives in another script of the same slot."""
        return await self.accept(inbounds), ()

    async def accept(self, inbounds: Sequence[Inbound]) -> tuple[AcceptedRow, ...]:
        try:
            rows = [(*dedupe_keys(inbound), _encode(inbound)) for inbound in inbounds]
            places = [inbound.conversation.id for inbound in inbounds]
        except (TypeError, ValueError) as error:
            raise Unstorable(f"cannot be written as JSON: {error}") from error
        groups: dict[str, list[int]] = {}
        for n, name in enumerate(places):
            groups.setdefault(name, []).append(n)
        seqs = [0] * len(rows)
        now = ambient.now()
        highest = 0
        persons = await find_persons(self._writes, inbounds)
        for _ in range(MAX_ROUNDS):
            if not groups:
                return tuple(AcceptedRow(seq=seq, fresh=seq > 0) for seq in seqs)
            numbers, epochs = await self._prepare(tuple(groups), len(rows), highest)
            commands: list[Command] = []
            scripts: list[int] = []
            for name, members in groups.items():
                parts = (part for n in members for part in (numbers[n], *rows[n]))
                script = run(ACCEPT, key(name), name, now, epochs[name], *parts)
                listed = list_commands(read_conversation(name), persons[name], now)
                commands += (*_enlist(name, epochs[name], now), *listed, script)
                scripts.append(len(commands) - 1)
            sent = await self._writes.call(*commands)
            replies = [sent[n] for n in scripts]
            for (name, members), reply in zip(tuple(groups.items()), replies, strict=True):
                match reply:
                    case [b"kept", list(given)]:
                        del groups[name]
                        for n, seq in zip(members, given, strict=True):
                            seqs[n] = int(seq)
                    case [b"again", int(last)]:
                        highest = max(highest, last)
        raise StoreFailed(UNSETTLED)

    async def _prepare(
        self, conversations: Sequence[str], count: int, above: int
    ) -> tuple[range, dict[str, int]]:
        """New numbers for inbox rows, and the epochs under which `conversations` are listed.
        `above`: numbers that Redis itself may have forgotten (a failover)."""
        epochs = [("HGET", key(name), "epoch") for name in conversations]
        first, *found = await self._writes.call(("INCRBY", SEQ, count), *epochs)
        last = _read_number(first, count)
        if last - count < self._newest:  # forgotten numbers; none is assigned twice
            self._count_loss("")
        if last - count < (above := max(above, self._newest)):
            (first,) = await self._writes.call(("INCRBY", SEQ, above + count - last))
            last = _read_number(first, above + count)
        self._newest = max(last, self._newest)
        try:
            epochs_found = (int(cast("bytes | None", epoch) or 0) for epoch in found)
            named = dict(zip(conversations, epochs_found, strict=True))
        except ValueError as error:
            raise Unstorable(f"a conversation of {conversations} is damaged: {error}") from error
        return range(last - count + 1, last + 1), named

    async def keep_letter(self, letter: Letter) -> None:
        await self._writes.call(*index_letter(letter))

    async def resubmit(self, name: str) -> str | None:
        letter = await self.find_letter(name)
        if letter is None or letter.kind == "conversation":
            return None
        if letter.kind in ("job", "run"):
            root = key(JOBS)
            places = ("wake",) if letter.kind == "job" else ("again", "open")
            now = ambient.now()
            await self._writes.call(
                *(("ZADD", f"{root}:{one}", now, letter.name) for one in places)
            )
            return JOBS if await self.drop(name) else None
        where, highest = letter.conversation, 0
        for _ in range(MAX_ROUNDS):
            numbers, epochs = await self._prepare((where,), 1, highest)
            if letter.kind == "message":
                body = f"{ambient.now()!r} ".encode() + letter.payload
                script = run(RESUBMIT, key(where), where, name, numbers[0], epochs[where], body)
            else:
                row = _REVIVE[letter.kind](letter.payload)
                body = letter.payload if row is None else _encode(row)
                parts = (where, name, letter.kind, letter.name, epochs[where], body)
                script = run(REVIVE, key(where), *parts)
            commands = [*_enlist(where, epochs[where], ambient.now())]
            if letter.kind == "question" and (due := due_of(letter.payload)) > 0:
                commands.append(("ZADD", DUE, due, f"{where} {letter.name}"))
            commands.append(script)
            match (await self._writes.call(*commands))[-1]:
                case [b"kept"]:
                    self._writes.tell(("ZREM", DEAD, f"{where} {name}"))
                    return where
                case [b"none"]:
                    return None
                case [b"again", int(last)]:
                    highest = last
        raise StoreFailed(UNSETTLED)

    async def drop(self, name: str) -> bool:
        letter = await self.find_letter(name)
        if letter is None:
            return False
        base = key(letter.conversation)
        gone, old, _ = await self._writes.call(
            ("HDEL", f"{base}:letters", name),
            ("HDEL", f"{base}:dead", name),
            ("ZREM", DEAD, f"{letter.conversation} {name}"),
        )
        if gone and letter.kind == "turn" and self._journals is not None:  # it was not resubmitted
            await self._writes.call(("EXPIRE", f"{base}:r:{letter.name}", self._journals))
        return bool(gone or old)

    # ---- leases and commits --------------------------------------------------------------

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        began, now, nonce = ambient.monotonic(), ambient.now(), ambient.new_id()
        before: tuple[Command, ...] = ()
        epoch = ""
        known = self._held.get(conversation)
        proof = (known.lease.token, known.acknowledged) if known is not None else (-1, 0)
        for _ in range(MAX_ROUNDS):
            lineage, doubt = self._lineage.id, self._lineage.doubt
            here = (owner, nonce, now, ttl, epoch, lineage, doubt, *proof)
            script = run(ACQUIRE, key(conversation), *here)
            match (await self._writes.call(*before, script))[-1]:
                case [b"unlisted", bytes(current)]:
                    epoch = current.decode()
                    before = _enlist(conversation, int(epoch), now)
                case [b"taken", *_] if lineage != self._lineage.id:
                    continue  # found on the way there: what is in doubt is judged again
                case [b"taken", int(token), head, *rows]:
                    lease = Lease(conversation=conversation, owner=owner, token=token, nonce=nonce)
                    # always the newest: after a failover its token may be lower
                    if known is not None and known.lease.token >= token:
                        self._count_loss(conversation)
                    self._held[conversation] = Held(lease=lease, journals=self._journals)
                    *bodies, audit = cast("list[list[bytes]]", rows)
                    self._flush(conversation, audit)
                    found = read_opened(lease, cast("list[bytes]", head), bodies, began)
                    if found.row.is_counted or token == 1:
                        return found
                    return replace(found, row=await self._recount(conversation, found.row))
                case _:
                    return None
        raise StoreFailed(UNSETTLED)

    async def _recount(self, conversation: str, row: ConversationRow) -> ConversationRow:
        """Recover the counters of a row that lost them, so that later writes do not overwrite
        existing rows."""
        base, last = key(conversation), (0, 0, "REV", "WITHSCORES")
        found = await self._writes.call(
            *(("ZRANGE", f"{base}:{name}", *last) for name in ("n", "rev", "pos"))
        )
        highest = [int(float(pair[1])) if pair else 0 for pair in cast("list[list[bytes]]", found)]
        end = highest[0] + 1 if found[0] else 0
        return replace(row, end=end, rev=highest[1], position=highest[2])

    def _flush(self, conversation: str, audit: Sequence[bytes]) -> None:
        """Move audit lines whose writer ended before it could."""
        parts = (body.partition(b" ") for body in audit[1::2])
        pairs = zip(audit[::2], parts, strict=True)
        lines = [(name.decode(), float(at), body) for name, (at, _, body) in pairs]
        if lines:
            self._writes.tell(*flush_audit(conversation, lines))

    def _find(self, lease: Lease) -> Held | None:
        held = self._held.get(lease.conversation)
        return held if held is not None and held.lease == lease else None

    async def renew(self, leases: Sequence[Lease], ttl: float) -> frozenset[str]:
        held = [found for found in map(self._find, leases) if found is not None]
        replies = await self._renewals.call(*(_hold(one, ttl) for one in held))
        kept: set[str] = set()
        for one, still in zip(held, replies, strict=True):
            if still == 1 or (still == 0 and one.releasing):  # it may have been released before
                kept.add(one.lease.conversation)
                continue
            if still == -1:
                self._count_loss(one.lease.conversation)
            self._drop(one)
        return frozenset(kept)

    def _count_loss(self, conversation: str) -> None:
        """Count a loss: the server lacks what it acknowledged here."""
        self.losses += 1
        log.error("store_lost_writes", extra={"conversation": conversation})

    async def give_back(self, lease: Lease) -> None:
        held = self._find(lease)
        if held is not None:
            await self._writes.call(("TIME",))  # greets a server that is another by now
            whole = (self._lineage.id, held.acknowledged)
            await self._writes.call((*_hold(held, ""), *whole))
            self._drop(held)

    def _drop(self, held: Held) -> None:
        if self._held.get(held.lease.conversation) is held:
            del self._held[held.lease.conversation]

    def release(self, lease: Lease, seen: int, changes: Changes) -> asyncio.Future[bool]:
        return self._submit(lease, changes, seen)

    def submit(self, lease: Lease, changes: Changes) -> asyncio.Future[None]:
        return cast("asyncio.Future[None]", self._submit(lease, changes, None))

    def _submit(self, lease: Lease, changes: Changes, seen: int | None) -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        held = self._find(lease)
        if held is None:
            future.set_exception(Fenced(f"{lease.conversation} is not held under this token"))
            return future

        held.releasing = held.releasing or seen is not None

        def on_done(outcome: str, error: Exception | None) -> None:
            held.releasing = held.releasing and seen is None
            if outcome == "released" or isinstance(error, Fenced):
                self._drop(held)
            if commit.lost:
                self._count_loss(held.lease.conversation)
            if commit.after:
                self._writes.tell(*commit.after)
            resolve(future, outcome, error)

        commit = Commit(held, changes, seen, on_done)
        self._writes.put(commit)
        return future

    async def work(self, owner: str) -> tuple[tuple[str, int], ...]:
        names = [name.decode() for name in await self._list("ZRANGE", ACTIVE, 0, -1)]
        found: list[tuple[int, str]] = []
        for start in range(0, len(names), CHUNK):
            some = names[start : start + CHUNK]
            replies = await self._writes.call(*(run(LOOK, key(name), owner) for name in some))
            for name, reply in zip(some, replies, strict=True):
                match reply:
                    case [1, int(last)]:
                        found.append((last, name))
                    case [-1, int(epoch)]:
                        self._writes.tell(run(MOVE, ACTIVE, name, epoch, ""))
        return tuple((name, last) for last, name in sorted(found))

    async def now(self) -> float:
        (reply,) = await self._reads.call(("TIME",))
        seconds, micros = cast("tuple[bytes, bytes]", reply)
        return int(seconds) + int(micros) / 1e6

    # ---- other keys ----------------------------------------------------------------------

    async def call(self, *commands: Command) -> list[Reply]:
        """The replies of `commands`, which must be harmless when they are sent twice."""
        return await self._writes.call(*commands)

    async def begin_snapshot(self) -> str:
        """Let the server write its snapshot. Return its path as far as the server tells it."""
        await self.call(("BGSAVE", "SCHEDULE"))
        try:
            folder, name = await self.call(
                ("CONFIG", "GET", "dir"), ("CONFIG", "GET", "dbfilename")
            )
        except StoreFailed:  # some providers hide it
            return "its RDB file"
        parts = (cast("list[bytes]", one)[1].decode() for one in (folder, name))
        return "/".join(parts)

    async def rewrite_log(self) -> None:
        """Let the server rewrite its log, which still has overwritten content."""
        with suppress(StoreFailed):  # some providers do it themselves, and forbid the command
            await self.call(("BGREWRITEAOF",))

    # ---- directory -----------------------------------------------------------------------

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        keep = ("0", b"") if body is None else ("1", body)
        compare = () if expected is None else (expected,)
        script = run(PUT, DIRECTORY, ambient.new_id(), key, *keep, *compare)
        (written,) = await self._writes.call(script)
        return written == 1

    # ---- budgets -------------------------------------------------------------------------

    async def spend(self, day: str, expenses: Sequence[Expense]) -> str | None:
        await self._carry(day)
        parts = (part for one in expenses for part in (one.account, one.amount, one.limit))
        script = run(SPEND, budget_key(day), ambient.new_id(), SPENT_KEPT, *parts)
        (place,) = cast("list[int]", await self._writes.call(script))
        return expenses[place - 1].account if place else None

    async def read_spent(self, day: str, accounts: Sequence[str]) -> Mapping[str, int]:
        await self._carry(day)
        (found,) = await self._writes.call(("HMGET", budget_key(day), *accounts))
        amounts = zip(accounts, cast("list[bytes | None]", found), strict=True)
        return {name: int(amount) for name, amount in amounts if amount is not None}

    async def _carry(self, day: str) -> None:
        """Take over the day's spending counted by an older version, before the first read."""
        if day == self._carried:
            return
        old = budgets.read_document(await self.get(budgets.document_key(day)))
        parts = (part for pair in old.items() for part in pair)
        await self._writes.call(run(CARRY, budget_key(day), SPENT_KEPT, *parts))
        self._carried = day

    async def sweep(self, now: float, journals: float | None = JOURNALS) -> int:
        """Delete nothing: event ids and journals of ended turns expire by themselves. Report once
        if the server was set up to lose entries meanwhile."""
        with suppress(StoreFailed):
            await self._review()
        return 0

    async def _review(self) -> None:
        replies = await self._reads.call(("INFO", "memory"), ("INFO", "persistence"))
        lines = b"\r\n".join(cast("list[bytes]", replies)).decode().splitlines()
        info = {name: value for name, _, value in (line.partition(":") for line in lines)}
        lack = find_lack(info, without_log=self._without_log)
        if lack and lack != self._lack:
            log.error("redis_unfit", extra={"why": lack})
        elif self._lack and not lack:
            log.info("redis_fit_again")
        self._lack = lack


def _read_number(reply: Reply, lowest: int) -> int:
    """Return a row's number. StoreFailed for another reply: a wrong one would stay the highest."""
    if not isinstance(reply, int) or not lowest <= reply < EXACT:
        raise StoreFailed(f"no number of a row: {reply!r}")
    return reply


def budget_key(day: str) -> str:
    """The hash of a day's spending, by account."""
    return f"tk:{{spent}}:{day}"


async def _listen(
    client: Redis, on_hint: Callable[[str], None], on_connected: Callable[[], None]
) -> None:
    """Read the channel until the connection breaks; a ping without an answer breaks it too."""
    async with client.pubsub() as channel:
        async with ambient.limit(PATIENCE):
            await channel.subscribe(HINTS)
        quiet = 0
        while quiet < 2:
            message = await channel.get_message(timeout=5.0)
            if message is None:
                quiet += 1
                await channel.ping()
                continue
            quiet = 0
            match message["type"]:
                case "subscribe":
                    on_connected()
                case "message":
                    on_hint(message["data"].decode(errors="replace"))  # anybody may publish


def _enlist(conversation: str, epoch: int, now: float) -> tuple[Command, Command]:
    """Commands to run before a conversation may have work: see `redis_scripts`."""
    return (
        ("ZADD", ACTIVE, "GT", epoch, conversation),
        ("ZADD", KNOWN, "GT", now, conversation),
    )


def _hold(held: Held, ttl: float | str) -> Command:
    lease = held.lease
    return run(HOLD, key(lease.conversation), lease.token, lease.nonce, ttl, lease.conversation)
