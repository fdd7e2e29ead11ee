"""Any turn of commands is taken back: what they did, in any order, to files of any name and kind."""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.states.file_states import TakenBack, is_below
from agent_core.tools import paths
from tests.sampling import examples

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(
    [
        "a",
        "A",
        "b",
        "größe – 日本 😀",
        "odd\n\t'\"$(x) ",
        "-rf",
        ".hidden",
        "bad\udcff",
        "e\u0301",
        "é",
    ]
)
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.sampled_from(["", "1", "22", "x" * 5_000])
MODES = st.sampled_from([0o600, 0o644, 0o755, 0o400, 0o700, 0o555])
Act = tuple[str, str, str, str, int]
Looked = dict[str, object]
STEPS = (
    (paths, "put_file"),
    (paths, "remove"),
    (paths, "remove_folder"),
    (os, "symlink"),
    (os, "fchmod"),
)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "append", "remove", "rename", "chmod", "link", "hard", "sparse", "folder",
             "replace", "copy", "same", "fifo"]
        ),
        PLACES, PLACES, TEXTS, MODES,
    ),
    max_size=12,
)  # fmt: skip


def act(top: Path, one: Act) -> None:
    """One thing that a command does; what cannot be done is not, as there."""
    how, first, second, text, mode = one
    path, other = top / first, top / second
    with contextlib.suppress(OSError, shutil.Error):
        if path.is_fifo() or other.is_fifo():
            return  # who opens it waits
        path.parent.mkdir(parents=True, exist_ok=True)
        match how:
            case "write":
                path.write_text(text)
            case "append":
                with path.open("a") as file:
                    file.write(text)
            case "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "rename":
                other.parent.mkdir(parents=True, exist_ok=True)
                path.rename(other)
            case "chmod":
                if not path.is_symlink():
                    path.chmod(mode)
            case "link":
                path.symlink_to(second)
            case "hard":
                os.link(other, path)
            case "sparse":
                with path.open("wb") as file:
                    file.truncate(100_000)
            case "folder":
                path.mkdir()
            case "replace":  # by what is of another kind
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                    path.write_text(text)
                else:
                    path.unlink()
                    path.mkdir()
                    (path / "in").write_text(text)
            case "copy" if f"{first}/".startswith(f"{second}/"):
                pass  # into itself, without end
            case "copy":
                shutil.copytree(other, path) if other.is_dir() else shutil.copy2(other, path)
            case "same":  # another file with the same content and times
                info, data = path.stat(), path.read_bytes()
                path.unlink()
                path.write_bytes(data)
                os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
            case "fifo":
                os.mkfifo(path)


def look(place: Path) -> Looked:
    """All that can be told of the workspace, but for times and what is neither file nor folder."""
    found: Looked = {}
    for path in place.rglob("*"):
        name, info = str(path.relative_to(place)), path.lstat()
        if name.startswith(".turnkeeper"):
            continue
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISLNK(info.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            found[name] = ("folder", mode)
        elif stat.S_ISREG(info.st_mode):
            found[name] = ("file", mode, path.read_bytes())
    return found


@contextlib.contextmanager
def begin(acts: list[Act]) -> Iterator[Path]:
    """A workspace after these acts, in memory: hundreds of them are written to the disk and awaited
    there else."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "ws"
        place.mkdir()
        for one in acts:
            act(place, one)
        yield place


def find_untold(was: Looked, now: Looked, done: TakenBack) -> set[str]:
    """What is not as it was, and is not named: neither it nor what stands in it or it in."""
    differs = {path for path in was.keys() | now.keys() if was.get(path) != now.get(path)}
    named = done.changed
    return {
        path
        for path in differs
        if not any(is_below(path, one) or is_below(one, path) for one in named)
    }


@settings(max_examples=examples(60))
@given(was=ACTS, did=ACTS)
def test_what_commands_did_is_taken_back(was: list[Act], did: list[Act]) -> None:
    with begin(was) as place:
        keeper, looked = Snapshots(), look(place)
        before = keeper.take(place, name_before("t"))
        for one in did:
            act(place, one)
        after = keeper.take(place, name_after("t"))
        done = keeper.take_back(place, before, after)
        now = look(place)
        assert not find_untold(looked, now, done)
        if all(one[0] != "fifo" for one in did):  # a pipe is nobody's work, and in the way
            assert now == looked and done.changed == ()
        again = keeper.take_back(place, before, after)
        assert again.restored == () and look(place) == now, "a second time there is nothing to do"


@settings(max_examples=examples(60))
@given(was=ACTS, did=ACTS, since=ACTS)
def test_what_others_did_since_is_left_and_named(
    was: list[Act], did: list[Act], since: list[Act]
) -> None:
    with begin(was) as place:
        keeper, looked = Snapshots(), look(place)
        before = keeper.take(place, name_before("t"))
        for one in did:
            act(place, one)
        left = look(place)
        after = keeper.take(place, name_after("t"))
        for one in since:
            act(place, one)
        others = look(place)
        told = keeper.find_changed(place, before, after)
        done = keeper.take_back(place, before, after)
        now = look(place)
        theirs = {
            path for path in left.keys() | others.keys() if left.get(path) != others.get(path)
        }
        lost = {path for path in theirs if path in others and now.get(path) != others[path]}
        assert lost <= {path for path in lost if looked.get(path) == now.get(path)}, (
            "theirs is left"
        )
        mine = {path for path in left.keys() | looked.keys() if left.get(path) != looked.get(path)}
        holds = {path for path in now if any(is_below(one, path) for one in theirs)}
        assert find_untold(looked, now, done) <= (theirs - mine) | holds
        assert set(told.changed) <= set(done.changed), (
            "what a person is asked about is what is left"
        )


Step = Callable[..., object]


def fail_after(steps: int, error: BaseException) -> Callable[[Step], Step]:
    """Wrap functions, which fail after so many calls of all of them."""
    left = iter(range(steps))

    def wrap(act: Step) -> Step:
        def step(*given: object, **more: object) -> object:
            if next(left, None) is None:
                raise error
            return act(*given, **more)

        return step

    return wrap


@settings(max_examples=examples(40))
@given(was=ACTS, did=ACTS, steps=st.integers(0, 25))
def test_one_that_is_cut_off_is_begun_anew(was: list[Act], did: list[Act], steps: int) -> None:
    """As by a kill: nothing is done after some steps. Then it goes on to its end."""
    if any(one[0] == "fifo" for one in (*was, *did)):  # moved with its folder it is in the way
        return

    class Killed(BaseException):
        pass

    count = fail_after(steps, Killed())
    with begin(was) as place:
        keeper, looked = Snapshots(), look(place)
        before = keeper.take(place, name_before("t"))
        for one in did:
            act(place, one)
        after = keeper.take(place, name_after("t"))
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
            for owner, name in STEPS:
                patch.setattr(owner, name, count(getattr(owner, name)))
            keeper.take_back(place, before, after)
        assert not keeper.find_changed(place, before, after).changed, "nobody else was at it"
        keeper.take_back(place, before, after)
        assert look(place) == looked


@settings(max_examples=examples(40))
@given(was=ACTS, did=ACTS, steps=st.integers(0, 12))
def test_what_a_full_disk_refuses_is_taken_back_later(
    was: list[Act], did: list[Act], steps: int
) -> None:
    """No file of it counts as changed by others, and nothing of it is lost."""
    if any(one[0] == "fifo" for one in (*was, *did)):  # moved with its folder it is in the way
        return
    fill = fail_after(steps, OSError(errno.ENOSPC, "No space left on device"))
    with begin(was) as place:
        keeper, looked = Snapshots(), look(place)
        before = keeper.take(place, name_before("t"))
        for one in did:
            act(place, one)
        for name in sorted(name for name in os.listdir(place) if name != paths.OWN)[::2]:
            act(place, ("remove", name, name, "", 0))
        after = keeper.take(place, name_after("t"))
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in ((paths, "put_file"), (os, "symlink")):
                patch.setattr(owner, name, fill(getattr(owner, name)))
            try:
                done = keeper.take_back(place, before, after)
            except OSError as error:
                assert error.errno == errno.ENOSPC
            else:
                assert done.changed == () and look(place) == looked
        assert not keeper.find_changed(place, before, after).changed, "nobody else was at it"
        assert keeper.take_back(place, before, after).changed == ()
        assert look(place) == looked
