"""Jobs put together: their store, the book, the agent's tool, the scheduler. Nothing of the clock is
imported before the gateway runs."""

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from agent_core.tools.contract import Tool
from gateway.agent import Circumstances
from gateway.jobs.book import Book
from gateway.jobs.means import Means, alone, means_of
from gateway.jobs.operator.applying import JobFile
from gateway.jobs.operator.console import Console
from gateway.jobs.port import Asker, Jobs
from gateway.jobs.settings import JobSettings
from gateway.sessions.host import Host
from gateway.sessions.services import Services
from gateway.settings import Settings
from gateway.spending.money import dollars
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from gateway.texts import say

if TYPE_CHECKING:
    from cron.scheduler import Scheduler
    from cron.tool import Book as ToolBook

WORKSPACES = "workspaces"
"""The folder of the conversations' workspaces, in the data folder."""


class JobWork:
    """Jobs as the agent and the gateway have them; `attach` brings what they need."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, Circumstances] = WeakValueDictionary()
        self._services: Services | None = None
        self.file: JobFile | None = None
        self.console: Console | None = None

    def attach(self, services: Services, host: Host, settings: JobSettings, home: Path) -> None:
        """From now on jobs can be made; `run` fires them."""
        platforms = frozenset(services.adapters) | {"web"}
        means = means_of(services.store, host.accept, home / WORKSPACES, platforms)
        services.jobs = made(services.store, settings, means)
        self.file = JobFile(home, services.jobs)
        self.console = Console(services.jobs, self.file, live=True)
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
        return say("jobs_limit", language, limit=dollars(limit)) if limit else ""

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        await self.scheduler().run()

    def scheduler(self) -> "Scheduler":
        """The scheduler of this process."""
        from cron.scheduler import Scheduler

        services = self._services
        assert services is not None and services.jobs is not None and services.deliver is not None
        book = services.jobs
        look = self.file.look if self.file is not None else None
        scheduler = Scheduler(book.jobs, services.deliver, book.settle, look, services.store.now)
        book.ring = scheduler.ring
        return scheduler


def made(store: Store, settings: JobSettings, means: Means) -> Book:
    """The book of all jobs of `store`."""
    from cron.timetable import Times

    return Book(stored(store), Times(), settings, means)


def console_alone(settings: Settings, store: Store) -> Console:
    """What the command line does while no gateway runs."""
    bots = (("telegram", settings.telegram), ("discord", settings.discord),
            ("slack", settings.slack))  # fmt: skip
    platforms = frozenset(name for name, bot in bots if bot is not None) | {"web"}
    book = made(store, settings.jobs, alone(store, settings.home / WORKSPACES, platforms))
    return Console(book, JobFile(settings.home, book), live=False)


def stored(store: Store) -> Jobs:
    """The jobs of `store`."""
    if isinstance(store, SqliteStore):
        from gateway.jobs.store_sqlite import SqliteJobs

        return SqliteJobs(store)
    from gateway.jobs.store_redis import RedisJobs
    from gateway.store.redis import RedisStore

    assert isinstance(store, RedisStore)
    return RedisJobs(store)
