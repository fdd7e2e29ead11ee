"""A bucket for snapshots, by the real SDK against a server on loopback that checks signatures."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from agent_core.config.declaration import SettingsError
from agent_core.sandboxes.buckets.bucket import BucketFailed, SnapshotBucket, make_bucket
from agent_core.sandboxes.buckets.settings import BucketAccess, read_bucket
from tests.fakes.s3_server import KEY_ID, REGION, SECRET, S3Server


@pytest.fixture
async def s3() -> AsyncIterator[S3Server]:
    server = S3Server()
    await server.start()
    yield server
    await server.close()


def access(s3: S3Server, **more: str) -> BucketAccess:
    known = {"url": "s3://states/kept", "endpoint": s3.url, "region": REGION}
    return BucketAccess(**(known | {"key_id": KEY_ID, "secret": SECRET} | more))


async def test_what_is_put_is_listed_read_and_removed(s3: S3Server) -> None:
    bucket = SnapshotBucket(access(s3))
    names = [f"one/contents/{n}" for n in range(8)]
    for name in names:
        await asyncio.to_thread(bucket.put, name, name.encode())
    await asyncio.to_thread(bucket.put, "other/contents/9", b"")
    assert s3.names()[0] == "states/kept/one/contents/0"
    assert sorted(await asyncio.to_thread(bucket.list_names, "one")) == names, "page by page"
    assert await asyncio.to_thread(bucket.get, names[3]) == names[3].encode()
    assert await asyncio.to_thread(bucket.get, "other/contents/9") == b""
    assert await asyncio.to_thread(bucket.get, "one/none") is None
    await asyncio.to_thread(bucket.remove, names[:2])
    assert await asyncio.to_thread(bucket.get, names[0]) is None
    await asyncio.to_thread(bucket.erase, "one")
    assert s3.names() == ["states/kept/other/contents/9"]


@pytest.mark.parametrize("wrong", [{"secret": "another"}, {"key_id": "nobody"}, {"region": "x"}])
async def test_who_may_not_is_told(wrong: dict[str, str], s3: S3Server) -> None:
    bucket = SnapshotBucket(access(s3, **wrong))
    with pytest.raises(BucketFailed) as told:
        await asyncio.to_thread(bucket.probe)
    assert SECRET not in str(told.value) and len(str(told.value)) < 310
    assert s3.objects == {}


async def test_a_server_that_fails_or_is_not_there_is_told_within_bounds(s3: S3Server) -> None:
    bucket = SnapshotBucket(access(s3))
    s3.fails = 500
    with pytest.raises(BucketFailed):
        await asyncio.to_thread(bucket.put, "one/a", b"x")
    assert len(s3.asked) == 4, "tried again three times"
    s3.fails = 0
    await asyncio.to_thread(bucket.probe)
    await s3.close()
    with pytest.raises(BucketFailed):
        await asyncio.to_thread(bucket.get, "one/a")


@pytest.mark.parametrize(
    "text",
    ["states", "s3:/states", "http://states", "s3://", "s3://A_b", "s3://b/../c", "s3://bu?x=1"],
)
def test_what_is_no_bucket_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="s3://bucket"):
        read_bucket({"SNAPSHOT_STORE": text})


def test_a_bucket_is_read_from_the_settings() -> None:
    assert read_bucket({}) == BucketAccess()
    assert read_bucket({"SNAPSHOT_STORE": "s3://a-b.c/d/e", "SNAPSHOT_S3_SECRET": "x"}) == (
        BucketAccess(url="s3://a-b.c/d/e", secret="x")
    )


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match=r"pip install 'turnkeeper\[s3\]'"):
        make_bucket(BucketAccess(url="s3://states"))
    assert make_bucket(BucketAccess()) is None
