"""Attacks on approvals and webhooks, one test a name, through the real gateway."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientSession

from agent_core import ambient
from gateway.declaration import SettingsError
from gateway.messages import ButtonPressed, JobFired, Sender
from gateway.settings import Settings
from gateway.wiring import agent_default
from tests.contracts.redis_server import redis_server
from tests.fakes.model_server import Call, Calls, Say
from tests.fakes.ports import free_port
from tests.stories.isolated import isolate
from tests.stories.jobs_rig import Shifted
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PATIENCE,
    PERSON,
    STRANGER,
    Json,
    Rig,
    labels,
    mention,
    token,
    write,
)

SECRET = "a-secret-of-the-webhook"
Case = Callable[[Rig, pytest.MonkeyPatch], Awaitable[None]]

pytestmark = pytest.mark.bugs_are_told
SLACK = "tests/stories/slack/test_slack_attacks.py::test_"
ELSEWHERE = {
    "slack-future": f"{SLACK}slack_future",
    "slack-body-mutated": f"{SLACK}slack_body_mutated",
    "slack-replay-same-body": f"{SLACK}slack_replay_same_body",
    "slack-retry-only": f"{SLACK}slack_retry_only",
    "slack-retry-after-ttl": f"{SLACK}slack_retry_after_ttl",
    "slack-retry-while-running": f"{SLACK}slack_retry_while_running",
    "slack-url-encoded-interactive": (
        "tests/stories/slack/test_slack_story.py::test_an_approval_by_button_and_a_strangers_press"
    ),
    "requester-self-approve": (
        "tests/stories/access/test_approvers_story.py::"
        "test_who_asked_may_not_decide_where_they_are_left_out"
    ),
}
"""Cases with a test of their own."""
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def keep(test: Case) -> Case:
        CASES[name] = test
        return test

    return keep


def run(command: str) -> Call:
    return Call("run_command", json.dumps({"command": command}))


async def ask(rig: Rig, text: str = "do it", chat: int = PERSON, user: int = PERSON) -> Json:
    """Write something that ends in a card; the card, once its turn is parked."""
    if chat > 0:
        rig.telegram.say(chat, text)
    else:
        rig.telegram.say(chat, f"@test_bot {text}", user=user, **mention("@test_bot"))
    card = await rig.card(chat)
    await rig.quiet()
    return card


async def refused(rig: Rig, card: Json, words: str, user: int = PERSON, chat: int = 0) -> None:
    """This press gets `words` in private and changes nothing."""
    before = card["text"]
    told = await rig.told(rig.press(card, "Approve once", user, chat or card["chat"]["id"]))
    assert words in told, told
    await rig.quiet()
    assert card["text"] == before and card.get("reply_markup")


def let_expire(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    """Set the clock to a time when no open question stands any more."""
    clock = Shifted()
    patch.setattr(ambient, "_clock", clock)
    clock.offset = rig.host.services.question_expires + 1.0
    rig.host._alarm(ambient.now())


# ---- approval ------------------------------------------------------------------------------


@case("other-user-in-group")
async def other_user(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    card = await ask(rig, chat=GROUP)
    for user in (FRIEND, STRANGER):
        await refused(rig, card, "Only the person who asked, or an admin", user)
    assert not (rig.workspace(GROUP) / "a.txt").exists()
    lines = [line for line in await rig.audit() if line[1] == "press_refused"]
    assert [who for who, _, _ in lines] == [f"telegram:{FRIEND}", f"telegram:{STRANGER}"]


@case("left-group")
async def left_group(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    card = await ask(rig)
    for name, value in rig.env(TELEGRAM_ALLOWED_USERS=str(FRIEND)).items():
        patch.setenv(name, value)
    assert rig._gateway is not None and rig._gateway._parts is not None
    await rig._gateway._parts.reload()
    await refused(rig, card, "I do not know you")
    assert not (rig.workspace() / "a.txt").exists()


@case("other-chat")
async def other_chat(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    card = await ask(rig)
    await refused(rig, card, "belongs to another conversation", PERSON, GROUP)
    await refused(rig, card, "belongs to another conversation", ADMIN, ADMIN)


@case("expired")
async def expired(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(write("a.txt"), Say("nobody was there"))
    await rig.start()
    card = await ask(rig)
    press = token(card, "Approve once")
    let_expire(rig, patch)
    await rig.shows("nobody was there")
    await rig.quiet()
    assert "expired without a decision" in card["text"] and "reply_markup" not in card
    told = await rig.told(rig.telegram.press(PERSON, card["message_id"], press))
    assert "already closed" in told
    await rig.quiet()
    assert not (rig.workspace() / "a.txt").exists()
    assert "nobody answered in time" in rig.seen(role="tool")[0] and len(rig.model.requests) == 2


@case("restart-after-press")
async def restart_after_press(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(run("echo ran >> log"), Say("done"))
    await rig.start()
    card = await ask(rig)
    where, event = rig.where(), rig.press(card, "Approve once")
    rig.telegram._queue.clear()
    press = event["callback_query"]
    sender = Sender(platform="telegram", id=str(PERSON), name=f"U{PERSON}", language="en")
    await rig.store.accept(
        [
            ButtonPressed(
                conversation=where, sender=sender, event=f"u{event['update_id']}",
                message=str(card["message_id"]), token=press["data"], press=press["id"],
            )
        ]
    )  # fmt: skip
    await rig.crash()  # the press is kept, nothing has run
    assert not list(rig.home.glob("workspaces/*/log"))
    rig.telegram.redeliver(event)
    await rig.start()
    await rig.shows("done")
    await rig.quiet()
    assert (rig.workspace() / "log").read_text() == "ran\n"


@case("restart-mid-tool")
async def restart_mid_tool(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(run("echo ran >> log; sleep 60"), Say("I do not know how it went"))
    await rig.start()
    card = await ask(rig)
    rig.press(card, "Approve once")
    log = rig.workspace() / "log"
    await rig.until(log.exists)
    await rig.crash()
    await rig.start()
    await rig.shows("I do not know how it went")
    await rig.quiet()
    assert log.read_text() == "ran\n"
    assert "nknown" in rig.seen(role="tool")[0]
    assert any("outcome unknown" in text for text in rig.said())


async def changed(rig: Rig, card: Json) -> None:
    """What was approved is not what would run: it does not run, and the person is asked anew."""
    rig.model.script(Say("it was changed"))
    rig.press(card, "Approve once")
    await rig.until(lambda: rig.cards() and rig.cards()[-1]["message_id"] != card["message_id"])
    again = rig.cards()[-1]
    assert "changed since it was approved" in again["text"]
    rig.press(again, "Deny")
    await rig.shows("it was changed")
    await rig.quiet()
    (told,) = rig.seen(role="tool")
    assert told.startswith("Denied by")


@case("script-swapped")
async def script_swapped(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(run("bash x.sh"))
    await rig.start()
    rig.workspace().mkdir(parents=True, exist_ok=True)
    script = rig.workspace() / "x.sh"
    script.write_text("echo good > good")
    card = await ask(rig)
    script.write_text("echo evil > evil")
    await changed(rig, card)
    assert sorted(p.name for p in rig.workspace().iterdir() if p.name[0] != ".") == ["x.sh"]


@case("cwd-changed")
async def cwd_changed(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(run("touch here"))
    await rig.start()
    card = await ask(rig)
    here, other = rig.workspace(), rig.folder / "other"
    other.mkdir()
    here.parent.mkdir(exist_ok=True)
    if here.exists():
        here.rename(rig.folder / "moved")
    here.symlink_to(other)
    await changed(rig, card)
    assert [one.name for one in other.iterdir()] in ([], [".turnkeeper"])


@case("argv-rebuilt")
async def argv_rebuilt(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    """The call in the journal is changed while the card shows the old one."""
    rig.model.script(run("touch safe"))
    await rig.start()
    card = await ask(rig)
    await rig.crash()
    store = sqlite3.connect(rig.home / "turnkeeper.db", isolation_level=None)
    rows = store.execute("SELECT n, body FROM records").fetchall()
    replied = [(n, body) for n, body in rows if b'"replied"' in body and b"touch safe" in body]
    assert len(replied) == 1
    new = bytes(replied[0][1]).replace(b"touch safe", b"touch evil")
    store.execute("UPDATE records SET body = ? WHERE n = ?", (new, replied[0][0]))
    store.close()
    await rig.start()
    await changed(rig, card)
    assert not list(rig.home.glob("workspaces/*/[se]*"))


@case("always-scope-wrapper")
async def always_wrapper(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    isolate(patch)
    rig.model.script(
        run("zsh -lc whoami"), Say("first"), run('zsh -lc "rm -rf /"'), Say("second"),
        run("zsh -lc 'whoami; id'"),
    )  # fmt: skip
    await rig.start(SANDBOX_PROVIDER="auto")
    card = await ask(rig)
    rig.press(card, "Always approve")
    await rig.shows("first")
    await rig.quiet()
    second = await ask(rig, "and now")
    assert "rm -rf /" in second["text"] and "high risk" in second["text"]
    assert "Always approve" not in labels(second), "nothing of high risk is allowed for ever"
    rig.press(second, "Deny")
    await rig.shows("second")
    await rig.quiet()
    assert "whoami; id" in (await ask(rig, "and then"))["text"]


@case("always-other-user")
async def always_other_user(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(*[step for n in range(3) for step in (write("a.txt"), Say(f"done {n}"))])
    await rig.start()
    card = await ask(rig, chat=GROUP)
    rig.press(card, "Always approve")
    await rig.shows("done 0", GROUP)
    await rig.quiet()
    other = await ask(rig, chat=GROUP, user=FRIEND)
    await refused(rig, other, "Only the person who asked", PERSON)
    rig.press(other, "Deny", FRIEND)
    await rig.shows("done 1", GROUP)
    await rig.quiet()
    rig.telegram.say(GROUP, "@test_bot again", user=PERSON, **mention("@test_bot"))
    await rig.shows("done 2", GROUP)


@case("allowed-user-new-id")
async def allowed_name(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    await rig.start(TELEGRAM_ALLOWED_USERS="user77,@user77,U77,11")
    named = {"id": STRANGER, "is_bot": False, "first_name": "11", "username": "11"}
    rig.telegram.say(STRANGER, "let me in", **{"from": named})
    await rig.shows("I do not know you yet", STRANGER)
    rig.telegram.say(STRANGER, "it is me")
    await rig.telegram.wait(lambda: len(rig.said(STRANGER)) == 2, PATIENCE)
    assert rig.model.requests == []


@case("missing-module")
async def missing_module(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ImportError("no module named policy")

    rig.model.script(write("a.txt"))
    await rig.start()
    patch.setattr(agent_default, "judge_call", broken)
    rig.telegram.say(ADMIN, "write it")
    await rig.shows("Something in the gateway failed", ADMIN)
    await rig.quiet()
    assert not list(rig.home.glob("workspaces/*/a.txt")) and rig.log.named("turn_failed")


@case("no-ui")
async def nobody_there(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    """A job's turn: nobody started it, so nobody but an admin can decide."""
    rig.model.script(write("a.txt"), Say("it was not allowed"))
    await rig.start()
    job = JobFired(conversation=rig.where(), event="j1", job="j", due=1.0, text="the job")
    await rig.host.accept([job])
    card = await rig.card()
    told = await rig.told(rig.press(card, "Approve once"))
    assert "Only the person who asked" in told
    await rig.quiet()
    let_expire(rig, patch)
    await rig.shows("it was not allowed")
    assert not list(rig.home.glob("workspaces/*/a.txt"))


@case("batch-100")
async def batch_100(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(Calls([write(f"file-{n:03}.txt") for n in range(100)]), Say("none of it"))
    await rig.start()
    card = await ask(rig)
    shown = "\n".join(text for text in rig.said() if "◐" not in text)
    assert all(f'"file-{n:03}.txt"' in shown for n in range(100)), "each is shown in full"
    assert len(rig.cards()) == 1, "one card"
    rig.press(card, "Deny")
    await rig.shows("none of it")
    await rig.quiet()
    assert rig.cards() == [], "no part of it keeps its buttons"
    assert not list(rig.home.glob("workspaces/*/file*"))


@case("edit-ack-fails")
async def ack_fails(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    old = "query is too old and response timeout expired or query ID is invalid"
    rig.telegram.fail("answerCallbackQuery", 400, description=f"Bad Request: {old}")
    rig.telegram.drop("answerCallbackQuery")
    rig.model.script(write("a.txt"), Say("first"), write("b.txt"), Say("second"))
    await rig.start()
    for words in ("first", "second"):
        card = await ask(rig)
        rig.press(card, "Approve once")
        await rig.shows(words)
        await rig.quiet()
        assert "Approved once by" in card["text"] and "reply_markup" not in card
    assert len(list(rig.home.glob("workspaces/*/?.txt"))) == 2


async def test_pressed_twice_it_runs_once(rig: Rig) -> None:
    rig.model.script(run("echo ran >> log"), Say("done"))
    await rig.start()
    card = await ask(rig)
    first, second = rig.press(card, "Approve once"), rig.press(card, "Deny")
    assert await rig.told(first) == ""
    assert "already closed" in await rig.told(second)
    await rig.shows("done")
    await rig.quiet()
    assert (rig.workspace() / "log").read_text() == "ran\n"
    whats = [what for _, what, _ in await rig.audit()]
    assert sorted(whats) == ["answered", "asked", "press_refused", "ran"]


async def test_two_entitled_press_and_the_first_decides(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("so not"))
    await rig.start()
    card = await ask(rig, chat=GROUP)
    deny, approve = rig.press(card, "Deny", ADMIN), rig.press(card, "Approve once", PERSON)
    assert await rig.told(deny) == "" and "already closed" in await rig.told(approve)
    await rig.shows("so not", GROUP)
    await rig.quiet()
    assert f"Denied by U{ADMIN}" in card["text"] and not list(rig.home.glob("workspaces/*/a.txt"))


async def test_forged_tokens_change_nothing(rig: Rig) -> None:
    rig.model.script(run("echo ran >> log"), Say("done"))
    await rig.start()
    card = await ask(rig)
    good = token(card, "Approve once")
    question = good.split(":")[1]
    forged = [
        "x", "q", "q:", "q::", "q:::", f"q:{question}", f"q:{question}:", f"q:{question}:yes",
        f"q:{question}:expired", f"q:{question}:0", f"q:{question[:-1]}:once", "q:%:once",
        f"q:{question.swapcase()}:once", f"Q:{question}:once", f"q:{question}:once:once",
        f"q:{question}:always",  # not offered for what nothing isolates
    ]  # fmt: skip
    for data in forged:
        told = await rig.told(rig.telegram.press(PERSON, card["message_id"], data))
        assert "I do not recognise this button" in told, data
    await rig.quiet()
    assert rig.cards() == [card] and not list(rig.home.glob("workspaces/*/log"))
    rig.press(card, "Approve once")
    await rig.shows("done")


async def test_pressed_after_a_restart(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    card = await ask(rig)
    await rig.stop()
    await rig.start()
    await refused(rig, card, "Only the person who asked", FRIEND)
    assert await rig.told(rig.press(card, "Approve once")) == ""
    await rig.shows("written")
    await rig.quiet()
    assert "Approved once by" in card["text"]


async def test_a_files_content_is_bound_as_well(rig: Rig) -> None:
    """A command that names a file which appears only after it was asked about."""
    rig.model.script(run("cat notes.txt"))
    await rig.start()
    card = await ask(rig)
    rig.workspace().mkdir(parents=True, exist_ok=True)
    (rig.workspace() / "notes.txt").write_text("new")
    await changed(rig, card)


# ---- webhook -------------------------------------------------------------------------------


async def hooked(rig: Rig, **more: str) -> str:
    port = free_port()
    url = f"http://127.0.0.1:{port}/telegram/webhook"
    given = {"TURNKEEPER_PORT": str(port), "TELEGRAM_WEBHOOK_SECRET": SECRET}
    await rig.start(**given | {"TELEGRAM_WEBHOOK_URL": url} | more)
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None, PATIENCE)
    rig.telegram.webhook = None  # we deliver ourselves
    return url


async def post(url: str, body: object, secret: str | None = SECRET, method: str = "POST") -> int:
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    async with ClientSession() as http:
        async with http.request(method, url, data=data, headers=headers) as answer:
            return answer.status


@case("telegram-no-secret")
async def no_secret(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    url = await hooked(rig)
    update = rig.telegram.say(PERSON, "hello")
    assert await post(url, update, None) == 401
    assert await post(url, update, "") == 401
    assert await post(url, update) == 200
    await rig.shows("ack hello")


@case("telegram-secret-unset")
async def secret_unset(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    for secret in ("", " ", "with a space, but long", "ü" * 16, "fifteen-letters"):
        env = rig.env(TELEGRAM_WEBHOOK_URL="http://x/hook", TELEGRAM_WEBHOOK_SECRET=secret)
        with pytest.raises(SettingsError) as error:
            Settings.read(env, rig.folder)
        assert error.value.setting == "TELEGRAM_WEBHOOK_SECRET"


@case("telegram-dup-update")
async def dup_update(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    server = redis_server(rig.folder)
    other = Rig(rig.folder / "other", rig.telegram, rig.model, rig.model_url)
    other.folder.mkdir()
    try:
        urls = [await hooked(one, REDIS_URL=server.url) for one in (rig, other)]
        update = rig.telegram.say(PERSON, "hello")
        async with asyncio.TaskGroup() as group:
            posts = [group.create_task(post(url, update)) for url in urls * 3]
        assert {one.result() for one in posts} == {200}
        await rig.shows("ack hello")
        await rig.quiet()
        await other.quiet()
        assert rig.said() == ["ack hello"] and len(rig.model.requests) == 1
    finally:
        await other.crash()
        await rig.crash()
        server.end()


@case("telegram-forged-from")
async def forged_from(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    url = await hooked(rig)
    update = rig.telegram.say(STRANGER, "rm -rf /")
    update["message"]["from"]["id"] = PERSON
    assert await post(url, update, "guessed") == 401
    await rig.quiet()
    assert rig.model.requests == [] and not rig.telegram.made("sendMessage")


@case("telegram-restart-backlog")
async def restart_backlog(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    await rig.start()
    await rig.stop()
    for n in range(6):
        rig.telegram.say(PERSON, f"m{n}")
    await rig.start()
    await rig.shows("ack m5")
    await rig.quiet()
    assert rig.said() == [f"ack m{n}" for n in range(6)]


@case("telegram-ack-before-done")
async def ack_before_done(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    update = rig.telegram.say(PERSON, "hello")
    await rig.model.wait_inflight(1, PATIENCE)
    offset = update["update_id"] + 1
    await rig.telegram.wait(
        lambda: offset in [c.params.get("offset") for c in rig.telegram.made("getUpdates")],
        PATIENCE,
    )
    await rig.crash()
    gate.set()
    rig.model.gate = None
    await rig.start()
    await rig.shows("ack hello")
    await rig.quiet()
    assert rig.said() == ["ack hello"]


@case("body-too-large")
async def too_large(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    url = await hooked(rig)
    sent = 0

    async def pour() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(800):
            sent += 1 << 16
            yield b" " * (1 << 16)

    try:
        assert await post(url, pour()) == 413
    except OSError:  # the server closed before it heard all, as it should
        assert sent < 40 << 20
    rig.telegram.webhook = {"url": url, "secret_token": SECRET}
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")


@case("bad-utf8")
async def bad_utf8(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    url = await hooked(rig)
    for body in (b"\xff\xfe\x00", b'{"update_id": "\xc3\x28"}', b"\x80"):
        assert await post(url, body) == 400


@case("secret-rotation")
async def secret_rotation(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    """The secret is read at the start: a new one takes a restart, and then the old is out."""
    await hooked(rig)
    await rig.stop()
    url = await hooked(rig, TELEGRAM_WEBHOOK_SECRET="the-new-secret-of-it")
    update = rig.telegram.say(PERSON, "hello")
    assert await post(url, update) == 401
    assert await post(url, update, "the-new-secret-of-it") == 200
    await rig.shows("ack hello")


@case("get-burns-lockout")
async def get_no_lockout(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    url = await hooked(rig)
    for _ in range(30):
        assert await post(url, None, None, "GET") == 405
        assert await post(url, b"{}", "wrong") == 401
    assert await post(url, rig.telegram.say(PERSON, "hello")) == 200
    await rig.shows("ack hello")


@case("blank-callback-token")
async def blank_token(rig: Rig, patch: pytest.MonkeyPatch) -> None:
    rig.model.script(write("a.txt"))
    url = await hooked(rig)
    assert await post(url, rig.telegram.say(PERSON, "write it")) == 200
    card = await rig.card()
    for data in ("", " ", "q::", ":", "q::once"):
        update = rig.telegram.press(PERSON, card["message_id"], data)
        assert await post(url, update, "") == 401
        assert await post(url, update) == 200
    await rig.quiet()
    assert rig.cards() == [card] and not list(rig.home.glob("workspaces/*/a.txt"))
    assert [what for _, what, _ in await rig.audit()] == ["asked"]


# ---- the list ------------------------------------------------------------------------------


@pytest.mark.pick("an attack on approvals", 14)
@pytest.mark.parametrize("name", CASES)
async def test_attack(rig: Rig, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    await CASES[name](rig, monkeypatch)


def test_no_attack_is_listed_twice() -> None:
    assert not set(CASES) & set(ELSEWHERE)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_stands_elsewhere_is_there(name: str) -> None:
    path, _, function = ELSEWHERE[name].partition("::")
    assert f"def {function}(" in (Path(__file__).parents[3] / path).read_text()
