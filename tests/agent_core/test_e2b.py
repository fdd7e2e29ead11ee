"""Sandboxes by E2B: its real SDK beside its API on loopback, where commands really run."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.sandboxes.e2b import client as e2b_client
from agent_core.sandboxes.e2b import tier as e2b_tier
from agent_core.sandboxes.e2b import wire
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.e2b.tier import E2BTier, find_e2b, load_state
from agent_core.sandboxes.network import SandboxNetwork
from agent_core.sandboxes.owners import describe_owner
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import Permits, ProcessResult
from agent_core.tools.web.hosts import read_hosts
from tests.fakes.e2b_server import KEY, E2BServer, serve_e2b
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.package_server import NAME, PackageServer
from tests.fakes.processes import a_mark, gone
from tests.fakes.waiting import PATIENCE, until

pytestmark = pytest.mark.pick("e2b by its SDK", 5)

SECONDS = 30.0


@pytest.fixture
async def e2b(tmp_path: Path) -> AsyncIterator[E2BServer]:
    async with serve_e2b(tmp_path / "e2b") as server:
        yield server


@pytest.fixture
async def pools(e2b: E2BServer) -> AsyncIterator[Callable[[], SandboxPool]]:
    """Makes pools, which end with the test."""
    made: list[SandboxPool] = []

    def make(idle: float = 1_800.0, network: SandboxNetwork | None = None) -> SandboxPool:
        made.append(SandboxPool(make_tier(e2b), idle=idle, network=network))
        return made[-1]

    yield make
    for one in made:
        await one.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


def make_tier(e2b: E2BServer, key: str = KEY) -> E2BTier:
    return E2BTier(E2BAccess(api_key=key, api_url=e2b.url, sandbox_url=e2b.url))


async def run(pool: SandboxPool, place: Path, command: str, **more: object) -> ProcessResult:
    return await pool.run(command, place, SECONDS, lambda _: None, Permits(**more))  # type: ignore[arg-type]


@contextmanager
def serve_packages(folder: Path) -> Iterator[PackageServer]:
    (folder / "served").mkdir()
    server = PackageServer(folder / "served")
    try:
        yield server
    finally:
        server.close()


# ---- files ---------------------------------------------------------------------------------


async def test_files_go_there_and_come_back(pools: Callable[[], SandboxPool], place: Path) -> None:
    pool = pools()
    (place / "old.txt").write_text("old")
    (place / "folder").mkdir()
    (place / "folder" / "tool.sh").write_text("#!/bin/sh\necho it runs\n")
    (place / "folder" / "tool.sh").chmod(0o755)
    os.symlink("old.txt", place / "link")
    done = await run(pool, place, "cat link; folder/tool.sh; rm old.txt; ls -A")
    assert done.output == "oldit runs\nfolder\nlink\n"
    assert not (place / "old.txt").exists() and (place / "link").is_symlink()
    await run(
        pool, place, "mkdir -p a/b; head -c 2000000 /dev/zero > a/b/large; chmod 700 a/b/large"
    )
    assert (place / "a/b/large").stat().st_size == 2_000_000
    assert (place / "a/b/large").stat().st_mode & 0o777 == 0o700
    (place / "a/b/large").write_text("small")
    (place / "folder/tool.sh").unlink()
    assert (await run(pool, place, "cat a/b/large; ls folder")).output == "small"
    await run(pool, place, "rm -r a folder; mkdir link2; ln -sfn link2 link")
    assert sorted(one.name for one in place.iterdir()) == [".turnkeeper", "link", "link2"]
    assert os.readlink(place / "link") == "link2"


async def test_what_programs_install_stays_there_and_secrets_stay_here(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools()
    (place / ".env").write_text("TOKEN=secret")
    (place / "node_modules").mkdir()
    (place / "node_modules" / "here.js").write_text("1")
    done = await run(pool, place, "ls -A; mkdir node_modules; echo 1 > node_modules/there.js")
    assert done.output == ""
    assert os.listdir(place / "node_modules") == ["here.js"]
    assert (await run(pool, place, "ls node_modules")).output == "there.js\n"
    done = await run(pool, place, "cat .env", reveals=True)
    assert done.output == "TOKEN=secret"
    assert len(e2b.running()) == 2, "who may read it is elsewhere"
    await pool.close()
    assert [one.state for one in e2b.boxes.values()] == ["paused"], "and is not found again"


async def test_what_two_changed_is_not_lost(pools: Callable[[], SandboxPool], place: Path) -> None:
    pool = pools()
    (place / "both.txt").write_text("first")
    running = asyncio.create_task(
        run(
            pool, place, "echo there > both.txt; echo begun; while [ ! -e go ]; do sleep 0.05; done"
        )
    )
    (box,) = [await _first_box(pool, place)]
    copy = box / "workspace"
    await until(
        lambda: (copy / "both.txt").is_file() and (copy / "both.txt").read_text() == "there\n"
    )
    (place / "both.txt").write_text("here")
    (copy / "go").touch()
    done = await running
    assert (
        "Changed in the workspace while the command ran, and by the command: both.txt"
        in done.output
    )
    assert (place / "both.txt").read_text() == "here"
    assert (place / "both.txt.from-sandbox").read_text() == "there\n"
    assert (await run(pool, place, "cat both.txt")).output == "here"


async def _first_box(pool: SandboxPool, place: Path) -> Path:
    folder = place.parent / "e2b" / "box1" / "home"
    await until(lambda: (folder / "workspace").is_dir())
    return folder


@pytest.mark.pick("a machine that lies")
@pytest.mark.parametrize(
    "name", ["../out.txt", "/out.txt", ".turnkeeper/sandbox/e2b.json", "a/../../out.txt", ""]
)
async def test_a_machine_that_lies_writes_nowhere_else(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, name: str
) -> None:
    """Its program for files is overwritten by a command; what it answers is judged here."""
    pool = pools()
    await run(pool, place, "true")
    before = load_state(place)
    lie = f"""
import base64, io, json, sys, tarfile
held = io.BytesIO()
with tarfile.open(fileobj=held, mode="w") as tar:
    for name in ({name!r}, "good.txt"):
        one = tarfile.TarInfo(name)
        one.size = 4
        tar.addfile(one, io.BytesIO(b"evil"))
print(json.dumps(dict(number=9, removed=["../../x", {name!r}], left=[], packed=base64.b64encode(held.getvalue()).decode())))
"""
    (e2b.only.home / ".turnkeeper" / "files.py").write_text(lie)
    await run(pool, place, "true")
    assert (place / "good.txt").read_text() == "evil"
    assert not (place.parent / "out.txt").exists()
    assert load_state(place).box == before.box


# ---- what goes on ----------------------------------------------------------------------------


async def test_a_server_is_reached_and_a_background_command_brings_its_files(
    pools: Callable[[], SandboxPool], place: Path
) -> None:
    pool = pools()
    (place / "index.html").write_text("served from there")
    served = await pool.start("exec python3 -m http.server 8123", place, 60)
    done = await run(
        pool,
        place,
        "for n in $(seq 100); do curl -s localhost:8123/index.html && break; sleep 0.1; done",
    )
    assert done.output == "served from there"
    reader, writer = await pool.connect(place, 8123)
    writer.write(b"GET /index.html HTTP/1.0\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"served from there")
    writer.close()
    behind = await pool.start("echo late > late.txt", place, 60)
    ended = await behind.wait(PATIENCE)
    assert ended is not None and (place / "late.txt").read_text() == "late\n"
    served.kill()
    assert (await served.wait(PATIENCE)) is not None


async def test_a_shell_stays_and_carries_files(
    pools: Callable[[], SandboxPool], place: Path
) -> None:
    pool = pools()
    shell = await pool.open_shell(place, 30)
    ran = await shell.run("export WORD=kept; echo one > one.txt", 20, lambda _: None)
    assert ran.done.exit_code == 0 and (place / "one.txt").read_text() == "one\n"
    (place / "one.txt").write_text("two\n")
    ran = await shell.run("cat one.txt; echo $WORD", 20, lambda _: None)
    assert ran.done.output == "two\nkept\n" and ran.folder.endswith("/workspace")
    shell.close()


async def test_a_script_talks_with_the_gateway(
    pools: Callable[[], SandboxPool], place: Path
) -> None:
    pool = pools()
    script = (
        "import os; os.write(3, b'asks'); print(os.read(3, 99)); open('by.txt', 'w').write('it')"
    )
    command = await pool.start_talking(f'python3 -c "{script}"', place, 30)
    assert await asyncio.wait_for(command.channel.read(), PATIENCE) == b"asks"
    await command.channel.write(b"answer")
    done = await command.wait(PATIENCE)
    assert done is not None and command.output() == "b'answer'\n"
    assert (place / "by.txt").read_text() == "it"


async def test_limits_are_kept_there_and_told(e2b: E2BServer, place: Path) -> None:
    from agent_core.sandboxes.link import SandboxLimits

    pool = SandboxPool(make_tier(e2b), SandboxLimits(processes=24, memory=200 << 20))
    done = await run(pool, place, "for n in $(seq 60); do sleep 20 & done; wait")
    assert "[Stopped: over 24 processes in all.]" in done.output
    done = await run(
        pool,
        place,
        "python3 -c 'x = bytearray(150 << 20); import time; time.sleep(9)' & python3 -c 'x = bytearray(150 << 20); import time; time.sleep(9)'; wait",
    )
    assert "[Stopped: over 200 MB of memory in all.]" in done.output
    done = await pool.run("sleep 20", place, 0.5, lambda _: None)
    assert done.timed_out
    await pool.close()


@NEEDS_BWRAP
async def test_the_network_is_shut_but_for_what_is_opened(e2b: E2BServer, place: Path) -> None:
    """By the guarded proxy at the gateway, as everywhere."""
    with socket.create_server(("127.0.0.1", 0)) as near, serve_packages(place.parent) as server:
        at = f"packages.test:{server.port}"

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        network = SandboxNetwork(frozenset({at}), resolve)
        pool = SandboxPool(make_tier(e2b), network=network)
        words = f"curl -s --max-time 5 http://127.0.0.1:{near.getsockname()[1]}/"
        assert (await run(pool, place, words)).exit_code == 7
        done = await run(pool, place, f"curl -s http://other.test:{server.port}/")
        assert "is not open for this command" in done.output
        hosts = frozenset(read_hosts((at,)))
        done = await run(pool, place, f"curl -s http://{at}/simple/{NAME}/", hosts=hosts)
        assert done.exit_code == 0 and "packages.test" in done.output, done
        await pool.close()


# ---- idle, found again, lost -----------------------------------------------------------------


async def test_an_idle_one_is_paused_and_found_again(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools(idle=0.2)
    mark = a_mark()
    await run(pool, place, f"echo kept > ~/kept; (sleep {mark} &)")
    await until(lambda: e2b.only.state == "paused")
    await gone(mark)
    done = await run(pool, place, "cat ~/kept")
    assert done.output.startswith("[A new sandbox: the one before was idle for")
    assert done.output.endswith("\nkept\n") and e2b.made == 1


async def test_one_that_is_lost_begins_again_from_its_snapshot(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools()
    await run(pool, place, "echo one > ~/kept; echo one > here.txt")
    await until(lambda: load_state(place).snapshot)
    await run(pool, place, "echo two >> ~/kept; echo two >> here.txt")
    e2b.lose(e2b.only)
    done = await run(pool, place, "cat here.txt ~/kept")
    assert done.output.endswith("\none\ntwo\none\n"), "files are here, HOME is the snapshot's"
    assert "HOME, /tmp and what was installed are as they were at" in done.output
    assert "Not in it is what these commands did there since: echo two >> ~/kept" in done.output
    assert e2b.only.template.startswith("snapshot-")
    assert (await run(pool, place, "true")).output == "", "it is told once"


async def test_one_that_is_lost_without_a_snapshot_begins_empty(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    e2b.fail("/snapshots", 500, 99)
    pool = pools()
    await run(pool, place, "echo one > ~/kept; echo one > here.txt")
    e2b.lose(e2b.only)
    done = await run(pool, place, "cat here.txt; ls ~/kept")
    assert "HOME and /tmp are empty, and what was installed is gone.]\none\n" in done.output


async def test_snapshots_do_not_pile_up(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(e2b_tier, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    pool = pools()
    for number in (1, 2, 3):
        await run(pool, place, f"echo {number}")
        await until(lambda n=number: e2b.asked.count("POST /sandboxes/box1/snapshots") == n)
        await until(lambda: [*e2b.snapshots] == [load_state(place).snapshot])
        assert load_state(place).calls == ()


async def test_a_snapshot_does_not_disturb_what_runs(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    """E2B breaks all connections for it; nothing that was written meanwhile is lost or twice."""
    pool = pools()
    counting = await pool.start("for n in $(seq 100); do echo line $n; sleep 0.02; done", place, 60)
    await run(pool, place, "true")
    await until(lambda: e2b.snapshots)
    done = await counting.wait(PATIENCE)
    assert done is not None and done.output.split("\n") == [
        *(f"line {n}" for n in range(1, 101)),
        "",
    ]


# ---- faults ----------------------------------------------------------------------------------


async def test_a_stream_that_breaks_loses_nothing(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools()
    words = "for n in $(seq 300); do echo $n; echo $n >> ran.txt; sleep 0.005; done"
    running = asyncio.create_task(run(pool, place, words))
    copy = await _first_box(pool, place) / "workspace" / "ran.txt"
    for count in (20, 60, 120):
        await until(lambda c=count: copy.is_file() and len(copy.read_text().split()) > c)
        e2b.cut()
    done = await running
    assert done.exit_code == 0 and done.output.split() == [str(n) for n in range(1, 301)]
    assert (place / "ran.txt").read_text().split() == [str(n) for n in range(1, 301)], "once"


async def test_a_machine_that_goes_in_the_middle_leaves_it_unknown(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools()
    await run(pool, place, "echo before > here.txt")
    running = asyncio.create_task(run(pool, place, "echo during > here.txt; sleep 60"))
    await until(lambda: (e2b.only.home / "workspace/here.txt").read_text() == "during\n")
    e2b.lose(e2b.only)
    done = await asyncio.wait_for(running, PATIENCE)
    assert "whether it finished is unknown" in done.output and done.exit_code != 0
    assert (place / "here.txt").read_text() == "before\n"
    done = await run(pool, place, "cat here.txt")
    assert done.output.startswith("[A new sandbox: E2B has ended the one before.")


@pytest.mark.slow  # the SDK tries to connect for seconds
async def test_e2b_that_stays_away_in_the_middle_leaves_it_unknown(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SECONDS_TO_RETURN", 0.5)
    pool = pools()
    await run(pool, place, "true")
    words = "echo kept > ~/kept; echo begun > begun; sleep 60"
    running = asyncio.create_task(run(pool, place, words))
    await until(lambda: (e2b.only.home / "workspace/begun").is_file())
    await e2b.down()
    done = await asyncio.wait_for(running, 2 * PATIENCE)
    assert "whether it finished is unknown" in done.output
    with pytest.raises(ToolFailed, match="E2B does not do it now .* try again in a minute"):
        await run(pool, place, "true")
    await e2b.up()
    done = await run(pool, place, "ls; cat ~/kept")
    assert done.output.endswith("]\nkept\n"), "the same machine, and the workspace as it was"
    assert e2b.made == 1


@pytest.mark.pick("what E2B answers", 2)
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (429, "try again in a minute"),
        (500, "try again in a minute"),
        (503, "try again in a minute"),
        (401, "Ask the operator to set one that it takes"),
        (400, "E2B refuses this"),
    ],
)
async def test_what_is_refused_and_what_passes(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, status: int, words: str
) -> None:
    pool = pools()
    e2b.fail("/v2/sandboxes", status, 99)
    with pytest.raises(ToolFailed, match=words):
        await run(pool, place, "true")
    tried = e2b.asked.count("POST /v2/sandboxes")
    assert tried == (4 if status in (429, 503) else 1), "tried again only where it may pass"
    e2b.failing.clear()
    assert (await run(pool, place, "echo done")).output == "done\n"


@pytest.mark.pick("what passes at E2B")
@pytest.mark.parametrize("status", [429, 503])
async def test_what_passes_is_tried_again(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, status: int
) -> None:
    e2b.fail("/v2/sandboxes", status, 2)
    assert (await run(pools(), place, "echo done")).output == "done\n"
    assert e2b.made == 1


async def test_files_that_cannot_be_brought_are_told_and_come_with_the_next_command(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer
) -> None:
    pool = pools()
    await run(pool, place, "true")
    program = e2b.only.home / ".turnkeeper" / "files.py"
    right = program.read_text()
    words = "echo made > made.txt; echo 'raise SystemExit(1)' > ~/.turnkeeper/files.py"
    done = await run(pool, place, words)
    assert done.exit_code == 0 and "was not brought to the workspace" in done.output
    program.write_text(right)
    await run(pool, place, "true")
    assert (place / "made.txt").read_text() == "made\n"


# ---- what is left ------------------------------------------------------------------------------


async def test_e2b_ends_it_where_nobody_renews(
    pools: Callable[[], SandboxPool], place: Path, e2b: E2BServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SECONDS_BETWEEN_SIGNS", 0.05)
    pool = pools()
    await run(pool, place, "true")
    for _ in range(4):
        e2b.pass_time(200)
        renewed = len(e2b.asked)
        await until(lambda r=renewed: "POST /sandboxes/box1/timeout" in e2b.asked[r:])
    assert e2b.running(), "it is renewed while its gateway lives"
    e2b.failing["/timeout"] = [500] * 9_999
    await until(lambda: len(e2b.failing["/timeout"]) < 9_999)
    e2b.pass_time(301)
    assert not e2b.boxes


async def test_what_a_killed_gateway_left_is_paused_or_ended(e2b: E2BServer) -> None:
    tier = make_tier(e2b)
    here = describe_owner().rsplit("/", 2)[0]
    owners = {
        "gone": f"{here}/{2**22 + 1}/5",
        "ours": describe_owner(),
        "far": "elsewhere/pid:[1]/1/1",
    }
    names = {}
    for owner, said in owners.items():
        for keeps in ("yes", "no"):
            metadata = {e2b_client.OWNER: said, e2b_client.KEEPS: keeps}
            names[owner, keeps] = (await tier.client.create(metadata)).sandbox_id
    old = await tier.client.create({e2b_client.OWNER: owners["far"], e2b_client.KEEPS: "yes"})
    await tier.client.pause(old.sandbox_id)
    e2b.boxes[old.sandbox_id].started = ambient.utc(ambient.now() - 90_000)
    await find_e2b(E2BAccess(api_key=KEY, api_url=e2b.url, sandbox_url=e2b.url))
    left = {name: one.state for name, one in e2b.boxes.items()}
    assert left.pop(names["gone", "yes"]) == "paused"
    assert left == {names[who, how]: "running" for who in ("ours", "far") for how in ("yes", "no")}


@pytest.mark.slow  # the SDK tries to connect for seconds
async def test_e2b_that_is_away_at_the_start_lets_the_gateway_start(
    e2b: E2BServer, place: Path
) -> None:
    await e2b.down()
    tier = await find_e2b(E2BAccess(api_key=KEY, api_url=e2b.url, sandbox_url=e2b.url))
    pool = SandboxPool(tier)
    await pool.check()
    assert not pool.contains and pool.leaks == ("start",), "commands are asked about"
    await e2b.up()
    assert (await run(pool, place, "echo back")).output == "back\n"
    await pool.close()
