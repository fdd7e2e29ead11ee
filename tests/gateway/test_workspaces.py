"""Folders of conversations that are gone: out of the way at once, removed after their last use."""

import os
from pathlib import Path

from gateway.messages import digest
from gateway.services.workspaces import Workspaces, find_last_use

HERE, THERE = "test:bot::here::p", "test:bot::there::p"
DAY = 86_400.0
NOW = 1_800_000_000.0


def make(folder: Path, conversation: str, used: float) -> Path:
    own = folder / digest(conversation.encode())
    (own / "incoming").mkdir(parents=True)
    (own / "incoming" / "a.txt").write_text("x")
    for path in (own / "incoming" / "a.txt", own / "incoming", own):
        os.utime(path, (used, used))
    return own


def test_one_that_was_used_lately_stays_aside_until_it_is_old(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    own, other = make(tmp_path, HERE, NOW - 20 * DAY), make(tmp_path, THERE, NOW - 90 * DAY)
    workspaces.set_aside(HERE)
    workspaces.set_aside(HERE)
    assert not own.exists() and other.exists()
    assert workspaces.tidy(NOW - 30 * DAY) == 0
    assert len(list(tmp_path.glob("*/incoming/a.txt"))) == 2
    assert workspaces.tidy(NOW - 10 * DAY) == 1
    assert list(tmp_path.iterdir()) == [other], "that of a conversation which is there"


def test_a_new_folder_of_the_same_conversation_is_another_one(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    make(tmp_path, HERE, NOW - 40 * DAY)
    workspaces.set_aside(HERE)
    new = make(tmp_path, HERE, NOW)
    assert workspaces.tidy(NOW - 30 * DAY) == 1 and new.exists()
    workspaces.set_aside(HERE)
    make(tmp_path, HERE, NOW)
    workspaces.remove(HERE)
    assert list(tmp_path.iterdir()) == []


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "workspaces"
    own = make(folder, HERE, NOW - 90 * DAY)
    (own / "away").symlink_to(outside)
    before = os.lstat(own).st_mtime
    os.utime(own, (NOW - 90 * DAY, NOW - 90 * DAY))
    os.utime(own / "away", (NOW - 90 * DAY, NOW - 90 * DAY), follow_symlinks=False)
    assert before and find_last_use(own) == NOW - 90 * DAY, "not what it leads to"
    workspaces = Workspaces(folder)
    workspaces.set_aside(HERE)
    assert workspaces.tidy(NOW - 30 * DAY) == 1
    assert (outside / "kept").exists()


class Holder:
    """Holds what a folder says, or something of every one; may be out of reach."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.erased: list[tuple[str, str]] = []
        self.reached = True

    def find(self, workspace: Path) -> str | None:
        if self.kind == "all":
            return ""
        file = workspace / "incoming" / "a.txt"
        return file.read_text() if file.exists() else None

    def erase(self, workspace: str, what: str) -> None:
        if not self.reached:
            raise OSError("out of reach")
        self.erased.append((workspace, what))


def test_what_others_hold_of_it_goes_at_once(tmp_path: Path) -> None:
    folder, here, there = tmp_path / "later", digest(HERE.encode()), digest(THERE.encode())
    holders = Holder("all"), Holder("some")
    workspaces = Workspaces(folder, holders)
    workspaces.remove(THERE)
    make(folder, HERE, NOW)
    workspaces.set_aside(HERE)
    workspaces.set_aside(HERE)
    assert holders[0].erased == [(there, ""), (here, "")]
    assert holders[1].erased == [(here, "x")], "as its folder said"
    assert not list(folder.glob("*.unerased"))


def test_what_others_did_not_erase_they_erase_later(tmp_path: Path) -> None:
    holder, name = Holder("some"), digest(HERE.encode())
    holder.reached = False
    make(tmp_path, HERE, NOW)
    Workspaces(tmp_path, [holder]).remove(HERE)
    workspaces = Workspaces(tmp_path, [holder])  # of the next process
    assert workspaces.tidy(NOW) == 0 and holder.erased == []
    Workspaces(tmp_path).tidy(NOW)  # one that does not know this holder leaves it to do
    holder.reached = True
    assert workspaces.tidy(NOW) == 0
    assert holder.erased == [(name, "x")] and list(tmp_path.iterdir()) == []
