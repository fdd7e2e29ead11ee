"""Jobs and runs in the embedded store: two more tables."""

import sqlite3

import msgspec

from gateway.jobs_port import MAX_RUNS, Due, Job, JobRun
from gateway.store.dead_letters import read_each, write_letters
from gateway.store.reading import read_row, readable
from gateway.store.rows import JOBS, Letter
from gateway.store.sqlite import SqliteStore

_encode = msgspec.json.Encoder().encode
_job = msgspec.json.Decoder(Job).decode
_run = msgspec.json.Decoder(JobRun).decode
_PUT = "INSERT OR REPLACE INTO jobs(id, owner, made, wake, version, body) VALUES(?, ?, ?, ?, ?, ?)"
_RUN = "runs(job, slot, due, open, wake, version, body) VALUES(?, ?, ?, ?, ?, ?, ?)"
_ADD = f"""INSERT INTO {_RUN} ON CONFLICT(job, slot) DO UPDATE SET due = excluded.due,
open = excluded.open, wake = excluded.wake, version = excluded.version, body = excluded.body
WHERE json_valid(CAST(runs.body AS TEXT))
AND json_extract(CAST(runs.body AS TEXT), '$.state') = 'skipped'
AND json_extract(CAST(runs.body AS TEXT), '$.at')
> json_extract(CAST(excluded.body AS TEXT), '$.at')"""
_NEXT = """SELECT min(wake) FROM (SELECT min(wake) AS wake FROM jobs WHERE wake > ?1
UNION ALL SELECT min(wake) FROM runs WHERE open = 1 AND wake > ?1)"""
_OLD = """DELETE FROM runs WHERE job = ?1 AND open = 0 AND due <
(SELECT due FROM runs WHERE job = ?1 ORDER BY due DESC LIMIT 1 OFFSET ?2)"""


class SqliteJobs:
    """The port `JobStore` over the file of a SqliteStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def get(self, job: str) -> Job | None:
        sql = "SELECT body FROM jobs WHERE id = ?"
        found = await self._store.read(lambda c: c.execute(sql, (job,)).fetchone())
        return read_row("job", job, found[0], _job) if found else None

    async def list_jobs(self, owner: str = "") -> tuple[Job, ...]:
        whole = "SELECT body FROM jobs ORDER BY made, id"
        owned = "SELECT body FROM jobs WHERE owner = ? ORDER BY made, id"
        wanted = (owned, (owner,)) if owner else (whole, ())
        found = await self._store.read(lambda c: c.execute(*wanted).fetchall())
        return tuple(readable("job", _job, found))

    async def due(self, now: float, limit: int) -> Due:
        jobs = "SELECT id, body FROM jobs WHERE wake > 0 AND wake <= ? ORDER BY wake LIMIT ?"
        runs = (
            "SELECT job || ' ' || slot, body FROM runs"
            " WHERE open = 1 AND wake > 0 AND wake <= ? LIMIT ?"
        )
        damaged: list[Letter] = []

        def work(c: sqlite3.Connection) -> Due:
            wanted = (now, limit)
            return Due(
                jobs=tuple(read_each(c.execute(jobs, wanted), _job, "job", JOBS, damaged)),
                runs=tuple(read_each(c.execute(runs, wanted), _run, "run", JOBS, damaged)),
                next=c.execute(_NEXT, (now,)).fetchone()[0],
            )

        due = await self._store.read(work)
        if damaged:  # otherwise they would be due forever
            await self._store.write(lambda c: write_letters(c, damaged))
        return due

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[JobRun, ...]) -> bool:
        return await self._store.write(lambda c: _commit(c, before, after, runs))

    async def run(self, job: str, slot: str) -> JobRun | None:
        sql = "SELECT body FROM runs WHERE job = ? AND slot = ?"
        found = await self._store.read(lambda c: c.execute(sql, (job, slot)).fetchone())
        return read_row("run", f"{job} {slot}", found[0], _run) if found else None

    async def runs(self, job: str, limit: int) -> tuple[JobRun, ...]:
        sql = "SELECT body FROM runs WHERE job = ? ORDER BY due DESC, slot DESC LIMIT ?"
        found = await self._store.read(lambda c: c.execute(sql, (job, limit)).fetchall())
        return tuple(readable("run", _run, found))

    async def list_unfinished(self, job: str = "") -> tuple[JobRun, ...]:
        every = "SELECT job || ' ' || slot, body FROM runs WHERE open = 1"
        own = "SELECT job || ' ' || slot, body FROM runs WHERE job = ? AND open = 1"
        wanted = (own, (job,)) if job else (every, ())
        found = await self._store.read(lambda c: c.execute(*wanted).fetchall())
        damaged: list[Letter] = []
        runs = list(read_each(found, _run, "run", JOBS, damaged))
        if damaged:
            await self._store.write(lambda c: write_letters(c, damaged))
        return tuple(sorted(runs, key=lambda run: (run.due, run.slot)))

    async def advance(self, before: JobRun, after: JobRun) -> bool:
        def work(c: sqlite3.Connection) -> bool:
            sql = "SELECT version FROM runs WHERE job = ? AND slot = ?"
            held = c.execute(sql, (before.job, before.slot)).fetchone()
            if held is None or held[0] not in (before.version, after.version):
                return False
            c.execute(f"INSERT OR REPLACE INTO {_RUN}", _row(after))
            return True

        return await self._store.write(work)


def _commit(
    c: sqlite3.Connection, before: Job | None, after: Job | None, runs: tuple[JobRun, ...]
) -> bool:
    known = before or after
    if known is None:
        return True
    name = known.id
    row = c.execute("SELECT version FROM jobs WHERE id = ?", (name,)).fetchone()
    held = row[0] if row else ""
    if held == (after.version if after is not None else ""):
        return True
    if held != (before.version if before is not None else ""):
        return False
    if after is None:
        c.execute("DELETE FROM jobs WHERE id = ?", (name,))
        c.execute("DELETE FROM runs WHERE job = ? AND open = 0", (name,))
    else:
        wake = after.wake if after.state == "active" else 0.0
        row = (after.id, after.owner.key, after.made, wake, after.version, _encode(after))
        c.execute(_PUT, row)
    for run in runs:
        c.execute(_ADD, _row(run))
    if runs:
        c.execute(_OLD, (name, MAX_RUNS - 1))
    return True


def _row(run: JobRun) -> tuple[str, str, float, bool, float, str, bytes]:
    return run.job, run.slot, run.due, run.open, run.wake, run.version, _encode(run)
