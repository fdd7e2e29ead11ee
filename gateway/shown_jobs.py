"""Jobs and runs as the HTTP API and the command line return them.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

from msgspec import Struct

Reason = Literal[
    "", "missed", "paused", "overlap", "deleted", "no_rights", "not_begun", "model", "money", "bug",
    "script", "chat_gone", "no_means",
]  # fmt: skip


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report's delivery target, or the reason why delivery failed."""

    to: str
    why: str = ""


class Try(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A try of a run that failed before another one was made: when it ended, and why."""

    at: float
    reason: Reason = ""
    text: str = ""


class ShownRun(Struct, frozen=True, kw_only=True):
    """A run as returned: its outcome, its delivery and its cost. `words`: the outcome in words;
    `tried`: the attempts before the last one; `unpriced`: model calls without a known price."""

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
    """A job as returned; times are UTC. `words`: its schedule in words; `last`: its newest run."""

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
