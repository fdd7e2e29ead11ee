"""Jobs and their runs as values, and the ports of those who store them, compute times, change them
(`Jobs`, `JobDrafts`) and settle the end of a run (`RunEnds`).

Vocabulary: imports nothing of ours but the gateway's. A run is one due time of a job; there is
never more than one row for it, whoever tries to create one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gateway.command_texts import drop_marks
from gateway.messages import Conversation, JobFired, Sender, digest
from gateway.shown_jobs import Delivery, Reason, Try

Missing = Literal["skip", "latest", "all"]
Overlap = Literal["skip", "queue", "replace"]
JobState = Literal["active", "paused", "ended"]
RunState = Literal[
    "queued", "fired", "retrying", "done", "silent", "failed", "stopped", "skipped",
]  # fmt: skip
OPEN: frozenset[RunState] = frozenset(("queued", "fired", "retrying"))
MAX_RUNS = 200
"""Runs that are kept of a job."""
MAX_TRIED, MAX_SAID = 10, 600
"""Tries that a run's row keeps, and characters of each."""
MAX_CALLS = 20
"""Calls of a job's hook that wait."""
BY_HAND = "now-"
"""Prefix of the slot of a manual run."""
MAX_GIVEN = 16_000
"""Characters of a call's body that a prompt holds."""
MAX_SCRIPT = 100_000
"""Characters of a job's command; no command is longer."""
HOOK_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
OPERATOR = Sender(platform="machine", id="operator", name="operator")
"""Owner of the jobs in the operator's file: anybody who may write in the data folder."""
HERE = "here"
"""Delivery target: the conversation in which the job runs."""
FILE = "file:"
"""Prefix of a delivery target that is a file in that conversation's workspace."""


def cut_given(text: str) -> str:
    """Cut a call's body to the length that fits a prompt, with a note of how much was cut."""
    left_out = len(text) - MAX_GIVEN
    return text if left_out <= 0 else f"{text[:MAX_GIVEN]}\n[… {left_out} characters left out]"


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recurring task.

    `conversation`: the address where it runs; `schedule` and `zone` as `Timetable.read` returned
    them, no schedule if only calls of `hook` start it; `next_due`: the next due time, 0 for none;
    `wake`: that with its jitter; `version` changes with every write. A job of the agent has a
    `prompt`; `script` is a command run before it, or alone, and `bound` what was approved of it.
    `feeds_on`: the job whose last report it receives. `deliver`: where the report goes, empty for
    the conversation itself. `spend`: dollars one run may spend, 0 for no limit of its own. `talk`:
    a call of the hook starts no run but a turn that knows the conversation and answers in it.
    `model`, `profile`, `tools` (a named set): used for its runs, "" for the conversation's own.
    """

    id: str
    owner: Sender
    conversation: str
    title: str
    prompt: str
    schedule: str
    zone: str
    missed: Missing = "latest"
    window: float = 3_600.0
    overlap: Overlap = "skip"
    jitter: float = 0.0
    state: JobState = "active"
    why: Reason = ""
    next_due: float = 0.0
    wake: float = 0.0
    made: float = 0.0
    version: str = ""
    script: str = ""
    bound: str = ""
    feeds_on: str = ""
    hook: str = ""
    deliver: tuple[str, ...] = ()
    spend: float = 0.0
    talk: bool = False
    model: str = ""
    profile: str = ""
    tools: str = ""

    @property
    def is_over(self) -> bool:
        """True if it has no due times any more: all are past, or passed while it was paused."""
        return self.state == "ended"

    @property
    def wish(self) -> "JobRequest":
        """Return a request that would create this job."""
        return JobRequest(**{name: getattr(self, name) for name in JobRequest.__struct_fields__})

    @property
    def of_file(self) -> bool:
        """True if the job is in the operator's file, the only place that changes it."""
        return self.owner.key == OPERATOR.key


class JobRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One due time of a job and its outcome.

    `slot` names it within the job; `wake`: when it is tried again; `count`: due times that a
    skipped one stands for; `text`: what it reported; `given`: the payload of the call that started
    it; `delivered`: the delivery of its report beyond the conversation; `tried`: earlier attempts;
    `unpriced`: model calls without a known price.
    """

    job: str
    slot: str
    due: float
    state: RunState
    reason: Reason = ""
    tries: int = 0
    at: float = 0.0
    ended: float = 0.0
    replaces: str = ""
    cost: float = 0.0
    text: str = ""
    wake: float = 0.0
    count: int = 1
    version: str = ""
    given: str = ""
    delivered: tuple[Delivery, ...] = ()
    tried: tuple[Try, ...] = ()
    unpriced: int = 0

    @property
    def open(self) -> bool:
        """True while the run is not over."""
        return self.state in OPEN

    @property
    def by_hand(self) -> bool:
        """True if a person started it manually."""
        return self.slot.startswith(BY_HAND)

    @property
    def turn(self) -> str:
        """The id of the turn that carries it out: known before, so there is never a second one."""
        return digest(f"{self.job} {self.slot} {self.tries}".encode())

    def add_try(self, last: Try) -> tuple[Try, ...]:
        """Return its attempts with another failed one."""
        return (*self.tried, replace(last, text=last.text[:MAX_SAID]))[-MAX_TRIED:]


class Due(Struct, frozen=True, kw_only=True):
    """Due jobs and runs, and the nearest moment after them."""

    jobs: tuple[Job, ...]
    runs: tuple[JobRun, ...]
    next: float | None


class JobStore(Protocol):
    """Keeps jobs and runs. All calls raise StoreFailed if nothing was kept."""

    async def get(self, job: str) -> Job | None: ...

    async def list_jobs(self, owner: str = "") -> tuple[Job, ...]:
        """The jobs of the account `owner`, or all, the oldest first."""

    async def due(self, now: float, limit: int) -> Due:
        """Return active jobs and runs whose `wake` has come."""

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[JobRun, ...]) -> bool:
        """In one write, replace the job `before` (None: it must not exist) by `after` (None: delete
        it) and add `runs` where their slot is free, or taken by one that was skipped later: by a
        clock that was ahead.

        Return False, and write nothing, if the stored job is no longer `before`. Idempotent: a
        repeated call returns True and changes nothing.
        """

    async def run(self, job: str, slot: str) -> JobRun | None: ...

    async def runs(self, job: str, limit: int) -> tuple[JobRun, ...]:
        """The newest runs of a job, by due time, the newest first."""

    async def list_unfinished(self, job: str = "") -> tuple[JobRun, ...]:
        """The runs of `job` that are not over, or of all jobs, by due time."""

    async def advance(self, before: JobRun, after: JobRun) -> bool:
        """Write a run anew; False if the stored one is not `before` any more."""


class JobRefused(ValueError):
    """A schedule or a wish cannot be; the text says why, for people. `about`: the field of the
    wish, "" if it is not one alone."""

    def __init__(self, text: str, about: str = "") -> None:
        super().__init__(drop_marks(text))
        self.about = about


class Timetable(Protocol):
    """Computes times; its schedules are text."""

    def resolve(self, schedule: str, zone: str, now: float) -> str:
        """Convert a relative moment ('tomorrow at nine') in `schedule` to exact form; any other
        schedule is returned as it is. Raises JobRefused with the reason."""

    def read(self, schedule: str, zone: str) -> str:
        """The schedule as it is stored. JobRefused says why it cannot be."""

    def find_next(self, schedule: str, zone: str, moment: float) -> float | None:
        """Return the first due time after `moment`, None if there is none. JobRefused if the
        schedule cannot be read any more: it is of another version, or its zone is unknown here."""

    def count(self, schedule: str, zone: str, first: float, until: float) -> int:
        """Due times from the due time `first` on, up to `until`; that one alone if the schedule
        cannot be read any more. Many take a while."""

    def words(self, schedule: str, zone: str, language: str) -> str:
        """The schedule in plain words, or as it is stored if it cannot be read any more. Not for a
        job without one."""

    def format_moment(self, moment: float, zone: str) -> str:
        """A moment for people: `2026-11-23 09:00 Europe/Berlin`; in UTC if the zone is unknown."""

    def check_zone(self, zone: str) -> None:
        """ValueError if there is no such zone."""


class Asker(Struct, frozen=True, kw_only=True):
    """The person who asks about jobs, and where. `accounts`: all accounts of the person."""

    conversation: Conversation
    sender: Sender
    role: str
    accounts: frozenset[str] = frozenset()


class JobRequest(Struct, frozen=True, kw_only=True):
    """A requested job, before it is validated."""

    title: str
    prompt: str
    schedule: str
    zone: str = ""
    missed: Missing = "latest"
    window: float = 3_600.0
    overlap: Overlap = "skip"
    jitter: float = 0.0
    script: str = ""
    feeds_on: str = ""
    hook: str = ""
    deliver: tuple[str, ...] = ()
    spend: float = 0.0
    talk: bool = False
    model: str = ""
    profile: str = ""
    tools: str = ""


class Draft(Struct, frozen=True, kw_only=True):
    """A wish that was looked at: the job that it would be, and its next times."""

    job: Job
    times: tuple[float, ...]


class JobSettings(Struct, frozen=True, kw_only=True):
    """`per_person`: jobs allowed per person; `interval`: minimum seconds between two due times;
    `zone`: the default zone; `spend`: dollars one job may spend a day, 0 for no limit."""

    per_person: int = 20
    interval: int = 60
    zone: str = "UTC"
    spend: float = 0.0


class Jobs(Protocol):
    """The book of jobs: who sees which, and the changes made to one."""

    async def list_visible(self, asker: Asker) -> tuple[Job, ...]:
        """Return the jobs that `asker` may manage from here: their own, for admins all of this
        conversation. In a group, jobs of other places stay hidden."""

    def next_times(self, job: Job) -> tuple[float, ...]:
        """Return its next three due times."""

    async def pause(self, name: str, why: Reason = "") -> bool:
        """Start no new runs until it is resumed. Return False if there is nothing to pause."""

    async def resume(self, name: str) -> Job | None:
        """Continue with the next due time; those missed during the pause are recorded as
        skipped."""

    async def remove(self, name: str) -> bool:
        """Delete the job; a running run finishes."""

    async def run_now(self, name: str, key: str) -> bool:
        """Start one run outside the schedule; the same `key` starts only one."""

    async def call(self, job: Job, slot: str, given: str) -> RunState:
        """Start one run for a call from outside, in that call's slot, and return its state, or the
        state of the first call with that slot. Raises JobRefused if too many are waiting."""

    async def retry(self, name: str, slot: str) -> bool:
        """Try a run that failed once more, now."""


class JobDrafts(Protocol):
    """Makes and changes jobs, from wishes that were looked at."""

    async def draft(self, wish: JobRequest, asker: Asker, old: Job | None = None) -> Draft:
        """Validate `wish`; `old`: the job that it changes. Raises JobRefused with the reason."""

    async def look(self, wish: JobRequest, known: Job) -> Draft:
        """`known` as `wish` makes it, with its next times; JobRefused. Rights are not looked at."""

    def apply_request(self, wish: JobRequest, known: Job) -> Job:
        """Return `known` changed by `wish`, without checking due times. Raises JobRefused."""

    async def make(self, draft: Draft, name: str) -> Job:
        """Create the job of `draft` under the id `name`; a repeated call returns the existing job.
        JobRefused if a one-time job's time has passed."""

    async def change(self, draft: Draft, *, moved: bool = False, shown: Job | None = None) -> bool:
        """Replace the job's values with those of the draft. `moved`: its conversation too. False if
        another change came first. JobRefused like `make`."""

    async def has_zone(self, asker: Asker) -> bool:
        """The person chose a time zone, or the gateway has one."""


class RunEnds(Protocol):
    """Records the outcome of runs."""

    async def settle(self, run: JobRun) -> bool:
        """Record the outcome of a fired run. Return True if its turn has begun."""

    async def settle_turn(self, name: str, slot: str) -> None:
        """Like `settle`, for a turn that has just ended."""

    async def refuse(self, name: str, slot: str, why: Reason, text: str = "") -> None:
        """A run that may not begin; its job is paused. `text`: more of why."""

    async def stop(self, run: JobRun, why: Reason) -> None:
        """A run that shall not begin any more."""

    async def hand_over(self, fired: JobFired) -> None:
        """A run whose job was moved to another conversation begins there."""

    def find_missing(self, job: Job) -> str:
        """Return the job's own profile or tools that no longer exist, "" if all do."""


class JobPorts(Struct, frozen=True, kw_only=True):
    """The ports for jobs as wired together. `bell` is set when a due time may have changed or a run
    may be over, so that the scheduler looks again. `now`: the store's clock, which runs jobs.
    `prepare` makes the message of a run, by its job as it is now."""

    store: JobStore
    times: Timetable
    settings: JobSettings
    book: Jobs
    drafts: JobDrafts
    ends: RunEnds
    bell: asyncio.Event
    now: Callable[[], Awaitable[float]]
    prepare: Callable[[Job, JobRun], Awaitable[JobFired]]
