"""The gateway's `Timetable` over our schedules, and a schedule in plain words."""

from datetime import UTC, datetime

from cron.job import Cron, Every, Once, ScheduleError
from cron.recurring import read_recurring
from cron.relative import read_relative
from cron.schedule import read_schedule, zone_of
from cron.schedule_words import WORDS, describe_span, describe_usual, name_in_english, write_out
from cron.trigger import find_missed, next_fire
from gateway.jobs_port import JobRefused
from gateway.texts import say
from gateway.texts.languages import ENGLISH, reduce_language
from gateway.texts.runs import show_moment

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
_LOCALES = {
    "de": "de_DE",
    "es": "es_ES",
    "fr": "fr_FR",
    "ja": "ja_JP",
    "pt": "pt_PT",
    "ru": "ru_RU",
    "zh": "zh_CN",
}
"""cron-descriptor's names of languages; it names days and months in English in each of them."""


class Times:
    """Computes times; a job's schedule is given as the text that `read` returned."""

    def resolve(self, schedule: str, zone: str, now: float) -> str:
        try:
            return read_recurring(schedule) or read_relative(schedule, zone, now) or schedule
        except ScheduleError as error:
            raise JobRefused(str(error), "schedule") from None

    def read(self, schedule: str, zone: str) -> str:
        try:
            return read_schedule(schedule, zone).text
        except ScheduleError as error:
            raise JobRefused(str(error), "schedule") from None

    def find_next(self, schedule: str, zone: str, moment: float) -> float | None:
        try:
            return next_fire(read_schedule(schedule, zone), zone, moment)
        except ScheduleError as error:
            raise JobRefused(str(error), "schedule") from None

    def count(self, schedule: str, zone: str, first: float, until: float) -> int:
        try:
            known = read_schedule(schedule, zone)
        except ScheduleError:
            return 1
        reached = find_missed(known, zone, first, until)
        return len(reached.times) + reached.left_out

    def words(self, schedule: str, zone: str, language: str) -> str:
        try:
            known = read_schedule(schedule, zone)
        except ScheduleError:
            return schedule
        match known:
            case Every(seconds=seconds):
                return say("jobs_every", language, span=describe_span(seconds, language))
            case Once(at=at):
                return say("jobs_once", language, when=show_moment(self, at, zone))
            case Cron() as cron:
                return describe_fields(cron.text, language)

    def format_moment(self, moment: float, zone: str) -> str:
        local = datetime.fromtimestamp(moment, UTC)
        try:
            local = local.astimezone(zone_of(zone))
        except ScheduleError:
            zone = "UTC"
        seconds = ":%S" if local.second else ""
        return f"{local:%Y-%m-%d %H:%M{seconds}} {zone}"

    def check_zone(self, zone: str) -> None:
        zone_of(zone)


def describe_fields(fields: str, language: str) -> str:
    """Describe cron's fields in words; return the fields themselves if no words would be true."""
    code, plain = reduce_language(language), write_out(fields)
    if code != ENGLISH and code in WORDS.list_codes() and (words := describe_usual(plain, code)):
        return words
    return _describe_any(plain, code) or fields


def _describe_any(fields: str, code: str) -> str:
    if not fields:
        return ""
    from cron_descriptor import ExpressionDescriptor, FormatError, Options

    options = Options()
    options.use_24hour_time_format = True
    options.locale_code = _LOCALES.get(code, "en_US")
    try:
        words = str(ExpressionDescriptor(fields, options).get_description())
    except (FormatError, ValueError, IndexError, KeyError):
        return ""
    if code in _LOCALES:
        for english, own in (_GERMAN if code == "de" else name_in_english(code)).items():
            words = words.replace(english, own)
    return words[:1].upper() + words[1:]
