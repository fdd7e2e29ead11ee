"""schedule_job: the agent proposes jobs and changes of them; a person's press makes them.

A turn tool: the proposal is a record of the turn, its card a question that waits as long as it
takes, and the job is made under an id that stood on record before anybody could press.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.phrases import Phrase
from agent_core.questions import Answer, Decision, TimeSpan
from agent_core.tools.contract import Tool
from agent_core.tools.turn.tool import TurnTool
from cron.card import JobDetails, card_of, card_of_action
from gateway.clock import new_id
from gateway.jobs_port import Asker, Draft, Job, JobPorts, JobRefused, JobRequest
from gateway.moment_texts import drop_moments, split_moments
from gateway.texts import Key, say
from gateway.texts.runs import describe_due, describe_work

T = TypeVar("T")
CheckModels = Callable[[str, str], Awaitable[None]]
NAME = "schedule_job"
Action = Literal["create", "change", "list", "pause", "resume", "run", "delete"]
DESCRIPTION = (
    "Work done again and again, or once later. `schedule`: cron of 5 fields (30 9 * * 1-5), "
    "6 with seconds first; @daily; 'every 2h'; 'every weekday at 9'; 'at 2026-12-01 09:00'; "
    "'in 20 minutes'; 'tomorrow at nine'. `prompt`: what to do, complete in itself. `zone`: like "
    "Europe/Berlin. `job`: number or title. Where asked for: `script`: a command whose output is "
    'the report, or comes with the `prompt` unless its last line is {"wakeAgent": false}; '
    "`context_from`: the job whose last report comes along; `hook`: POST /hooks/<name> begins it; "
    "`deliver`: `here`, addresses of chats, `file:x.md`; `spend`: dollars a run. A person confirms "
    "it."
)
_SAME = {
    "title",
    "prompt",
    "schedule",
    "zone",
    "missed",
    "overlap",
    "script",
    "hook",
    "deliver",
    "spend",
    "model",
    "profile",
    "tools",
}
"""Arguments that a wish calls the same."""
_EMPTY = {"title": "", "prompt": "", "schedule": ""}
_OUTDATED = (
    "Nothing was changed: the job is gone, or was changed after this card was shown. Look at it "
    "(action: list) and propose the change again."
)
_LABELS: dict[Action, Key] = {
    "pause": "jobs_pause",
    "resume": "jobs_resume",
    "run": "jobs_run",
    "delete": "jobs_delete",
}


class ScheduleArguments(BaseModel):
    """Arguments of schedule_job."""

    action: Action = "create"
    job: str = ""
    title: str = Field(default="", max_length=80)
    prompt: str = Field(default="", max_length=8_000)
    schedule: str = Field(default="", max_length=200)
    zone: str = ""
    missed: Literal["skip", "latest", "all"] = "latest"
    overlap: Literal["skip", "queue", "replace"] = "skip"
    jitter_seconds: float = Field(default=0.0, ge=0, le=3_600)
    script: str = Field(default="", max_length=2_000)
    context_from: str = ""
    hook: str = ""
    deliver: tuple[str, ...] = ()
    spend: float = Field(default=0.0, ge=0, le=1_000)
    model: str = ""
    profile: str = ""
    tools: str = ""


class AskingScope(Protocol):
    """The part of a turn's scope that is needed."""

    @property
    def turn_id(self) -> str: ...

    async def once(
        self, name: str, make: Callable[[], Awaitable[T] | T], kind: type[T] | None = None
    ) -> T: ...

    async def ask(self, question: Decision, name: str = "ask") -> Answer: ...


class Proposed(Struct, frozen=True, kw_only=True):
    """The recorded effect of a call: its id, or why it is impossible. `old`: the job to be changed,
    as the card showed it; `key`: of a manual run; `guessed`: nobody chose the time zone."""

    name: str = ""
    key: str = ""
    draft: Draft | None = None
    old: Job | None = None
    card: str = ""
    language: str = ""
    said: str = ""
    why: str = ""
    guessed: bool = False
    times: tuple[TimeSpan, ...] = ()


def schedule_tool(
    jobs: JobPorts,
    asking: Callable[[str], Awaitable[Asker | None]],
    spend: Callable[[str], str],
    check: CheckModels,
) -> Tool:
    """Make the tool. `asking` returns the person for whom a turn works; `spend`: a job's daily
    limit, in words of a language; `check` raises JobRefused for missing models, in a language."""
    return make_schedule_tool(_ScheduleTool(jobs, asking, spend, check).handle)


def make_schedule_tool(run_in_turn: Callable[..., Awaitable[str]]) -> Tool:
    """The tool with `run_in_turn` behind it."""
    return TurnTool(
        name=NAME,
        description=DESCRIPTION,
        arguments=ScheduleArguments,
        repetition="idempotent",
        access="read",
        run_in_turn=run_in_turn,
        asks=lambda wanted: wanted.action != "list",
    )


class _ScheduleTool:
    """Proposes jobs, asks, and carries out what was confirmed."""

    def __init__(
        self,
        jobs: JobPorts,
        asking: Callable[[str], Awaitable[Asker | None]],
        spend: Callable[[str], str],
        check: CheckModels,
    ) -> None:
        self._jobs = jobs
        self._check = check
        self._asking = asking
        self._spend = spend

    async def handle(
        self, wanted: ScheduleArguments, scope: AskingScope, brief: object, hands: object
    ) -> str:

        async def propose() -> Proposed:
            return await self._propose(wanted, scope.turn_id)

        proposed = await scope.once("proposed", propose, kind=Proposed)
        if proposed.why:
            raise ToolFailed(proposed.why)
        if proposed.draft is None:
            return proposed.said
        labels = _labels(wanted.action, proposed.language)
        hints = (Phrase(key="jobs_zone_hint"),) if proposed.guessed else ()
        first: Literal["good", "bad"] = "bad" if wanted.action == "delete" else "good"
        answer = await scope.ask(
            Decision(
                text=proposed.card,
                options=labels,
                hints=hints,
                first=first,
                times=proposed.times,
                folds=True,
            )
        )
        if answer.choice != "once" or answer.text == labels[-1]:
            return "The person did not confirm it. Nothing was changed."
        if len(labels) > 2 and answer.text == labels[1]:
            return (
                "The person wants it otherwise. Nothing was made. Ask what to change with "
                "ask_user, then propose it again."
            )

        async def carry_out() -> str:
            return await self._carry_out(wanted.action, proposed)

        return await scope.once("done", carry_out, kind=str)

    async def _propose(self, wanted: ScheduleArguments, turn: str) -> Proposed:
        asker = await self._asking(turn)
        if asker is None or asker.role not in ("user", "admin"):
            return Proposed(why="Nobody is here for whom a job could be made.")
        language = asker.sender.language
        known = await self._jobs.book.list_visible(asker)
        if wanted.action == "list":
            return Proposed(said=self._list_jobs(known))
        old = None
        if wanted.action != "create":
            old = _find_job(known, wanted.job)
            if old is None:
                return Proposed(why=f"There is no such job. {self._list_jobs(known)}")
        if old is not None and wanted.action != "change":
            words, times = _split_times(
                card_of_action(self._jobs.times, old, _LABELS[wanted.action], language)
            )
            draft = Draft(job=old, times=())
            return Proposed(
                name=old.id,
                key=new_id(),
                draft=draft,
                card=words,
                language=language,
                times=times,
            )
        try:
            wish = _wish(wanted, old, known)
            draft = await self._jobs.drafts.draft(wish, asker, old)
            if draft.job.model != (old.model if old is not None else ""):
                await self._check(draft.job.model, language)
        except JobRefused as error:
            return Proposed(why=str(error))
        name = old.id if old is not None else new_id()
        fed = next((job.title for job in known if job.id == draft.job.feeds_on), "")
        zoned = bool(wish.zone) or await self._jobs.drafts.has_zone(asker)
        about = JobDetails(fed=fed, day=self._spend(language), new=old is None)
        words, times = _split_times(card_of(self._jobs.times, draft, about, language))
        guessed = bool(draft.times) and not zoned
        return Proposed(
            name=name,
            draft=draft,
            old=old,
            card=words,
            language=language,
            guessed=guessed,
            times=times,
        )

    def _list_jobs(self, jobs: tuple[Job, ...]) -> str:
        """List jobs for the model."""
        lines = [
            f"{n}. {job.title}: {drop_moments(describe_due(self._jobs.times, job, ''))}, "
            f"{job.state}. schedule: {job.schedule}. {describe_work(job, '', '')}"
            for n, job in enumerate(jobs, 1)
        ]
        return "\n".join(lines) or "There are no jobs."

    async def _carry_out(self, action: Action, proposed: Proposed) -> str:
        name, draft = proposed.name, proposed.draft
        if draft is None:
            return "Nothing was changed."
        done: object = True
        match action:
            case "create" | "change":
                return await self._write(action, proposed, draft)
            case "pause":
                done = await self._jobs.book.pause(name)
            case "resume":
                done = await self._jobs.book.resume(name)
            case "run":
                done = await self._jobs.book.run_now(name, proposed.key or new_id())
            case "delete":
                done = await self._jobs.book.remove(name)
            case _:
                return "Nothing was changed."
        if not done:
            return "That changed nothing: the job is gone or in that state already."
        return "Done."

    async def _write(self, action: Action, proposed: Proposed, draft: Draft) -> str:
        """Create or change the job as its card showed."""
        drafts, name = self._jobs.drafts, proposed.name
        try:
            if action == "create":
                made = await drafts.make(draft, name)
                return f"The job {made.title!r} is scheduled. Next: {self._next(made)}."
            if not await drafts.change(draft, shown=proposed.old):
                return _OUTDATED
        except JobRefused as error:  # it was confirmed too late
            return f"Nothing was made or changed: it was confirmed too late. {error}"
        now = await self._jobs.store.get(name)
        return "Done. It stays paused." if now is not None and now.state == "paused" else "Done."

    def _next(self, job: Job) -> str:
        return self._jobs.times.format_moment(job.next_due, job.zone) if job.next_due else "never"


def _split_times(card: str) -> tuple[str, tuple[TimeSpan, ...]]:
    """Return the card's words, and the positions of their moments: a record keeps no marks."""
    text, spans = "", list[TimeSpan]()
    for one in split_moments(card):
        words = one if isinstance(one, str) else one.words
        if not isinstance(one, str):
            spans.append(TimeSpan(at=one.at, start=len(text), end=len(text) + len(words)))
        text += words
    return text, tuple(spans)


def _labels(action: Action, language: str) -> tuple[str, ...]:
    keys: tuple[Key, ...] = ("jobs_confirm", "jobs_change", "jobs_cancel")
    if action in _LABELS:
        keys = ("jobs_confirm", "jobs_cancel")
    return tuple(say(key, language) for key in keys)


def _wish(wanted: ScheduleArguments, old: Job | None, known: tuple[Job, ...]) -> JobRequest:
    """Return the request; in a change, fields that are not given stay."""
    if old is None and not (wanted.title and (wanted.schedule or wanted.hook)):
        raise ToolFailed("A job needs title and schedule, and what is to be done.")
    said = wanted.model_fields_set
    fields = wanted.model_dump(include=_SAME & said) | {
        name: getattr(wanted, given)
        for given, name in (("jitter_seconds", "jitter"), ("context_from", "feeds_on"))
        if given in said
    }
    if word := fields.get("feeds_on"):
        other = _find_job(known, word)
        if other is None:
            raise ToolFailed(f"There is no job {word!r} whose report could be given to it.")
        fields["feeds_on"] = other.id
    if old is not None:
        return replace(old.wish, **fields)
    return msgspec.convert({**_EMPTY, **fields}, JobRequest)


def _find_job(jobs: tuple[Job, ...], word: str) -> Job | None:
    """Find a job by number, id or title; a single job needs no name."""
    numbered = {str(n): job for n, job in enumerate(jobs, 1)}
    if word in numbered:
        return numbered[word]
    named = [job for job in jobs if word and word.lower() in (job.id.lower(), job.title.lower())]
    if not word and len(jobs) == 1:
        return jobs[0]
    return named[0] if len(named) == 1 else None
