"""What people do with jobs: limits, pauses, runs by hand."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.console import Console
from gateway.jobs_port import JobRefused
from gateway.store.sqlite import SqliteStore
from tests.contracts.store_values import DAY, START
from tests.cron.book_rig import ADA, BOB, ROOM, ROOT, WISH, BookRig, living_book


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BookRig]:
    async with living_book(tmp_path) as made:
        yield made


async def test_made_once_whoever_repeats_it(world: BookRig) -> None:
    first = await world.make()
    assert await world.make() == first
    assert await world.jobs.list_jobs() == (first,)


async def test_times_are_those_of_the_stores_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine of this replica is an hour ahead."""

    async def read(store: SqliteStore) -> float:
        return START

    monkeypatch.setattr(SqliteStore, "now", read)
    async with living_book(tmp_path) as world:
        world.clock.ahead = 3_600.0
        soon = await world.make("j1", wish=replace(WISH, schedule="in 20 minutes"))
        hourly = await world.make("j2", wish=replace(WISH, schedule="@hourly"))
        file = JobFile(tmp_path, world.ports, frozenset(("telegram",)))
        given = {"where": ROOM.id, "schedule": "in 20 minutes", "prompt": "look"}
        asked = ("add", "j3", json.dumps(given))
        said = await Console(world.ports, file, live=False).answer(asked)
        written = await world.jobs.get("j3")
    assert said.ok and written is not None
    assert soon.next_due == written.next_due == START + 1_200
    assert soon.made == written.made == START
    assert START < hourly.next_due <= START + 3_600


async def test_a_person_has_so_many(world: BookRig) -> None:
    await world.make("j1")
    await world.make("j2")
    with pytest.raises(JobRefused, match="already have 2 jobs"):
        await world.make("j3")
    assert await world.make("j4", BOB)


async def test_not_too_often(world: BookRig) -> None:
    for schedule in ("*/10 * * * * *", "every 59s", "58,59 * * * * *"):
        with pytest.raises(JobRefused, match="too often"):
            await world.drafts.draft(replace(WISH, schedule=schedule), ADA)
    assert await world.drafts.draft(replace(WISH, schedule="* * * * *"), ADA)


async def test_no_zone_is_the_gateways_and_shown(world: BookRig) -> None:
    draft = await world.drafts.draft(WISH, ADA)
    assert draft.job.zone == "UTC" and len(draft.times) == 3


async def test_a_title_is_one_line(world: BookRig) -> None:
    wish = replace(WISH, title="  Look\n\n\u2029☑ Approved\tonce\r ")
    assert (await world.drafts.draft(wish, ADA)).job.title == "Look ☑ Approved once"


async def test_who_sees_what(world: BookRig) -> None:
    job = await world.make()
    assert await world.book.list_visible(ADA) == (job,)
    assert await world.book.list_visible(BOB) == ()
    assert await world.book.list_visible(ROOT) == (job,)
    linked = replace(BOB, accounts=frozenset({"telegram:7", "telegram:8"}))
    assert await world.book.list_visible(linked) == (job,)


async def test_a_group_sees_nothing_of_what_belongs_elsewhere(world: BookRig) -> None:
    await world.make()
    group = replace(ROOM, channel="-9", private=False)
    assert await world.book.list_visible(replace(ADA, conversation=group)) == ()
    own = await world.make("j2", replace(ADA, conversation=group))
    assert await world.book.list_visible(replace(ADA, conversation=group)) == (own,)
    assert len(await world.book.list_visible(ADA)) == 2


async def test_a_pause_leaves_a_row_and_no_backlog(world: BookRig) -> None:
    job = await world.make()
    assert await world.book.pause("j1") and not await world.book.pause("j1")
    world.clock.time = job.next_due + 3 * DAY
    assert (await world.jobs.due(world.clock.time, 9)).jobs == ()
    resumed = await world.book.resume("j1")
    assert resumed is not None and resumed.next_due > world.clock.time
    (run,) = await world.jobs.runs("j1", 9)
    assert (run.state, run.reason, run.count) == ("skipped", "paused", 4)


@pytest.mark.parametrize(
    "fields", [{"title": "Other"}, {"schedule": "0 18 * * *"}, {"zone": "Europe/Berlin"}]
)
async def test_a_change_keeps_the_pause_and_what_it_skipped(
    world: BookRig, fields: dict[str, str]
) -> None:
    """Whatever is changed, the due times that the pause let pass are on record in the end."""
    job = await world.make()
    await world.book.pause("j1")
    world.clock.time = job.next_due + 3 * DAY
    changed = replace(WISH, **{"zone": "UTC", **fields})
    draft = await world.drafts.draft(changed, ADA, job)
    assert await world.drafts.change(draft)
    paused = await world.jobs.get("j1")
    assert paused is not None and paused.state == "paused"
    resumed = await world.book.resume("j1")
    assert resumed is not None and resumed.next_due > world.clock.time
    runs = await world.jobs.runs("j1", 9)
    assert [(run.state, run.reason, run.count) for run in runs] == [("skipped", "paused", 4)]


async def test_a_change_of_other_fields_keeps_what_is_due(world: BookRig) -> None:
    job = await world.make()
    world.clock.time = job.next_due + 1
    draft = await world.drafts.draft(replace(WISH, title="Other"), ADA, job)
    assert await world.drafts.change(draft)
    due = await world.jobs.due(world.clock.time, 9)
    assert [(one.title, one.next_due) for one in due.jobs] == [("Other", job.next_due)]


async def test_confirmed_late_begins_with_the_next_time(world: BookRig) -> None:
    draft = await world.drafts.draft(WISH, ADA)
    world.clock.time += 10 * DAY
    job = await world.drafts.make(draft, "j1")
    assert world.clock.time < job.next_due <= world.clock.time + DAY


async def test_what_is_due_once_is_not_made_or_changed_to_after_its_time(world: BookRig) -> None:
    once = replace(WISH, schedule="in 20 minutes")
    draft = await world.drafts.draft(once, ADA)
    made = await world.drafts.make(draft, "j1")
    other = await world.make("j2")
    change = await world.drafts.draft(once, ADA, other)
    world.clock.time += 1_201
    assert await world.drafts.make(draft, "j1") == made, "a second time, after a crash"
    with pytest.raises(JobRefused, match="in the past"):
        await world.drafts.make(draft, "j3")
    with pytest.raises(JobRefused, match="in the past"):
        await world.drafts.change(change)
    assert await world.jobs.list_jobs() == (made, other)


@pytest.mark.parametrize(
    "meanwhile", [{"title": "Other"}, {"schedule": "0 8 * * *"}, {"prompt": "look twice"}]
)
async def test_a_change_undoes_nothing_that_was_changed_meanwhile(
    world: BookRig, meanwhile: dict[str, str]
) -> None:
    job = await world.make()
    draft = await world.drafts.draft(replace(WISH, deliver=("file:x.md",)), ADA, job)
    quick = await world.drafts.draft(replace(WISH, **meanwhile), ADA, job)
    assert await world.drafts.change(quick, shown=job)
    assert await world.drafts.change(quick, shown=job), "a second time, after a crash"
    after = await world.jobs.get("j1")
    assert not await world.drafts.change(draft, shown=job)
    assert await world.jobs.get("j1") == after


async def test_what_is_due_once_and_was_paused_past_its_time_is_over(world: BookRig) -> None:
    job = await world.make(wish=replace(WISH, schedule="in 20 minutes"))
    await world.book.pause("j1")
    world.clock.time = job.next_due + 1
    resumed = await world.book.resume("j1")
    assert resumed is not None and resumed.state == "ended"
    assert [run.reason for run in await world.jobs.runs("j1", 9)] == ["paused"]


async def test_a_change_keeps_what_the_job_is(world: BookRig) -> None:
    job = await world.make()
    draft = await world.drafts.draft(replace(WISH, schedule="0 8 * * *"), BOB, job)
    assert await world.drafts.change(draft)
    now = await world.jobs.get("j1")
    assert now is not None and now.schedule == "0 8 * * *"
    assert (now.owner, now.conversation, now.made) == (job.owner, job.conversation, job.made)


async def test_run_by_hand_once_for_each_press(world: BookRig) -> None:
    job = await world.make()
    for _ in range(2):
        assert await world.book.run_now("j1", "5")
    assert not await world.book.run_now("j1", "6"), "one waits already"
    (waits,) = await world.jobs.list_unfinished()
    assert waits.slot == "now-5"
    await world.jobs.advance(waits, replace(waits, state="retrying", version="b"))
    assert await world.book.run_now("j1", "7"), "what waits to be tried again holds up nobody"
    after = await world.jobs.get("j1")
    assert after is not None and after.next_due == job.next_due
