"""What is in a sandbox is kept when it is idle, and what is lost comes back from a store: by itself,
once, with a word on what is not in it."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.messages import ToolCall
from agent_core.sandboxes import pool as pools
from agent_core.sandboxes.buckets.bucket import make_bucket
from agent_core.sandboxes.buckets.folder_store import FolderStore
from agent_core.sandboxes.buckets.settings import BucketAccess, parse_bucket
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.states.file_states import RevivedFiles
from agent_core.sandboxes.states.revived_news import describe_revived
from agent_core.sandboxes.states.scan import STATE, SnapshotRefused
from agent_core.sandboxes.tier import Tier
from agent_core.sandboxes.unsafe import UnsafeTier
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, find_tier
from tests.fakes.waiting import until


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "spaces" / "ws"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    (tmp_path / "store").mkdir()
    return FolderStore(tmp_path / "store")


def fill(place: Path) -> None:
    (place / "sub").mkdir(exist_ok=True)
    (place / "sub" / "a.txt").write_text("one")
    (place / "run").write_text("#!/bin/sh")
    (place / "run").chmod(0o755)
    if not (place / "link").is_symlink():
        (place / "link").symlink_to("sub/a.txt")
    home = place / STATE / "home"
    (home / ".local").mkdir(parents=True, exist_ok=True)
    (home / ".local" / "tool").write_text("installed")
    (place / STATE / "tmp").mkdir(exist_ok=True)
    (place / STATE / "tmp" / "note").write_text("here")


def read(place: Path) -> dict[str, str]:
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if name.startswith(".turnkeeper/snapshots") or path.is_dir() and not path.is_symlink():
            continue
        mode = oct(path.lstat().st_mode & 0o777)
        found[name] = os.readlink(path) if path.is_symlink() else f"{mode} {path.read_text()}"
    return found


def test_all_of_it_comes_back_from_a_store(place: Path, store: FolderStore) -> None:
    fill(place)
    keeper = Snapshots(bucket=store)
    keeper.take(place, name_before("t"))
    keeper.take_idle(place)
    was = read(place)
    assert keeper.revive(place) is None, "nothing is lost"
    shutil.rmtree(place)
    for one in (keeper, Snapshots(bucket=store)):  # the same process, and another one
        told = one.revive(place)
        assert told is not None and told.workspace and not told.missing and not told.left_out
        assert read(place) == was
    assert Snapshots(bucket=store).find(place, name_before("t")) is not None, "/undo goes on"
    assert keeper.take_news(place) is not None and keeper.take_news(place) is None
    assert keeper.revive(place) is not None, "another life of the turn has to be told, too"
    assert keeper.take_news(place) is not None
    keeper.forget_news(place)
    assert keeper.revive(place) is None and keeper.take_news(place) is None
    (place / "run").unlink()
    assert Snapshots(bucket=store).revive(place) is None and not (place / "run").exists()


def test_home_and_tmp_come_back_without_a_store(place: Path) -> None:
    fill(place)
    keeper, was = Snapshots(), read(place)
    keeper.take_idle(place)
    (place / "sub" / "a.txt").write_text("two")
    shutil.rmtree(place / STATE)
    told = keeper.revive(place)
    assert told is not None and not told.workspace
    assert read(place) == was | {"sub/a.txt": was["sub/a.txt"].replace("one", "two")}


def test_one_idle_snapshot_is_kept_and_copies_only_what_changed(
    place: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place)
    keeper, put = Snapshots(bucket=store), []
    real = store.put
    monkeypatch.setattr(store, "put", lambda name, data: (put.append(name), real(name, data)))
    keeper.take_idle(place)
    assert len([one for one in put if "/contents/" in one]) == 4
    put.clear()
    (place / STATE / "home" / "new").write_text("new")
    keeper.take(place, name_before("t"))
    keeper.take_idle(place)
    assert len([one for one in put if "/contents/" in one]) == 1
    names = [one.rpartition("/")[2] for one in store.list_names("ws/lists")]
    assert sorted(one.partition(".")[2] for one in names) == ["before", "idle"]


def test_a_conversation_without_files_asks_the_store_once(
    place: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, asked = Snapshots(bucket=store), 0
    real = FolderStore.list_names

    def list_names(self: FolderStore, folder: str) -> list[str]:
        nonlocal asked
        asked += 1
        return list(real(self, folder))

    monkeypatch.setattr(FolderStore, "list_names", list_names)
    plain = place.parent / "plain"
    for _ in range(3):
        if keeper.may_have_lost(plain):
            assert keeper.revive(plain) is None
    assert asked == 1
    assert not Snapshots().may_have_lost(plain), "without a store there is nothing to ask"
    fill(place)
    keeper.take(plain, name_before("t"))
    shutil.rmtree(plain)
    assert keeper.may_have_lost(plain), "it has been made since"


def test_what_is_there_is_never_written_over(place: Path, store: FolderStore) -> None:
    fill(place)
    Snapshots(bucket=store).take_idle(place)
    shutil.rmtree(place)
    place.mkdir()
    (place / "run").write_text("sent just now")
    told = Snapshots(bucket=store).revive(place)
    assert told is not None and told.workspace
    assert (place / "run").read_text() == "sent just now" and (place / "link").is_symlink()


@pytest.mark.parametrize("last", range(24))
def test_a_kill_on_the_way_back_is_made_good(
    last: int, place: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    fill(place)
    keeper = Snapshots(bucket=store)
    keeper.take(place, name_before("t"))
    keeper.take_idle(place)
    was = read(place)
    shutil.rmtree(place)
    steps = iter(range(last))

    def count(act: Callable[..., None]) -> Callable[..., None]:
        def step(*given: object, **more: object) -> None:
            if next(steps, None) is None:
                raise Killed
            act(*given, **more)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", count(os.replace))
        patch.setattr(os, "mkdir", count(os.mkdir))
        patch.setattr(os, "unlink", count(os.unlink))
        with pytest.raises(Killed):
            Snapshots(bucket=store).revive(place)
    told = Snapshots(bucket=store).revive(place)
    assert told is not None and told.workspace, "it is told after a kill, too"
    assert read(place) == was
    found = Snapshots(bucket=store).find(place, name_before("t"))
    assert found is not None


def test_what_is_to_be_erased_does_not_come_back(place: Path, store: FolderStore) -> None:
    fill(place)
    Snapshots(bucket=store).take_idle(place)
    shutil.rmtree(place)
    assert Snapshots(bucket=store, is_erased=lambda _: True).revive(place) is None
    assert not place.exists()


def test_a_workspace_that_goes_meanwhile_leaves_nothing_in_the_store(
    place: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place)
    real = store.put

    def put(name: str, data: bytes) -> None:
        if "/lists/" in name:
            shutil.rmtree(place)
            store.erase("ws")
        real(name, data)

    monkeypatch.setattr(store, "put", put)
    Snapshots(bucket=store).take_idle(place)
    assert store.list_names("ws") == [] and not place.exists()


def test_one_that_is_lost_meanwhile_comes_back_as_it_was_before(
    place: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place)
    keeper, real = Snapshots(bucket=store), store.put
    keeper.take_idle(place)
    was = read(place)
    (place / "new").write_text("new")

    def put(name: str, data: bytes) -> None:
        real(name, data)
        if "/lists/" in name:
            shutil.rmtree(place)

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", put)
        keeper.take_idle(place)
    assert not place.exists()
    told = keeper.revive(place)
    assert told is not None and not told.missing and read(place) == was


def test_home_is_left_out_where_all_is_too_much_and_that_is_told(
    place: Path, store: FolderStore
) -> None:
    fill(place)
    (place / STATE / "home" / "big").write_bytes(b"x" * 2_000)
    keeper = Snapshots(most=1_000, bucket=store)
    keeper.take_idle(place)
    shutil.rmtree(place)
    told = keeper.revive(place)
    assert told is not None and told.left_out == (STATE,)
    assert (place / "run").exists() and not (place / STATE / "home").exists()
    text = describe_revived(told, ())
    assert "HOME and /tmp did not come back" in text


def test_a_store_that_is_away_loses_nothing(place: Path, tmp_path: Path) -> None:
    fill(place)
    (tmp_path / "store").mkdir()
    store = FolderStore(tmp_path / "store")
    Snapshots(bucket=store).take_idle(place)
    was = read(place)
    (tmp_path / "store").rename(tmp_path / "away")
    shutil.rmtree(place)
    keeper = Snapshots(bucket=store)
    assert keeper.revive(place) is None and not place.exists()
    (tmp_path / "away").rename(tmp_path / "store")
    assert keeper.revive(place) is not None and read(place) == was


def test_the_news_name_what_came_after() -> None:
    revived = RevivedFiles(at=0.0, snapshot="t.before", workspace=True, missing=("b.txt",))
    write = ToolCall(id="c1", name="write_file", arguments='{"path": "a.txt"}')
    text = describe_revived(revived, (write,))
    assert "as they were at 1970-01-01 00:00 UTC" in text and "Not brought back: b.txt." in text
    assert 'since, do again what is needed: write_file {"path": "a.txt"}.' in text


@pytest.mark.parametrize(
    ("text", "meant"),
    [("/mnt/states/", "/mnt/states"), ("s3://states/kept", "s3://states/kept")],
)
def test_a_store_is_a_folder_or_a_bucket(text: str, meant: str) -> None:
    assert parse_bucket(text) == meant


@pytest.mark.parametrize("text", ["states", "/mnt/../etc", "file:///mnt/states", "~/states"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the whole path of a folder"):
        parse_bucket(text)


def test_a_folder_stores_reads_lists_and_removes(tmp_path: Path) -> None:
    store = make_bucket(BucketAccess(url=str(tmp_path / "new")))
    assert isinstance(store, FolderStore)
    with pytest.raises(OSError, match="is not there"):
        store.list_names("one")
    store.probe()
    for name in ("one/contents/1", "one/lists/t.before", "two/contents/2"):
        store.put(name, name.encode())
    assert sorted(store.list_names("one")) == ["one/contents/1", "one/lists/t.before"]
    assert store.get("one/contents/1") == b"one/contents/1" and store.get("one/none") is None
    store.erase("one")
    assert store.list_names("one") == [] and not (tmp_path / "new/one").exists()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["two"]
    assert (tmp_path / "new/two/contents/2").stat().st_mode & 0o077 == 0


# ---- real sandboxes --------------------------------------------------------------------------


@pytest.fixture(params=[BWRAP, LANDLOCK, DOCKER])
async def tier(request: pytest.FixtureRequest) -> Tier:
    return await find_tier(request)


async def test_a_sandbox_that_is_idle_is_kept_and_comes_back_on_another_machine(
    tier: Tier, place: Path, store: FolderStore
) -> None:
    keeper = Snapshots(bucket=store)
    keeper.quiet = 0.0
    pool = SandboxPool(tier, keeper=keeper)
    work = 'echo one > a.txt && mkdir -p ~/bin && echo "echo hi" > ~/bin/t && chmod 755 ~/bin/t'
    try:
        done = await pool.run(work, place, 20, lambda _: None)
        assert done.exit_code == 0, done.output
        await until(lambda: any(one.endswith(".idle") for one in store.list_names("ws")))
    finally:
        await pool.close()
    shutil.rmtree(place)
    pool = SandboxPool(tier, keeper=Snapshots(bucket=store))
    try:
        look = "cat a.txt; ~/bin/t; echo more >> ~/bin/t && echo more >> a.txt && cat a.txt"
        done = await pool.run(look, place, 20, lambda _: None)
        assert done.output == "one\nhi\none\nmore\n", "what came back can be changed"
    finally:
        await pool.close()
    assert Snapshots(bucket=store).revive(place) is not None, "still to be told"


async def test_a_sandbox_whose_folder_goes_is_made_anew(
    tier: Tier, place: Path, store: FolderStore
) -> None:
    for keeper, told in (
        (None, "[A new sandbox: the folder of the one before is gone"),
        (store, ""),
    ):
        pool = SandboxPool(tier, keeper=Snapshots(bucket=keeper) if keeper else None)
        try:
            await pool.run("echo one > a.txt", place, 20, lambda _: None)
            if keeper is not None:
                Snapshots(bucket=keeper).take(place, name_after("t"))
            shutil.rmtree(place)
            done = await pool.run("cat a.txt", place, 20, lambda _: None)
        finally:
            await pool.close()
        if keeper is None:
            assert done.output.startswith(told) and done.exit_code == 1
        else:
            assert done.output == "one\n"


async def test_one_that_is_used_again_is_not_kept_before_it_is_idle(
    place: Path, store: FolderStore
) -> None:
    keeper = Snapshots(bucket=store)
    pool = SandboxPool(UnsafeTier(), keeper=keeper)
    try:
        await pool.run("true", place, 20, lambda _: None)
        (known,) = pool._places.values()
        first = known.quiet
        assert first is not None and 59 < first.when() - asyncio.get_running_loop().time() < 61
        await pool.run("true", place, 20, lambda _: None)
        assert first.cancelled() and known.quiet is not first
        assert store.list_names("ws") == []
    finally:
        await pool.close()
    assert known.quiet.cancelled()


async def test_what_was_not_idle_yet_is_kept_when_the_gateway_ends(
    tmp_path: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: what was kept since is not kept again, and what hangs holds nothing up for long."""
    places = [tmp_path / "spaces" / name for name in ("one", "two")]
    keeper = Snapshots(bucket=store)
    pool = SandboxPool(UnsafeTier(), keeper=keeper)
    for place in places:
        place.mkdir(parents=True)
        home = place / STATE / "home"
        command = f"mkdir -p {home} && echo kept > {home}/note"
        await pool.run(command, place, 20, lambda _: None)
    await pool.close()
    for place in places:
        shutil.rmtree(place)
        assert keeper.revive(place) is not None
        assert (place / STATE / "home/note").read_text() == "kept\n"
    before = store.list_names("one")
    await pool.close()
    assert store.list_names("one") == before, "nothing ran since"

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(pools, "SECONDS_TO_KEEP", 0.0)
    monkeypatch.setattr(SandboxPool, "_save", hang)
    await pool.run("echo more > more", places[0], 20, lambda _: None)
    await pool.close()
    assert store.list_names("one") == before


def test_a_workspace_that_is_too_large_is_logged(
    place: Path, store: FolderStore, caplog: pytest.LogCaptureFixture
) -> None:
    fill(place)
    keeper = Snapshots(most=3, bucket=store)
    keeper.take_idle(place)
    assert "idle_not_kept" in caplog.messages
    with pytest.raises(SnapshotRefused):
        keeper.take(place, name_after("t"))
