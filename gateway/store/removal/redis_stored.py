"""The content of conversations in Redis as bytes: read and changed some fields at a time."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

from gateway.store.redis import RedisStore
from gateway.store.redis_lease import AUDIT, key
from gateway.store.redis_lists import KNOWN
from gateway.store.redis_wire import Command
from gateway.store.removal.stored import Edit, Stored, StoredKind

ROWS, PAGE = 100, 1_000
GONE = b"{}"
_HASHES: dict[StoredKind, str] = {
    "turn": ":turns",
    "view": ":views",
    "question": ":questions",
    "transcript": ":transcript",
    "letter": ":letters",
    "message": ":in",
}


class RedisContents:
    """The port `Contents` over a RedisStore's Redis."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def read_all(self, conversation: str) -> AsyncIterator[Stored]:
        base = key(conversation)
        (row,) = await self._store.call(("HGET", base, "row"))
        if isinstance(row, bytes):
            yield Stored("conversation", "row", row)
        for kind, part in _HASHES.items():
            if kind == "message":
                continue
            async for name, body in self._scan(base + part):
                yield Stored(kind, name, body)
                if kind == "turn":
                    async for n, record in self._scan(f"{base}:r:{name}"):
                        yield Stored("record", f"{name} {n}", record)

    async def _scan(self, name: str) -> AsyncIterator[tuple[str, bytes]]:
        cursor, seen = b"0", set[str]()
        while True:
            (reply,) = await self._store.call(("HSCAN", name, cursor, "COUNT", ROWS))
            cursor, flat = cast("tuple[bytes, list[bytes]]", reply)
            for field, body in zip(flat[::2], flat[1::2], strict=True):
                if field.decode() not in seen:
                    seen.add(field.decode())
                    yield field.decode(), body
            if cursor == b"0":
                return

    async def write_all(self, conversation: str, rows: Sequence[Stored]) -> None:
        commands = [_set(conversation, row) for row in rows]
        for start in range(0, len(commands), ROWS):
            await self._store.call(*commands[start : start + ROWS])

    async def edit_messages(self, conversations: frozenset[str], edit: Edit) -> int:
        count, start = 0, 0
        while True:
            (reply,) = await self._store.call(("ZRANGE", KNOWN, start, start + ROWS - 1))
            names = [name.decode() for name in cast("list[bytes]", reply)]
            if not names:
                return count
            start += ROWS
            for name in names:
                count += await self._edit_waiting(name, name in conversations, edit)

    async def _edit_waiting(self, conversation: str, whole: bool, edit: Edit) -> int:
        base, commands = key(conversation), list[Command]()
        async for seq, stored in self._scan(f"{base}:in"):
            at, _, body = stored.partition(b" ")
            new = GONE if whole else edit(body)
            if new == GONE:
                commands += (("HDEL", f"{base}:in", seq), ("ZREM", f"{base}:waiting", seq))
            elif new != body:
                commands.append(("HSET", f"{base}:in", seq, at + b" " + new))
        if commands:
            await self._store.call(*commands)
        return len(commands)

    async def edit_audit(self, edit: Edit) -> int:
        start, count = 0, 0
        while True:
            span = (AUDIT, start, start + ROWS - 1, "WITHSCORES")
            (reply,) = await self._store.call(("ZRANGE", *span))
            flat = cast("list[bytes]", reply)
            if not flat:
                return count
            start += ROWS
            commands: list[Command] = []
            for member, at in zip(flat[::2], flat[1::2], strict=True):
                where, name, body = member.split(b" ", 2)
                edited = b" ".join((where, name, edit(body)))
                if edited != member:
                    commands += (("ZADD", AUDIT, at, edited), ("ZREM", AUDIT, member))
                    count += 1
            if commands:
                await self._store.call(*commands)

    async def read_audit(self) -> AsyncIterator[list[bytes]]:
        start = 0
        while True:
            (reply,) = await self._store.call(("ZRANGE", AUDIT, start, start + PAGE - 1))
            members = cast("list[bytes]", reply)
            if not members:
                break
            start += len(members)
            yield [member.split(b" ", 2)[2] for member in members]
        async for conversation in self._names():
            if late := await self._read_late(conversation):
                yield late

    async def _read_late(self, conversation: str) -> list[bytes]:
        """Lines of a conversation that are not in the list of all yet."""
        (reply,) = await self._store.call(("HGETALL", f"{key(conversation)}:audit"))
        flat, late = cast("list[bytes]", reply), []
        for name, stored in zip(flat[::2], flat[1::2], strict=True):
            body = stored.partition(b" ")[2]
            member = b" ".join((conversation.encode(), name, body))
            (listed,) = await self._store.call(("ZSCORE", AUDIT, member))
            if listed is None:
                late.append(body)
        return late

    async def read_rows(self) -> AsyncIterator[tuple[str, bytes]]:
        async for conversation in self._names():
            if (body := await self.read_row(conversation)) is not None:
                yield conversation, body

    async def _names(self) -> AsyncIterator[str]:
        start = 0
        while True:
            (reply,) = await self._store.call(("ZRANGE", KNOWN, start, start + PAGE - 1))
            names = cast("list[bytes]", reply)
            if not names:
                return
            start += len(names)
            for name in names:
                yield name.decode()

    async def read_row(self, conversation: str) -> bytes | None:
        (body,) = await self._store.call(("HGET", key(conversation), "row"))
        return body if isinstance(body, bytes) else None

    async def note(self, at: float, name: str, body: bytes, key: str, document: bytes) -> None:
        await self._store.put(key, document)
        await self._store.call(("ZADD", AUDIT, at, f"- {name} ".encode() + body))

    async def wipe(self, *, whole: bool) -> None:
        """Rewrite the log, without overwritten content."""
        await self._store.rewrite_log()


def _set(conversation: str, row: Stored) -> Command:
    base = key(conversation)
    if row.kind == "conversation":
        return "HSET", base, "row", row.body
    if row.kind == "record":
        turn, _, n = row.key.rpartition(" ")
        return "HSET", f"{base}:r:{turn}", n, row.body
    return "HSET", base + _HASHES[row.kind], row.key, row.body
