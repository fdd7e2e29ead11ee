"""For how long what is stored stays, and the settings that say so."""

from functools import partial

from msgspec import Struct

from gateway.ports import SettingReader

DAY = 86_400.0
MAX_DAYS = 36_500
CREATED = "retention:since"
"""The directory's document of a store that was made by a version with these periods: only there
they hold before an operator has chosen one."""


class Periods(Struct, frozen=True, kw_only=True):
    """Seconds, None for ever: whole conversations after their last message, journals of ended
    turns, lines of the audit, and files after their last use (never before their conversation)."""

    conversations: float | None = None
    journals: float | None = 30 * DAY
    audit: float | None = None
    files: float | None = 30 * DAY


BEFORE = Periods()
"""What a store is held to that was made when there was nothing to choose."""


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """`periods` as they are set, with defaults; `chosen`: an operator has set one of them."""

    periods: Periods
    chosen: bool

    def in_force(self, *, created: bool) -> Periods:
        """What is dropped. `created`: the store was made by a version with these periods."""
        return self.periods if self.chosen or created else BEFORE


def read_retention(read: SettingReader) -> RetentionSettings:
    """The settings as they are set; `read` raises what a wrong one is told by."""
    defaults = {"CONVERSATIONS": 90, "JOURNALS": 30, "AUDIT": 365, "FILES": 30}
    names = {name: f"RETENTION_{name}_DAYS" for name in defaults}
    found = {
        name.lower(): read(names[name], partial(_seconds, default=days))
        for name, days in defaults.items()
    }
    chosen = any(read(name, bool) for name in names.values())
    return RetentionSettings(periods=Periods(**found), chosen=chosen)


def _seconds(text: str, default: int) -> float | None:
    if text.lower() == "never":
        return None
    days = text or str(default)
    if not (days.isascii() and days.isdecimal() and 1 <= int(days) <= MAX_DAYS):
        raise ValueError(f"write a number of days, 1 to {MAX_DAYS}, or 'never'.")
    return int(days) * DAY
