"""What jobs must withstand, by the list of the shared folder, where that is there: each case is tried
here, or by the test that is named for it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cron.job import ScheduleError
from cron.schedule import read_schedule
from gateway.errors import StoreFailed
from gateway.store.sqlite import SqliteStore
from tests.agent_core.attacks import group
from tests.contracts import jobs_contract as contract
from tests.cron import test_book as of_book
from tests.cron import test_killed as at_random
from tests.cron import test_scheduler as of_scheduler
from tests.cron.test_schedule import due
from tests.stories import test_jobs_kills as at_points
from tests.stories import test_jobs_story as told

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


@pytest.mark.parametrize("kept", [10, 100, 20_000, 60_000])
async def test_a_cut_off_store_is_refused_and_left_as_it_is(tmp_path: Path, kept: int) -> None:
    """It is never taken for one without jobs."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.put("job", b"x" * 40_000)
    await store.close()
    cut = path.read_bytes()[:kept]
    path.write_bytes(cut)
    with pytest.raises(StoreFailed, match="cannot open the store"):
        await SqliteStore.open(path)
    assert path.read_bytes() == cut


TRIED: dict[str, tuple[Callable[..., object], ...]] = {
    "kill-after-claim": (
        at_points.test_a_kill_at_every_point_reports_once,
        at_random.test_four_on_redis_killed_fifty_times,
    ),
    "kill-after-run-before-advance": (
        at_points.test_a_kill_at_every_point_reports_once,
        told.test_a_firing_that_comes_twice_is_one_turn,
    ),
    "list-does-not-advance": (of_scheduler.test_looking_moves_nothing_on,),
    "overlap-skip": (of_scheduler.test_overlap_skip,),
    "overlap-replace": (of_scheduler.test_overlap_replace,),
    "edit-while-running": (of_scheduler.test_edited_while_it_runs,),
    "delete-while-running": (
        of_scheduler.test_deleted_while_it_waits_to_be_tried_again,
        contract.JobsContract.test_a_removed_job_stays_away,
    ),
    "pause-resume": (of_book.test_a_pause_leaves_a_row_and_no_backlog,),
    "store-corrupt": (test_a_cut_off_store_is_refused_and_left_as_it_is,),
    **dict.fromkeys(DUE, (test_due_as_it_must_be,)),
    "no-tz": (of_book.test_no_zone_is_the_gateways_and_shown,),
    "l-w-hash": (test_what_is_not_supported_is_never_misread,),
    "too-often": (of_book.test_not_too_often, of_book.test_a_person_has_so_many),
    "unattended-approval": (told.test_a_run_asks_parks_and_the_buttons_work_later,),
    "orphan-owner": (told.test_an_owner_who_was_put_out_pauses_the_job,),
    "redis-failover": (
        contract.JobsContract.test_of_many_claims_one_holds,
        contract.JobsContract.test_a_slot_that_has_a_run_keeps_it,
    ),
}
"""Case -> the tests that try it."""


def test_none_of_the_list_is_left_out() -> None:
    assert CASES.keys() <= TRIED.keys()
