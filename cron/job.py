"""Schedules as a closed set of values, and the error for an invalid one."""

from typing import TypeAlias

from msgspec import Struct


class Cron(Struct, frozen=True, kw_only=True):
    """Six fields: second, minute, hour, day of month, month, day of week (0 and 7: Sunday)."""

    fields: tuple[str, str, str, str, str, str]

    @property
    def text(self) -> str:
        """The stored form; the seconds are left out if they are 0."""
        return " ".join(self.fields[1:] if self.fields[0] == "0" else self.fields)

    @property
    def fixed(self) -> bool:
        """True if it names times of the day: one that a change of the clock skips or repeats still
        occurs once. With a star for minutes or hours it occurs at every real one."""
        return not (self.fields[1].startswith("*") or self.fields[2].startswith("*"))


class Every(Struct, frozen=True, kw_only=True):
    """Every so many seconds after the previous time."""

    seconds: int

    @property
    def text(self) -> str:
        """The stored form: `every 90s`."""
        return f"every {self.seconds}s"


class Once(Struct, frozen=True, kw_only=True):
    """One moment, in seconds since 1970; `text` is the stored form."""

    at: float
    text: str


Schedule: TypeAlias = Cron | Every | Once


class ScheduleError(ValueError):
    """An invalid schedule; the text says why, and what to write instead."""
