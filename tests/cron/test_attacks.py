"""What jobs must withstand: each case is tried here, or by the test that is named for it."""

from pathlib import Path

import pytest

from cron.job import ScheduleError
from cron.schedule import read_schedule
from gateway.errors import StoreFailed
from gateway.store.sqlite import SqliteStore
from tests.cron.schedule_rig import due

TESTS = Path(__file__).parents[1]
DUE = {
    "dst-gap-fixed": ("30 2 * * *", "America/New_York", "2026-03-07T14:00", "03-08 07:00"),
    "dst-gap-midnight": ("30 0 * * *", "Africa/Cairo", "2026-04-23T14:00", "04-23 22:00"),
    "dst-half-hour-gap": ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T14:00", "10-03 15:30"),
}


@pytest.mark.parametrize("name", DUE)
def test_a_due_time_in_a_gap_comes_once(name: str) -> None:
    schedule, zone, start, wanted = DUE[name]
    assert due(schedule, zone, start, 1) == [wanted]


def test_what_is_not_supported_is_never_misread() -> None:
    assert due("0 0 L * *", "UTC", "2026-11-01T00:00", 1) == ["11-30 00:00"]
    assert due("0 0 * * 5#2", "UTC", "2026-11-01T00:00", 1) == ["11-13 00:00"]
    with pytest.raises(ScheduleError):
        read_schedule("0 0 15W * *", "UTC")


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


TRIED: dict[str, tuple[str, ...]] = {
    "kill-after-claim": (
        "stories/jobs/test_jobs_kills.py::test_a_kill_at_every_point_reports_once",
        "cron/test_killed.py::test_four_on_redis_killed_fifty_times",
    ),
    "kill-after-run-before-advance": (
        "stories/jobs/test_jobs_kills.py::test_a_kill_at_every_point_reports_once",
        "stories/jobs/test_jobs_story.py::test_a_firing_that_comes_twice_is_one_turn",
    ),
    "list-does-not-advance": ("cron/test_scheduler.py::test_looking_moves_nothing_on",),
    "overlap-skip": ("cron/test_scheduler.py::test_overlap_skip",),
    "overlap-replace": ("cron/test_scheduler.py::test_overlap_replace",),
    "edit-while-running": ("cron/test_scheduler.py::test_edited_while_it_runs",),
    "delete-while-running": (
        "cron/test_scheduler.py::test_deleted_while_it_waits_to_be_tried_again",
        "contracts/jobs_contract.py::test_a_removed_job_stays_away",
    ),
    "pause-resume": ("cron/test_book.py::test_a_pause_leaves_a_row_and_no_backlog",),
    "no-tz": ("cron/test_book.py::test_no_zone_is_the_gateways_and_shown",),
    "too-often": (
        "cron/test_book.py::test_not_too_often",
        "cron/test_book.py::test_a_person_has_so_many",
    ),
    "unattended-approval": (
        "stories/jobs/test_jobs_story.py::test_a_run_asks_parks_and_the_buttons_work_later",
    ),
    "orphan-owner": (
        "stories/jobs/test_jobs_story.py::test_an_owner_who_was_put_out_pauses_the_job",
    ),
    "redis-failover": (
        "contracts/jobs_contract.py::test_of_many_claims_one_holds",
        "contracts/jobs_contract.py::test_a_slot_that_has_a_run_keeps_it",
    ),
}
"""What goes wrong with jobs, and the tests elsewhere that try it."""


@pytest.mark.parametrize("case", TRIED)
def test_what_is_tried_elsewhere_is_still_there(case: str) -> None:
    for test in TRIED[case]:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(), test
