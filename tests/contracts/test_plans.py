"""No statement of the embedded store reads a table from end to end, or sorts what has no bound.

Every statement that the contracts of the store and of the jobs make it run is explained by SQLite.
What may be walked as a whole are partial indexes over what is open now, which history leaves.
"""

import inspect
import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gateway.store.sqlite as sqlite
from agent_core import ambient
from gateway.services.audit_trail import AuditTrail
from gateway.store.audit_chain import AuditSigner
from gateway.store.jobs.sqlite_jobs import SqliteJobs
from gateway.store.removal.port import Position
from gateway.store.removal.sqlite_removal import SqliteRemoval
from gateway.store.removal.sqlite_stored import SqliteContents
from gateway.store.rows import Changes
from gateway.store.sqlite import SqliteStore
from tests.contracts.budgets_contract import BudgetsContract
from tests.contracts.conftest import SqliteWorld
from tests.contracts.jobs_contract import JobsContract
from tests.contracts.store_contract import CommitContract, InboxContract, LeaseContract
from tests.contracts.store_reads_contract import (
    DirectoryContract,
    LastingContract,
    QuestionContract,
    ReadContract,
)
from tests.contracts.store_values import record, said, take, turn

STORE = (
    InboxContract,
    LeaseContract,
    CommitContract,
    ReadContract,
    QuestionContract,
    DirectoryContract,
    LastingContract,
    BudgetsContract,
)
OPEN = {"conversations_work", "runs_open", "inbox_dead"}
"""Partial indexes over what is open: they hold nothing of what is over. `inbox_dead` holds what an
older version gave up, until it is adopted."""
ASKED_FOR_WHOLE = {"SELECT body FROM jobs ORDER BY made, id"}
"""Statements whose answer is the whole table: an admin's list of all jobs."""
NO_PLAN = re.compile(r"\s*(PRAGMA|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|EXPLAIN)", re.IGNORECASE)


class Recording(sqlite3.Connection):
    """Notes each statement with the values of its first use."""

    seen: dict[str, Any]

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if not NO_PLAN.match(sql):
            self.seen.setdefault(sql, values if isinstance(values, dict) else tuple(values))
        return super().execute(sql, values)


def names_of(contract: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """The contract's tests, each with the first of its parameters."""
    for name, test in inspect.getmembers(contract, inspect.isfunction):
        if name.startswith("test_") and not hasattr(test, "is_hypothesis_test"):
            marks = getattr(test, "pytestmark", ())
            given = (mark.args for mark in marks if mark.name == "parametrize")
            yield name, {names: values[0] for names, values, *_ in given}


@pytest.fixture
async def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Every statement with values, run once with all contracts; the file is `last.db`."""
    statements: dict[str, Any] = {}

    class Noting(Recording):
        seen = statements

    def connect(path: Path, patience: float = 10.0) -> sqlite3.Connection:
        return sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=patience, factory=Noting
        )

    monkeypatch.setattr(sqlite, "_open", connect)
    for contract in STORE:
        for name, given in names_of(contract):
            path = tmp_path / f"{contract.__name__}-{name}.db"
            world = SqliteWorld(path)
            ambient.use(world.clock)
            world.store = await SqliteStore.open(path)
            try:
                await getattr(contract(), name)(world, **given)
            finally:
                await world.store.close()
                ambient.use(ambient.SystemClock())
    for name, given in names_of(JobsContract):
        store = await SqliteStore.open(tmp_path / f"jobs-{name}.db")
        try:
            await getattr(JobsContract(), name)(SqliteJobs(store), **given)
        finally:
            await store.close()
    await remove(tmp_path / "removal.db")
    await (await SqliteStore.open(tmp_path / "last.db")).close()
    return statements


async def remove(path: Path) -> None:
    """A conversation goes, and its audit."""
    store = await SqliteStore.open(path)
    removal = SqliteRemoval(store)
    (kept,) = await store.accept([said(1)])
    lease = await take(store)
    rest = Changes(turns=(turn("t1", "done"),), records=(record(0),), done=(kept.seq,))
    assert await store.release(lease, kept.seq, rest)
    (found,) = await removal.find_idle(float("inf"), 9, Position())
    assert await removal.find_idle(float("inf"), 9, found) == ()
    assert await removal.begin(found.conversation, float("inf"))
    assert await removal.find_marked() == (found.conversation,)
    while await removal.remove_piece(found.conversation):
        continue
    trail = AuditTrail(AuditSigner(("key",)), SqliteContents(store), store, "me")
    await trail.note("machine", "done", "")
    await trail.close(found.conversation)
    assert not (await trail.verify()).flaws
    await removal.drop_audit(float("inf"), partial(trail.mark_dropped, float("inf")))
    await store.close()


async def test_no_statement_walks_what_grows(seen: dict[str, Any], tmp_path: Path) -> None:
    assert len(seen) > 60, "the contracts ran"
    wrong: list[str] = []
    connection = sqlite3.connect(tmp_path / "last.db")
    try:
        for sql, values in seen.items():
            wrong += (f"{line}: {sql}" for line in bad_lines(connection, sql, values))
    finally:
        connection.close()
    assert not wrong, "\n".join(wrong)


def bad_lines(connection: sqlite3.Connection, sql: str, values: Any) -> Iterator[str]:
    """The steps of the statement's plan that grow with history."""
    if " ".join(sql.split()) in ASKED_FOR_WHOLE:
        return
    for *_, line in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values):
        index = re.search(r"INDEX (\w+)", line)
        walks = line.startswith("SCAN") and "CONSTANT ROW" not in line
        if walks and not (index and index[1] in OPEN) or "TEMP B-TREE" in line:
            yield line


def test_a_walk_is_seen(tmp_path: Path) -> None:
    """What this file looks for is found where it is."""
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.executescript(sqlite.SCHEMA.read_text())
    for sql in (
        "SELECT 1 FROM turns WHERE status = 'running' AND body > ?",
        "DELETE FROM inbox WHERE state = 1 AND at < ?",
        "SELECT body FROM outbox WHERE conversation = ? ORDER BY rev + 1",
    ):
        assert list(bad_lines(connection, sql, ("x",))), sql
    connection.close()
