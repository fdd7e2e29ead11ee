"""Schedules: what is read, what is refused, and when they are due, beside an independent reference."""

import json
import re
from datetime import UTC, datetime, timedelta
from time import process_time
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cron.job import ScheduleError
from cron.schedule import MACROS, read_schedule
from cron.timetable import Times, describe_fields
from cron.trigger import find_missed, next_fire, times
from gateway.cli.main import main
from gateway.jobs_port import JobRefused
from tests.cron.schedule_rig import at, due
from tests.sampling import examples

NEW_YORK, LORD_HOWE, CAIRO = "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"
EVERY_ZONE = sorted(available_timezones() - {"Factory", "localtime"})


@pytest.mark.parametrize(
    ("schedule", "zone", "start", "wanted"),
    [
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00", ["03-08 07:00", "03-09 06:30"]),
        ("30 1 * * *", NEW_YORK, "2026-11-01T00:00", ["11-01 05:30", "11-02 06:30"]),
        ("0 30 1 * * *", NEW_YORK, "2026-11-01T00:00", ["11-01 05:30", "11-02 06:30"]),
        ("0 2,3 * * *", NEW_YORK, "2026-03-08T05:30", ["03-08 07:00", "03-09 06:00"]),
        (
            "*/30 * * * *", NEW_YORK, "2026-11-01T04:45",
            ["11-01 05:00", "11-01 05:30", "11-01 06:00", "11-01 06:30", "11-01 07:00"],
        ),
        ("*/30 * * * *", NEW_YORK, "2026-03-08T06:15", ["03-08 06:30", "03-08 07:00"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03T00:00", ["10-03 15:30", "10-04 15:15"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04T00:00", ["04-04 14:45", "04-05 15:15"]),
        ("30 0 * * *", CAIRO, "2026-04-23T12:00", ["04-23 22:00", "04-24 21:30"]),
        ("0 */2 24 4 *", CAIRO, "2026-04-23T00:00", ["04-23 23:00", "04-24 01:00"]),
        ("0 0 13 * 5", "UTC", "2026-11-08T00:00", ["11-13 00:00", "11-20 00:00"]),
        ("0 0 * * 7", "UTC", "2026-11-01T00:00", ["11-08 00:00", "11-15 00:00"]),
        ("0 0 * * 0", "UTC", "2026-11-01T00:00", ["11-08 00:00", "11-15 00:00"]),
        ("0 9 * * fri-sun", "UTC", "2026-11-05T12:00", ["11-06 09:00", "11-07 09:00", "11-08 09:00", "11-13 09:00"]),
        ("0 0 L * *", "UTC", "2026-11-01T00:00", ["11-30 00:00", "12-31 00:00"]),
        ("0 0 * * 5#2", "UTC", "2026-11-01T00:00", ["11-13 00:00", "12-11 00:00"]),
        ("5-15/5,40 8 * JAN mon", "UTC", "2026-11-01T00:00", ["01-04 08:05", "01-04 08:10", "01-04 08:15", "01-04 08:40"]),
        ("0 0 29 2 *", "UTC", "2026-11-01T00:00", ["02-29 00:00"]),
        ("@daily", "Europe/Berlin", "2026-11-01T00:00", ["11-01 23:00"]),
        ("every 1d 12h", "UTC", "2026-11-01T00:00", ["11-02 12:00", "11-04 00:00"]),
        ("every hour", "UTC", "2026-11-01T00:00", ["11-01 01:00", "11-01 02:00"]),
        ("2026-03-08 02:30", NEW_YORK, "2026-01-01T00:00", ["03-08 07:00"]),
        ("at 2026-03-08 02:30", NEW_YORK, "2026-01-01T00:00", ["03-08 07:00"]),
        ("at 2026-11-01T01:30:00+00:00", NEW_YORK, "2026-11-01T01:30", []),
    ],
)  # fmt: skip
def test_due_times(schedule: str, zone: str, start: str, wanted: list[str]) -> None:
    assert due(schedule, zone, start, max(1, len(wanted))) == wanted


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("0 0 30 2 *", "There is no day 30 in month 2"),
        ("0 0 31 4,6,9,11 *", "There is no day 31"),
        ("0 0 15W * *", "day of the month cannot be '15W'"),
        ("*/90 * * * *", "steps of 90"),
        ("0 0 * * 8", "day of the week"),
        ("60 * * * *", "minute cannot be '60'"),
        ("0 17-9 * * *", "hour cannot be '17-9'"),
        ("H * * * *", "minute"),
        ("٣ * * * *", "minute"),
        ("* * *", "these are 3"),
        ("0 0 0 0 * * 2026", "these are 7"),
        ("@reboot", "There is no @reboot"),
        ("every 5", "every 90m"),
        ("every 0m", "more than nothing"),
        ("every 2 fortnights", "every 90m"),
        ("every 3 months", "every 90m"),
        ("every 2 mondays", "every 90m"),
        ("whenever you like", "not clear when 'whenever you like' is"),
        ("mañana a las nueve", "not clear when"),
        ("at tomorrow", "at 2026-12-01 09:00"),
        ("", "these are 0"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(schedule: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        read_schedule(schedule, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "EST5EDT4"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ScheduleError, match="no time zone"):
        read_schedule("0 0 * * *", zone)


@settings(max_examples=examples(400), deadline=None)
@given(
    st.one_of(
        st.datetimes(),
        st.datetimes(max_value=datetime(3, 1, 1)),  # noqa: DTZ001  # wall-clock time is meant
        st.datetimes(min_value=datetime(9997, 12, 30)),  # noqa: DTZ001
    ),
    st.sampled_from(["", "Z", "+14:00", "-12:00", "+23:59", "-23:59"]),
    st.sampled_from(EVERY_ZONE),
    st.sampled_from(EVERY_ZONE),
)
def test_a_moment_of_any_year_is_shown_everywhere_or_refused(
    moment: datetime, offset: str, zone: str, reader: str
) -> None:
    known = Times()
    try:
        stored = known.read(f"at {moment.isoformat()}{offset}", zone)
    except JobRefused:
        assert not 1900 <= moment.year <= 9998
        return
    assert known.read(stored, zone) == stored
    if (due := known.find_next(stored, zone, 0.0)) is not None:
        assert known.format_moment(due, reader).endswith(reader)
    assert known.words(stored, zone, "en")


@pytest.mark.parametrize("size", [100, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "text", ["@{0}", "{0}", "{0} * * * *", "* * {1} * *", "* * * * {2}", "every {0}", "at {0}"]
)
def test_why_it_cannot_be_is_short_however_long_it_is(text: str, size: int) -> None:
    forms = ("x" * size, "*/1" * (size // 3), "1#" * (size // 2))
    with pytest.raises(ScheduleError) as refused:
        read_schedule(text.format(*forms), "UTC")
    assert len(str(refused.value)) < 400


def test_what_is_stored_reads_the_same() -> None:
    for text in (*MACROS, "15 30 9 * * mon-sun", "every 90m", "at 2026-12-01 09:00"):
        schedule = read_schedule(text, "Europe/Berlin")
        assert read_schedule(schedule.text, "Europe/Berlin") == schedule


def test_words() -> None:
    known = Times()
    assert known.words("0 9 * * 1-5", "UTC", "") == "At 09:00, Monday through Friday"
    assert known.words("0 9 * * 1-5", "UTC", "de") == "Um 09:00, Montag bis Freitag"
    assert known.words("every 5400s", "UTC", "") == "Every 1 h 30 min"


@pytest.mark.parametrize(
    ("schedule", "language", "words"),
    [
        ("0 9 * * 1-5", "fr", "Chaque semaine (lun.–ven.) à 09:00"),
        ("0 9 * * 5L", "ja", "毎月最終金曜日 09:00"),
        ("30 17 * * 0#2", "es", "Cada mes (dom n.º 2) a las 17:30"),
        ("0 9 L * *", "fr", "Chaque mois, le dernier jour, à 09:00"),
        ("30 7,19 * * MON,WED", "es-419", "Cada semana (lun, mié) a las 07:30, 19:30"),
        ("0 9 * * 6,0", "pt-BR", "Toda semana (sáb., dom.) às 09:00"),
        ("0 9 * * SUN", "ja", "毎週（日）09:00"),
        ("0 8 1,15 * *", "zh-CN", "每月 1、15 日 08:00"),
        ("0 8 1 1-3,6 *", "ja", "毎年 1月〜3月、6月 1 日 08:00"),
        ("*/15 * * * *", "ru", "Каждые 15 минут"),
        ("5 */2 * * *", "ru", "Каждые 2 часа, минута 5"),
        ("0 * * * *", "fr", "Toutes les heures, à la minute 0"),
        ("0 9 * * *", "zh-hans", "每天 09:00"),
        ("every 90000s", "ru", "Каждые 1 д 1 ч"),
        ("every 5400s", "ja", "1 時間 30 分ごと"),
        ("*/20 * 1 * *", "fr", "Toutes les 20 minutes, le 1 du mois"),  # cron-descriptor's words
        ("0 9 * * 1#1", "fr", "Chaque mois (lun. n° 1) à 09:00"),
        ("15 30 9 * * 1-5", "es", "A las 09:30:15, de lun a vie"),
        ("0 9 * * 1-5", "it", "At 09:00, Monday through Friday"),
    ],
)
def test_words_of_each_language(schedule: str, language: str, words: str) -> None:
    assert Times().words(schedule, "UTC", language) == words


@given(
    st.sampled_from(("fr", "es", "pt", "ru", "zh", "ja")),
    st.tuples(
        *(
            st.sampled_from(("*", str(low), f"{low}-{low + 2}", f"*/{3 + low}", f"{low},{low + 3}"))
            for low in (0, 1, 2, 3, 1)
        )
    ).map(" ".join),
)
def test_every_schedule_has_words_in_each_language(language: str, fields: str) -> None:
    words = describe_fields(fields, language)
    assert words and "{" not in words and "|" not in words
    assert not re.search("[A-Z][a-z]+day|January|Every", words)


odd_fields = st.tuples(
    st.sampled_from(("0", "*/15", "*/45", "*/7", "5/15", "1-50/10")),
    st.sampled_from(("*", "9", "*/5", "*/12", "8-18/3", "9,17")),
    st.sampled_from(("*", "1", "*/2", "L", "1,L", "1-31/2", "LW")),
    st.sampled_from(("*", "2", "*/5", "JAN-JUN/2")),
    st.sampled_from(("*", "MON", "1-5/2", "*/2", "1#1", "1#1,3#2", "1,5L")),
).map(" ".join)


@settings(max_examples=examples(400), deadline=None)
@given(odd_fields)
def test_words_are_true(fields: str) -> None:
    words, due_at = describe_fields(fields, "en"), list[float]()
    moment: float | None = at("2026-01-01T00:00")
    schedule = read_schedule(fields, "UTC")
    while len(due_at) < 150 and moment is not None:
        moment = next_fire(schedule, "UTC", moment)
        due_at += [moment] if moment is not None else []
    days = [datetime.fromtimestamp(one, UTC) for one in due_at]
    if found := re.search(r"[Ee]very (\d+) minutes", words):
        assert {day.minute for day in days} == set(range(0, 60, int(found[1])))
        assert 60 % int(found[1]) == 0
    if found := re.search(r"[Ee]very (\d+) (hours|months)", words):
        assert (24 if found[2] == "hours" else 12) % int(found[1]) == 0
    assert not re.search(r"every \d+ days", words)
    day, weekday = fields.split()[2], fields.split()[4]
    if ", or " in words:
        assert not day.startswith("*") and not weekday.startswith("*")
    for part in filter(lambda one: re.search("[L#]", one), (day, weekday)):
        assert "," not in part or words == fields


# ---- beside a reference that shares nothing ------------------------------------------------

ZONES = (NEW_YORK, LORD_HOWE, CAIRO, "Europe/Berlin", "Asia/Kathmandu", "America/Santiago",
         "Africa/Casablanca", "Pacific/Chatham", "America/Havana", "UTC")  # fmt: skip
numbers = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}


@st.composite
def field(draw: st.DrawFn, low: int, high: int) -> str:
    one = st.integers(low, high)
    match draw(st.integers(0, 4)):
        case 0 | 1:
            return "*"
        case 2:
            return ",".join(map(str, draw(st.lists(one, min_size=1, max_size=3))))
        case 3:
            return f"*/{draw(st.integers(1, max(2, (high - low) // 2)))}"
        case _:
            first, last = sorted((draw(one), draw(one)))
            return f"{first}-{last}"


def allowed(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start, end = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def walked(fields: list[str], zone: str, start: datetime, hours: int) -> list[float]:
    """Every minute of `hours` is looked at. A time of the day counts where it is first shown, or,
    where it never is, at the moment in which the clock jumps over it."""
    where = ZoneInfo(zone)
    spans = list(numbers.values())
    minute, hour, day, month, weekday = (
        allowed(text, *span) for text, span in zip(fields, spans, strict=True)
    )
    both = fields[2].startswith("*") or fields[4].startswith("*")
    fixed = not (fields[0].startswith("*") or fields[1].startswith("*"))

    def fits(wall: datetime) -> bool:
        dom, dow = wall.day in day, bool({wall.isoweekday() % 7, wall.isoweekday()} & weekday)
        days = (dom and dow) if both else (dom or dow)
        return wall.minute in minute and wall.hour in hour and wall.month in month and days

    found = []
    before = start.astimezone(where).replace(tzinfo=None)
    highest = before
    for n in range(1, hours * 60 + 1):
        moment = start + timedelta(minutes=n)
        wall = moment.astimezone(where).replace(tzinfo=None)
        if not fixed:
            if fits(wall):
                found.append(moment.timestamp())
            continue
        passed, hit = highest + timedelta(minutes=1), False
        while passed <= wall:  # once each, those that are jumped over too
            hit = hit or fits(passed)
            passed += timedelta(minutes=1)
        if hit:
            found.append(moment.timestamp())
        highest = max(highest, wall)
    return found


FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2030, 12, 1, tzinfo=UTC)
MOMENTS = st.integers(0, (LAST - FIRST) // timedelta(minutes=1)).map(
    lambda minutes: FIRST + timedelta(minutes=minutes)
)
CHANGES = st.sampled_from(
    [datetime.fromisoformat(f"{day}T00:00+00:00") for day in (
        "2026-03-08", "2026-11-01", "2026-04-04", "2026-10-03", "2026-04-23", "2026-03-28",
        "2026-10-24", "2027-09-04",
    )]
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(
    st.tuples(*(field(low, high) for low, high in numbers.values())),
    st.sampled_from(ZONES),
    st.one_of(MOMENTS, CHANGES),
)
def test_as_a_walk_over_every_minute(fields: tuple[str, ...], zone: str, start: datetime) -> None:
    if _in_a_repeated_hour(start, zone):
        return  # the walk cannot know what was shown before it began
    text = " ".join(fields)
    try:
        schedule = read_schedule(text, zone)
    except ScheduleError:
        return
    hours = 50
    end = (start + timedelta(hours=hours)).timestamp()
    found = []
    for one in times(schedule, zone, start.timestamp()):
        if one > end:
            break
        found.append(one)
    assert found == walked(list(fields), zone, start, hours)


def _in_a_repeated_hour(start: datetime, zone: str) -> bool:
    offsets = {
        (start - timedelta(hours=back)).astimezone(ZoneInfo(zone)).utcoffset() for back in range(4)
    }
    return len(offsets) > 1


# ---- missed times --------------------------------------------------------------------------


OFTEN = ["* * * * *", "*/2 8-9 * * *", "every 1m", "every 7m", "*/30 * * * * *", "0 */2 * * *"]


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(OFTEN),
    st.sampled_from(ZONES),
    CHANGES,
    st.integers(0, 6_000),
    st.integers(1, 900),
)
def test_the_newest_missed_are_found_however_few_are_counted(
    text: str, zone: str, start: datetime, minutes: int, most: int
) -> None:
    schedule = read_schedule(text, zone)
    now = start.timestamp() + minutes * 60
    first = next_fire(schedule, zone, start.timestamp())
    assert first is not None
    every = find_missed(schedule, zone, first, now)
    found = find_missed(schedule, zone, first, now, most)
    assert found == replace(every, left_out=min(every.left_out, most))


@pytest.mark.parametrize("text", ["* * * * *", "every 1m", "0 9 * * *", "0 0 29 2 *"])
def test_a_clock_set_forward_by_a_century_is_looked_through_soon(text: str) -> None:
    schedule, now = read_schedule(text, "Europe/Berlin"), at("2126-11-01T00:00")
    first = next_fire(schedule, "Europe/Berlin", at("2026-11-01T00:00"))
    assert first is not None
    began = process_time()
    found = find_missed(schedule, "Europe/Berlin", first, now, 5_000)
    assert process_time() - began < 10
    following = next_fire(schedule, "Europe/Berlin", found.times[-1])
    assert found.times[-1] <= now and following is not None and following > now


def test_missed_are_all_counted() -> None:
    first, now = at("2026-11-01T00:00"), at("2026-12-01T00:00")
    found = find_missed(read_schedule("* * * * *", "UTC"), "UTC", first, now)
    assert len(found.times) + found.left_out == 30 * 24 * 60 + 1
    assert found.times[-1] == now and found.first == first
    assert found.last == found.times[0] - 60


def test_the_next_follows_from_the_last_and_never_from_now() -> None:
    schedule = read_schedule("every 90m", "UTC")
    last = at("2026-11-01T00:00")
    assert next_fire(schedule, "UTC", last) == last + 5_400


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["jobs", "next", "--cron", "30 1 * * *", "--tz", NEW_YORK]
    assert main([*words, "--from", "2026-10-31T00:00:00Z", "-n", "3", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["utc"] for row in rows] == [
        "2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z",
    ]  # fmt: skip
    assert rows[1]["local"] == "2026-11-01T01:30:00-04:00"
    assert main(["jobs", "next", "--cron", "0 0 30 2 *"]) == 2
    assert "There is no day 30" in capsys.readouterr().err
