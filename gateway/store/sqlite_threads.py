"""Threads over one SQLite file. One writes, with group commit: requests made while a commit is
running share the next one and its fsync. Others read, each on a connection of its own."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias, TypeVar, cast

from gateway.errors import Fenced, StoreFailed, Unstorable

log = logging.getLogger("turnkeeper.store")

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], object]
Broken: TypeAlias = Callable[[], None]
_Item: TypeAlias = "tuple[Work, asyncio.Future[object], Broken | None]"
_Read: TypeAlias = "tuple[Work, asyncio.Future[object]]"
_Outcome: TypeAlias = "tuple[asyncio.Future[object], object, Exception | None]"

MAX_AT_ONCE = 512
MAX_HELD = 0.002
"""Seconds for which what was read waits for the reads behind it."""


class Writer:
    """Runs work on the writing connection, in order. A request that fails does not take the
    others of its commit along; a failed commit fails them all. `failed`: why nothing is written
    any more, "" while all is well."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], check: Callable[[], None] = lambda: None
    ) -> None:
        """`check` is called before each commit; raises StoreFailed to refuse writes."""
        self._connect = connect
        self._check = check
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[object] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()
        self.commits = 0
        self.failed = ""

    async def wait_started(self) -> None:
        """Wait for the connection; raises what opening it raised."""
        await self._ready

    def submit(
        self, work: Callable[[sqlite3.Connection], T], broken: Broken | None = None
    ) -> "asyncio.Future[T]":
        """Queue `work` without awaiting; the future is done when its commit is stored. `broken` is
        called in the writer's thread, before any later work, if `work` fails together with its
        commit."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._queue.put((work, future, broken))
        return cast("asyncio.Future[T]", future)

    async def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        try:
            self._connection: sqlite3.Connection | None = self._connect()
        except StoreFailed as error:
            self._tell([(self._ready, None, error)])
            return
        except Exception as error:  # noqa: BLE001  # waiters must not wait forever
            self._tell([(self._ready, None, StoreFailed(f"cannot open the store: {error}"))])
            return
        self._tell([(self._ready, None, None)])
        going = True
        while going:
            batch: list[_Item] = []
            item = self._queue.get()
            while item is not None:
                batch.append(item)
                if len(batch) >= MAX_AT_ONCE or self._queue.empty():
                    break
                item = self._queue.get()
            going = item is not None
            try:
                outcomes = self._commit(batch) if batch and not self.failed else []
            except BaseException as error:  # noqa: BLE001  # waiters must not wait forever
                log.critical("writer_failed", exc_info=error)
                self.failed = f"the store writes no more: {error!r}"
                outcomes = []
            if batch:
                self._tell(outcomes or _fail(batch, StoreFailed(self.failed)))
        if self._connection is not None:
            self._connection.close()

    def _commit(self, batch: list[_Item]) -> list[_Outcome]:
        begun = False
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._check()
            self._connection.execute("BEGIN IMMEDIATE")
            begun = True
            outcomes = [_run_alone(self._connection, work, future) for work, future, _ in batch]
            self._connection.execute("COMMIT")
            self.commits += 1
        except (sqlite3.Error, StoreFailed, OSError, MemoryError) as error:
            self._take_back()
            # a single request may be too large for the rest of the disk; a file locked by another
            # process is waited for once, not once per request
            if begun and len(batch) > 1:
                return [outcome for item in batch for outcome in self._commit([item])]
            return _fail(batch, StoreFailed(f"the store could not be written: {error}"))
        return outcomes

    def _take_back(self) -> None:
        """Roll back. If even that fails, the connection is closed, which rolls back too; the next
        commit opens a new one."""
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            log.error("rollback_failed", extra={"why": str(error)})
            give_up(self._connection)
            self._connection = None

    def _tell(self, outcomes: list[_Outcome]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, outcomes)
        except RuntimeError:
            return  # the loop is closed: there are no waiters


class Reader:
    """Runs reads in order, in a thread that starts with the first one. Reads asked for while others
    are running share one hand-over to the thread and back: it costs more than most of them."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], name: str) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: list[_Read] = []
        self._busy = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns; raises StoreFailed, and what else it raises."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if not self._busy:
            self._begin()
        return cast("T", await future)

    async def close(self) -> None:
        """Finish what was asked for, end the thread and close the connection."""
        if self._busy:
            with suppress(StoreFailed):
                await self.run(lambda _: None)
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    def _begin(self) -> None:
        batch, self._waiting = self._waiting, []
        self._busy = bool(batch)
        if not batch:
            return
        try:
            self._thread.submit(self._run_batch, batch, asyncio.get_running_loop())
        except RuntimeError:
            self._busy = False
            _resolve([(future, None, StoreFailed("the store is closed")) for _, future in batch])

    def _run_batch(self, batch: list[_Read], loop: asyncio.AbstractEventLoop) -> None:
        outcomes: list[_Outcome] = []
        told = time.perf_counter()
        with suppress(RuntimeError):  # the loop is closed: there are no waiters
            for work, future in batch:
                outcomes.append(self._run_one(work, future))
                if time.perf_counter() - told > MAX_HELD:
                    loop.call_soon_threadsafe(_resolve, outcomes)
                    outcomes, told = [], time.perf_counter()
            loop.call_soon_threadsafe(self._end, outcomes)

    def _run_one(self, work: Work, future: "asyncio.Future[object]") -> _Outcome:
        try:
            return future, self.run_here(work), None
        except Exception as error:  # noqa: BLE001  # it is the waiter's
            return future, None, error

    def run_here(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in this thread."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            return work(self._connection)
        except sqlite3.Error as error:
            give_up(self._connection)
            self._connection = None
            raise StoreFailed(f"the store could not be read: {error}") from error

    def _end(self, outcomes: list[_Outcome]) -> None:
        _resolve(outcomes)
        self._begin()


def give_up(connection: sqlite3.Connection | None) -> None:
    """Close a connection that failed: the next one may do."""
    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()


def _fail(batch: list[_Item], error: StoreFailed) -> list[_Outcome]:
    """Fail the whole batch: nothing of it is stored."""
    for _, _, broken in batch:
        if broken is not None:
            broken()
    return [(future, None, error) for _, future, _ in batch]


def _run_alone(
    connection: sqlite3.Connection, work: Work, future: "asyncio.Future[object]"
) -> _Outcome:
    connection.execute("SAVEPOINT one")
    try:
        value = work(connection)
    except (Fenced, StoreFailed, sqlite3.IntegrityError, UnicodeEncodeError) as error:
        if not connection.in_transaction:  # for example on a full disk: everything was rolled back
            raise StoreFailed(str(error)) from error
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        if isinstance(error, sqlite3.IntegrityError | UnicodeEncodeError):
            return future, None, Unstorable(f"refused by the store: {error}")
        return future, None, error
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  # a bug in one request must not end the writer
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return future, None, error
    connection.execute("RELEASE one")
    return future, value, None


def _resolve(outcomes: list[_Outcome]) -> None:
    for future, value, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
