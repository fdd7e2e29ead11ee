"""Moments as people say them, in English and German, seen from a Wednesday at 14:05 in Berlin."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron.job import Once, ScheduleError
from cron.relative import read_relative
from cron.schedule import read_schedule

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 25, 14, 5, 30, tzinfo=BERLIN).timestamp()


def local(text: str, now: float = NOW) -> str:
    found = read_relative(text, "Europe/Berlin", now)
    assert found is not None, text
    schedule = read_schedule(found, "Europe/Berlin")
    assert isinstance(schedule, Once)
    return f"{datetime.fromtimestamp(schedule.at, BERLIN):%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("in 20 minutes", "11-25 14:25:30"),
        ("In 20 Minuten", "11-25 14:25:30"),
        ("in an hour", "11-25 15:05:30"),
        ("in half an hour", "11-25 14:35:30"),
        ("in einer halben Stunde", "11-25 14:35:30"),
        ("in einer Stunde", "11-25 15:05:30"),
        ("in 1 hour and 30 minutes", "11-25 15:35:30"),
        ("in zwei Stunden und zehn Minuten.", "11-25 16:15:30"),
        ("in 90s", "11-25 14:07:00"),
        ("in 1.5 hours", "11-25 15:35:30"),
        ("in 1,5 Stunden", "11-25 15:35:30"),
        ("in 1h30m", "11-25 15:35:30"),
        ("20 minutes from now", "11-25 14:25:30"),
        ("tomorrow evening at 6 pm", "11-26 18:00:00"),
        ("in three days", "11-28 14:05:30"),
        ("in 2 days at nine", "11-27 09:00:00"),
        ("in einer Woche um 8 Uhr", "12-02 08:00:00"),
        ("tomorrow at nine", "11-26 09:00:00"),
        ("at nine tomorrow", "11-26 09:00:00"),
        ("morgen um neun", "11-26 09:00:00"),
        ("morgen um 9 Uhr 30", "11-26 09:30:00"),
        ("morgen um halb zehn", "11-26 09:30:00"),
        ("tomorrow at half past nine", "11-26 09:30:00"),
        ("tomorrow morning at 9", "11-26 09:00:00"),
        ("tomorrow 7:30 pm", "11-26 19:30:00"),
        ("tomorrow at 12 am", "11-26 00:00:00"),
        ("morgen früh um sieben", "11-26 07:00:00"),
        ("morgen Abend um acht", "11-26 20:00:00"),
        ("übermorgen um 18.15 Uhr", "11-27 18:15:00"),
        ("the day after tomorrow at noon", "11-27 12:00:00"),
        ("today at 18:00", "11-25 18:00:00"),
        ("heute um 18 Uhr", "11-25 18:00:00"),
        ("tonight at eight", "11-25 20:00:00"),
        ("next friday 18:00", "11-27 18:00:00"),
        ("nächsten Freitag um 18 Uhr", "11-27 18:00:00"),
        ("on Sunday at 9am", "11-29 09:00:00"),
        ("am Montag um 9:00", "11-30 09:00:00"),
        ("Freitagabend um sechs", "11-27 18:00:00"),
        ("wednesday 18:00", "11-25 18:00:00"),
        ("wednesday 9:00", "12-02 09:00:00"),
        ("next wednesday 18:00", "12-02 18:00:00"),
        ("at 18:00", "11-25 18:00:00"),
        ("um neun", "11-26 09:00:00"),
        ("14:05:30", "11-26 14:05:30"),
    ],
)
def test_moments_are_read(text: str, wanted: str) -> None:
    assert local(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["0 9 * * *", "30 0 9 * * 1", "@daily", "every 2h", "at 2026-12-01 09:00", "in a while", "soon",
     "in 20 minutes or so", "tomorrow evening at 9 am", "in 2.5 days at nine",
     "tomorrow at nine or ten", "9 9", "in", "", "at", "every friday 18:00",
     "in 2 hours at nine", "friday and sunday 9:00", "24. um 9", "24th at 9"],
)  # fmt: skip
def test_what_says_no_moment_is_left_to_others(text: str) -> None:
    assert read_relative(text, "Europe/Berlin", NOW) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tomorrow", "Name a time of day too"),
        ("nächsten Freitag", "Name a time of day too"),
        ("today at 9", "in the past"),
        ("heute um 14:05", "in the past"),
        ("tomorrow at 25:00", "There is no time of day"),
        ("tomorrow at 9:75", "There is no time of day"),
        ("tomorrow at 15 am", "There is no time of day"),
        ("in 999999 weeks", "more than ten years"),
    ],
)
def test_what_cannot_be_is_refused(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        read_relative(text, "Europe/Berlin", NOW)


def test_days_are_those_of_the_clock_on_the_wall() -> None:
    before = datetime(2026, 10, 24, 9, 0, tzinfo=BERLIN).timestamp()
    assert local("in 1 day", before) == "10-25 09:00:00"
    assert local("in 24 hours", before) == "10-25 08:00:00"
    gap = datetime(2026, 3, 28, 9, 0, tzinfo=BERLIN).timestamp()
    assert local("tomorrow at 2:30", gap) == "03-29 03:00:00"


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for words in (text, f"in {text}", f"tomorrow {text}", f"at {text}"):
        try:
            found = read_relative(words, "UTC", NOW)
        except ScheduleError:
            continue
        if found is not None:
            schedule = read_schedule(found, "UTC")
            assert isinstance(schedule, Once) and schedule.at > NOW


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("24.12. um 18 Uhr", "12-24 18:00:00"),
        ("um 18.30 Uhr am 24.12.", "12-24 18:30:00"),
        ("am 24. Dezember um 18 Uhr", "12-24 18:00:00"),
        ("december 1 at 9", "12-01 09:00:00"),
        ("at 12 am on december 24", "12-24 00:00:00"),
        ("on the 1st of march at noon", "03-01 12:00:00"),
        ("on the 24th at 9", "12-24 09:00:00"),
        ("on the 25th at 18:00.", "11-25 18:00:00"),
        ("am 31. um 8 Uhr", "12-31 08:00:00"),
        ("24.12.2026 um 9", "12-24 09:00:00"),
        ("at 10.12.", "11-26 10:12:00"),
        ("tomorrow 10.12.", "11-26 10:12:00"),
    ],
)
def test_a_day_without_a_year_is_the_next_one_to_come(text: str, wanted: str) -> None:
    assert local(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["9 december 1", "at 9 december 1", "12/11 at 9", "9 am 24.12.", "the 24th of may in june"],
)
def test_a_date_of_two_readings_is_none(text: str) -> None:
    assert read_relative(text, "Europe/Berlin", NOW) is None


@pytest.mark.parametrize("text", ["february 30 at 9", "24.12.", "on december 24", "1.1.2026 um 9"])
def test_a_date_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        read_relative(text, "Europe/Berlin", NOW)
