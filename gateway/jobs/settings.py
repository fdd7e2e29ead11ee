"""The settings about jobs."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from msgspec import Struct

NAMES = ("JOBS_PER_PERSON", "JOBS_MIN_INTERVAL", "JOBS_TIMEZONE")


class JobSettings(Struct, frozen=True, kw_only=True):
    """`per_person`: jobs that one person may have; `interval`: least seconds between two due
    times; `zone`: where a job names none. `spend`: dollars that one job may spend a day, 0 for no
    limit."""

    per_person: int = 20
    interval: float = 60.0
    zone: str = "UTC"
    spend: float = 0.0


class Wrong(ValueError):
    """A setting cannot work: (name, value, mend)."""


def read_jobs(env: Mapping[str, str]) -> JobSettings:
    """The settings in `env`; Wrong if one cannot work."""
    known = JobSettings()
    zone = env.get("JOBS_TIMEZONE", "") or known.zone
    try:
        ZoneInfo(zone)
    except (OSError, ValueError):
        raise Wrong("JOBS_TIMEZONE", zone, "write a time zone like Europe/Berlin.") from None
    return JobSettings(
        per_person=int(_number(env, "JOBS_PER_PERSON", known.per_person)),
        interval=_number(env, "JOBS_MIN_INTERVAL", known.interval),
        zone=zone,
    )


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "")
    if text and not text.isdecimal():
        raise Wrong(name, text, "write a whole number.")
    return float(text) if text else default
