"""Every failure of the agent that a caller decides about.

BaseException
  Suspend                the turn stops here and is not at fault; only the session catches it
    Parked               all branches wait for a person
    Cancelled            a person stopped the turn
    LeaseLost            another replica owns the conversation now
    Drained              the process is shutting down, or its store refused a commit
Exception
  AgentError             recorded in the journal and raised the same on replay
    ToolFailed           a tool could not do its work
      NothingRuns        what it is about ran in a sandbox that is gone
    ModelFailed          no provider gave an answer
    BudgetExceeded       a limit of money was reached
      CallsExceeded      the turn's model calls are used up
    TimedOut             a limit of time was reached
    Cut                  a person skipped the step that this belongs to
  Diverged               the journal holds another call under this key: a bug or an upgrade
  Misuse                 the library was called in a way that cannot work
"""

import errno
from typing import Literal

from agent_core.phrases import Phrase

ModelFault = Literal[
    "auth",
    "rate_limited",
    "unpaid",
    "missing",
    "overloaded",
    "timeout",
    "unreachable",
    "rejected",
    "malformed",
    "overflow",
    "truncated",
    "endless",
]
"""The reason why no answer came. `unpaid`: no credit is left; `missing`: no such model, or none for
this key; `overflow`: the request was too long, and refused; `truncated`: it was too long, and the
server silently dropped its beginning; `endless`: the answer was given up, as it did not end."""


_SHORTAGES = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT)
)


def is_shortage(error: BaseException | None) -> bool:
    """Return True if the machine was short of files, memory, threads or disk. That passes, and says
    nothing about the work itself."""
    while error is not None:
        lacks = isinstance(error, OSError) and error.errno in _SHORTAGES
        no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
        if lacks or no_thread or isinstance(error, MemoryError):
            return True
        error = error.__cause__
    return False


class Suspend(BaseException):
    """The turn stops here without fault. Never recorded, never caught by turn code."""


class Parked(Suspend):
    """Every branch waits for an answer."""


class Cancelled(Suspend):
    """A person stopped the turn."""


class LeaseLost(Suspend):
    """Another holder owns the conversation: nothing may be written or sent any more."""


class Drained(Suspend):
    """The process ends, or the store refused a commit: the turn goes on at its next resume."""


class AgentError(Exception):
    """A failure that is part of the turn's history. `phrases`: its text as values; () if there is
    none."""

    phrases: tuple[Phrase, ...] = ()


class ToolFailed(AgentError):
    """A tool could not do its work; the text is for the model."""


class NotShown(ToolFailed):
    """The content that a person wants to look at cannot be shown; `said` tells them why."""

    def __init__(self, said: Phrase) -> None:
        super().__init__(str(said))
        self.said = said


class NothingRuns(NotShown):
    """There is no sandbox, so programs that ran in it are gone. Whoever may can start them
    again."""


class ModelFailed(AgentError):
    """No provider gave an answer. `said` holds several phrases if several providers failed.
    `fault`: why; `retry_after` (seconds): as the provider asked; `window`: tokens that the model
    holds, if an overflow says so."""

    def __init__(
        self,
        said: str | Phrase | tuple[Phrase, ...],
        fault: ModelFault = "unreachable",
        retry_after: float | None = None,
        window: int = 0,
    ) -> None:
        if not isinstance(said, str):
            self.phrases = said if isinstance(said, tuple) else (said,)
        super().__init__(said if isinstance(said, str) else " ".join(map(str, self.phrases)))
        self.fault: ModelFault = fault
        self.retry_after = retry_after
        self.window = window


class BudgetExceeded(AgentError):
    """A limit of calls or money was reached."""


class CallsExceeded(BudgetExceeded):
    """The turn's model calls are used up; one more may be made, to sum up."""


class TimedOut(AgentError):
    """A limit of time was reached."""


class Cut(AgentError):
    """A person skipped the step that this belongs to."""


class Diverged(Exception):
    """The journal holds something else under this key than the code now asks for."""


class Misuse(Exception):
    """The library was misused; the text says what to do instead."""
