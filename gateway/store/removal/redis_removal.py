"""Removes conversations from Redis: all indexes first, a hundred members at a time, then the keys
with the conversation's hash tag.

Each script checks the mark, so that a late one does nothing to a conversation that has begun anew.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from agent_core import ambient
from gateway.messages import read_conversation
from gateway.ports import account_scope, channel_scope, person_scope
from gateway.store.redis import RedisStore
from gateway.store.redis_lease import (
    ACTIVE,
    AUDIT,
    DEAD,
    DUE,
    flush_audit,
    key,
    question_key,
    turn_key,
)
from gateway.store.redis_lists import KNOWN, list_key
from gateway.store.redis_scripts import MOVE, run
from gateway.store.redis_wire import Command
from gateway.store.removal.port import Mark, Position

MARKED = "tk:leaving"
"""Marked conversations, or such as were about to be, by when."""
ROWS = 100
STALE = 3_600.0
"""Seconds after which a name in `MARKED` without a mark is dropped."""

# ARGV: mark, now, before ('': whatever it holds). The mark, '' if it is not to go.
BEGIN = """#!lua
local k = KEYS[1]
local h = redis.call('HMGET', k, 'going', 'owner', 'expires', 'at', 'work', 'last', 'seen',
  'listed')
if h[1] then return h[1] end
local t = redis.call('TIME')
local now = tonumber(t[1]) + tonumber(t[2]) / 1000000
if redis.call('EXISTS', k) == 0 then return '' end
if h[2] and tonumber(h[3]) > now then return '' end
if ARGV[3] ~= '' then
  if tonumber(h[4] or '0') >= tonumber(ARGV[3]) or h[5] == '1' or h[8] == '1'
    or tonumber(h[6] or '0') > tonumber(h[7] or '0') then return '' end
  for _, name in ipairs({':live', ':open', ':waiting'}) do
    if redis.call('EXISTS', k .. name) == 1 then return '' end
  end
end
redis.call('HDEL', k, 'owner', 'nonce')
redis.call('HINCRBY', k, 'epoch', 1)
redis.call('HSET', k, 'going', ARGV[1], 'begun', ARGV[2], 'bound', h[6] or '0', 'expires', 0,
  'work', 0, 'listed', 0, 'seen', h[6] or '0')
return ARGV[1]
"""

# ARGV: mark, hash, then its fields
DROP = """#!lua
local k, hash = KEYS[1], ARGV[2]
if redis.call('HGET', k, 'going') ~= ARGV[1] then return 0 end
for i = 3, #ARGV do
  redis.call('HDEL', k .. hash, ARGV[i])
  if hash == ':views' then
    redis.call('ZREM', k .. ':rev', ARGV[i])
    redis.call('ZREM', k .. ':pos', ARGV[i])
    redis.call('SREM', k .. ':unsent', ARGV[i])
    redis.call('UNLINK', k .. ':o:' .. string.match(ARGV[i], '^[^ ]*'))
  elseif hash == ':turns' then
    redis.call('UNLINK', k .. ':r:' .. ARGV[i], k .. ':o:' .. ARGV[i])
    redis.call('HDEL', k .. ':live', ARGV[i])
  elseif hash == ':questions' then
    redis.call('SREM', k .. ':open', ARGV[i])
  elseif hash == ':transcript' then
    redis.call('ZREM', k .. ':n', ARGV[i])
  end
end
return 1
"""

# ARGV: mark. 'lives': something has arrived since the mark, and the conversation begins anew.
FINISH = """#!lua
local k = KEYS[1]
local h = redis.call('HMGET', k, 'going', 'bound', 'last')
if h[1] ~= ARGV[1] then return 'over' end
for _, name in ipairs({'transcript', 'n', 'views', 'rev', 'pos', 'unsent', 'turns', 'live',
  'questions', 'open', 'thread', 'letters', 'dead', 'audit'}) do
  redis.call('UNLINK', k .. ':' .. name)
end
if tonumber(h[3] or '0') > tonumber(h[2]) then
  for _, seq in ipairs(redis.call('ZRANGE', k .. ':waiting', 0, h[2], 'BYSCORE')) do
    redis.call('HDEL', k .. ':in', seq)
  end
  redis.call('ZREMRANGEBYSCORE', k .. ':waiting', 0, h[2])
  redis.call('HDEL', k, 'row', 'crashed', 'going', 'begun', 'bound')
  return 'lives'
end
redis.call('UNLINK', k, k .. ':waiting', k .. ':in')
return 'gone'
"""


class RedisRemoval:
    """The port `Removal` over a RedisStore's Redis."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def find_idle(self, before: float, limit: int, after: Position) -> tuple[Position, ...]:
        found: list[Position] = []
        start = 0
        while len(found) < limit:
            span = (KNOWN, after.at, f"({before}", "BYSCORE", "LIMIT", start, ROWS, "WITHSCORES")
            (reply,) = await self._store.call(("ZRANGE", *span))
            flat = cast("list[bytes]", reply)
            if not flat:
                break
            start += ROWS
            pairs = zip(flat[::2], flat[1::2], strict=True)
            places = (Position("", float(at), name.decode()) for name, at in pairs)
            found += (place for place in places if place > after)
        return tuple(found[:limit])

    async def begin(self, conversation: str, before: float | None) -> bool:
        now = ambient.now()
        bound = "" if before is None else before
        script = ("EVAL", BEGIN, 1, key(conversation), ambient.new_id(), now, bound)
        (exists,) = await self._store.call(("EXISTS", key(conversation)))
        if not exists:
            if before is not None:
                await self._store.call(run(MOVE, KNOWN, conversation, before, ""))
            return False
        # the name first: a mark that cannot be found would lock everybody out
        _, mark = await self._store.call(("ZADD", MARKED, now, conversation), script)
        if not mark:
            await self._store.call(run(MOVE, MARKED, conversation, now, ""))
        return bool(mark)

    async def remove_piece(self, conversation: str) -> bool:
        base = key(conversation)
        fields = ("going", "begun", "person", "epoch")
        (found,) = await self._store.call(("HMGET", base, *fields))
        mark, begun, person, epoch = cast("list[bytes | None]", found)
        if mark is None or begun is None:
            bound = ambient.now() - STALE
            await self._store.call(run(MOVE, MARKED, conversation, bound, ""))
            return False
        for part in (":views", ":turns", ":questions", ":letters", ":dead", ":transcript"):
            (some,) = await self._store.call(("HRANDFIELD", base + part, ROWS))
            names = [field.decode() for field in cast("list[bytes]", some)]
            if names:
                commands = _remove_outside(conversation, part, names)
                script = ("EVAL", DROP, 1, base, mark, part, *names)
                await self._store.call(*commands, script)
                return True
        await self._leave(conversation, float(begun), (person or b"").decode())
        # as after a release: rows arriving after the mark are listed under a newer epoch
        unlist = run(MOVE, ACTIVE, conversation, int(epoch or 1) - 1, "")
        await self._store.call(unlist, ("EVAL", FINISH, 1, base, mark))
        await self._store.call(("ZREM", MARKED, conversation))
        return False

    async def _leave(self, conversation: str, begun: float, person: str) -> None:
        """Remove it from all lists, unless something has arrived since."""
        base = key(conversation)
        (audit,) = await self._store.call(("HGETALL", f"{base}:audit"))
        flat = cast("list[bytes]", audit)
        parts = [
            (name.decode(), body.partition(b" "))
            for name, body in zip(flat[::2], flat[1::2], strict=True)
        ]
        lines = [(name, float(at), body) for name, (at, _, body) in parts]
        commands = [*flush_audit(conversation, lines)]
        lists = [KNOWN]
        with suppress(ValueError):  # not an address: unlisted
            where = read_conversation(conversation)
            scopes = [account_scope(where), channel_scope(where)]
            scopes += [person_scope(person)] if person else []
            lists += (list_key(scope.key) for scope in scopes)
        commands += (run(MOVE, name, conversation, begun, "") for name in lists)
        await self._store.call(*commands)

    async def find_marked(self) -> tuple[str, ...]:
        (names,) = await self._store.call(("ZRANGE", MARKED, 0, ROWS - 1))
        return tuple(name.decode() for name in cast("list[bytes]", names))

    async def drop_audit(self, before: float, mark: Mark) -> bool:
        span = (AUDIT, "-inf", f"({before}", "BYSCORE", "LIMIT", 0, ROWS)
        (reply,) = await self._store.call(("ZRANGE", *span))
        found = cast("list[bytes]", reply)
        bodies = [member.split(b" ", 2)[2] for member in found]
        go = await mark(bodies) if found else ()
        if old := [member for member, body in zip(found, bodies, strict=True) if body in go]:
            await self._store.call(("ZREM", AUDIT, *old))
        return bool(old) and len(found) == ROWS


def _remove_outside(conversation: str, part: str, names: Sequence[str]) -> list[Command]:
    """Commands that remove entries in other slots for these members of the conversation's hash
    `part`."""
    match part:
        case ":views" | ":turns":
            turns = dict.fromkeys(name.split(" ")[0] for name in names)
            return [("UNLINK", *(turn_key(turn) for turn in turns))]
        case ":questions":
            members = (f"{conversation} {name}" for name in names)
            return [("UNLINK", *map(question_key, names)), ("ZREM", DUE, *members)]
        case ":letters" | ":dead":
            return [("ZREM", DEAD, *(f"{conversation} {name}" for name in names))]
        case _:
            return []
