"""A wish looked at: the job that it would be, or why it cannot be."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from gateway.clock import now as read_now
from gateway.jobs_port import (
    FILE,
    HERE,
    HOOK_NAME,
    MAX_SCRIPT,
    Asker,
    Draft,
    Job,
    JobRefused,
    JobRequest,
    JobSettings,
    JobStore,
    Timetable,
)
from gateway.texts import say

MAX_PLACES = 8
_COMPARED = 60
"""Due times that are looked at for the least interval."""

May = Callable[[Asker, str], Awaitable[bool]]
"""Returns True if the person may send reports to this conversation."""
Fits = Callable[[JobRequest], tuple[str, str]]
"""Returns the field of a request that names what does not exist, and the names that do; "" for
none."""
Hide = Callable[[str], str]
"""Returns a text with names in place of known secrets."""
Bind = Callable[[str, str], str]
"""Returns what an approval of a command in a conversation (its address) is bound to."""


class Drafting:
    """Validates requests for jobs, with the running gateway's parts passed in."""

    def __init__(
        self,
        jobs: JobStore,
        times: Timetable,
        settings: JobSettings,
        checks: tuple[May, Bind, Fits, Hide],
        now: Callable[[], Awaitable[float]],
    ) -> None:
        self._jobs = jobs
        self._times = times
        self._settings = settings
        self._may, self._bind, self._fits, self._hide = checks
        self._now = now

    async def draft(self, wish: JobRequest, asker: Asker, old: Job | None, zone: str) -> Draft:
        """Validate `wish` for a person; `old`: the job that it changes, `zone`: the default. Raises
        JobRefused with the reason."""
        language = asker.sender.language
        if old is None:
            await self._check_count(asker)
        elif old.of_file:
            raise JobRefused(say("jobs_of_file", language, title=old.title))
        if wish.hook and asker.role != "admin":
            raise JobRefused(say("jobs_hook_admin", language), "hook")
        if wish.model and wish.model != (old.model if old else "") and asker.role != "admin":
            raise JobRefused(say("jobs_model_admin", language), "model")
        for place in wish.deliver:
            if not place.startswith(FILE) and place != HERE and not await self._may(asker, place):
                raise JobRefused(say("jobs_not_there", language, place=place), "deliver")
        known = old or Job(
            id="",
            owner=asker.sender,
            conversation=asker.conversation.id,
            title="",
            prompt="",
            schedule="",
            zone="",
            made=await self._now(),
        )
        where = wish.zone or known.zone or zone or self._settings.zone
        wish = self._resolve(wish, where, language, await self._now())
        draft = await self.look(wish, known, zone, language)
        # a command of a person who decides alone is confirmed with its card; otherwise it needs
        # an approval when it runs, by the rules for its approvers
        bound = draft.job.bound if asker.role == "admin" else ""
        return replace(draft, job=replace(draft.job, bound=bound))

    def _resolve(self, wish: JobRequest, zone: str, language: str, now: float) -> JobRequest:
        """Return `wish` with the moment in exact form that it names as people do. Raises
        JobRefused."""
        if not wish.schedule:
            return wish
        self._check_zone(zone)
        try:
            return replace(wish, schedule=self._times.resolve(wish.schedule, zone, now))
        except JobRefused as error:
            raise self._add_now(error, zone, language, now) from None

    def _check_zone(self, zone: str) -> None:
        try:
            self._times.check_zone(zone)
        except ValueError as error:
            raise JobRefused(str(error), "zone") from None

    def _add_now(self, error: JobRefused, zone: str, language: str, now: float) -> JobRefused:
        """The refusal of a time, with the time that it is."""
        shown = say("jobs_now", language, now=self._times.format_moment(now // 60 * 60, zone))
        return JobRefused(f"{error} {shown}", "schedule")

    async def look(self, wish: JobRequest, known: Job, zone: str, language: str) -> Draft:
        """Return `known` changed by `wish`, with its next times, whatever the rights. Raises
        JobRefused."""
        job = self.apply_request(wish, known, zone, language)
        await self._check_chain(job, language)
        field, names = self._fits(wish)
        if field:
            given = getattr(wish, field)
            text = say("jobs_no_such_name", language, field=field, name=given, names=names)
            raise JobRefused(text, field)
        if job.hook:
            every = await self._jobs.list_jobs()
            if any(one.hook == job.hook and one.id != job.id for one in every):
                raise JobRefused(say("jobs_hook_taken", language, name=job.hook), "hook")
        now = await self._now()
        times: tuple[float, ...] = ()
        if job.schedule:
            times = await asyncio.to_thread(self.times, job.schedule, job.zone, now, _COMPARED)
        if job.schedule and not times:
            raise self._add_now(JobRefused(say("jobs_past", language)), job.zone, language, now)
        least = self._settings.interval
        if any(later - one < least for one, later in zip(times, times[1:], strict=False)):
            raise JobRefused(say("jobs_too_often", language, n=int(least)), "schedule")
        first = times[0] if times else 0.0
        job = replace(job, next_due=first, wake=first, state="active", why="")
        if job.script:
            bound = await asyncio.to_thread(self._bind, job.conversation, job.script)
            job = replace(job, bound=bound)
        return Draft(job=job, times=times[:3])

    def apply_request(self, wish: JobRequest, known: Job, zone: str, language: str) -> Job:
        """Return `known` changed by `wish`, without checking due times. Raises JobRefused."""
        where = wish.zone or known.zone or zone or self._settings.zone
        self._check_request(wish, language)
        self._check_zone(where)
        places = _read_places(wish.deliver, language)
        return replace(
            known,
            title=" ".join(wish.title.split())[:80],  # one line: cards and reports begin with it
            prompt=wish.prompt.strip(),
            schedule=self._read(wish.schedule, where, language) if wish.schedule else "",
            zone=where,
            missed=wish.missed,
            window=wish.window,
            overlap=wish.overlap,
            jitter=wish.jitter,
            script=wish.script.strip(),
            feeds_on=wish.feeds_on,
            hook=wish.hook,
            deliver=() if places == (HERE,) else places,
            spend=wish.spend,
            talk=wish.talk,
            model=wish.model.strip(),
            profile=wish.profile.strip().lower(),
            tools=wish.tools.strip(),
        )

    def _check_request(self, wish: JobRequest, language: str) -> None:
        """Refuse a wish whose fields are missing, too long, secret, or do not fit together."""
        if not wish.schedule and not wish.hook:
            raise JobRefused(say("jobs_no_when", language), "schedule")
        if not wish.prompt.strip() and not wish.script.strip():
            raise JobRefused(say("jobs_no_what", language), "prompt")
        if len(wish.script) > MAX_SCRIPT:
            text = say("jobs_edit_long", language, field="script", n=MAX_SCRIPT)
            raise JobRefused(text, "script")
        for field in ("title", "prompt", "script"):
            given = getattr(wish, field)
            if self._hide(given) != given:
                raise JobRefused(say("jobs_secret", language), field)
        if wish.hook and not HOOK_NAME.fullmatch(wish.hook):
            raise JobRefused(say("jobs_hook_name", language), "hook")
        others = (wish.schedule, wish.script, wish.feeds_on, wish.deliver, wish.spend)
        if wish.talk and (not wish.hook or any(others)):
            raise JobRefused(say("jobs_talk_alone", language), "talk")

    def _read(self, schedule: str, zone: str, language: str) -> str:
        try:
            return self._times.read(schedule, zone)
        except JobRefused as error:
            raise self._add_now(error, zone, language, read_now()) from None

    def times(self, schedule: str, zone: str, after: float, most: int) -> tuple[float, ...]:
        """The next due times after `after`."""
        found: list[float] = []
        moment: float | None = after
        for _ in range(most):
            moment = self._times.find_next(schedule, zone, moment or after)
            if moment is None:
                break
            found.append(moment)
        return tuple(found)

    async def _check_count(self, asker: Asker) -> None:
        mine = 0
        for account in asker.accounts or {asker.sender.key}:
            mine += sum(job.state != "ended" for job in await self._jobs.list_jobs(account))
        if mine >= self._settings.per_person:
            raise JobRefused(
                say("jobs_too_many", asker.sender.language, n=self._settings.per_person)
            )

    async def _check_chain(self, job: Job, language: str) -> None:
        """Refuse a job that would receive its own reports."""
        name, seen = job.feeds_on, {job.id}
        while name:
            if name in seen:
                raise JobRefused(say("jobs_feeds_itself", language), "feeds_on")
            seen.add(name)
            other = await self._jobs.get(name)
            name = other.feeds_on if other is not None else ""


def _read_places(deliver: Iterable[str], language: str) -> tuple[str, ...]:
    """Return each place of delivery once. Raises JobRefused."""
    places = tuple(dict.fromkeys(deliver))
    for place in places:
        if place.startswith(FILE) and not _is_inside(place.removeprefix(FILE)):
            raise JobRefused(say("jobs_bad_file", language, place=place), "deliver")
    if len(places) > MAX_PLACES:
        raise JobRefused(say("jobs_most_places", language, n=MAX_PLACES), "deliver")
    return places


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    fits = all(part not in ("", ".", "..") and not part.startswith(".") for part in parts)
    return bool(path) and len(path) <= 200 and fits and path.isprintable() and "\\" not in path
