"""Jobs put together: their store, the book, the agent's tool, the scheduler. Nothing of the clock is
imported before the gateway runs."""

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from agent_core.tools.contract import Tool
from gateway.agent import Circumstances
from gateway.jobs.book import Book
from gateway.jobs.port import Asker, Jobs
from gateway.jobs.settings import JobSettings
from gateway.sessions.host import Host
from gateway.sessions.services import Services
from gateway.spending.ledger import dollars
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from gateway.texts import say

if TYPE_CHECKING:
    from cron.scheduler import Scheduler
    from cron.tool import Book as ToolBook


class JobWork:
    """Jobs as the agent and the gateway have them; `attach` brings what they need."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, Circumstances] = WeakValueDictionary()
        self._services: Services | None = None

    def attach(self, services: Services, host: Host, settings: JobSettings) -> None:
        """From now on jobs can be made; `run` fires them."""
        from cron.timetable import Times

        jobs = stored(services.store)
        services.jobs = Book(jobs, Times(), settings, services.store, host.accept)
        self._services = services

    def enter(self, circumstances: Circumstances) -> None:
        """A turn runs; as long as it does it is found by its id."""
        self._turns[circumstances.payer().turn] = circumstances

    def tool(self) -> Tool:
        """schedule_job."""
        from cron.tool import schedule_tool

        return schedule_tool(self._book, self._asking, self._spend)

    def _book(self) -> "ToolBook":
        assert self._services is not None and self._services.jobs is not None
        return self._services.jobs

    async def _asking(self, turn: str) -> Asker | None:
        known, services = self._turns.get(turn), self._services
        if known is None or services is None or services.jobs is None:
            return None
        sender = known.sender()
        return Asker(
            conversation=known.conversation,
            sender=sender,
            role=await services.access.learn(sender) or "",
            accounts=await services.access.accounts(sender.key),
        )

    def _spend(self, language: str) -> str:
        book = self._services.jobs if self._services is not None else None
        limit = book.settings.spend if book is not None else 0.0
        if not limit:
            return say("jobs_no_limit", language)
        return say("jobs_limit", language, limit=dollars(limit))

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        await self.scheduler().run()

    def scheduler(self) -> "Scheduler":
        """The scheduler of this process."""
        from cron.scheduler import Scheduler

        services = self._services
        assert services is not None and services.jobs is not None and services.deliver is not None
        book = services.jobs
        made = Scheduler(book.jobs, services.deliver, book.settle)
        book.ring = made.ring
        return made


def stored(store: Store) -> Jobs:
    """The jobs of `store`."""
    if isinstance(store, SqliteStore):
        from gateway.jobs.store_sqlite import SqliteJobs

        return SqliteJobs(store)
    from gateway.jobs.store_redis import RedisJobs
    from gateway.store.redis import RedisStore

    assert isinstance(store, RedisStore)
    return RedisJobs(store)
