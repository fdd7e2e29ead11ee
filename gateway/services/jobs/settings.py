"""The settings about jobs."""

from msgspec import Struct

from gateway.ports import SettingReader


class JobSettings(Struct, frozen=True, kw_only=True):
    """`per_person`: jobs that one person may have; `interval`: least seconds between two due
    times; `zone`: where a job names none; `spend`: dollars that one job may spend a day, 0 for
    no limit."""

    per_person: int = 20
    interval: int = 60
    zone: str = "UTC"
    spend: float = 0.0


def read_jobs(read: SettingReader) -> JobSettings:
    """The settings as they are set; `read` raises what a wrong one is told by."""
    return JobSettings(
        per_person=read("JOBS_PER_PERSON", lambda text: _number(text, 20)),
        interval=read("JOBS_MIN_INTERVAL", lambda text: _number(text, 60)),
        zone=read("JOBS_TIMEZONE", _zone),
    )


def _number(text: str, default: int) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        raise ValueError("write a whole number.")
    return int(text) if text else default


def _zone(text: str) -> str:
    if text:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(text)
        except (OSError, ValueError, KeyError):
            raise ValueError("write a time zone like Europe/Berlin.") from None
    return text or "UTC"
