"""The hostile schedules, where the shared folder is there: each is due as it must be, or refused."""

import re

import pytest

from cron.job import ScheduleError
from cron.schedule import read_schedule
from tests.agent_core.attacks import group
from tests.cron.test_schedule import due

CASES = dict(group("cron"))
DUE = {
    "dst-gap-fixed": "03-08 07:00",
    "dst-gap-midnight": "04-23 22:00",
    "dst-half-hour-gap": "10-03 15:30",
}


@pytest.mark.parametrize("name", DUE)
def test_due_as_it_must_be(name: str) -> None:
    if name not in CASES:
        pytest.skip("the shared folder is not there")
    found = re.fullmatch(r"(\S+ \S+ \S+ \S+ \S+) (\S+/\S+) (\d{4})-(\d\d)-(\d\d)", CASES[name])
    assert found is not None
    schedule, zone, year, month, day = found.groups()
    start = f"{year}-{month}-{int(day) - 1:02}T14:00"
    assert due(schedule, zone, start, 1) == [DUE[name]]


def test_what_is_not_supported_is_never_misread() -> None:
    if "l-w-hash" not in CASES:
        pytest.skip("the shared folder is not there")
    last, weekday, nth = (one.strip() for one in CASES["l-w-hash"].split(","))
    assert due(last, "UTC", "2026-11-01T00:00", 1) == ["11-30 00:00"]
    assert due(nth, "UTC", "2026-11-01T00:00", 1) == ["11-13 00:00"]
    with pytest.raises(ScheduleError):
        read_schedule(weekday, "UTC")
