"""Jobs and their runs as values, and what is asked of who keeps them and of who computes times.

Vocabulary: imports nothing of ours but the gateway's messages. A run is one due time of a job;
there is never more than one row for it, whoever tries to make one.
"""

from typing import Literal, Protocol

from msgspec import Struct

from gateway.messages import Conversation, Sender, digest

Missing = Literal["skip", "latest", "all"]
Overlap = Literal["skip", "queue", "replace"]
JobState = Literal["active", "paused", "ended"]
RunState = Literal[
    "queued", "fired", "retrying", "done", "silent", "failed", "stopped", "skipped",
]  # fmt: skip
Reason = Literal[
    "", "missed", "paused", "overlap", "deleted", "no_rights", "not_begun", "model", "money", "bug",
]  # fmt: skip
OPEN: frozenset[RunState] = frozenset(("queued", "fired", "retrying"))
MOST_RUNS = 200
"""Runs that are kept of a job."""


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that the agent does again and again. `conversation`: the address where it runs
    and reports; `schedule` and `zone` as `Timetable.read` gave them; `next_due` the next due
    time, 0 for none, and `wake` that with its jitter; `version` changes with every write."""

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


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One due time of a job and what became of it. `slot` names it within the job; `wake`: when
    it is tried again; `count`: due times that a skipped one stands for; `text`: what it said."""

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
    runs: tuple[Run, ...]
    next: float | None


class Jobs(Protocol):
    """Keeps jobs and runs. All calls raise StoreFailed if nothing was kept."""

    async def get(self, job: str) -> Job | None: ...

    async def listed(self, owner: str = "") -> tuple[Job, ...]:
        """The jobs of the account `owner`, or all, the oldest first."""

    async def due(self, now: float, limit: int) -> Due:
        """Active jobs and runs whose `wake` has come."""

    async def commit(self, before: Job | None, after: Job | None, runs: tuple[Run, ...]) -> bool:
        """In one write: the job `before` (None: it must not exist) becomes `after` (None: it is
        gone) and `runs` are added where their slot has none. False, and nothing is written, if
        the stored job is not `before` any more. A second time it is True and changes nothing."""

    async def run(self, job: str, slot: str) -> Run | None: ...

    async def runs(self, job: str, limit: int) -> tuple[Run, ...]:
        """The newest runs of a job, by due time, the newest first."""

    async def unfinished(self) -> tuple[Run, ...]:
        """All runs that are not over, by due time."""

    async def advance(self, before: Run, after: Run) -> bool:
        """Write a run anew; False if the stored one is not `before` any more."""


class Refused(ValueError):
    """A schedule or a wish cannot be; the text says why, for people."""


class Timetable(Protocol):
    """Computes times; its schedules are text."""

    def read(self, schedule: str, zone: str) -> str:
        """The schedule as it is stored. Refused says why it cannot be."""

    def after(self, schedule: str, zone: str, moment: float) -> float | None:
        """The first due time after `moment`, None if there is none."""

    def words(self, schedule: str, zone: str, language: str) -> str:
        """The schedule in plain words."""

    def when(self, moment: float, zone: str) -> str:
        """A moment for people: `Mon 2026-11-23 09:00 Europe/Berlin`."""


class Asker(Struct, frozen=True, kw_only=True):
    """Who wants something with jobs, and where. `accounts`: all that the person has."""

    conversation: Conversation
    sender: Sender
    role: str
    accounts: frozenset[str] = frozenset()


class Wish(Struct, frozen=True, kw_only=True):
    """A job as it is asked for, before it is looked at."""

    title: str
    prompt: str
    schedule: str
    zone: str = ""
    missed: Missing = "latest"
    overlap: Overlap = "skip"
    jitter: float = 0.0


class Draft(Struct, frozen=True, kw_only=True):
    """A wish that was looked at: the job that it would be, and its next times."""

    job: Job
    times: tuple[float, ...]
