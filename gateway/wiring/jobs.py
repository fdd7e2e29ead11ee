"""Jobs put together: their store, the service, the agent's tool, the scheduler. Nothing of the
clock is imported before the gateway runs."""

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from agent_core.tools.contract import Tool
from gateway.access.access import Access
from gateway.conversation.agent import PolicyContext
from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.console import Console
from gateway.jobs_port import Asker
from gateway.services.jobs.asker import identify_asker
from gateway.services.jobs.book import JobService
from gateway.services.jobs.deps import JobDeps, alone
from gateway.services.jobs.settings import JobSettings
from gateway.services.workspaces import WORKSPACES
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.texts import say
from gateway.texts.money import dollars

if TYPE_CHECKING:
    from cron.scheduler import Scheduler


class JobWork:
    """Jobs as the agent and the gateway have them. `run` fires what is due."""

    def __init__(self, book: JobService, access: Access, home: Path) -> None:
        self.book = book
        self.file = JobFile(home, book)
        self.console = Console(book, self.file, live=True)
        self._access = access
        self._turns: WeakValueDictionary[str, PolicyContext] = WeakValueDictionary()

    def enter(self, circumstances: PolicyContext) -> None:
        """A turn runs; as long as it does it is found by its id."""
        self._turns[circumstances.payer().turn] = circumstances

    def tool(self) -> Tool:
        """schedule_job."""
        from cron.tool import schedule_tool

        return schedule_tool(lambda: self.book, self._find_asker, self._spend)

    async def _find_asker(self, turn: str) -> Asker | None:
        known = self._turns.get(turn)
        if known is None:
            return None
        return await identify_asker(self._access, known.conversation, known.sender())

    def _spend(self, language: str) -> str:
        limit = self.book.settings.spend
        return say("jobs_limit", language, limit=dollars(limit)) if limit else ""

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        await self.scheduler().run()

    def scheduler(self) -> "Scheduler":
        """The scheduler of this process."""
        from cron.scheduler import Scheduler

        book, means = self.book, self.book.means
        scheduler = Scheduler(book.jobs, means.accept, book.settle, self.file.look, means.store.now)
        book.ring = scheduler.ring
        return scheduler


def make_book(store: Store, settings: JobSettings, means: JobDeps) -> JobService:
    """The book of all jobs of `store`."""
    from cron.timetable import Times

    return JobService(make_jobs(store), Times(), settings, means)


def console_alone(settings: Settings, store: Store) -> Console:
    """What the command line does while no gateway runs."""
    bots = (
        ("telegram", settings.telegram),
        ("discord", settings.discord),
        ("slack", settings.slack),
    )
    platforms = frozenset(name for name, bot in bots if bot is not None) | {"web"}
    book = make_book(store, settings.jobs, alone(store, settings.home / WORKSPACES, platforms))
    return Console(book, JobFile(settings.home, book), live=False)
