"""Jobs and runs as the HTTP API and the command line give them out. Vocabulary: imports
nothing of ours."""

from typing import Literal

from msgspec import Struct

Reason = Literal[
    "", "missed", "paused", "overlap", "deleted", "no_rights", "not_begun", "model", "money", "bug",
    "script", "chat_gone", "no_means",
]  # fmt: skip


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a report was handed over, or why it could not be."""

    to: str
    why: str = ""


class Try(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A try of a run that failed before another one was made: when it ended, and why."""

    at: float
    reason: Reason = ""
    text: str = ""


class ShownRun(Struct, frozen=True, kw_only=True):
    """A run as it is given out: what became of it, of its report, and what it cost, apart.
    `words`: how it went, for people; `tried`: the tries before the last one;
    `unpriced`: calls of models whose price nobody knows."""

    slot: str
    due: str
    state: str
    reason: str
    words: str
    tries: int
    tried: tuple[Try, ...]
    count: int
    cost: float
    unpriced: int
    delivered: tuple[Delivery, ...]
    text: str


class ShownJob(Struct, frozen=True, kw_only=True):
    """A job as it is given out; moments are UTC. `words`: when it is due, for people; `last`: its
    newest run."""

    id: str
    title: str
    state: str
    why: str
    schedule: str
    words: str
    zone: str
    next: tuple[str, ...]
    where: str
    owner: str
    prompt: str
    script: str
    context_from: str
    hook: str
    deliver: tuple[str, ...]
    missed: str
    overlap: str
    jitter: float
    spend: float
    model: str = ""
    profile: str = ""
    tools: str = ""
    last: ShownRun | None
