"""What people meet of sandboxes, told on all surfaces (`test_both_surfaces`)."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from functools import partial

import aiohttp
import pytest

from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.pool import SandboxPool
from gateway.wiring import assembly
from tests.agent_core.events_rig import APP_STARTED, FILES_TOLD, journaled
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.stories.surfaces import Held, Surface
from tests.stories.surfaces.story import story

# ---- previews --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def origin(_: Surface) -> AsyncIterator[dict[str, str]]:
    """An origin for previews that people reach from elsewhere: here a port of loopback."""
    port = str(free_port())
    yield {
        "SANDBOX_PROVIDER": "bwrap",
        "PREVIEW_PORT": port,
        "PREVIEW_PUBLIC_URL": f"http://127.0.0.1:{port}",
    }


@contextlib.asynccontextmanager
async def here(_: Surface) -> AsyncIterator[dict[str, str]]:
    """Nobody reaches previews from elsewhere."""
    yield {"SANDBOX_PROVIDER": "bwrap"}


def makes(name: str, words: str) -> list[Call]:
    """A page without packages, begun, written and started."""
    project = f"apps/{name}"
    page = {"project": project, "path": "index.html", "content": f"<p>{words}</p>"}
    return [
        Call("create_app_project", json.dumps({"name": name, "framework": "static"})),
        Call("app_write_file", json.dumps(page)),
        Call("app_start_server", json.dumps({"project": project})),
    ]


@story("opened", beside=origin, needs=(NEEDS_BWRAP,), long=True)
async def preview_opened(s: Surface) -> None:
    """An app is seen by a button, once: who opens it goes on seeing it, also after the gateway was
    started anew, when the app is started again for who looks."""
    s.answers(page=[*makes("shop", "Tea and cake"), Say("It is there.")])
    await s.say("A page for my shop")
    await s.shows("It is there.")
    assert journaled(s.rig) >= APP_STARTED
    link = s.link("Open the preview")
    base = link.partition("/open/")[0]
    assert base == s.beside["PREVIEW_PUBLIC_URL"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        async with person.post(link) as answer:
            assert "Tea and cake" in await answer.text()
        await s.rest("opened")
        async with person.get(base) as answer:
            said = await answer.text()
        assert "Tea and cake" in said
        async with person.post(link) as answer:
            assert answer.status == 403 and "already used" in await answer.text()
        async with person.post(link, headers={"Accept-Language": "fr-CH, en;q=0.5"}) as answer:
            said = await answer.text()
            assert answer.status == 403 and '<html lang="fr-CH">' in said and "déjà été" in said


@story("started", beside=here, needs=(NEEDS_BWRAP,), long=True)
async def preview_here(s: Surface) -> None:
    """Where no address leads to previews, no button does: it is said where they can be opened, as
    soon as it is there."""
    s.answers(page=[*makes("shop", "Tea"), Held(Say("It is there."))])
    await s.say("A page for my shop")
    await s.shows("Open it on the gateway's machine: http://127.0.0.1:")
    s.mind.let_go()
    await s.shows("It is there.")
    await s.rest("started")


# ---- limits, and what is lost ----------------------------------------------------------------

MEMORY = 96 << 20
TOO_MUCH = """exec python3 -c "import os, time
os.fork(); os.fork(); x = 'a' * 60_000_000; time.sleep(60)\""""


@contextlib.asynccontextmanager
async def little_memory(_: Surface) -> AsyncIterator[dict[str, str]]:
    """A sandbox that is full soon."""
    with pytest.MonkeyPatch.context() as patch:
        small = partial(SandboxPool, limits=SandboxLimits(memory=MEMORY))
        patch.setattr(assembly, "SandboxPool", small)
        yield {"SANDBOX_PROVIDER": "bwrap"}


@story("stopped", beside=little_memory, needs=(NEEDS_BWRAP,), long=True)
async def limit_met(s: Surface) -> None:
    """What takes too much is stopped and told, to the model too; the next command goes on."""
    run = Call("run_command", json.dumps({"command": TOO_MUCH}))
    smaller = Call("run_command", json.dumps({"command": "echo enough > made.txt && cat made.txt"}))
    s.answers(Count=[run, Say("It needs more memory than it may have.")],
              Less=[smaller, Say("Now it fits.")])  # fmt: skip
    await s.say("Count them all")
    await s.shows("It needs more memory than it may have.")
    assert "over 96 MB" in s.rig.seen(role="tool")[-1], s.rig.seen(role="tool")
    await s.rest("stopped")
    await s.say("Less, then")
    await s.shows("Now it fits.")
    assert s.rig.seen(role="tool")[-1].startswith("enough")


@story("told", beside=here, needs=(NEEDS_BWRAP,), long=True)
async def sandbox_lost(s: Surface) -> None:
    """A sandbox that is lost between two calls is made anew: files are there, what ran is not, and
    the model is told so before it goes on."""
    begin = "echo kept > kept.txt; echo here > /tmp/here; "
    begin += "sleep 600 > /dev/null & sleep 0.5; echo begun"
    look = "cat kept.txt /tmp/here; cat /proc/*/comm | grep -c sleep"
    s.answers(Work=[
        Call("run_command", json.dumps({"command": begin})),
        Held(Call("run_command", json.dumps({"command": look}))),
        Say("I had to begin it anew."),
    ])  # fmt: skip
    await s.say("Work on it")
    await s.thinks()
    pool = s.rig.host.services.sandbox
    assert isinstance(pool, SandboxPool)
    (place,) = pool._places.values()
    assert place.sandbox is not None
    link = place.sandbox.link
    link.close()
    await s.rig.until(link.gone.done)
    s.mind.let_go()
    await s.shows("I had to begin it anew.")
    told = s.rig.seen(role="tool")[-1]
    assert told.startswith("[A new sandbox: the one before broke down. What ran in it is gone;")
    assert "kept\nhere\n0\n" in told
    await s.rest("told")


@contextlib.asynccontextmanager
async def states(_: Surface) -> AsyncIterator[dict[str, str]]:
    """What workspaces were lies in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"SANDBOX_PROVIDER": "bwrap", "SNAPSHOT_STORE": folder}


@story("back", beside=states, needs=(NEEDS_BWRAP,), long=True)
async def workspace_lost(s: Surface) -> None:
    """A workspace that is lost in mid-turn comes back as the turn found it, and the model is told
    which calls came after that; the next turn goes on with it."""
    keep, work = "echo kept > kept.txt", "echo one > a.txt"
    again = "cat kept.txt && ls && echo two > a.txt"
    s.answers(
        Keep=[Call("run_command", json.dumps({"command": keep})), Say("It is kept.")],
        Work=[
            Call("run_command", json.dumps({"command": work})),
            Held(Call("run_command", json.dumps({"command": again}))),
            Say("I did the rest again."),
        ],
        Look=[Call("read_file", json.dumps({"path": "a.txt"})), Say("It says two.")],
    )
    await s.say("Keep it")
    await s.shows("It is kept.")
    await s.say("Work on it")
    await s.thinks()
    (place,) = (path.parent for path in s.rig.home.glob("workspaces/*/a.txt"))
    shutil.rmtree(place)
    s.mind.let_go()
    await s.shows("I did the rest again.")
    told = s.rig.seen(role="tool")[-1]
    assert told.startswith("[The workspace was lost, and its files came back as they were at"), told
    assert f'since, do again what is needed: run_command {{"command": "{work}"}}.' in told
    assert "\nkept\nkept.txt\n" in told, told
    await s.rest("back")
    await s.say("Look at it")
    await s.shows("It says two.")
    assert s.rig.seen(role="tool")[-1].strip() == "two"


# ---- restore ---------------------------------------------------------------------------------

WORK = "mkdir -p out && echo two > a.txt && echo made > out/b.txt && rm -f c.txt"


@story("changed", "asked", beside=here, needs=(NEEDS_BWRAP,), long=True)
async def restored(s: Surface) -> None:
    """What commands changed is named, and one press brings it back; what something else changed
    since is named first, and asked about."""
    s.answers(
        Begin=[Call("run_command", json.dumps({"command": "echo one > a.txt; echo c > c.txt"})), Say("Begun.")],
        Work=[Call("run_command", json.dumps({"command": WORK})), Say("Worked.")],
    )  # fmt: skip
    await s.say("Begin")
    await s.shows("Begun.")
    await s.shows("Changed files: a.txt, c.txt.")
    await s.say("Work")
    await s.shows("Worked.")
    await s.shows("Changed files: a.txt, c.txt, out/.")
    assert journaled(s.rig) >= FILES_TOLD
    await s.rest("changed")
    (work,) = (path.parent for path in s.rig.home.glob("workspaces/*/a.txt"))
    (work / "out/b.txt").write_text("by hand")
    s.look("before it is pressed")
    await s.press("Undo and restore")
    await s.shows("These files were changed by something else since then: out/b.txt.")
    assert (work / "a.txt").read_text() == "two\n", "nothing is done before the answer"
    await s.rest("asked")
    await s.press("Leave these as they are")
    await s.shows("Left as they are: out/b.txt.")
    assert (work / "a.txt").read_text() == "one\n" and (work / "c.txt").read_text() == "c\n"
    assert (work / "out/b.txt").read_text() == "by hand"
