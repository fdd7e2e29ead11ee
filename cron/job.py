"""What a schedule is: a closed set of values, and the error that says why one cannot be."""

from typing import TypeAlias

from msgspec import Struct


class Cron(Struct, frozen=True, kw_only=True):
    """Six fields: second, minute, hour, day of month, month, day of week (0 and 7: Sunday)."""

    fields: tuple[str, str, str, str, str, str]

    @property
    def text(self) -> str:
        """As it is stored; the second is left out where it is 0."""
        return " ".join(self.fields[1:] if self.fields[0] == "0" else self.fields)

    @property
    def fixed(self) -> bool:
        """It names times of the day: one that a change of the clock skips or repeats is still
        meant once. With a star for minutes or hours it means every real one."""
        return not (self.fields[1].startswith("*") or self.fields[2].startswith("*"))


class Every(Struct, frozen=True, kw_only=True):
    """Each time so many seconds after the time before."""

    seconds: int

    @property
    def text(self) -> str:
        """As it is stored: `every 90s`."""
        return f"every {self.seconds}s"


class Once(Struct, frozen=True, kw_only=True):
    """One moment, in seconds since 1970; `text` is how it is stored."""

    at: float
    text: str


Schedule: TypeAlias = Cron | Every | Once


class ScheduleError(ValueError):
    """A schedule cannot be; the text says why, and what to write instead."""
