"""Jobs and their runs as values, and the ports of who keeps them, who computes times, who changes
them (`Jobs`, `JobDrafts`) and who settles what became of a run (`RunEnds`).

Vocabulary: imports nothing of ours but the gateway's. A run is one due time of a job;
there is never more than one row for it, whoever tries to make one.
"""

import asyncio
import re
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gateway.command_texts import drop_marks
from gateway.messages import Conversation, Sender, digest
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
"""Begins the slot of a run that a person began."""
MAX_GIVEN = 16_000
"""Characters of a call's body that a prompt holds."""
HOOK_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
OPERATOR = Sender(platform="machine", id="operator", name="operator")
"""Whose jobs those of the file are: whoever may write in the data folder."""
HERE = "here"
"""The place of delivery that is the conversation in which a job runs."""
FILE = "file:"
"""Begins a place of delivery that is a file of that conversation's workspace."""


def cut_given(text: str) -> str:
    """As much of a call's body as a prompt holds, with how much is left out."""
    left_out = len(text) - MAX_GIVEN
    return text if left_out <= 0 else f"{text[:MAX_GIVEN]}\n[… {left_out} characters left out]"


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is done again and again. `conversation`: the address where it runs;
    `schedule` and `zone` as `Timetable.read` gave them, no schedule where only calls of `hook`
    begin it; `next_due` the next due time, 0 for none, and `wake` that with its jitter; `version`
    changes with every write.

    A job of the agent has a `prompt`; `script` is a command that runs before, or alone, and
    `bound` what was confirmed of it. `feeds_on`: the job whose last report it is given.
    `deliver`: where the report goes, nothing for the conversation itself. `spend`: dollars that
    one run may take, 0 for no limit of its own. `talk`: a call of the hook is no run, but begins a
    turn that knows the conversation, and is answered in it. `model`, `profile`, `tools` (a named
    set): what its runs are done with, "" as the conversation has it."""

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
    def wish(self) -> "JobRequest":
        """What was asked for to make it as it is."""
        return JobRequest(**{name: getattr(self, name) for name in JobRequest.__struct_fields__})

    @property
    def of_file(self) -> bool:
        """It stands in the operator's file, which alone changes it."""
        return self.owner.key == OPERATOR.key


class JobRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One due time of a job and what became of it. `slot` names it within the job; `wake`: when
    it is tried again; `count`: due times that a skipped one stands for; `text`: what it said;
    `given`: what the call that began it brought along; `delivered`: what became of its report
    beyond the conversation; `tried`: the tries before this one; `unpriced`: calls of
    models whose price nobody knows."""

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
        """It is not over."""
        return self.state in OPEN

    @property
    def by_hand(self) -> bool:
        """A person began it, now."""
        return self.slot.startswith(BY_HAND)

    @property
    def turn(self) -> str:
        """The id of the turn that carries it out: known before, so there is never a second one."""
        return digest(f"{self.job} {self.slot} {self.tries}".encode())

    def add_try(self, last: Try) -> tuple[Try, ...]:
        """Its tries with one more that failed."""
        return (*self.tried, replace(last, text=last.text[:MAX_SAID]))[-MAX_TRIED:]


class Due(Struct, frozen=True, kw_only=True):
    """What is due, and the nearest moment after that."""

    jobs: tuple[Job, ...]
    runs: tuple[JobRun, ...]
    next: float | None


class JobStore(Protocol):
    """Keeps jobs and runs. All calls raise StoreFailed if nothing was kept."""

    async def get(self, job: str) -> Job | None: ...

    async def list_jobs(self, owner: str = "") -> tuple[Job, ...]:
        """The jobs of the account `owner`, or all, the oldest first."""

    async def due(self, now: float, limit: int) -> Due:
        """Active jobs and runs whose `wake` has come."""

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[JobRun, ...]) -> bool:
        """In one write: the job `before` (None: it must not exist) becomes `after` (None: it is
        gone) and `runs` are added where their slot has none. False, and nothing is written, if
        the stored job is not `before` any more. A second time it is True and changes nothing."""

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
        """`schedule` with a moment that is told as people do ('tomorrow at nine') in exact form;
        any other as it is. Refused says why it cannot be."""

    def read(self, schedule: str, zone: str) -> str:
        """The schedule as it is stored. Refused says why it cannot be."""

    def find_next(self, schedule: str, zone: str, moment: float) -> float | None:
        """The first due time after `moment`, None if there is none."""

    def count(self, schedule: str, zone: str, first: float, until: float) -> int:
        """Due times from the due time `first` on, up to `until`. Many take a while."""

    def words(self, schedule: str, zone: str, language: str) -> str:
        """The schedule in plain words. Not for a job without one."""

    def format_moment(self, moment: float, zone: str) -> str:
        """A moment for people: `2026-11-23 09:00 Europe/Berlin`. ValueError says that there is no
        such zone."""


class Asker(Struct, frozen=True, kw_only=True):
    """Who wants something with jobs, and where. `accounts`: all that the person has."""

    conversation: Conversation
    sender: Sender
    role: str
    accounts: frozenset[str] = frozenset()


class JobRequest(Struct, frozen=True, kw_only=True):
    """A job as it is asked for, before it is looked at."""

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
    """`per_person`: jobs that one person may have; `interval`: least seconds between two due
    times; `zone`: where a job names none; `spend`: dollars that one job may spend a day, 0 for
    no limit."""

    per_person: int = 20
    interval: int = 60
    zone: str = "UTC"
    spend: float = 0.0


class Jobs(Protocol):
    """The book of jobs: who sees which, and what is done with one."""

    async def list_visible(self, asker: Asker) -> tuple[Job, ...]:
        """The jobs that `asker` may manage from here: own ones, for admins all of this
        conversation. In a group nothing is shown of what belongs elsewhere."""

    def next_times(self, job: Job) -> tuple[float, ...]:
        """Its next three due times."""

    async def pause(self, name: str, why: Reason = "") -> bool:
        """No new runs until it is resumed; False if there is nothing to pause."""

    async def resume(self, name: str) -> Job | None:
        """Go on with the next due time; those that the pause took are on record as skipped."""

    async def remove(self, name: str) -> bool:
        """The job is gone; a run under way comes to its end."""

    async def run_now(self, name: str, key: str) -> bool:
        """One run besides the schedule; the same `key` makes one only."""

    async def call(self, job: Job, slot: str, given: str) -> RunState:
        """One run that a call from outside begins, in the slot of that call; what became of it,
        or of the first call with that slot. Refused if too many wait already."""

    async def retry(self, name: str, slot: str) -> bool:
        """Try a run that failed once more, now."""


class JobDrafts(Protocol):
    """Makes and changes jobs, from wishes that were looked at."""

    async def draft(self, wish: JobRequest, asker: Asker, old: Job | None = None) -> Draft:
        """What `wish` would be; `old`: the job that it changes. Refused says why it cannot be."""

    async def look(self, wish: JobRequest, known: Job) -> Draft:
        """`known` as `wish` makes it, with its next times; Refused. Rights are not looked at."""

    def apply_request(self, wish: JobRequest, known: Job) -> Job:
        """`known` with what `wish` says, whenever that is due; Refused."""

    async def make(self, draft: Draft, name: str) -> Job:
        """The job of `draft` under the id `name`; a second time the one that is there. Refused:
        what is due once has its time behind it by now."""

    async def change(self, draft: Draft, *, moved: bool = False, shown: Job | None = None) -> bool:
        """Put what the draft says in place of the job's. `moved`: its conversation too. False if
        the job is gone, or is other than `shown`, from which the draft was made. Refused as for
        `make`."""

    async def has_zone(self, asker: Asker) -> bool:
        """The person chose a time zone, or the gateway has one."""


class RunEnds(Protocol):
    """Puts down what became of runs."""

    async def settle(self, run: JobRun) -> bool:
        """Put down what became of a run that was fired; whether its turn has begun."""

    async def settle_turn(self, name: str, slot: str) -> None:
        """As `settle`, for a turn that has just ended."""

    async def refuse(self, name: str, slot: str, why: Reason, text: str = "") -> None:
        """A run that may not begin; its job is paused. `text`: more of why."""

    async def find_missing(self, name: str) -> str:
        """What of the job's own profile and tools is not here any more, "" if all is."""


class JobPorts(Struct, frozen=True, kw_only=True):
    """All that is asked of jobs, as wiring put it together. `bell` is set when a due time may
    have changed, or a run may be over: the scheduler looks then."""

    store: JobStore
    times: Timetable
    settings: JobSettings
    book: Jobs
    drafts: JobDrafts
    ends: RunEnds
    bell: asyncio.Event
