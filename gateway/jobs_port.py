"""Jobs and their runs as values, and what is asked of who keeps them and of who computes times.

Vocabulary: imports nothing of ours but the gateway's. A run is one due time of a job;
there is never more than one row for it, whoever tries to make one.
"""

from typing import Literal, Protocol

from msgspec import Struct

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
OPERATOR = Sender(platform="machine", id="operator", name="operator")
"""Whose jobs those of the file are: whoever may write in the data folder."""
HERE = "here"
"""The place of delivery that is the conversation in which a job runs."""
FILE = "file:"
"""Begins a place of delivery that is a file of that conversation's workspace."""


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is done again and again. `conversation`: the address where it runs;
    `schedule` and `zone` as `Timetable.read` gave them, no schedule where only calls of `hook`
    begin it; `next_due` the next due time, 0 for none, and `wake` that with its jitter; `version`
    changes with every write.

    A job of the agent has a `prompt`; `script` is a command that runs before, or alone, and
    `bound` what was confirmed of it. `feeds_on`: the job whose last report it is given.
    `deliver`: where the report goes, nothing for the conversation itself. `spend`: dollars that
    one run may take, 0 for no limit of its own."""

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

    @property
    def of_file(self) -> bool:
        """It stands in the operator's file, which alone changes it."""
        return self.owner.key == OPERATOR.key


class JobRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One due time of a job and what became of it. `slot` names it within the job; `wake`: when
    it is tried again; `count`: due times that a skipped one stands for; `text`: what it said;
    `given`: what the call that began it brought along; `delivered`: what became of its report
    beyond the conversation; `tried`: the tries before this one."""

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

    @property
    def open(self) -> bool:
        """It is not over."""
        return self.state in OPEN

    @property
    def turn(self) -> str:
        """The id of the turn that carries it out: known before, so there is never a second one."""
        return digest(f"{self.job} {self.slot} {self.tries}".encode())


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
        super().__init__(text)
        self.about = about


class Timetable(Protocol):
    """Computes times; its schedules are text."""

    def read(self, schedule: str, zone: str) -> str:
        """The schedule as it is stored. Refused says why it cannot be."""

    def after(self, schedule: str, zone: str, moment: float) -> float | None:
        """The first due time after `moment`, None if there is none."""

    def count(self, schedule: str, zone: str, first: float, until: float) -> int:
        """Due times from the due time `first` on, up to `until`. Many take a while."""

    def words(self, schedule: str, zone: str, language: str) -> str:
        """The schedule in plain words. Not for a job without one."""

    def when(self, moment: float, zone: str) -> str:
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


class Draft(Struct, frozen=True, kw_only=True):
    """A wish that was looked at: the job that it would be, and its next times."""

    job: Job
    times: tuple[float, ...]
