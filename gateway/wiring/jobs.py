"""Assembles jobs: the book that decides when, the work of runs, the agent's tool, the scheduler.

Nothing of the clock is imported before the gateway runs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from msgspec.structs import replace

from agent_core.config.declaration import SettingsError
from agent_core.tools.contract import Tool
from gateway.access.access import Access
from gateway.conversation.agent import PolicyContext
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.deps import JobDeps
from gateway.features.jobs.lines.editing import CheckModel, check_models
from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.console import Console
from gateway.features.jobs.run_ends import RunSettler
from gateway.jobs_port import Asker, JobPorts, JobSettings, JobStore
from gateway.messages import Inbound
from gateway.model_settings import read_models
from gateway.ports import Adapter
from gateway.services.owner_groups import OwnerGroups
from gateway.services.vault import Vault
from gateway.services.workspaces import WORKSPACES
from gateway.services.zones import Zones
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.texts import say
from gateway.texts.money import dollars
from gateway.wiring.job_means import find_missing_means

if TYPE_CHECKING:
    from cron.scheduler import Scheduler


class JobWork:
    """Jobs as the agent and the gateway use them. `run` fires what is due."""

    def __init__(
        self,
        ports: JobPorts,
        deps: JobDeps,
        access: Access,
        home: Path,
        adapters: Mapping[str, Adapter],
    ) -> None:
        self.ports = ports
        self.file = JobFile(home, ports, deps.platforms)
        self._deps = deps
        self._owners = OwnerGroups(adapters, deps.accept)
        self._access = access
        self._turns: WeakValueDictionary[str, PolicyContext] = WeakValueDictionary()

    def enter(self, circumstances: PolicyContext) -> None:
        """A turn runs; as long as it does it is found by its id."""
        self._turns[circumstances.payer().turn] = circumstances

    def make_console(self, check: CheckModel) -> Console:
        """Make the console for commands to the running gateway."""
        return Console(self.ports, self.file, live=True, check=check)

    def tool(self, check: CheckModel) -> Tool:
        """schedule_job."""
        from cron.tool import schedule_tool

        async def check_all(models: str, language: str) -> None:
            await check_models(models, language, check)

        return schedule_tool(self.ports, self._find_asker, self._spend, check_all)

    async def _find_asker(self, turn: str) -> Asker | None:
        known = self._turns.get(turn)
        if known is None:
            return None
        return await identify_asker(self._access, known.conversation, known.sender())

    def _spend(self, language: str) -> str:
        limit = self.ports.settings.spend
        return say("jobs_limit", language, limit=dollars(limit)) if limit else ""

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        await self.scheduler().run()

    def scheduler(self) -> "Scheduler":
        """The scheduler of this process."""
        from cron.scheduler import Scheduler

        ports, deps = self.ports, self._deps
        return Scheduler(
            ports.store,
            self._owners.accept,
            ports.ends.settle,
            self.file.look,
            deps.store.now,
            bell=ports.bell,
        )


def make_job_tool(run_in_turn: Callable[..., Awaitable[str]]) -> Tool:
    """schedule_job with `run_in_turn` behind it."""
    from cron.tool import make_schedule_tool

    return make_schedule_tool(run_in_turn)


def make_job_ports(jobs: JobStore, settings: JobSettings, deps: JobDeps) -> JobPorts:
    """Make the book over the store `jobs`, and the settling of its runs."""
    from cron.book import BookDeps, JobBook
    from cron.firing import Firings
    from cron.timetable import Times

    bell, times = asyncio.Event(), Times()
    around = BookDeps(
        now=deps.store.now,
        zone_of=Zones(deps.store).read_zone,
        may=deps.may,
        bind=deps.bind,
        fits=deps.fits,
        hide=deps.hide,
        ring=bell.set,
    )
    book = JobBook(jobs, times, settings, around)
    return JobPorts(
        store=jobs,
        times=times,
        settings=settings,
        book=book,
        drafts=book,
        ends=RunSettler(jobs, book, times, deps, bell.set),
        bell=bell,
        now=deps.store.now,
        prepare=Firings(jobs, times).make,
    )


def console_alone(settings: Settings, store: Store) -> Console:
    """Make the console for commands without a gateway: their messages wait in the store."""
    bots = (
        ("telegram", settings.telegram),
        ("discord", settings.discord),
        ("slack", settings.slack),
    )
    platforms = frozenset(name for name, bot in bots if bot is not None) | {"web"}

    async def accept(inbounds: Sequence[Inbound]) -> None:
        await store.accept(inbounds)

    deps = JobDeps(
        store=store,
        accept=accept,
        folder=settings.home / WORKSPACES,
        platforms=platforms,
        hide=Vault(settings.home, settings.secrets).hide,
    )
    with suppress(SettingsError):  # people can use their jobs even if no models are set up
        deps = replace(deps, fits=find_missing_means(read_models(settings)))
    ports = make_job_ports(make_jobs(store), settings.jobs, deps)
    return Console(ports, JobFile(settings.home, ports, platforms), live=False)
