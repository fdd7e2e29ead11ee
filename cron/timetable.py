"""The gateway's `Timetable` over our schedules, and a schedule in plain words."""

from datetime import UTC, datetime

from cron.job import Cron, Every, Once, ScheduleError
from cron.relative import read_relative
from cron.schedule import read_schedule, zone_of
from cron.trigger import find_missed, next_fire
from gateway.jobs_port import JobRefused
from gateway.texts import say

_GERMAN = {
    "Monday": "Montag",
    "Tuesday": "Dienstag",
    "Wednesday": "Mittwoch",
    "Thursday": "Donnerstag",
    "Friday": "Freitag",
    "Saturday": "Samstag",
    "Sunday": "Sonntag",
    "January": "Januar",
    "February": "Februar",
    "March": "März",
    "May": "Mai",
    "June": "Juni",
    "July": "Juli",
    "October": "Oktober",
    "December": "Dezember",
}
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


class Times:
    """Computes times; a job's schedule comes as the text that `read` gave."""

    def resolve(self, schedule: str, zone: str, now: float) -> str:
        try:
            return read_relative(schedule, zone, now) or schedule
        except ScheduleError as error:
            raise JobRefused(str(error), "schedule") from None

    def read(self, schedule: str, zone: str) -> str:
        try:
            return read_schedule(schedule, zone).text
        except ScheduleError as error:
            raise JobRefused(str(error), "schedule") from None

    def after(self, schedule: str, zone: str, moment: float) -> float | None:
        return next_fire(read_schedule(schedule, zone), zone, moment)

    def count(self, schedule: str, zone: str, first: float, until: float) -> int:
        reached = find_missed(read_schedule(schedule, zone), zone, first, until)
        return len(reached.times) + reached.left_out

    def words(self, schedule: str, zone: str, language: str) -> str:
        match read_schedule(schedule, zone):
            case Every(seconds=seconds):
                return say("jobs_every", language, span=span(seconds))
            case Once(at=at):
                return say("jobs_once", language, when=self.when(at, zone))
            case Cron() as cron:
                return describe_fields(cron.text, language)

    def when(self, moment: float, zone: str) -> str:
        local = datetime.fromtimestamp(moment, UTC).astimezone(zone_of(zone))
        seconds = ":%S" if local.second else ""
        return f"{local:%Y-%m-%d %H:%M{seconds}} {zone}"


def span(seconds: int) -> str:
    """`1 d 12 h`, `90 s` as `1 min 30 s`."""
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts)


def describe_fields(fields: str, language: str) -> str:
    """Cron's fields in words; the fields themselves where nobody has words for them."""
    from cron_descriptor import ExpressionDescriptor, FormatError, Options

    options = Options()
    options.use_24hour_time_format = True
    german = language[:2].lower() == "de"
    options.locale_code = "de_DE" if german else "en_US"
    try:
        words = str(ExpressionDescriptor(fields, options).get_description())
    except (FormatError, ValueError, IndexError, KeyError):
        return fields
    if german:
        for english, own in _GERMAN.items():
            words = words.replace(english, own)
    return words[:1].upper() + words[1:]
