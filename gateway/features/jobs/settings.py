"""The settings about jobs."""

from gateway.declaration import Env, Setting, SettingTables, WholeNumber
from gateway.jobs_port import JobSettings

DEFAULTS = JobSettings()


def parse_zone(text: str) -> str:
    """The name of a time zone that there is."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(text)
    except (OSError, ValueError, KeyError):
        raise ValueError("write a time zone like Europe/Berlin.") from None
    return text


PER_PERSON = Setting(
    "JOBS_PER_PERSON",
    DEFAULTS.per_person,
    WholeNumber(mend="write a whole number."),
    "maximum number of jobs per person, across all conversations",
)
INTERVAL = Setting(
    "JOBS_MIN_INTERVAL",
    DEFAULTS.interval,
    WholeNumber(mend="write a whole number."),
    "minimum interval of a job, in seconds",
)
ZONE = Setting(
    "JOBS_TIMEZONE",
    DEFAULTS.zone,
    parse_zone,
    "default time zone of jobs and people, such as `Europe/Berlin`",
)
TABLES: SettingTables = {"jobs": (PER_PERSON, INTERVAL, ZONE)}


def read_jobs(env: Env) -> JobSettings:
    """The settings in `env`; raises SettingsError."""
    return JobSettings(
        per_person=PER_PERSON.read(env), interval=INTERVAL.read(env), zone=ZONE.read(env)
    )
