"""Jobs and runs in Redis: all in one hash slot, each write one script.

Layout under `tk:{jobs}`: `:job` and `:v` (id → body, version), `:made`, `:o:<owner>` and `:wake`
(zsets of ids); of a job's runs `:r:<job>` and `:rv:<job>` (slot → body, version), `:rd:<job>` (zset
by due time); of all runs `:open` and `:again` (zsets of "job slot" by due time and by wake).
"""

from collections.abc import Sequence
from typing import cast

import msgspec

from gateway.jobs_port import MAX_RUNS, Due, Job, JobRun
from gateway.store.dead_letters import read_each
from gateway.store.reading import read_row, readable
from gateway.store.redis import RedisStore
from gateway.store.redis_reads import index_letter
from gateway.store.redis_wire import Command
from gateway.store.rows import JOBS, Letter

ROOT = "tk:{jobs}"
_encode = msgspec.json.Encoder().encode
_job = msgspec.json.Decoder(Job).decode
_run = msgspec.json.Decoder(JobRun).decode
_SAVE = """
local function save(k, job, slot, due, open, wake, version, body)
  local name = job .. ' ' .. slot
  redis.call('HSET', k .. ':r:' .. job, slot, body)
  redis.call('HSET', k .. ':rv:' .. job, slot, version)
  redis.call('ZADD', k .. ':rd:' .. job, due, slot)
  if open == '1' then redis.call('ZADD', k .. ':open', due, name)
  else redis.call('ZREM', k .. ':open', name) end
  if open == '1' and tonumber(wake) > 0 then redis.call('ZADD', k .. ':again', wake, name)
  else redis.call('ZREM', k .. ':again', name) end
end
local function is_free(k, job, slot, body)
  local held = redis.call('HGET', k .. ':r:' .. job, slot)
  if not held then return true end
  local read, run = pcall(cjson.decode, held)
  return read and run.state == 'skipped' and (run.at or 0) > (cjson.decode(body).at or 0)
end
local function forget(k, job, slot)
  redis.call('HDEL', k .. ':r:' .. job, slot)
  redis.call('HDEL', k .. ':rv:' .. job, slot)
  redis.call('ZREM', k .. ':rd:' .. job, slot)
end
"""
# ARGV: id, version before, version after, owner, made, wake, body, runs to keep, then for each run
# (slot, due, open, wake, version, body)
_COMMIT = (
    _SAVE
    + """
local k, id = KEYS[1], ARGV[1]
local held = redis.call('HGET', k .. ':v', id) or ''
if held == ARGV[3] then return 1 end
if held ~= ARGV[2] then return 0 end
local runs = k .. ':rd:' .. id
if ARGV[3] == '' then
  redis.call('HDEL', k .. ':job', id)
  redis.call('HDEL', k .. ':v', id)
  redis.call('ZREM', k .. ':made', id)
  redis.call('ZREM', k .. ':wake', id)
  redis.call('ZREM', k .. ':o:' .. ARGV[4], id)
  for _, slot in ipairs(redis.call('ZRANGE', runs, 0, -1)) do
    if not redis.call('ZSCORE', k .. ':open', id .. ' ' .. slot) then forget(k, id, slot) end
  end
else
  redis.call('HSET', k .. ':job', id, ARGV[7])
  redis.call('HSET', k .. ':v', id, ARGV[3])
  redis.call('ZADD', k .. ':made', ARGV[5], id)
  redis.call('ZADD', k .. ':o:' .. ARGV[4], ARGV[5], id)
  if tonumber(ARGV[6]) > 0 then redis.call('ZADD', k .. ':wake', ARGV[6], id)
  else redis.call('ZREM', k .. ':wake', id) end
end
for i = 9, #ARGV, 6 do
  if is_free(k, id, ARGV[i], ARGV[i + 5]) then
    save(k, id, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
  end
end
for _, slot in ipairs(redis.call('ZRANGE', runs, 0, -1 - tonumber(ARGV[8]))) do
  if not redis.call('ZSCORE', k .. ':open', id .. ' ' .. slot) then forget(k, id, slot) end
end
return 1
"""
)
# ARGV: job, version before, slot, due, open, wake, version, body
_ADVANCE = (
    _SAVE
    + """
local k = KEYS[1]
local held = redis.call('HGET', k .. ':rv:' .. ARGV[1], ARGV[3])
if not held or (held ~= ARGV[2] and held ~= ARGV[7]) then return 0 end
save(k, ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
return 1
"""
)


class RedisJobs:
    """The port `JobStore` over a RedisStore's Redis."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def get(self, job: str) -> Job | None:
        (body,) = await self._store.call(("HGET", f"{ROOT}:job", job))
        return read_row("job", job, body, _job) if isinstance(body, bytes) else None

    async def list_jobs(self, owner: str = "") -> tuple[Job, ...]:
        index = f"{ROOT}:o:{owner}" if owner else f"{ROOT}:made"
        return await self._jobs(("ZRANGE", index, 0, -1))

    async def due(self, now: float, limit: int) -> Due:
        jobs = await self._jobs(("ZRANGE", f"{ROOT}:wake", 0, now, "BYSCORE", "LIMIT", 0, limit))
        runs = await self._runs(("ZRANGE", f"{ROOT}:again", 0, now, "BYSCORE", "LIMIT", 0, limit))
        nearest = await self._store.call(
            *(
                (
                    "ZRANGE",
                    f"{ROOT}:{name}",
                    f"({now}",
                    "+inf",
                    "BYSCORE",
                    "LIMIT",
                    0,
                    1,
                    "WITHSCORES",
                )
                for name in ("wake", "again")
            )
        )
        times = [float(cast("list[bytes]", one)[1]) for one in nearest if one]
        return Due(jobs=jobs, runs=runs, next=min(times, default=None))

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[JobRun, ...]) -> bool:
        known = after or before
        if known is None:
            return True
        wake = known.wake if known.state == "active" else 0.0
        head = (known.id, before.version if before else "", after.version if after else "")
        body = _encode(known)
        rest = (known.owner.key, known.made, wake, body, MAX_RUNS)
        parts = tuple(part for run in runs for part in (run.slot, *_row(run)))
        return await self._store.call(("EVAL", _COMMIT, 1, ROOT, *head, *rest, *parts)) == [1]

    async def run(self, job: str, slot: str) -> JobRun | None:
        (body,) = await self._store.call(("HGET", f"{ROOT}:r:{job}", slot))
        return read_row("run", f"{job} {slot}", body, _run) if isinstance(body, bytes) else None

    async def runs(self, job: str, limit: int) -> tuple[JobRun, ...]:
        (slots,) = await self._store.call(("ZRANGE", f"{ROOT}:rd:{job}", 0, limit - 1, "REV"))
        if not slots:
            return ()
        (bodies,) = await self._store.call(
            ("HMGET", f"{ROOT}:r:{job}", *cast("list[bytes]", slots))
        )
        return tuple(readable("run", _run, ([b] for b in cast("list[bytes | None]", bodies) if b)))

    async def list_unfinished(self, job: str = "") -> tuple[JobRun, ...]:
        if not job:
            return await self._runs(("ZRANGE", f"{ROOT}:open", 0, -1))
        (found,) = await self._store.call(("ZRANGE", f"{ROOT}:rd:{job}", 0, -1))
        slots = [slot.decode() for slot in cast("list[bytes]", found)]
        if not slots:
            return ()
        names = (f"{job} {slot}" for slot in slots)
        (scores,) = await self._store.call(("ZMSCORE", f"{ROOT}:open", *names))
        known = zip(slots, cast("list[bytes | None]", scores), strict=True)
        running = [slot for slot, score in known if score is not None]
        if not running:
            return ()
        (bodies,) = await self._store.call(("HMGET", f"{ROOT}:r:{job}", *running))
        return tuple(readable("run", _run, ([b] for b in cast("list[bytes | None]", bodies) if b)))

    async def advance(self, before: JobRun, after: JobRun) -> bool:
        head = (before.job, before.version, before.slot)
        return await self._store.call(("EVAL", _ADVANCE, 1, ROOT, *head, *_row(after))) == [1]

    async def _jobs(self, index: Command) -> tuple[Job, ...]:
        (names,) = await self._store.call(index)
        if not names:
            return ()
        (bodies,) = await self._store.call(("HMGET", f"{ROOT}:job", *cast("list[bytes]", names)))
        named = zip(cast("list[bytes]", names), cast("list[bytes | None]", bodies), strict=True)
        damaged: list[Letter] = []
        rows = ((name.decode(), body) for name, body in named if body)
        jobs = tuple(read_each(rows, _job, "job", JOBS, damaged))
        await self._set_aside(damaged)
        return jobs

    async def _set_aside(self, damaged: Sequence[Letter]) -> None:
        """Remove unreadable rows from what is due; they become dead letters."""
        commands: list[Command] = []
        for letter in damaged:
            commands += index_letter(letter)
            places = ("wake",) if letter.kind == "job" else ("again", "open")
            commands += (("ZREM", f"{ROOT}:{place}", letter.name) for place in places)
        if commands:
            await self._store.call(*commands)

    async def _runs(self, index: Command) -> tuple[JobRun, ...]:
        (names,) = await self._store.call(index)
        placed = [name.decode() for name in cast("list[bytes]", names)]
        pairs = (name.split(" ", 1) for name in placed)
        bodies = await self._store.call(*(("HGET", f"{ROOT}:r:{job}", slot) for job, slot in pairs))
        found = zip(placed, bodies, strict=True)
        damaged: list[Letter] = []
        rows = ((name, body) for name, body in found if isinstance(body, bytes))
        runs = tuple(read_each(rows, _run, "run", JOBS, damaged))
        await self._set_aside(damaged)
        return runs


def _row(run: JobRun) -> tuple[float, str, float, str, bytes]:
    return run.due, "1" if run.open else "0", run.wake, run.version, _encode(run)
