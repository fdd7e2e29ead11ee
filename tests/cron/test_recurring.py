"""Times that come again as people say them, in English and German."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cron.job import Cron, ScheduleError
from cron.recurring import read_recurring
from cron.schedule import read_schedule
from tests.sampling import examples


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("every day at nine", "0 9 * * *"),
        ("Every day at 9.", "0 9 * * *"),
        ("at 9 every day", "0 9 * * *"),
        ("each day at 18:30", "30 18 * * *"),
        ("daily at noon", "0 12 * * *"),
        ("täglich um 8 Uhr", "0 8 * * *"),
        ("every weekday at 9", "0 9 * * 1-5"),
        ("every working day at half past eight", "30 8 * * 1-5"),
        ("weekdays at 9:00", "0 9 * * 1-5"),
        ("on weekends at 10am", "0 10 * * 0,6"),
        ("every weekend at 10", "0 10 * * 0,6"),
        ("werktags um 9", "0 9 * * 1-5"),
        ("jeden Tag um halb neun", "30 8 * * *"),
        ("jeden Abend um 8", "0 20 * * *"),
        ("every morning at 8", "0 8 * * *"),
        ("every evening at 8", "0 20 * * *"),
        ("every evening at 6 pm", "0 18 * * *"),
        ("every monday at 9am", "0 9 * * 1"),
        ("every Monday and Thursday at 9:30pm", "30 21 * * 1,4"),
        ("every mon, wed and fri at 7", "0 7 * * 1,3,5"),
        ("mondays at six", "0 6 * * 1"),
        ("montags um halb zehn", "30 9 * * 1"),
        ("jeden Montag und Freitag um 18 Uhr", "0 18 * * 1,5"),
        ("on sundays at 20:15:30", "30 15 20 * * 0"),
        ("every friday afternoon at 4", "0 16 * * 5"),
        ("mon-fri at 8", "0 8 * * 1-5"),
        ("Montag bis Mittwoch um 9", "0 9 * * 1-3"),
        ("sat-mon at 9", "0 9 * * 0,1,6"),
        ("every day at midnight", "0 0 * * *"),
        ("every last friday at 9", "0 9 * * 5L"),
        ("on the last friday of the month at 18:30", "30 18 * * 5L"),
        ("first monday of each month at 10 am", "0 10 * * 1#1"),
        ("second tuesday of every month at 5pm", "0 17 * * 2#2"),
        ("every 31st at 9", "0 9 31 * *"),
        ("monthly on the 15th at noon", "0 12 15 * *"),
        ("at 9 on the last day of the month", "0 9 L * *"),
        ("jeden letzten Freitag um 9", "0 9 * * 5L"),
        ("jeden Monat am 15. um 12 Uhr", "0 12 15 * *"),
        ("am Ersten jedes Monats um halb neun", "30 8 1 * *"),
    ],
)
def test_what_comes_again(text: str, fields: str) -> None:
    assert read_recurring(text) == fields
    assert isinstance(read_schedule(fields, "UTC"), Cron)


@pytest.mark.parametrize(
    "text",
    [
        "", "every 2h", "every 1d 12h", "every 2 days at nine", "0 9 * * 1-5", "@daily",
        "tomorrow at nine", "on monday at 9", "monday at 9", "next friday 18:00", "in 20 minutes",
        "every other day at 9", "every day at nine and at ten", "every month at 9", "every day soon",
        "on the 24th at 6pm", "every first at 9", "friday 1st at 9", "every month",
        "am Montag um 9", "at 2026-12-01 09:00", "every blursday at 9", "monday and fridays at 9",
    ],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert read_recurring(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("every day", "Name a time of day too"),
        ("mondays", "Name a time of day too"),
        ("every day at 25", "There is no time of day"),
        ("every second tuesday at 9", "can mean two things"),
        ("jeden zweiten Dienstag um 9", "can mean two things"),
        ("every 32nd at 9", "No month has a day 32"),
        ("last friday of the month", "Name a time of day too"),
    ],
)
def test_what_cannot_be_says_why(text: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        read_recurring(text)


WORDS = (
    ("every", "each", "jeden", "first", "second", "last", "letzten", "31st", "3.", "friday", "mon")
    + ("-", "bis", "day", "Tag", "of the month", "des Monats", "monthly", "at", "um", "9", "9:30")
    + ("noon", "Uhr")
)
SAID = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


@given(st.text(alphabet="every day mondays at 9:0 und abc,", max_size=40) | SAID)
@settings(max_examples=examples(150), deadline=None)
def test_any_words_give_fields_or_nothing(text: str) -> None:
    try:
        found = read_recurring(text)
    except ScheduleError:
        return
    assert found is None or read_schedule(found, "UTC")
