"""Jobs in the HTTP API, with the rights that a person has in any chat."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.access.access import Role
from gateway.conversation.services import Services
from gateway.features.jobs.api_values import present_job, present_run
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.lines.editing import edit_job
from gateway.jobs_port import MAX_RUNS, Job, JobPorts, JobRefused
from gateway.messages import Conversation, Sender
from gateway.roles import at_least
from gateway.shown_jobs import ShownJob, ShownRun

PLACE = Conversation(platform="web", account="local", channel="jobs", private=True)
"""The page's conversation: nobody else reads it, so all jobs of its person are shown."""


class JobBookBackend:
    """gateway.ports.JobBackend over the book of jobs."""

    def __init__(self, jobs: JobPorts, services: Services) -> None:
        self._jobs = jobs
        self._services = services

    async def role(self, sender: Sender) -> Role | None:
        """Return the sender's role by the current access lists."""
        return await self._services.access.learn(sender)

    async def jobs(self, sender: Sender) -> tuple[ShownJob, ...]:
        """Return the jobs that the person may manage."""
        mine = await self._list_own(sender)
        return tuple([await present_job(self._jobs, job, sender.language) for job in mine])

    async def runs(self, sender: Sender, name: str) -> tuple[ShownRun, ...] | None:
        """The newest runs of one of them, None if there is no such job."""
        job = await self._find_own(sender, name)
        if job is None:
            return None
        runs = await self._jobs.store.runs(job.id, MAX_RUNS)
        return tuple(present_run(run, sender.language) for run in runs)

    async def act(self, sender: Sender, name: str, action: str, key: str) -> bool | None:
        """Run, pause, resume or delete one of them; False if that changes nothing, None if there
        is no such job. The same `key` makes one run."""
        job = await self._find_own(sender, name)
        if job is None or not at_least(await self.role(sender), "user"):
            return None
        if action == "delete" and job.of_file:
            return False
        actions: dict[str, Callable[[], Awaitable[object]]] = {
            "run": lambda: self._jobs.book.run_now(job.id, key),
            "pause": lambda: self._jobs.book.pause(job.id),
            "resume": lambda: self._resume(job.id),
            "delete": lambda: self._jobs.book.remove(job.id),
        }
        return bool(await actions[action]())

    async def _resume(self, name: str) -> bool:
        """Resume the job; False also if its time passed during the pause, and it has ended."""
        after = await self._jobs.book.resume(name)
        return after is not None and not after.is_over

    async def edit(self, sender: Sender, name: str, fields: Mapping[str, str]) -> str | None:
        """Change fields of one of them; why that cannot be, "" if it was done, None if there is
        no such job."""
        job = await self._find_own(sender, name)
        if job is None or not at_least(await self.role(sender), "user"):
            return None
        asker = await identify_asker(self._services.access, PLACE, sender)
        try:
            await edit_job(self._jobs, job, fields, asker, self._services.agent.check_model)
        except JobRefused as error:
            return str(error)
        return ""

    async def _list_own(self, sender: Sender) -> tuple[Job, ...]:
        return await self._jobs.book.list_visible(
            await identify_asker(self._services.access, PLACE, sender)
        )

    async def _find_own(self, sender: Sender, name: str) -> Job | None:
        return next((job for job in await self._list_own(sender) if job.id == name), None)
