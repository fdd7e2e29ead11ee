"""The real process: `turnkeeper run` in an empty home against a Bot API and a model on loopback."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession

from agent_core.context.surroundings import strip_surroundings
from gateway.messages import Conversation, MessageReceived, Sender
from gateway.ops.http import PROBE_PATIENCE, PROBE_SECONDS
from gateway.settings import VERSION
from gateway.store.rows import Letter
from gateway.store.sqlite import SqliteStore
from tests.contracts.redis_server import redis_server
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import can_make_groups
from tests.gateway.process import KEY, PERSON, START, STRANGER, TOKEN, World


async def fetch(url: str) -> tuple[int, str]:
    async with ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


def sent(world: World, chat: int = PERSON) -> list[str]:
    return [message["text"] for message in world.telegram.chats[chat]]


def test_the_package_is_the_command_line_too() -> None:
    asked = (sys.executable, "-m", "gateway", "--version")
    said = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert said.stdout == f"turnkeeper {VERSION}\n"


@pytest.mark.pick("a story in a process", 3)
async def test_a_message_is_answered_and_operations_see_it(world: World) -> None:
    world.telegram.say(PERSON, "hello")  # it waited at Telegram before the start
    run = await world.start()
    await world.telegram.wait_text(PERSON, "ack hello", START)
    assert world.telegram.violations == []

    assert await fetch(f"{run.url}healthz") == (200, "ok\n")
    assert await fetch(f"{run.url}readyz") == (200, "ready\n")
    status, metrics = await fetch(f"{run.url}metrics")
    assert status == 200
    assert "turnkeeper_accepted_total 1.0" in metrics and "turnkeeper_rss_bytes" in metrics

    code, said = await world.command("status")
    assert code == 0 and "openai/fake-model" in said and "telegram: ready" in said
    code, said = await world.command("run")
    assert code == 2
    assert str(run.pid) in said and "TURNKEEPER_HOME" in said and "stop it" in said
    code, said = await world.command("link")
    assert code == 0 and (await fetch(said.strip()))[0] == 200

    socket = world.folder / ".turnkeeper" / "control.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    assert await run.end() == 0  # sooner than the poll that is open would
    assert not socket.exists()
    everything = run.log + run.out
    assert TOKEN not in everything and KEY not in everything
    assert "assembled" in run.log and "stopped" in run.log


@pytest.mark.pick("a story in a process", 3)
async def test_tools_run_and_the_next_message_knows_the_first(world: World) -> None:
    world.model.script(Call("write_file", '{"path": "a.txt", "content": "x"}'), Say("written"))
    run = await world.start(TELEGRAM_ADMIN_USERS=str(PERSON))
    world.telegram.say(PERSON, "write it")
    await world.telegram.wait_text(PERSON, "written", START)
    (file,) = (world.folder / ".turnkeeper" / "workspaces").glob("*/a.txt")
    assert file.read_text() == "x"
    world.telegram.say(PERSON, "and now?")
    await world.telegram.wait_text(PERSON, "ack and now?", START)
    said = [m["content"] for m in world.model.requests[-1].body["messages"] if m["role"] == "user"]
    assert list(map(strip_surroundings, said)) == ["write it", "and now?"]
    assert await run.end(signal.SIGINT) == 0


@pytest.mark.pick("a story in a process", 3)
async def test_an_approval_is_asked_and_honoured(world: World) -> None:
    world.model.script(Call("write_file", '{"path": "a.txt", "content": "x"}'), Say("written"))
    await world.start()
    world.telegram.say(PERSON, "write it")
    await world.telegram.wait(
        lambda: any("reply_markup" in m for m in world.telegram.chats[PERSON]), START
    )
    card = next(m for m in world.telegram.chats[PERSON] if "reply_markup" in m)
    buttons = [one for row in card["reply_markup"]["inline_keyboard"] for one in row]
    assert not list((world.folder / ".turnkeeper" / "workspaces").glob("*/a.txt"))
    world.telegram.press(PERSON, card["message_id"], buttons[0]["callback_data"])
    await world.telegram.wait_text(PERSON, "written", START)
    assert list((world.folder / ".turnkeeper" / "workspaces").glob("*/a.txt"))
    assert world.telegram.violations == []
    code, said = await world.command("audit", "--json", "--who", f"telegram:{PERSON}")
    asked, answered, ran = map(json.loads, said.splitlines())
    assert code == 0 and asked["what"] == "asked" and "write_file" in asked["detail"]
    assert answered["who"] == f"telegram:{PERSON}" and answered["what"] == "answered"
    assert ran["what"] == "ran" and "write_file" in ran["detail"] and "approved" in ran["detail"]
    code, said = await world.command("audit", "--what", "answered", "--since", "1h")
    assert code == 0 and len(said.splitlines()) == 2, "a head and a line"
    code, said = await world.command("audit", "verify")
    assert code == 0 and "hold" in said, said
    assert (await world.command("audit", "none"))[0] == 1
    assert (await world.command("audit", "--since", "yesterday"))[0] == 1
    for option in ("--who", "--what", "--since"):
        code, said = await world.command("audit", option, "")
        assert code == 2 and "leave it out" in said


@pytest.mark.pick("a story in a process", 3)
async def test_killed_in_the_model_call_it_answers_once(world: World) -> None:
    world.model.gate = asyncio.Event()
    run = await world.start()
    world.telegram.say(PERSON, "hello")
    await world.model.wait_inflight(1, START)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    world.model.gate.set()
    world.model.gate = None
    run = await world.start()
    await world.telegram.wait_text(PERSON, "ack hello", START)
    assert len(world.model.requests) == 2
    assert await run.end() == 0
    assert len(sent(world)) == 1


@pytest.mark.pick("a story in a process", 3)
async def test_redis_is_the_store_where_it_is_set(world: World) -> None:
    server = redis_server(world.folder)
    try:
        world.model.gate = asyncio.Event()
        run = await world.start(REDIS_URL=server.url)
        world.telegram.say(PERSON, "hello")
        await world.model.wait_inflight(1, START)
        assert await run.end(signal.SIGKILL) == -signal.SIGKILL
        world.model.gate.set()
        run = await world.start(REDIS_URL=server.url)
        await world.telegram.wait_text(PERSON, "ack hello", START)
        status, _ = await fetch(f"{run.url}readyz")
        assert status == 200
        assert await run.end() == 0
        assert len(sent(world)) == 1
        assert not (world.folder / ".turnkeeper" / "turnkeeper.db").exists()
    finally:
        server.end()


@pytest.mark.pick("a bad setting", 2)
async def test_a_store_that_cannot_be_opened_ends_with_1(world: World) -> None:
    code, said = await world.command("run", REDIS_URL=f"unix://{world.folder}/nothing.sock")
    assert code == 1
    assert "turnkeeper:" in said and "Traceback" not in said


@pytest.mark.pick("a bad setting", 2)
@pytest.mark.parametrize("words", [("run",), ("dead",), ("backup", "b.zip")])
async def test_a_folder_in_which_nothing_can_be_written_is_told(
    world: World, words: tuple[str, ...]
) -> None:
    """As on a full disk."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'ulimit -f 0; exec "$@"', "sh"),
        *(sys.executable, "-B", "-m", "gateway.cli.main", *words),
        cwd=world.folder, env=world.env(),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(START):
        out, _ = await process.communicate()
    said = out.decode()
    assert process.returncode == 2 and said.startswith("turnkeeper:") and "Traceback" not in said
    assert "data folder cannot be used (File too large)" in said


@pytest.mark.pick("a story in a process", 3)
async def test_a_drain_lets_the_running_turn_end(world: World) -> None:
    world.model.gate = asyncio.Event()
    run = await world.start()
    world.telegram.say(PERSON, "hello")
    await world.model.wait_inflight(1, START)
    ending = asyncio.create_task(run.end())
    async with asyncio.timeout(START):
        while "draining" not in run.log:
            await asyncio.sleep(0.02)
    assert (await fetch(f"{run.url}readyz"))[0] == 503, "nothing new is led here"
    assert "is stopping" in (await world.command("status"))[1]
    world.telegram.say(PERSON, "too late for this one")
    world.model.gate.set()
    assert await ending == 0
    assert sent(world) == ["ack hello"]
    world.model.gate = None
    await world.start()
    await world.telegram.wait_text(PERSON, "ack too late", START)


@pytest.mark.pick("a story in a process", 3)
async def test_a_second_interrupt_ends_at_once(world: World) -> None:
    world.model.gate = asyncio.Event()
    run = await world.start()
    world.telegram.say(PERSON, "hello")
    await world.model.wait_inflight(1, START)
    os.kill(run.pid, signal.SIGINT)
    async with asyncio.timeout(START):
        while "draining" not in run.log:
            await asyncio.sleep(0.02)
    assert await run.end(signal.SIGINT) == 130


@pytest.mark.pick("a story in a process", 3)
async def test_pairing_over_telegram_and_the_command_line(world: World) -> None:
    run = await world.start(TELEGRAM_ALLOWED_USERS="")
    world.telegram.say(STRANGER, "let me in")
    message = await world.telegram.wait_text(STRANGER, "Show this code", START)
    shown = re.search(r"admin: ([A-Z0-9]{8})", message["text"])
    assert shown
    code, said = await world.command("pair", "WRONGONE")
    assert code == 1 and "not valid" in said
    code, said = await world.command("pair", shown[1])
    assert code == 0 and f"U{STRANGER}" in said
    world.telegram.say(STRANGER, "/whoami")
    await world.telegram.wait_text(STRANGER, "role: admin", START)
    assert await run.end() == 0
    assert len(world.model.requests) == 0
    await world.start(TELEGRAM_ALLOWED_USERS="")
    world.telegram.say(STRANGER, "still me?")
    await world.telegram.wait_text(STRANGER, "ack still me?", START)


@pytest.mark.pick("a story in a process", 3)
async def test_a_webhook(world: World) -> None:
    port = free_port()
    run = await world.start(
        TURNKEEPER_PORT=str(port), TELEGRAM_WEBHOOK_SECRET="a-secret-of-the-webhook",
        TELEGRAM_WEBHOOK_URL=f"http://127.0.0.1:{port}/telegram/webhook",
    )  # fmt: skip
    await world.telegram.wait(lambda: world.telegram.webhook is not None, START)
    world.telegram.say(PERSON, "hello")
    await world.telegram.wait_text(PERSON, "ack hello", START)
    assert await run.end() == 0
    assert "a-secret-of-the-webhook" not in run.log


@pytest.mark.slow
@pytest.mark.pick("a story in a process", 3)
async def test_a_turn_that_kills_its_process_is_given_up(world: World) -> None:
    """The page's: its conversation must not be opened before its adapter is there."""
    world.model.gate = asyncio.Event()
    run = await world.start()
    async with ClientSession(run.url, headers={"Origin": run.url.rstrip("/")}) as page:
        async with page.get(run.link) as answer:
            signed = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        path = "/api/conversations/one/messages"
        async with page.post(path, json={"text": "poison"}, headers=signed) as kept:
            assert kept.status == 202
    for _ in range(3):
        await world.model.wait_inflight(1, START)
        await run.end(signal.SIGKILL)
        await world.model.wait_inflight(0, START)
        run = await world.start()
    async with asyncio.timeout(START):
        while "turn_dead" not in run.log:
            await asyncio.sleep(0.02)
    assert len(world.model.requests) == 3


@pytest.mark.pick("a story in a process", 3)
async def test_access_lists_are_read_again_on_sighup(world: World) -> None:
    settings = world.folder / "turnkeeper.toml"
    settings.write_text("telegram.admin_users = [12]\n")
    run = await world.start()
    settings.write_text(f"telegram.admin_users = [{PERSON}]\n")
    os.kill(run.pid, signal.SIGHUP)
    async with asyncio.timeout(START):
        while "reloaded" not in run.log:
            await asyncio.sleep(0.02)
    world.telegram.say(PERSON, "/whoami")
    await world.telegram.wait_text(PERSON, "role: admin", START)


@pytest.mark.pick("a story in a process", 3)
async def test_the_operators_rules_are_read_again_on_sighup_unless_they_are_wrong(
    world: World,
) -> None:
    home = world.folder / ".turnkeeper"
    home.mkdir(mode=0o700)
    rules = home / "policy.toml"
    rules.write_text('[[rule]]\nname = "no-x"\neffect = "denie"\n')
    code, said = await world.command("run")
    assert code == 2
    assert f"{rules}, line 3, effect=denie: write allow, ask or deny." in said
    code, said = await world.command("policy", "explain")
    assert code == 2 and "line 3" in said
    rules.write_text('[[rule]]\nname = "no-x"\neffect = "deny"\ncommand = "x"\n')
    run = await world.start()
    rules.write_text('[[rule]]\nname = "no-x"\neffect = 5\n')
    os.kill(run.pid, signal.SIGHUP)
    async with asyncio.timeout(START):
        while "not_reloaded" not in run.log:
            await asyncio.sleep(0.02)
    assert "line 3, effect=5" in run.log
    rules.write_text("")
    os.kill(run.pid, signal.SIGHUP)
    async with asyncio.timeout(START):
        while run.log.count("reloaded") < 2:
            await asyncio.sleep(0.02)


@pytest.mark.pick("a story in a process", 3)
async def test_a_refused_token_takes_nothing_along(world: World) -> None:
    wrong = TOKEN.replace("fake", "else")
    run = await world.start(TELEGRAM_BOT_TOKEN=wrong)
    assert await fetch(f"{run.url}readyz") == (503, "unready\n")
    _, said = await world.command("status")
    assert "store: ready" in said and "runs, but is not ready" in said
    assert "telegram: Telegram refuses the bot token" in said
    assert "web: ready" in said and wrong not in said
    assert "adapter_gave_up platform=telegram" in run.log
    assert wrong not in run.log
    assert await run.end() == 0


@pytest.mark.pick("a story in a process", 3)
async def test_the_demo_on_the_page(world: World) -> None:
    nothing = {"TELEGRAM_BOT_TOKEN": "", "OPENAI_API_KEY": "", "PRO_MODEL": ""}
    run = await world.start(**nothing, LOCAL_MODEL_DISCOVERY="off")
    assert "demo" in run.out
    headers = {"Origin": run.url.rstrip("/")}
    async with ClientSession(run.url, headers=headers) as page, asyncio.timeout(START):
        async with page.get("/") as answer:
            assert answer.status == 200 and "Set-Cookie" not in answer.headers
            assert "turnkeeper link" in await answer.text()
        async with page.get(run.link) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        signed = {"Cookie": cookie}
        path = "/api/conversations/one"
        async with page.post(f"{path}/messages", json={"text": "list"}, headers=signed) as kept:
            assert kept.status == 202
        text = ""
        while "list_files" not in text or '"state":"idle"' not in text:
            await asyncio.sleep(0.05)
            async with page.get(path, headers=signed) as shown:
                text = await shown.text()
        status = {"name": "status", "arguments": ""}
        async with page.post(f"{path}/commands", json=status, headers=signed) as kept:
            assert kept.status == 202
        while "Today:" not in text:
            await asyncio.sleep(0.05)
            async with page.get(path, headers=signed) as shown:
                text = await shown.text()
    assert "demo model" in text
    assert "Today: $0.00." in text, "a script costs nothing"
    assert await run.end() == 0


@pytest.mark.pick("a bad setting", 2)
@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("TURNKEEPER_PORT", "eight", "write a number"),
        ("PRO_MODEL", "nobody/x", "no such provider"),
        ("SANDBOX_PROVIDER", "chroot", "use one of"),
        ("MEMORY_ENABLED", "nein", "write on or off"),
    ],
)
async def test_a_bad_setting_ends_with_2(world: World, name: str, value: str, mend: str) -> None:
    code, said = await world.command("run", **{name: value})
    assert code == 2
    assert name in said and value.split("/")[0] in said and mend in said
    assert "Traceback" not in said


@pytest.mark.pick("a story in a process", 3)
async def test_the_link_that_run_prints_signs_in_once(world: World) -> None:
    run = await world.start()
    assert run.out.splitlines()[-1] == f"open {run.link}"
    assert run.link.startswith(f"{run.url}signin/")
    token = run.link.rpartition("/")[2]
    async with ClientSession(run.url) as http:
        async with http.get(run.link) as answer:
            assert answer.status == 200
            signed = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        async with http.get("/api/conversations", headers=signed) as answer:
            assert (answer.status, (await answer.json())["person"]) == (200, "owner")
        async with http.get(run.link) as answer:
            assert answer.status == 401 and "Set-Cookie" not in answer.headers
    assert await run.end() == 0
    assert token not in run.log
    run = await world.start(TURNKEEPER_PORT=run.url.rstrip("/").rpartition(":")[2])
    async with ClientSession(run.url) as http:
        async with http.get(f"/signin/{token}") as answer:
            assert answer.status == 401, "a restart forgets no used link"
        async with http.get("/api/conversations", headers=signed) as answer:
            assert answer.status == 200, "and no session"


@pytest.mark.pick("a story in a process", 3)
async def test_a_link_is_for_whom_it_names(world: World) -> None:
    run = await world.start(WEB_ALLOWED_USERS="ann")
    code, said = await world.command("link", "ann")
    assert code == 0
    async with ClientSession(run.url) as http:
        async with http.get(said.strip()) as answer:
            signed = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        async with http.get("/api/conversations", headers=signed) as answer:
            assert (await answer.json())["person"] == "ann"
    code, said = await world.command("link", "bob")
    assert code == 1 and "'bob' may not use the page" in said and "WEB_ALLOWED_USERS" in said


OPENER = '#!/bin/sh\ncp "$1" "$HOME/opened.new" && mv "$HOME/opened.new" "$HOME/opened.html"\n'


@pytest.mark.pick("a browser where there is one")
@pytest.mark.parametrize(("display", "terminal"), [(":9", True), ("", True), (":9", False)])
async def test_the_browser_is_opened_where_there_is_one(
    world: World, display: str, terminal: bool
) -> None:
    opener = world.folder / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(OPENER)
    opener.chmod(0o755)
    env = world.env(DISPLAY=display, PATH=f"{opener.parent}:{os.environ['PATH']}")
    ours, theirs = os.openpty()
    out = theirs if terminal else asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway.cli.main", "run"),
        cwd=world.folder, env=env, stdout=out, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    opened = world.folder / "opened.html"
    try:
        if display and terminal:
            async with asyncio.timeout(START):
                while not opened.exists():
                    await asyncio.sleep(0.02)
            assert re.search(r"url=http://127\.0\.0\.1:\d+/signin/owner\.", opened.read_text())
            page = world.folder / ".turnkeeper" / "open.html"
            assert page.stat().st_mode & 0o777 == 0o600
        else:
            async with asyncio.timeout(START):
                while not (world.folder / ".turnkeeper" / "control.sock").exists():
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            assert not opened.exists()
    finally:
        process.terminate()
        assert await process.wait() == 0
        os.close(ours)


@pytest.mark.pick("a bad setting", 2)
@pytest.mark.parametrize("name", ["TURNKEEPER_TOKEN", "TELEGRAM_WEBHOOK_SECRET"])
async def test_a_secret_that_can_be_guessed_ends_with_2(world: World, name: str) -> None:
    code, said = await world.command("run", **{name: "hunter2-hunter2"})
    assert code == 2 and "hunter2" not in said and "Traceback" not in said
    assert f"{name}: it is shorter than 16 characters" in said and "openssl rand" in said


@pytest.mark.pick("a bad setting", 2)
async def test_a_sandbox_that_does_not_work_here_ends_with_2(world: World, tmp_path: Path) -> None:
    missing = {"SANDBOX_PROVIDER": "bwrap", "PATH": str(tmp_path)}
    code, said = await world.command("run", **missing)
    assert code == 2 and "Traceback" not in said
    assert "SANDBOX_PROVIDER=bwrap: does not work here (bwrap is not installed" in said
    assert "mend that, or use auto" in said
    code, said = await world.command("doctor", **missing)
    assert code == 1 and "wrong    sandbox: SANDBOX_PROVIDER=bwrap does not work here" in said


@NEEDS_LANDLOCK
@pytest.mark.pick("a doctor in a process", 2)
async def test_doctor_names_what_a_tier_cannot(world: World) -> None:
    code, said = await world.command("doctor", SANDBOX_PROVIDER="landlock")
    assert code == 0, said
    assert "ok       sandbox: landlock. " in said
    assert "It cannot hide that other processes exist" in said
    known = said.partition("it contains what runs in it, but for ")[2].partition("\n")[0]
    for one in ("size and date of a file", "secret files", "other processes", "copies for undo"):
        assert one in known
    limits = "the kernel enforces those" if can_make_groups() else "a sandbox is watched"
    assert f"limits: {limits}" in said
    assert any(
        where in said
        for where in (
            "browser: in a sandbox of its own, by bubblewrap",
            "browser: on this machine, outside of the sandbox (landlock)",
            "browser: There is no browser on this machine",
        )
    )


@pytest.mark.pick("a bad setting", 2)
async def test_a_taken_port_ends_with_2(world: World) -> None:
    taken = world.model_url.rpartition(":")[2]
    code, said = await world.command("run", TURNKEEPER_PORT=taken)
    assert code == 2 and f"TURNKEEPER_PORT: cannot listen on 127.0.0.1:{taken}" in said
    assert said.count(taken) == 1
    assert "(Address already in use); stop the program that does" in said


@pytest.mark.pick("a command without a gateway", 2)
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("dead",), 0, "No dead letters.\n"),
        (("dead", "resubmit", "5"), 1, "no dead letter '5'"),
        (("turn", "show", "nothing"), 1, "There is no such turn.\n"),
        (("link",), 1, "turnkeeper run"),
        (("doctor",), 0, "store: can be written"),
        (("doctor",), 0, "ok       guardrails: rules; llm-guard "),
        (("version",), 0, "turnkeeper "),
        (("--version",), 0, "turnkeeper "),
        (("backup", "nowhere/a.tar"), 1, "make it first"),
        (("jobs",), 0, "There are no jobs.\n"),
        ((), 2, "run the gateway"),
    ],
)
async def test_commands_without_a_gateway(
    world: World, words: tuple[str, ...], code: int, told: str
) -> None:
    ended, said = await world.command(*words)
    assert ended == code and told in said, said


@pytest.mark.pick("a story in a process", 3)
async def test_a_running_gateway_goes_on_with_what_is_resubmitted(world: World) -> None:
    run = await world.start()
    assert await run.end() == 0
    where = Conversation(
        platform="telegram", account=TOKEN.partition(":")[0], channel=str(PERSON), private=True
    )
    sender = Sender(platform="telegram", id=str(PERSON))
    said = MessageReceived(conversation=where, event="e", message="7", sender=sender, text="late")
    letter = Letter(
        id="7", kind="message", conversation=where.id, name="7", at=1.0, why="a bug",
        payload=msgspec.json.encode(said),
    )  # fmt: skip
    store = await SqliteStore.open(world.folder / ".turnkeeper" / "turnkeeper.db")
    await store.keep_letter(letter)
    await store.close()
    await world.start()
    code, told = await world.command("dead", "resubmit", "7")
    assert (code, told) == (0, f"7 waits again in {where.id}.\n")
    await world.telegram.wait_text(PERSON, "ack late", START)
    assert await world.command("dead") == (0, "No dead letters.\n")


@pytest.mark.pick("a story in a process", 3)
async def test_a_turns_journal_is_shown(world: World) -> None:
    run = await world.start()
    world.telegram.say(PERSON, "hello")
    await world.telegram.wait_text(PERSON, "ack hello", START)
    async with ClientSession() as session:
        async with session.get(f"{run.url}metrics") as answer:
            assert answer.status == 200
    assert await run.end() == 0
    import sqlite3

    with contextlib.closing(sqlite3.connect(world.folder / ".turnkeeper/turnkeeper.db")) as store:
        ((turn,),) = store.execute("SELECT id FROM turns").fetchall()
    code, said = await world.command("turn", "show", turn)
    assert code == 0 and '"kind":"began"' in said and "ack hello" in said


@pytest.mark.pick("a story in a process", 3)
async def test_readiness_is_told_in_time_while_the_store_is_held(world: World) -> None:
    """By a program that copies it, say. Who asks waits for seconds, not as long as a commit may."""
    run = await world.start()
    with contextlib.closing(
        sqlite3.connect(world.folder / ".turnkeeper" / "turnkeeper.db", isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            async with asyncio.timeout(2 * PROBE_PATIENCE):
                assert await fetch(f"{run.url}readyz") == (503, "unready\n")
            await asyncio.sleep(PROBE_SECONDS)
        other.execute("ROLLBACK")
    async with asyncio.timeout(START):
        while await fetch(f"{run.url}readyz") != (200, "ready\n"):
            await asyncio.sleep(0.1)
    world.telegram.say(PERSON, "hello")
    await world.telegram.wait_text(PERSON, "ack hello", START)
