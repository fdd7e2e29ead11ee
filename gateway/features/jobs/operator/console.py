"""`turnkeeper jobs …`: jobs on the command line, with or without a running gateway."""

from collections.abc import Awaitable, Callable

from msgspec import Struct, json

from agent_core import ambient
from gateway.features.jobs.api_values import present_job, present_run
from gateway.features.jobs.lines.editing import CheckModel, accept_model, edit_job
from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.jobfile import Faulty
from gateway.jobs_port import MAX_RUNS, OPERATOR, Asker, Job, JobPorts, JobRefused
from gateway.messages import read_conversation
from gateway.texts.runs import (
    describe_delivery,
    describe_due,
    describe_means,
    describe_run,
    describe_tries,
)

SHORT = 8
"""Minimum characters of an id's prefix that names a job."""
USAGE = (
    "Write: turnkeeper jobs list, show, history, add, edit, run, pause, resume, delete or apply."
)
NO_FILE = "There is no jobs.toml in the data folder, so nothing was changed."


class ConsoleAnswer(Struct, frozen=True, kw_only=True):
    """The reply; `ok` False: nothing was done."""

    text: str
    ok: bool = True


class Console:
    """Runs the commands. `live`: with a running gateway, so that runs start at once; `check` asks
    for its models."""

    def __init__(
        self, jobs: JobPorts, file: JobFile, *, live: bool, check: CheckModel = accept_model
    ) -> None:
        self._jobs, self._check = jobs, check
        self._file = file
        self._live = live

    async def answer(self, words: tuple[str, ...]) -> ConsoleAnswer:
        """Run a command. `words`: the action, the job's id, and `json` for that form; for `add` and
        `edit` the fields as JSON."""
        action, name, form = (*words, "", "", "")[:3]
        if action == "list":
            return await self._list(as_json=form == "json")
        if action == "apply":
            return await self._apply()
        if action == "add":
            return await self._add(name, form)
        actions: dict[str, Callable[[Job, bool], Awaitable[ConsoleAnswer]]] = {
            "show": self._show,
            "history": self._history,
            "run": self._run,
            "pause": self._pause,
            "resume": self._resume,
            "delete": self._delete,
        }
        if action not in actions and action != "edit":
            return ConsoleAnswer(text=USAGE, ok=False)
        found = await self._find(name)
        if isinstance(found, str):
            return ConsoleAnswer(text=found, ok=False)
        if action == "edit":
            return await self._edit(found, form)
        return await actions[action](found, form == "json")

    async def _edit(self, job: Job, given: str) -> ConsoleAnswer:
        """Edit a job with an admin's rights, which anybody has who may use the gateway's files."""
        where = read_conversation(job.conversation)
        asker = Asker(conversation=where, sender=OPERATOR, role="admin")
        fields = json.decode(given, type=dict[str, str])
        try:
            after = await edit_job(self._jobs, job, fields, asker, self._check)
        except JobRefused as error:
            return ConsoleAnswer(text=f"{error}\nNothing was changed.", ok=False)
        means = describe_means(after, "")
        return ConsoleAnswer(
            text=f"{after.title}: {self._describe_due(after)}{means and f'. {means}'}"
        )

    async def _find(self, name: str) -> Job | str:
        """Return the job with that id or unique prefix; otherwise the reason why there is none."""
        job = await self._jobs.store.get(name) if name else None
        if job is not None:
            return job
        every = await self._jobs.store.list_jobs()
        near = [one for one in every if len(name) >= SHORT and one.id.startswith(name)]
        if len(near) == 1:
            return near[0]
        return f"There is no job {name[:64]!r}. `turnkeeper jobs list` shows their ids."

    async def _list(self, *, as_json: bool) -> ConsoleAnswer:
        every = await self._jobs.store.list_jobs()
        if as_json:
            return ConsoleAnswer(
                text=_json([await present_job(self._jobs, job, "") for job in every])
            )
        lines = [
            f"{job.id}  {job.state:<6}  {self._describe_due(job)}  {job.title}" for job in every
        ]
        return ConsoleAnswer(text="\n".join(lines) or "There are no jobs.")

    def _describe_due(self, job: Job) -> str:
        next_due = (
            f", next {self._jobs.times.format_moment(job.next_due, job.zone)}"
            if job.next_due
            else ""
        )
        return f"{describe_due(self._jobs.times, job, '')}{next_due}"

    async def _show(self, job: Job, as_json: bool) -> ConsoleAnswer:
        shown = await present_job(self._jobs, job, "")
        if as_json:
            return ConsoleAnswer(text=_json(shown))
        pairs = json.decode(json.encode(shown), type=dict[str, object])
        lines = [f"{name}: {_join_words(value)}" for name, value in pairs.items() if value]
        return ConsoleAnswer(text="\n".join(lines))

    async def _history(self, job: Job, as_json: bool) -> ConsoleAnswer:
        runs = await self._jobs.store.runs(job.id, MAX_RUNS)
        if as_json:
            return ConsoleAnswer(text=_json([present_run(run, "") for run in runs]))
        lines = []
        for run in runs:
            when = self._jobs.times.format_moment(run.due, job.zone)
            lines.append(f"{when}  {describe_run(run, '')}")
            said = " ".join(run.text.split())[:200]
            before = describe_tries(self._jobs.times, job, run, "")
            lines += (f"    {one}" for one in (said, *before, describe_delivery(run, "")) if one)
        return ConsoleAnswer(text="\n".join(lines) or "It has not run yet.")

    async def _run(self, job: Job, as_json: bool) -> ConsoleAnswer:
        done = await self._jobs.book.run_now(job.id, ambient.new_id())
        if not done:
            return ConsoleAnswer(text=f"{job.title} is running already, or gone.", ok=False)
        when = "now" if self._live else "when the gateway starts"
        return ConsoleAnswer(text=f"{job.title} runs {when}.")

    async def _pause(self, job: Job, as_json: bool) -> ConsoleAnswer:
        if not await self._jobs.book.pause(job.id):
            return ConsoleAnswer(
                text=f"{job.title} is {job.state}, so it cannot be paused.", ok=False
            )
        return ConsoleAnswer(text=f"{job.title} is paused.")

    async def _resume(self, job: Job, as_json: bool) -> ConsoleAnswer:
        after = await self._jobs.book.resume(job.id)
        if after is None:
            return ConsoleAnswer(
                text=f"{job.title} is {job.state}, so it cannot be resumed.", ok=False
            )
        if after.is_over:
            over = f"{job.title} has ended: its time passed while it was paused."
            return ConsoleAnswer(text=over, ok=False)
        return ConsoleAnswer(text=f"{job.title} goes on: {self._describe_due(after)}.")

    async def _delete(self, job: Job, as_json: bool) -> ConsoleAnswer:
        if job.of_file:
            text = (
                f"{job.title} stands in jobs.toml: take it out there, then `turnkeeper jobs apply`."
            )
            return ConsoleAnswer(text=text, ok=False)
        if not await self._jobs.book.remove(job.id):
            return ConsoleAnswer(text=f"{job.title} is gone.", ok=False)
        return ConsoleAnswer(text=f"{job.title} is deleted.")

    async def _add(self, name: str, given: str) -> ConsoleAnswer:
        """Add a job to jobs.toml; relative moments are written in exact form."""
        fields, jobs = json.decode(given, type=dict[str, str]), self._jobs
        zone = fields.get("zone") or jobs.settings.zone
        try:
            jobs.times.check_zone(zone)
            if fields.get("schedule"):
                now = await jobs.now()
                fields["schedule"] = jobs.times.resolve(fields["schedule"], zone, now)
            done = await self._file.add(name, fields)
        except ValueError as error:
            return ConsoleAnswer(text=f"{error}\nNothing was changed.", ok=False)
        job = await jobs.store.get(name)
        when = f" {self._describe_due(job)}." if job is not None else ""
        return ConsoleAnswer(text=f"{done.text}\n{name}:{when}" if when else done.text)

    async def _apply(self) -> ConsoleAnswer:
        try:
            done = await self._file.apply()
        except Faulty as error:
            return ConsoleAnswer(text=f"{error}\nNothing was changed.", ok=False)
        return (
            ConsoleAnswer(text=done.text)
            if done is not None
            else ConsoleAnswer(text=NO_FILE, ok=False)
        )


def _json(value: object) -> str:
    return json.encode(value).decode()


def _join_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
