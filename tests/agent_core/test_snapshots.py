"""Snapshots of a workspace: kept once, taken back whatever changed it, never over others' work."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.states.file_states import Snapshot, TakenBack
from agent_core.sandboxes.states.scan import MAX_DEPTH, SnapshotRefused
from agent_core.tools import backups, paths
from agent_core.tools.files import ListFilesArguments, ReadFileArguments, entries, read
from tests.sampling import examples


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


def write(place: Path, **files: str) -> None:
    for name, text in files.items():
        path = place / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def look(place: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if name.startswith(".turnkeeper"):
            continue
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.stat().st_mode & 0o777, path.read_bytes())
    return found


@pytest.mark.parametrize("last", range(18))
def test_what_was_cut_off_on_the_way_back_is_taken_back_to_its_end(
    place: Path, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill does: nothing of it is done after the first steps. Then it is begun anew."""
    keeper = Snapshots()
    write(place, a="1", b="2", d__c="3", gone="4", file="5", folder__x="6", other__y="7")
    (place / "link").symlink_to("a")
    was = look(place)
    before = keeper.take(place, name_before("t"))
    write(place, a="one", new__x="5", new__y="6", d__c="three")
    for name in ("gone", "file", "link", "folder/x", "other/y"):
        (place / name).unlink()
    for name in ("folder", "other"):
        (place / name).rmdir()
    (place / "other").symlink_to("a")
    write(place, file__z="8", folder="9", link="10")  # each in the place of another kind
    after = keeper.take(place, name_after("t"))
    write(place, b="another's")
    steps = iter(range(last))

    class Killed(Exception):
        pass

    def count(act: Callable[..., None]) -> Callable[..., None]:
        def step(*given: object, **more: object) -> None:
            if next(steps, None) is None:
                raise Killed
            act(*given, **more)

        return step

    acts = ((paths, "put_file"), (paths, "remove"), (paths, "remove_folder"), (os, "symlink"))
    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        for owner, name in acts:
            patch.setattr(owner, name, count(getattr(owner, name)))
        keeper.take_back(place, before, after)
    assert not keeper.find_changed(place, before, after).changed, "nobody else was at it"
    done = keeper.take_back(place, before, after)
    files = ("a", "d/c", "file", "folder", "folder/x", "gone", "link", "new/x", "other", "other/y")
    named = {*done.restored, *done.already}
    assert named.issuperset(set(files) - {"folder", "other"}), "all of it is told"
    assert look(place) == was | {"b": (0o644, b"another's")}


def test_what_was_being_written_is_no_work_and_goes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def end(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", end)
        for put in (paths.put_file, backups.store):
            with pytest.raises(Killed):
                put(place, place / "new/a", b"half", 0o644)
    assert look(place) == {"new": "folder"}
    unfinished = place / ".turnkeeper/snapshots/unfinished"
    old, young = unfinished.iterdir()
    os.utime(old, (1, 1))
    Snapshots().take(place, name_before("t"))
    assert list(unfinished.iterdir()) == [young]


def test_what_changed_is_named_as_people_know_it(place: Path) -> None:
    keeper = Snapshots()
    write(place, a="1", b="2", d__c="3", gone="4")
    keeper.take(place, name_before("t"))
    write(place, a="one", d__new="5", made__x__y="6", made__z="7", d__node_modules__p="8")
    write(place, **{".git__HEAD": "9", ".log": "10"})
    (place / "gone").unlink()
    keeper.take(place, name_after("t"))
    named = keeper.list_changed(place, name_before("t"), name_after("t"))
    assert named == (".git/", ".log", "a", "d/new", "d/node_modules/", "gone", "made/")


def kept(place: Path) -> int:
    return len(list((place / ".turnkeeper/snapshots/contents").iterdir()))


def test_all_that_a_turn_did_is_taken_back(place: Path) -> None:
    keeper = Snapshots()
    write(place, a="1", b="2", d__c="3", gone__x="4")
    (place / "link").symlink_to("a")
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o755)
    was = look(place)
    before = keeper.take(place, name_before("t"))
    write(place, a="changed", new="n", deep__er__file="x", d__c="4")
    (place / "b").unlink()
    (place / "link").unlink()
    (place / "link").symlink_to("b")
    (place / "run.sh").chmod(0o644)
    (place / "gone/x").unlink()
    (place / "gone").rmdir()
    (place / "gone").write_text("a file now")
    after = keeper.take(place, name_after("t"))
    done = keeper.take_back(place, before, after)
    assert look(place) == was and done.changed == ()
    assert {"a", "b", "d/c", "deep/er/file", "gone/x", "link", "new", "run.sh"} <= {*done.restored}
    again = keeper.take_back(place, before, after)
    assert (again.restored, again.changed) == ((), ()), "a second time: nothing"
    assert set(again.already) == set(done.restored), "but it is told as the first time"


def test_no_file_tool_shows_a_copy_of_a_file_with_secrets(place: Path) -> None:
    write(place, **{".env": "KEY=hush", "a.py": "x", "deploy__id_rsa": "hush"})
    Snapshots().take(place, name_before("t"))
    copies = [str(one.relative_to(place)) for one in place.glob(".turnkeeper/snapshots/**/*")]
    assert any((place / one).read_bytes() == b"KEY=hush" for one in copies if "contents/" in one)
    (place / "link").symlink_to(next(one for one in copies if "contents/" in one))
    for path in (*copies, "link", ".turnkeeper/snapshots"):
        for spelt in (path, f"/workspace/{path}", f"x/../{path}", path.replace("/", "//")):
            with pytest.raises(ToolFailed):
                read(ReadFileArguments(path=spelt), place)
            with pytest.raises(ToolFailed):
                entries(ListFilesArguments(path=spelt), place)
    assert "snapshots" not in entries(ListFilesArguments(pattern="**"), place)


def test_what_others_changed_since_is_named_and_left(place: Path) -> None:
    keeper = Snapshots()
    write(place, a="1", b="2", c="3")
    before = keeper.take(place, "t.before")
    write(place, a="turn", b="turn", new="turn")
    after = keeper.take(place, "t.after")
    write(place, a="somebody", new="somebody", own="somebody")
    assert keeper.find_changed(place, before, after).changed == ("a", "new")
    done = keeper.take_back(place, before, after)
    assert (done.restored, done.changed) == (("b",), ("a", "new"))
    assert (place / "a").read_text() == "somebody" and (place / "own").exists()
    done = keeper.take_back(place, before, after, changed_too=True)
    assert done.restored == ("a", "new") and (place / "a").read_text() == "1"
    assert not (place / "new").exists() and (place / "own").read_text() == "somebody"


def test_contents_are_kept_once_and_a_name_is_taken_once(place: Path) -> None:
    keeper = Snapshots()
    write(place, a="same", b="same", c="other")
    first = keeper.take(place, "one")
    assert kept(place) == 2
    write(place, a="new")
    assert keeper.take(place, "one") == first, "after a crash it is what it was"
    keeper.take(place, "two")
    assert kept(place) == 3


def test_a_file_that_keeps_its_time_is_seen_to_be_changed(place: Path) -> None:
    """Size and time of a write are set easily; the time of change is not."""
    keeper = Snapshots()
    write(place, a="1111")
    info = (place / "a").stat()
    before = keeper.take(place, "t.before")
    write(place, a="2222")
    os.utime(place / "a", ns=(info.st_atime_ns, info.st_mtime_ns))
    after = keeper.take(place, "t.after")
    assert keeper.take_back(place, before, after).restored == ("a",)
    assert (place / "a").read_text() == "1111"


def test_old_lists_go_with_their_contents_but_for_turns_that_wait(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, now = Snapshots(keep=3_600), time.time()
    moment = [now]
    monkeypatch.setattr(ambient, "now", lambda: moment[0])
    write(place, a="1")
    keeper.take(place, "ended.before")
    write(place, a="2")
    keeper.take(place, "ended.after")
    keeper.take(place, "parked.before")
    moment[0] += 4_000
    write(place, a="3")
    keeper.take(place, "new.before")
    assert keeper.find(place, "ended.before") is None and keeper.find(place, "ended.after") is None
    parked = keeper.find(place, "parked.before")
    assert parked is not None and kept(place) == 2
    moment[0] += 40 * 86_400
    keeper.take(place, "newest.before")
    assert keeper.find(place, "parked.before") is None and kept(place) == 1


def test_caches_are_left_out_and_then_it_is_refused(place: Path) -> None:
    keeper = Snapshots(most=10_000)
    write(place, a="1", node_modules__x="x" * 8_000, sub__node_modules__y="y" * 6_000)
    before = keeper.take(place, "t.before")
    assert before.left_out == ("node_modules",)
    write(place, node_modules__x="changed")
    after = keeper.take(place, "t.after")
    assert keeper.take_back(place, before, after) == TakenBack()
    write(place, big="b" * 20_000)
    with pytest.raises(SnapshotRefused, match="more than"):
        keeper.take(place, "u.before")


def test_what_lies_too_deep_to_be_looked_at_is_refused(place: Path) -> None:
    keeper, deep = Snapshots(), place.joinpath(*["d"] * MAX_DEPTH)
    deep.mkdir(parents=True)
    (deep / "e").write_text("1")
    assert deep.joinpath("e").relative_to(place).as_posix() in keeper.take(place, "t.before").files
    (deep / "f").mkdir()
    with pytest.raises(SnapshotRefused, match="within 100 others"):
        keeper.take(place, "u.before")


def test_modes_of_folders_are_taken_back(place: Path) -> None:
    keeper = Snapshots()
    for name in ("shut", "gone", "shut/in"):
        (place / name).mkdir()
    (place / "gone/x").write_text("1")
    (place / "gone").chmod(0o500)
    before = keeper.take(place, name_before("t"))
    (place / "shut").chmod(0o700)
    (place / "gone/x").unlink()
    (place / "gone").rmdir()
    after = keeper.take(place, name_after("t"))
    keeper.take_back(place, before, after)
    modes = {name: (place / name).stat().st_mode & 0o777 for name in ("shut", "gone")}
    assert modes == {"shut": 0o755, "gone": 0o500} and (place / "gone/x").read_text() == "1"


def test_nothing_outside_is_read_or_written(place: Path) -> None:
    outside = place.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    keeper = Snapshots()
    write(place, d__f="inside")
    before = keeper.take(place, "t.before")
    (place / "d/f").unlink()
    (place / "d").rmdir()
    (place / "d").symlink_to(outside)
    (place / "l").symlink_to(outside / "secret")
    os.mkfifo(place / "pipe")
    after = keeper.take(place, "t.after")
    assert not any("secret" in one.digest and one.kind == "file" for one in after.files.values())
    keeper.take_back(place, before, after)
    assert (place / "d/f").read_text() == "inside" and not (place / "d").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_names_that_are_no_text_are_kept(place: Path) -> None:
    keeper, odd = Snapshots(), os.fsencode(place) + b"/a\x80\nb"
    with open(odd, "wb") as file:
        file.write(b"1")
    os.symlink(b"to\xff", os.fsencode(place) + b"/l")
    before = keeper.take(place, "t.before")
    os.unlink(odd)
    os.unlink(os.fsencode(place) + b"/l")
    after = keeper.take(place, "t.after")
    assert len(keeper.take_back(place, before, after).restored) == 2
    assert keeper.find(place, "t.before") == before
    with open(odd, "rb") as file:
        assert file.read() == b"1"
    assert os.readlink(os.fsencode(place) + b"/l") == b"to\xff"


def test_a_lost_content_is_named(place: Path) -> None:
    keeper = Snapshots()
    write(place, a="1", b="2")
    before = keeper.take(place, "t.before")
    write(place, a="x", b="x")
    after = keeper.take(place, "t.after")
    lost = place / ".turnkeeper/snapshots/contents" / before.files["a"].digest
    lost.write_text("torn")
    done = keeper.take_back(place, before, after)
    assert (done.restored, done.changed) == (("b",), ("a",))


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "c"])
TREES = st.dictionaries(NAMES, st.sampled_from(["", "1", "22"]))


def lay(place: Path, tree: dict[str, str]) -> None:
    for path in sorted(place.rglob("*"), reverse=True):
        if ".turnkeeper" in path.parts:
            continue
        path.rmdir() if path.is_dir() else path.unlink()
    for name, text in tree.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@settings(max_examples=examples(60))
@given(was=TREES, did=TREES)
def test_any_turn_is_taken_back(
    tmp_path_factory: pytest.TempPathFactory, was: dict[str, str], did: dict[str, str]
) -> None:
    place = tmp_path_factory.mktemp("ws")
    keeper = Snapshots()
    lay(place, was)
    looked = look(place)
    before = keeper.take(place, "t.before")
    lay(place, did)
    after = keeper.take(place, "t.after")
    done = keeper.take_back(place, before, after)
    assert look(place) == looked and done.changed == ()
    assert isinstance(keeper.find(place, "t.before"), Snapshot)
