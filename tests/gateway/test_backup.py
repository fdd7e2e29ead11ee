"""Backups: of a running gateway under load, restored elsewhere and in place, with a parked turn; and
what is refused before anything is replaced."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.sandboxes.owners import hold_folder, hold_scratch, remove_left
from gateway.ops import backup
from gateway.ops.backup import BackupError, unpack_backup, write_backup
from gateway.ops.lock import UNFINISHED
from gateway.ops.restore_swap import UNPACKED, finish_cut_off, remove_leftovers, swap_in
from gateway.store.sqlite import SqliteStore
from tests.fakes.model_server import Call, Say
from tests.gateway.process import PERSON, START, World

FRIEND = 12


async def keep_writing(world: World, accepted: list[str]) -> None:
    """One person writes all the time."""
    for n in range(10_000):
        world.telegram.say(FRIEND, f"load {n}")
        await world.telegram.wait_text(FRIEND, f"ack load {n}", START)
        accepted.append(f"load {n}")


def card_of(world: World) -> dict[str, Any]:
    return next(m for m in world.telegram.chats[PERSON] if "reply_markup" in m)


@pytest.mark.pick("a home in a process")
async def test_a_parked_turn_goes_on_where_a_backup_is_restored(world: World) -> None:
    people = {"TELEGRAM_ALLOWED_USERS": f"{PERSON},{FRIEND}"}
    script = (Call("write_file", '{"path": "a.txt", "content": "x"}'), Say("written"))
    world.model.by_text["write it"] = list(script)
    run = await world.start(**people)
    world.telegram.say(PERSON, "write it")
    await world.telegram.wait(
        lambda: any("reply_markup" in m for m in world.telegram.chats[PERSON]), START
    )
    accepted: list[str] = []
    writing = asyncio.ensure_future(keep_writing(world, accepted))
    await world.telegram.wait_text(FRIEND, "ack load 3", START)
    before = len(accepted)
    file = world.folder / "all.backup"
    code, said = await world.command("backup", str(file), **people)
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    assert code == 0 and str(file) in said, said
    assert file.stat().st_mode & 0o777 == 0o600 and not list(world.folder.glob("*.part"))
    assert await run.end() == 0

    old = world.folder / ".turnkeeper"
    shutil.rmtree(old)
    elsewhere = {**people, "TURNKEEPER_HOME": str(world.folder / "elsewhere")}
    code, said = await world.command("restore", str(file), **elsewhere)
    assert code == 0, said
    store = sqlite3.connect(world.folder / "elsewhere" / "turnkeeper.db")
    assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    shown = b"".join(body for (body,) in store.execute("SELECT body FROM transcript"))
    store.close()
    assert all(f'"{text}\\n\\n[Now: '.encode() in shown for text in accepted[:before])

    run = await world.start(**elsewhere)
    card = card_of(world)
    button = card["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    world.telegram.press(PERSON, card["message_id"], button)
    await world.telegram.wait_text(PERSON, "written", START)
    assert list((world.folder / "elsewhere" / "workspaces").glob("*/a.txt"))
    assert not old.exists(), "nothing is written where it was"

    code, said = await world.command("restore", str(file), **elsewhere)
    assert code == 1 and "--force" in said, "there is something"
    code, said = await world.command("restore", str(file), "--force", **elsewhere)
    assert code == 0 and "goes on" in said
    await world.telegram.wait(lambda: run.out.count("is ready") == 2, START)
    (aside,) = (world.folder / "elsewhere").glob("before-restore-*")
    assert list(aside.glob("workspaces/*/a.txt"))
    assert not list((world.folder / "elsewhere" / "workspaces").glob("*/a.txt"))
    world.model.by_text["write it"] = [script[1]]
    world.telegram.press(PERSON, card["message_id"], button)
    await world.telegram.wait(
        lambda: bool(list((world.folder / "elsewhere" / "workspaces").glob("*/a.txt"))), START
    )
    assert await run.end() == 0


# ---- one folder, no process --------------------------------------------------------------------


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    store = await SqliteStore.open(home / "turnkeeper.db")
    await store.put("a", b"1")
    await store.close()
    (home / "secrets.json").write_text("{}")
    workspace = home / "workspaces" / "w"
    workspace.mkdir(parents=True)
    (workspace / "run.sh").write_text("#!/bin/sh")
    (workspace / "run.sh").chmod(0o700)
    (workspace / "link").symlink_to("/etc/passwd")
    os.mkfifo(workspace / "pipe")
    return home


def silent(text: str) -> None:
    """Nobody listens."""


async def test_what_is_backed_up_is_there_again(home: Path, tmp_path: Path) -> None:
    manifest = write_backup(home, tmp_path / "b", database=True, tell=silent)
    assert set(manifest.files) == {
        "turnkeeper.db", "secrets.json", "workspaces/w/run.sh", "workspaces/w/link",
    }  # fmt: skip
    place = unpack(home, tmp_path / "b")
    (home / "secrets.json").write_text("other")
    aside = swap_in(home, place)
    assert aside is not None and (aside / "secrets.json").read_text() == "other"
    assert (home / "secrets.json").read_text() == "{}"
    assert (home / "workspaces" / "w" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert os.readlink(home / "workspaces" / "w" / "link") == "/etc/passwd"
    store = await SqliteStore.open(home / "turnkeeper.db")
    assert await store.get("a") == b"1"
    await store.close()


def rewrite(file: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """The archive with other bytes for its members; None leaves one out."""
    with tarfile.open(file) as old, tarfile.open(file.with_suffix(".new"), "w") as new:
        for entry in old:
            source = old.extractfile(entry) if entry.isfile() else None
            body = change(entry.name, source.read() if source else b"")
            if body is not None:
                entry.size = len(body)
                with (file.parent / "scratch").open("w+b") as scratch:
                    scratch.write(body)
                    scratch.seek(0)
                    new.addfile(entry, scratch if source else None)
    os.replace(file.with_suffix(".new"), file)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda name, body: b"x" if name == "secrets.json" else body, "damaged: secrets.json"),
        (lambda name, body: None if name == "secrets.json" else body, "damaged: secrets.json"),
        (lambda name, body: None if name == backup.MANIFEST else body, "no manifest"),
        (lambda name, body: body.replace(b'"format":1', b'"format":2'), "another version"),
    ],
)  # fmt: skip
async def test_a_damaged_or_newer_one_replaces_nothing(
    home: Path, tmp_path: Path, change: Callable[[str, bytes], bytes | None], why: str
) -> None:
    file = tmp_path / "b"
    write_backup(home, file, database=True, tell=silent)
    rewrite(file, change)
    before = sorted(home.iterdir())
    with pytest.raises(BackupError, match=why):
        unpack_backup(file, home / f"{UNPACKED}one", silent)
    assert sorted(home.iterdir()) == before


@pytest.mark.parametrize("name", ["../evil", "/evil", "workspaces/../../evil"])
async def test_no_path_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "b", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(BackupError, match="evil"):
        unpack_backup(tmp_path / "b", tmp_path / "to", silent)
    assert not (tmp_path / "evil").exists() and not (tmp_path / "to").exists()


async def test_half_a_file_and_no_file_at_all_are_refused(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "b"
    write_backup(home, file, database=True, tell=silent)
    file.write_bytes(file.read_bytes()[:5_000])
    for one in (file, tmp_path / "none"):
        with pytest.raises(BackupError):
            unpack_backup(one, home / f"{UNPACKED}one", silent)


@pytest.mark.parametrize("steps", range(9))
async def test_a_restore_that_is_cut_off_is_brought_to_its_end(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Ends before each of its renames in turn, and again while it is brought to its end."""
    file = tmp_path / "b"
    write_backup(home, file, database=True, tell=silent)
    (home / "secrets.json").write_text("other")
    (home / "uploads").mkdir()
    plain, left = os.replace, [steps]

    def cut(source: Path, to: Path) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        plain(source, to)

    place = unpack(home, file)
    monkeypatch.setattr(os, "replace", cut)
    with pytest.raises(KeyboardInterrupt) if steps < 8 else contextlib.nullcontext():
        swap_in(home, place)
    begun = (home / UNFINISHED).exists()
    assert begun == (0 < steps < 8)
    left[0] = 1
    with pytest.raises(KeyboardInterrupt) if begun and steps < 7 else contextlib.nullcontext():
        finish_cut_off(home)
    monkeypatch.setattr(os, "replace", plain)
    finish_cut_off(home)
    assert not (home / UNFINISHED).exists() and not finish_cut_off(home)
    new = steps > 0
    assert (home / "secrets.json").read_text() == ("{}" if new else "other")
    assert (home / "uploads").exists() != new
    assert len(list(home.glob("before-restore-*"))) == new
    remove_leftovers(home)
    assert not list(home.glob(f"{UNPACKED}*"))
    assert (home / "workspaces" / "w" / "run.sh").exists()
    store = await SqliteStore.open(home / "turnkeeper.db")
    assert await store.get("a") == b"1"
    await store.close()


def unpack(home: Path, file: Path) -> Path:
    """The folder of a process that was killed with it unpacked."""
    place = home / f"{UNPACKED}one"
    unpack_backup(file, place, silent)
    return place


async def test_nothing_is_replaced_by_what_is_gone_or_where_a_volume_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_backup(home, tmp_path / "b", database=True, tell=silent)
    before = sorted(home.iterdir())
    with pytest.raises(BackupError, match="is gone"):
        swap_in(home, home / f"{UNPACKED}none")
    place = unpack(home, tmp_path / "b")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "workspaces")
    with pytest.raises(BackupError, match="workspaces: a volume of its own"):
        swap_in(home, place)
    remove_leftovers(home)
    assert sorted(home.iterdir()) == before


async def test_what_a_killed_process_left_goes_and_what_one_works_in_stays(tmp_path: Path) -> None:
    left = tmp_path / "x-left"
    left.mkdir()
    (left / "file").write_text("old")
    with hold_scratch(tmp_path, "x-") as first:
        assert not left.exists()
        with hold_scratch(tmp_path, "x-") as second:
            assert first.is_dir() and second.is_dir()
        assert first.is_dir() and not second.exists()
        held = hold_folder(first)
    assert first.is_dir(), "somebody else holds it"
    os.close(held)
    remove_left(tmp_path, "x-", kept=(first.name,))
    assert first.is_dir()
    remove_left(tmp_path, "x-")
    assert not list(tmp_path.iterdir())
