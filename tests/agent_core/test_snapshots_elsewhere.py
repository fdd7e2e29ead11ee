"""Snapshots in a bucket: contents lie there, and come back from there; by the real SDK."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.sandboxes.buckets.bucket import SnapshotBucket
from agent_core.sandboxes.buckets.settings import BucketAccess
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.states.file_states import TakenBack
from agent_core.sandboxes.states.scan import SnapshotRefused
from tests.fakes.s3_server import KEY_ID, REGION, SECRET, S3Server

TOP = "states/kept/ws"


@pytest.fixture
async def s3() -> AsyncIterator[S3Server]:
    server = S3Server()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
def bucket(s3: S3Server) -> SnapshotBucket:
    known = {"endpoint": s3.url, "region": REGION, "key_id": KEY_ID, "secret": SECRET}
    return SnapshotBucket(BucketAccess(url="s3://states/kept/", **known))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


def change(place: Path, keeper: Snapshots, turn: str = "t") -> None:
    """A turn that changes one of two files, and makes a third."""
    (place / "a").write_text(f"old {turn}")
    (place / "same").write_text("same")
    keeper.take(place, name_before(turn))
    (place / "a").write_text(f"new {turn}")
    (place / "made").write_text("made")
    keeper.take(place, name_after(turn))


def take_back(place: Path, keeper: Snapshots, turn: str = "t") -> TakenBack:
    before = keeper.find(place, name_before(turn))
    after = keeper.find(place, name_after(turn))
    assert before is not None and after is not None
    return keeper.take_back(place, before, after)


async def test_a_turn_is_taken_back_from_the_bucket(
    place: Path, bucket: SnapshotBucket, s3: S3Server
) -> None:
    keeper = Snapshots(bucket=bucket)
    await asyncio.to_thread(change, place, keeper)
    assert len(s3.names(f"{TOP}/contents/")) == 4, "each content once"
    assert len([one for one in s3.asked if one.startswith("PUT")]) == 6, "and two lists"
    assert not (place / ".turnkeeper/snapshots/contents").exists()
    done = await asyncio.to_thread(take_back, place, keeper)
    assert done == TakenBack(restored=("a", "made"))
    assert (place / "a").read_text() == "old t" and not (place / "made").exists()


async def test_what_the_workspace_has_lost_comes_back(
    place: Path, bucket: SnapshotBucket, s3: S3Server
) -> None:
    await asyncio.to_thread(change, place, Snapshots(bucket=bucket))
    shutil.rmtree(place / ".turnkeeper")
    keeper = Snapshots(bucket=bucket)
    done = await asyncio.to_thread(take_back, place, keeper)
    assert set(done.restored) == {"a", "made"} and (place / "a").read_text() == "old t"
    asked = len(s3.asked)
    assert await asyncio.to_thread(keeper.find, place, "another") is None
    assert len(s3.asked) == asked, "it is looked for once"


async def test_old_states_leave_the_bucket(
    place: Path, bucket: SnapshotBucket, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Snapshots(keep=3_600, bucket=bucket)
    await asyncio.to_thread(change, place, keeper, "one")
    later = ambient.now() + 4_000
    monkeypatch.setattr(ambient, "now", lambda: later)
    await asyncio.to_thread(change, place, keeper, "two")
    lists = [name.rpartition("/")[2] for name in s3.names(f"{TOP}/lists/")]
    assert lists == ["two.after", "two.before"]
    assert len(s3.names(f"{TOP}/contents/")) == 4
    assert set((await asyncio.to_thread(take_back, place, keeper, "two")).restored) >= {"a"}
    assert (place / "a").read_text() == "old two"


@pytest.mark.parametrize("fails", [403, 500])
async def test_a_bucket_that_fails_is_told_and_changes_nothing(
    fails: int, place: Path, bucket: SnapshotBucket, s3: S3Server
) -> None:
    keeper = Snapshots(bucket=bucket)
    await asyncio.to_thread(change, place, keeper)
    s3.fails = fails
    (place / "a").write_text("later")
    with pytest.raises(SnapshotRefused, match="cannot be copied"):
        await asyncio.to_thread(keeper.take, place, name_before("u"))
    assert keeper.find(place, name_before("u")) is None
    (place / "a").write_text("new t")
    done = await asyncio.to_thread(take_back, place, keeper)
    assert done == TakenBack(restored=("made",), changed=("a",)), "what cannot be is named"
    assert (place / "a").read_text() == "new t"
    s3.fails = 0
    assert (await asyncio.to_thread(take_back, place, keeper)).restored == ("a",)


async def test_what_was_kept_before_the_bucket_was_set_is_found(
    place: Path, bucket: SnapshotBucket
) -> None:
    await asyncio.to_thread(change, place, Snapshots())
    keeper = Snapshots(bucket=bucket)
    done = await asyncio.to_thread(take_back, place, keeper)
    assert set(done.restored) == {"a", "made"}


async def test_a_kill_on_the_way_leaves_no_list_without_its_contents(
    place: Path, bucket: SnapshotBucket, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    put, left = bucket.put, iter(range(1))

    def put_some(name: str, data: bytes) -> None:
        if next(left, None) is None:
            raise Killed
        put(name, data)

    with monkeypatch.context() as patch:
        patch.setattr(bucket, "put", put_some)
        with pytest.raises(Killed):
            await asyncio.to_thread(change, place, Snapshots(bucket=bucket))
    assert s3.names("/lists/") == [] and len(s3.names("/contents/")) == 1
    assert os.listdir(place / ".turnkeeper/snapshots") in ([], ["unfinished"])
    keeper = Snapshots(bucket=bucket)
    await asyncio.to_thread(change, place, keeper)
    assert set((await asyncio.to_thread(take_back, place, keeper)).restored) == {"a", "made"}
