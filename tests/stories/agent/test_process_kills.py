"""A whole gateway is killed from outside while files are taken back, and while things run for it."""

import json
import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from agent_core.sandboxes.docker.tier import OWNER, DockerTier, inspect_docker
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.owners import describe_owner
from tests.fakes.docker_engine import list_containers
from tests.fakes.model_server import Call, Hang, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.fakes.processes import a_mark, alive
from tests.fakes.waiting import until
from tests.gateway.process import PERSON, START, Run, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BWRAP = pytest.param("bwrap", marks=NEEDS_BWRAP)
LANDLOCK = pytest.param("landlock", marks=NEEDS_LANDLOCK)
AGREED = {"TELEGRAM_ADMIN_USERS": str(PERSON)}
FILES, TRIES = 1_500, 5
BEGIN = f"mkdir many && for n in $(seq {FILES}); do echo one > many/$n; done"
WORK = "for f in many/*; do echo two > $f; done; rm many/*7; echo new > many/new"


def command(line: str) -> Call:
    return Call("run_command", json.dumps({"command": line}))


async def say(world: World, words: str, answer: str) -> None:
    world.telegram.say(PERSON, words)
    await world.telegram.wait_text(PERSON, answer, START)


def read_many(place: Path) -> dict[str, str]:
    """The files as they are; one that is put in another's place right now is left out."""
    found = {}
    for name in os.listdir(place / "many"):
        try:
            found[name] = (place / "many" / name).read_text()
        except FileNotFoundError:
            continue
    return found


def kill_in_between(run: Run, place: Path, ended: list[bool]) -> None:
    """Kill the gateway as soon as one of the files is as it was before."""
    watched = [place / "many" / str(n) for n in range(1, FILES + 1, 50)]
    while not ended:
        for file in watched:
            try:
                if file.read_text() == "one\n":
                    os.kill(run.pid, signal.SIGKILL)
                    return
            except FileNotFoundError:
                continue


@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK])
async def test_an_undo_that_a_kill_cuts_off_is_whole_after_the_start(
    world: World, tier: str
) -> None:
    cut = 0
    run = await world.start(SANDBOX_PROVIDER=tier, **AGREED)
    await say(world, "/mode auto", "I ask only before")
    world.model.script(command(BEGIN), Say("begun"))
    await say(world, "begin", "begun")
    (place,) = (one.parent for one in world.folder.glob(".turnkeeper/workspaces/*/many"))
    for attempt in range(TRIES):
        world.model.script(command(WORK), Say(f"worked {attempt}"))
        await say(world, "work", f"worked {attempt}")
        told = len(list_undone(world))
        ended: list[bool] = []
        killer = threading.Thread(target=kill_in_between, args=(run, place, ended))
        killer.start()
        world.telegram.say(PERSON, "/undo")
        try:
            assert await run.ended() == -signal.SIGKILL
        finally:
            ended.append(True)
            killer.join()
        left = read_many(place)
        cut += "two\n" in left.values() or "new" in left
        run = await world.start(SANDBOX_PROVIDER=tier, **AGREED)
        await world.telegram.wait(lambda told=told: len(list_undone(world)) > told, START)
        assert read_many(place) == {str(n): "one\n" for n in range(1, FILES + 1)}
        await until(lambda told=told: 1 <= len(list_undone(world)) - told <= 2)
    assert cut, "each time it was over before the kill came"


def list_undone(world: World) -> list[str]:
    texts = [str(one.get("text")) for one in world.telegram.chats[PERSON]]
    return [text for text in texts if text.startswith("The last request is undone")]


# ---- what runs for it ------------------------------------------------------------------------

APP = [
    Call("create_app_project", json.dumps({"name": "tea", "framework": "static"})),
    Call(
        "app_write_file",
        json.dumps({"project": "apps/tea", "path": "index.html", "content": "<p>tea</p>"}),
    ),
    Call("app_start_server", json.dumps({"project": "apps/tea"})),
    Say("It is up"),
]
PORT = free_port()
SERVER = [
    Call(
        "run_command",
        json.dumps({"command": f"setsid python3 -m http.server {PORT} & wait", "background": True}),
    ),
    Say("It is up"),
]
MARK = a_mark()
CODE = [
    Call(
        "execute_code",
        json.dumps(
            {
                "language": "python",
                "code": f"import subprocess\nsubprocess.run(['sleep', '{MARK}'])",
                "timeout": 60,
            }
        ),
    ),
    Hang(),
]
LOOP = [
    Call("execute_code", json.dumps({"language": "python", "code": "while True:\n    1"})),
    Hang(),
]
RUNS = {"a preview": APP, "a background server": SERVER, "code": CODE}


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def list_running(found: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in found if one.is_running() and not is_zombie(one)]


def is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


@pytest.mark.parametrize(
    ("tier", "what"),
    [
        *(pytest.param("bwrap", what, marks=NEEDS_BWRAP, id=f"bwrap, {what}") for what in RUNS),
        *(pytest.param("landlock", what, marks=NEEDS_LANDLOCK, id=f"landlock, {what}") for what in RUNS),
        *(pytest.param("unsafe-subprocess", what, id=f"nothing, {what}") for what in RUNS),
        pytest.param("monty", "a loop", id="monty, a loop"),
    ],
)  # fmt: skip
async def test_nothing_runs_on_after_a_gateway_that_is_killed(
    world: World, tier: str, what: str
) -> None:
    port = str(free_port())
    settings = AGREED | {"PREVIEW_PORT": port, "PREVIEW_PUBLIC_URL": f"http://127.0.0.1:{port}"}
    run = await world.start(SANDBOX_PROVIDER=tier, **settings)
    await say(world, "/mode auto", "I ask only before")
    idle = {one.pid for one in below(run.pid)}
    world.model.script(*(RUNS | {"a loop": LOOP})[what])
    world.telegram.say(PERSON, "do it")
    said_yes: set[str] = set()

    def runs() -> bool:
        world.approve_new(said_yes)
        if what == "code":
            return bool(find_words(run, MARK))
        if what == "a loop":
            return any(has_worked(one) for one in below(run.pid) if one.pid not in idle)
        return has_text(world, "It is up") and bool(find_words(run, "http.server"))

    await until(runs, START)
    left = below(run.pid)
    assert left
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await until(lambda: not list_running(left), START)


@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_after_a_restart_the_model_is_told_once_what_had_been_running(
    world: World, tier: str, end: signal.Signals
) -> None:
    run = await world.start(SANDBOX_PROVIDER=tier, **AGREED)
    await say(world, "/mode auto", "I ask only before")
    world.model.script(*SERVER)
    await say(world, "serve it", "It is up")

    def is_known() -> bool:
        found = world.folder.glob(".turnkeeper/workspaces/*/.turnkeeper/running.json")
        return any(f"[{PORT}]" in one.read_text() for one in found)

    await until(is_known, START)
    await run.end(end)
    await world.start(SANDBOX_PROVIDER=tier, **AGREED)
    for n, words in enumerate(("one", "two")):
        world.model.script(command(f"echo {words}"), Say(f"said {words}"))
        await say(world, words, f"said {words}")
        sent = json.dumps(world.model.requests[-1].body)
        assert sent.count("Not running any more") == 1, n
        assert f"http.server {PORT} & wait` (port {PORT})" in sent


def has_worked(process: psutil.Process) -> bool:
    try:
        return process.cpu_times().user > 1
    except psutil.Error:
        return False


def find_words(run: Run, word: str) -> list[psutil.Process]:
    """What runs below the gateway with that word."""
    found = []
    for one in below(run.pid):
        try:
            found += [one] if word in one.cmdline() else []
        except psutil.Error:
            continue
    return found


def has_text(world: World, words: str) -> bool:
    return any(words in str(one.get("text")) for one in world.telegram.chats[PERSON])


# ---- what runs beside it ---------------------------------------------------------------------

LONG = [
    Call("run_command", json.dumps({"command": f"setsid sleep {MARK} & sleep {MARK}"})),
    Hang(),
]
INSIDE_PORT = str(free_port())
"""A word that no other server of this machine has."""
SERVES = f"setsid python3 -m http.server {INSIDE_PORT} & wait"
BACKGROUND = [
    Call("run_command", json.dumps({"command": SERVES, "background": True})),
    Say("It is up"),
]
HELD = {"a background server": BACKGROUND, "code": CODE, "a long command": LONG}


@pytest.mark.parametrize("what", HELD)
async def test_no_container_runs_on_after_a_gateway_that_is_killed(
    world: World, docker_engine: str, what: str
) -> None:
    run = await world.start(SANDBOX_PROVIDER="docker", DOCKER_HOST=docker_engine, **AGREED)
    await say(world, "/mode auto", "I ask only before")
    world.model.script(*HELD[what])
    world.telegram.say(PERSON, "do it")
    word, said_yes = MARK if what != "a background server" else INSIDE_PORT, set[str]()

    def runs() -> bool:
        world.approve_new(said_yes)
        return bool(alive(word)) and (word == MARK or has_text(world, "It is up"))

    await until(runs, START)
    left = alive(word)
    assert len(list_containers(docker_engine)) == 1
    assert not {one.pid for one in left} & {one.pid for one in below(run.pid)}
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await until(lambda: not list_containers(docker_engine), START)
    await until(lambda: not list_running(left), START)


async def test_a_container_that_was_made_and_not_started_goes_with_the_next_start(
    world: World, docker_engine: str
) -> None:
    given = {"SANDBOX_PROVIDER": "docker", "DOCKER_HOST": docker_engine, **AGREED}
    run = await world.start(**given)
    tier = DockerTier(await inspect_docker(docker_engine), {})
    made = tier.describe(world.folder, SandboxLimits()) | {
        "Labels": {OWNER: describe_owner(run.pid)},
        "HostConfig": {"NetworkMode": "none"},
    }
    await tier.facts.engine.create("made", made)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    left = list_names(docker_engine)
    assert "['/made']" in left, "and such of its own tries, maybe"
    await world.start(**given)
    assert not {*left} & {*list_names(docker_engine)}


def list_names(address: str) -> list[str]:
    return [str(one["Names"]) for one in list_containers(address)]


@NEEDS_CHROMIUM
@pytest.mark.parametrize("tier", [BWRAP, "docker", "unsafe-subprocess"])
async def test_no_browser_runs_on_after_a_gateway_that_is_killed(
    world: World, tier: str, request: pytest.FixtureRequest
) -> None:
    """In whatever it runs: a sandbox by bubblewrap, a container, or nothing."""
    given = {"WEB_ALLOWED_HOSTS": world.model_url.removeprefix("http://"), **AGREED}
    if tier == "docker":
        given["DOCKER_HOST"] = request.getfixturevalue("browser_engine")
    before = set(list_browsers())
    run = await world.start(SANDBOX_PROVIDER=tier, **given)
    await say(world, "/mode browser", "Profile: browser")
    visit = {"action": "go_to_url", "url": f"{world.model_url}/"}
    world.model.script(Call("browser_use", json.dumps(visit)), Hang())
    world.telegram.say(PERSON, "look at it")
    said_yes: set[str] = set()

    def looks() -> bool:
        world.approve_new(said_yes)
        return len(world.model.requests) > 1

    await until(looks, START)
    left = [one for one in list_browsers() if one not in before]
    assert left and bool(list_containers(given["DOCKER_HOST"]) if tier == "docker" else True)
    left += below(run.pid)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await until(lambda: not list_running(left), START)
    if tier == "docker":
        await until(lambda: not list_containers(given["DOCKER_HOST"]), START)


def list_browsers() -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            found += [one] if "--headless" in one.cmdline() else []
        except psutil.Error:
            continue
    return found
