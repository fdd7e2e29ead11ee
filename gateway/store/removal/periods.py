"""Retention periods, and their settings."""

from msgspec import Struct

from gateway.declaration import Env, OrNever, Setting, SettingTables, WholeNumber

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
"""The periods of a store from before they could be chosen."""


class RetentionSettings(Struct, frozen=True, kw_only=True):
    """`periods` as they are set, with defaults; `chosen`: an operator has set one of them."""

    periods: Periods
    chosen: bool

    def in_force(self, *, created: bool) -> Periods:
        """Return the periods in force. `created`: the store was made by a version with these
        periods."""
        return self.periods if self.chosen or created else BEFORE


DAYS = OrNever(
    kind=WholeNumber(
        least=1, most=MAX_DAYS, mend=f"write a number of days, 1 to {MAX_DAYS}, or 'never'."
    ),
    never=None,
)


def _declare(what: str, days: int, about: str) -> Setting[int | None]:
    return Setting(f"RETENTION_{what}_DAYS", days, DAYS, about)


CONVERSATIONS = _declare(
    "CONVERSATIONS",
    90,
    "days after its last message until a conversation is deleted completely, or `never`",
)
JOURNALS = _declare(
    "JOURNALS", 30, ("days until the journal of an ended turn is deleted, or `never`")
)
AUDIT = _declare("AUDIT", 365, "days until an audit entry is deleted, or `never`")
FILES = _declare(
    "FILES",
    30,
    "days after its last use until the folder of a deleted conversation is deleted, or `never`",
)
TABLES: SettingTables = {"retention": (CONVERSATIONS, JOURNALS, AUDIT, FILES)}


def read_retention(env: Env) -> RetentionSettings:
    """The settings in `env`; raises SettingsError."""
    return RetentionSettings(
        periods=Periods(
            conversations=_read_seconds(CONVERSATIONS, env),
            journals=_read_seconds(JOURNALS, env),
            audit=_read_seconds(AUDIT, env),
            files=_read_seconds(FILES, env),
        ),
        chosen=any(setting.text(env) for setting in TABLES["retention"]),
    )


def _read_seconds(setting: Setting[int | None], env: Env) -> float | None:
    days = setting.read(env)
    return None if days is None else days * DAY
