"""The network is opened by a press, a workspace is kept and taken back, an app is looked at: killed at
every point, also between two files. Nothing runs twice by itself, what was granted is granted or
asked for again, files are those of before or of after, and what was opened is open or told."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from agent_core.sandboxes.detect import MissingTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.previews.server import COOKIE
from agent_core.sandboxes.snapshots import Snapshots
from gateway.messages import turn_token
from tests.fakes.lives import Prepare, Story, count_points, killed_everywhere
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CURL
from tests.fakes.ports import free_port
from tests.fakes.processes import a_mark, gone
from tests.fakes.world import ROOM, Ledger, Life
from tests.sampling import some_and_every
from tests.stories.kills_rig import ON_BOTH_STORES, assert_clean
from tests.stories.sandbox_kills_rig import (
    call,
    contain,
    find_final,
    find_link,
    list_notices,
    open_card,
    read_tree,
    workspace,
)

SOME = 2
"""Points of a story that a quick run disturbs."""

# ---- the network -----------------------------------------------------------------------------

CHOICES = {
    "once": "Allow these hosts once",
    "conversation": "Allow them in this conversation",
    "always": "Always allow them",
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """A host that has to be opened: a process, so that lives can be forked beside it."""
    (tmp_path / "page").write_text("good morning\n")
    module = ("-u", "-m", "http.server", "0", "--bind", "127.0.0.2", "--directory", str(tmp_path))
    server = subprocess.Popen(
        [sys.executable, *module], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    port = server.stdout.readline().partition(" port ")[2].split()[0]
    yield f"127.0.0.2:{port}"
    server.kill()
    server.communicate()


def tell_of_a_grant(choice: str) -> Story:
    """A card for a host, a press, the call; then another call that needs the host."""

    async def story(life: Life) -> None:
        for event, word in (("m1", "get"), ("m2", "again")):
            await life.say(event, word)
            await life.until(lambda word=word: open_card(life) or find_final(life, word))
            if (card := open_card(life)) is not None and not find_final(life, word):
                assert not (workspace(life) / f"{word}.txt").exists(), "it waits for the press"
                life.ledger.note("asked", of=word)
                labels = {button.label: button.token for button in card.buttons}
                await life.press(f"p-{word}", labels[CHOICES[choice]])
            await life.until(lambda word=word: find_final(life, word))
        await life.quiet()
        await assert_clean(life, 2)
        life.ledger.note("rules", here=await count_rules(life))

    return story


async def count_rules(life: Life) -> int:
    opened = await life.store.acquire(ROOM.id, life.owner, 30.0)
    return len(opened.row.settings.rules)


@NEEDS_BWRAP
@NEEDS_CURL
@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 2)
@ON_BOTH_STORES
@pytest.mark.parametrize("choice", CHOICES)
def test_a_host_that_a_press_opens_is_open_or_asked_for_again(
    choice: str, prepare_store: Prepare, some: int, place: str
) -> None:
    def prepare(life: Life) -> None:
        prepare_store(life)
        calls = {
            word: [
                call(
                    "run_command",
                    command=f"curl -fsS http://{place}/page && echo ran >> {word}.txt",
                    hosts=[place],
                )
            ]
            for word in ("get", "again")
        }
        contain(life, calls, frozenset({place}))

    def check(folder: Path, label: str) -> None:
        ledger = Ledger(folder / "ledger.jsonl")
        shown = {line["id"]: line["view"] for line in ledger.all() if "view" in line}
        asked = {line["of"] for line in ledger.all("asked")}
        assert asked <= ({"get", "again"} if choice == "once" else {"get"}), f"{label}: {asked}"
        assert ledger.all("rules")[-1]["here"] == (choice == "conversation"), label
        for word in ("get", "again"):
            said = [str(v.get("text")) for v in shown.values()]
            (final,) = {text for text in said if text.startswith(f"done {word}:")}
            (work,) = (folder / "work").iterdir()
            ran = work / f"{word}.txt"
            runs = ran.read_text().count("ran") if ran.exists() else 0
            assert runs <= 1, f"{label}: {word} ran twice"
            if "Outcome unknown" not in final:
                assert "good morning" in final and runs == 1, f"{label}: {final}"

    story = tell_of_a_grant(choice)
    points = count_points(story, prepare)
    assert points["count"] > 40, points
    killed_everywhere(points, story, check, prepare, some=some)


# ---- files -----------------------------------------------------------------------------------

BEGIN = """mkdir d old && echo one > a.txt && echo x > d/x && echo k > old/k
ln -s a.txt link && echo s > swapped && printf '#!/bin/sh' > run && chmod 755 run"""
WORK = """echo two > a.txt && rm -r d && echo file > d && rm link && mkdir link && echo y > link/y
rm swapped && ln -s a.txt swapped && mkdir -p new/deep && echo n > new/deep/n && rm -r old
chmod 644 run"""
"""Files are changed, made and removed, and files, folders and links take each other's places."""


def tell_of_files(how: str) -> Story:
    """What a turn did to files is taken back by a command or by a button."""

    async def story(life: Life) -> None:
        for event, word in (("m1", "begin"), ("m2", "work")):
            await life.say(event, word)
            await life.until(lambda word=word: find_final(life, word))
            await life.quiet()
            if word == "begin" and not (life.folder / "was").exists():
                (life.folder / "was").write_text(repr(read_tree(workspace(life))))
        if not is_undone(life):
            turn = (await life.store.transcript(ROOM.id, 0, 2))[1].turn
            if how == "undo":
                await life.command("u1", "undo")
            else:
                await life.press("u1", turn_token(turn, "restore"))
        await life.until(lambda: is_undone(life))
        await life.quiet()
        await assert_clean(life, 3)

    return story


def is_undone(life: Life) -> bool:
    """It is said; nothing was changed by others, so nothing is asked."""
    assert not [one for one in list_notices(life) if "changed by something else" in one]
    return any(one.startswith("The last request is undone") for one in list_notices(life))


@NEEDS_BWRAP
@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 4)
@ON_BOTH_STORES
@pytest.mark.parametrize("how", ["undo", "restore"])
def test_a_workspace_that_is_kept_and_taken_back_is_whole(
    how: str, prepare_store: Prepare, some: int
) -> None:
    def prepare(life: Life) -> None:
        prepare_store(life)
        calls = {
            word: [call("run_command", command=line)]
            for word, line in (("begin", BEGIN), ("work", WORK))
        }
        contain(life, calls)

    def check(folder: Path, label: str) -> None:
        ledger = Ledger(folder / "ledger.jsonl")
        for line in (BEGIN, WORK):
            runs = [one for one in ledger.all("ran") if one["command"] == line]
            assert len(runs) <= 1, f"{label}: {runs}"
        (work,) = (folder / "work").iterdir()
        assert repr(read_tree(work)) == (folder / "was").read_text(), label
        shown = {line["id"]: line["view"] for line in ledger.all() if "view" in line}
        said = [str(view.get("text")) for view in shown.values()]
        told = [one for one in said if one.startswith("The last request is undone")]
        assert 1 <= len(told) <= 2, f"{label}: {told}"  # one that was cut off may stand there twice
        if any(one.startswith("done work: (no output)\n[exit code 0]") for one in said):
            for name in ("a.txt", "d/x", "new/deep/n", "old/k", "run", "swapped"):
                named = (one.partition("Restored files: ")[2] for one in told)
                assert all(name in names for names in named), f"{label}: {told}"

    story = tell_of_files(how)
    points = count_points(story, prepare)
    assert points["count"] > 60, points
    killed_everywhere(points, story, check, prepare, some=some)


# ---- what is lost ----------------------------------------------------------------------------

KEPT = "echo one > a.txt && mkdir -p sub ~/own && echo s > sub/s && echo h > ~/own/h && echo kept"
SEEN = "cat a.txt sub/s ~/own/h && echo two >> a.txt"


def tell_of_a_loss(how: str) -> Story:
    """A turn works and its sandbox is kept, idle or at the gateway's end; then the workspace is
    gone, and the next turn goes on with it."""

    async def story(life: Life) -> None:
        lost = life.folder / "lost"
        await life.say("m1", "begin")
        await life.until(lambda: find_final(life, "begin"))
        await life.quiet()
        if "Outcome unknown" not in find_final(life, "begin") and not lost.exists():
            if not list_kept(life):
                await life.agent._sandbox.run("true", workspace(life), 20, lambda _: None)
            if how == "end":
                await life.agent._sandbox.close()
            await life.until(lambda: list_kept(life))
            shutil.rmtree(workspace(life))
            lost.touch()
        await life.say("m2", "look")
        await life.until(lambda: find_final(life, "look"))
        await life.quiet()
        await assert_clean(life, 2)

    return story


def list_kept(life: Life) -> list[Path]:
    """What was kept of an idle sandbox. The workspace's own list is written last: of a workspace
    that goes before, nothing stays."""
    return list(workspace(life).glob(".turnkeeper/snapshots/*.idle"))


@NEEDS_BWRAP
@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 4)
@ON_BOTH_STORES
@pytest.mark.parametrize("how", ["idle", "end"])
def test_a_workspace_that_is_lost_comes_back_and_goes_on(
    how: str, prepare_store: Prepare, some: int
) -> None:
    def prepare(life: Life) -> None:
        prepare_store(life)
        calls = {
            word: [call("run_command", command=line)]
            for word, line in (("begin", KEPT), ("look", SEEN))
        }
        quiet = 0.0 if how == "idle" else Snapshots.quiet
        contain(life, calls, quiet=quiet, SNAPSHOT_STORE=str(life.folder / "states"))

    def check(folder: Path, label: str) -> None:
        begun, final = find_said(folder, "begin"), find_said(folder, "look")
        if "Outcome unknown" in begun:
            return
        (work,) = (folder / "work").iterdir()
        lines = (work / "a.txt").read_text().split()
        assert lines[0] == "one" and len(lines) <= 2, f"{label}: {lines}"
        assert (work / "sub/s").read_text() == "s\n", label
        if "Outcome unknown" not in final:
            assert "one\ns\nh\n" in final and lines == ["one", "two"], f"{label}: {final}"
            assert "The workspace was lost" in final, f"{label}: {final}"

    story = tell_of_a_loss(how)
    points = count_points(story, prepare)
    assert points["count"] > 60, points
    killed_everywhere(points, story, check, prepare, some=some)


def find_said(folder: Path, word: str) -> str:
    """What the answer to `word` says in the end: there is one."""
    ledger = Ledger(folder / "ledger.jsonl")
    shown = {line["id"]: line["view"] for line in ledger.all() if "view" in line}
    said = [str(view.get("text")) for view in shown.values()]
    (final,) = {text for text in said if text.startswith(f"done {word}:")}
    return final


# ---- limits, and no sandbox ------------------------------------------------------------------

LIMITS = SandboxLimits(memory=96 << 20)
TOO_MUCH = """for n in 1 2 3 4; do
python3 -c "import time; x = 'a' * 60_000_000; time.sleep(600)" {mark} &
done; wait"""
LESS = "echo enough >> made.txt && cat made.txt"


def tell_of_two(first: str, second: str) -> Story:
    """Two turns, one after the other."""

    async def story(life: Life) -> None:
        for event, word in (("m1", first), ("m2", second)):
            await life.say(event, word)
            await life.until(lambda word=word: find_final(life, word))
            await life.quiet()
        await assert_clean(life, 2)

    return story


@NEEDS_BWRAP
@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 4)
@ON_BOTH_STORES
def test_a_limit_that_is_met_is_told_once_and_the_next_turn_goes_on(
    prepare_store: Prepare, some: int
) -> None:
    mark = a_mark()

    def prepare(life: Life) -> None:
        prepare_store(life)
        calls = {
            word: [call("run_command", command=line)]
            for word, line in (("much", TOO_MUCH.format(mark=mark)), ("less", LESS))
        }
        contain(life, calls, limits=LIMITS)

    def check(folder: Path, label: str) -> None:
        asyncio.run(gone(mark))
        ran = [one["command"] for one in Ledger(folder / "ledger.jsonl").all("ran")]
        assert len(ran) == len(set(ran)), f"{label}: {ran}"
        much, less = find_said(folder, "much"), find_said(folder, "less")
        assert "over 96 MB of memory" in much or "Outcome unknown" in much, f"{label}: {much}"
        (work,) = (folder / "work").iterdir()
        made = (work / "made.txt").read_text() if (work / "made.txt").exists() else ""
        if "Outcome unknown" in less:
            assert made in ("", "enough\n"), f"{label}: {made}"
        else:
            assert made == "enough\n" and "enough\n[exit code 0]" in less, f"{label}: {less}"

    story = tell_of_two("much", "less")
    points = count_points(story, prepare)
    assert points["count"] > 40, points
    killed_everywhere(points, story, check, prepare, some=some)


@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 4)
@ON_BOTH_STORES
def test_where_no_sandbox_works_nothing_runs_and_files_are_written(
    prepare_store: Prepare, some: int
) -> None:
    def prepare(life: Life) -> None:
        prepare_store(life)
        calls = {
            "build": [call("run_command", command="touch made.txt")],
            "write": [call("write_file", path="note.txt", content="by hand")],
        }
        contain(life, calls, tier=MissingTier({"bwrap": "bwrap is not installed"}))

    def check(folder: Path, label: str) -> None:
        build, wrote = find_said(folder, "build"), find_said(folder, "write")
        told = "Install bubblewrap" in build and "bwrap is not installed" in build
        assert told or "Outcome unknown" in build, f"{label}: {build}"
        (work,) = (folder / "work").iterdir()
        assert not (work / "made.txt").exists(), label
        if "Outcome unknown" not in wrote:
            assert (work / "note.txt").read_text() == "by hand", f"{label}: {wrote}"

    story = tell_of_two("build", "write")
    points = count_points(story, prepare)
    assert points["count"] > 30, points
    killed_everywhere(points, story, check, prepare, some=some)


# ---- previews --------------------------------------------------------------------------------

PAGE = "<p>Tea and cake</p>"


async def tell_of_a_preview(life: Life) -> None:
    """An app is started, its link is opened, and what it shows is looked at again."""
    await life.say("m1", "app")
    await life.until(lambda: find_final(life, "app"))
    await life.quiet()
    if link := find_link(life):
        await visit(life, link)
    await assert_clean(life, 1)


async def visit(life: Life, link: str) -> None:
    """As a browser does: what it got of cookies it has after the gateway was killed, too."""
    kept, base = life.folder / "cookie", link.partition("/open/")[0]
    async with aiohttp.ClientSession() as person:
        if not kept.exists():
            life.points.hit("visit")
            async with person.post(link, allow_redirects=False) as answer:
                if answer.status == 403:
                    assert "ask for one there" in await answer.text()
                    return life.ledger.note("closed")
                assert answer.status == 303
                kept.write_text(answer.cookies[COOKIE].value)
            life.ledger.note("opened")
            life.points.hit("visited")
        for _ in range(2):
            life.points.hit("look")
            async with person.get(base, headers={"Cookie": f"{COOKIE}={kept.read_text()}"}) as seen:
                life.ledger.note("seen", status=seen.status, page=await seen.text())
            life.points.hit("looked")
        async with person.post(link, allow_redirects=False) as answer:
            assert answer.status == 403, "good once"
    return None


@NEEDS_BWRAP
@pytest.mark.timeout(900)
@some_and_every(SOME, "kills of sandboxes", 4)
@ON_BOTH_STORES
def test_a_preview_is_open_still_or_told_as_closed(prepare_store: Prepare, some: int) -> None:
    port = free_port()
    page = {"project": "apps/tea", "path": "index.html", "content": PAGE}
    calls = {
        "app": [
            call("create_app_project", name="tea", framework="static"),
            call("app_write_file", **page),
            call("app_start_server", project="apps/tea"),
        ]
    }

    def prepare(life: Life) -> None:
        prepare_store(life)
        contain(life, calls, PREVIEW_PORT=str(port), PREVIEW_PUBLIC_URL=f"http://127.0.0.1:{port}")

    def check(folder: Path, label: str) -> None:
        ledger = Ledger(folder / "ledger.jsonl")
        runs = [one for one in ledger.all("ran") if "http.server" in one["command"]]
        assert len(runs) <= 1, f"{label}: {runs}"
        shown = {line["id"]: line["view"] for line in ledger.all() if "view" in line}
        said = [str(view.get("text")) for view in shown.values()]
        (final,) = {text for text in said if text.startswith("done app:")}
        opened, seen = ledger.all("opened"), ledger.all("seen")
        assert len(opened) <= 1, label
        assert all((one["status"], one["page"]) == (200, PAGE) for one in seen), f"{label}: {seen}"
        if "Outcome unknown" not in final:
            assert seen or ledger.all("closed"), f"{label}: {final}"

    points = count_points(tell_of_a_preview, prepare)
    assert {"visit", "looked"} <= set(points["names"])
    killed_everywhere(points, tell_of_a_preview, check, prepare, some=some)
