"""The adapter through the real discord.py against a Discord on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from adapters.discord import memory, receive, session
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.render import render
from gateway import clock
from gateway.declaration import SettingsError
from gateway.errors import Ambiguous, RateLimited, Rejected, Unsent
from gateway.messages import Attachment, ButtonPressed, Conversation, MessageReceived
from gateway.ports import Adapter
from gateway.settings import Settings
from gateway.texts import say
from gateway.views import Button, ChoiceCard, Media, MediaFile, Notice, ReplyView, View
from gateway.wiring.features import our_commands
from gateway.wiring.menu import Menu
from tests.adapters.telegram_rig import Store, running
from tests.fakes.discord_server import BOT, DiscordServer, text_of
from tests.fakes.waiting import PATIENCE
from tests.gateway.process import peopled

CHANNEL, DM = "7100", "90007"
KEYLESS = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "PRO_MODEL": ""}
TEAM = Conversation(platform="discord", account=BOT, workspace="7000", channel=CHANNEL)
THREAD = Conversation(
    platform="discord", account=BOT, workspace="7000", channel=CHANNEL, thread="7200"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (receive, session):
        monkeypatch.setattr(module, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(memory, "SAVE_EVERY", 0.0)


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
    assert server.violations == []


def made(server: DiscordServer, **more: Any) -> DiscordAdapter:
    return DiscordAdapter(server.token, server.api_url, server.gateway.url, **more)


@pytest.fixture
async def discord(server: DiscordServer, tmp_path: Path) -> AsyncIterator[DiscordAdapter]:
    """Not running: for sends and edits."""
    adapter = made(server, outputs=tmp_path)
    yield adapter
    await adapter.close()


def payload(view: View) -> bytes:
    return render(view)[-1]


# ---- sending -------------------------------------------------------------------------------


async def test_it_is_an_adapter(discord: DiscordAdapter) -> None:
    adapter: Adapter = discord
    assert adapter.last_contact == 0.0 and adapter.routes == ()


async def test_send_and_edit(server: DiscordServer, discord: DiscordAdapter) -> None:
    native = await discord.send(TEAM, payload(Notice(text="hello @everyone <@5>", quiet=True)))
    await discord.edit(TEAM, native, payload(Notice(text="goodbye", quiet=True)))
    await discord.edit(TEAM, native, payload(Notice(text="goodbye", quiet=True)))
    (shown,) = server.chats[CHANNEL]
    assert text_of(shown) == "goodbye" and shown["edits"] == 2
    assert server.made("send")[0].params["flags"] & 1 << 12, "a quiet one rings nowhere"
    await discord.send(THREAD, payload(ReplyView(text="in the thread")))
    assert [text_of(one) for one in server.chats["7200"]] == ["in the thread"]


async def test_a_limit_is_told_and_kept(server: DiscordServer, discord: DiscordAdapter) -> None:
    server.fail("send", 429, retry_after=7.5, **{"global": False})
    with pytest.raises(RateLimited) as limited:
        await discord.send(TEAM, payload(ReplyView(text="x")))
    assert limited.value.retry_after == 7.5
    with pytest.raises(RateLimited) as known:
        await discord.send(TEAM, payload(ReplyView(text="x")))
    assert 6 < known.value.retry_after <= 7.5
    assert len(server.made("send")) == 1, "Discord is not asked again before its time"
    native = await discord.send(THREAD, payload(ReplyView(text="elsewhere")))
    assert native, "another channel has a limit of its own"


async def test_a_limit_on_all_calls_is_none_on_answers_to_presses(server: DiscordServer) -> None:
    store, adapter = Store(), made(server)
    view = ChoiceCard(question="1", text="?", buttons=(Button(label="Yes", token="q:1:0"),))
    async with running(adapter, store):
        await server.wait(lambda: server.gateway.connected)
        await adapter.send(TEAM, payload(view))
        server.fail("send", 429, retry_after=60.0, **{"global": True})
        with pytest.raises(RateLimited):
            await adapter.send(TEAM, payload(view))
        with pytest.raises(RateLimited):
            await adapter.edit(TEAM, server.chats[CHANNEL][0]["id"], payload(view))
        assert not server.made("edit"), "it holds for all routes"
        pressed = await server.press(server.chats[CHANNEL][0], "Yes", 7)
        await server.wait(lambda: pressed in server.answers)
        (press,) = await store.holds(1)
        assert isinstance(press, ButtonPressed)
        await adapter.tell(TEAM, press.press, "noted")
    assert server.whispers[pressed] == ["noted"]


async def test_the_headers_of_a_used_up_bucket_are_heard(
    server: DiscordServer, discord: DiscordAdapter
) -> None:
    server.limits["edit"] = (2, 30.0)
    native = await discord.send(TEAM, payload(ReplyView(text="x")))
    for n in range(2):
        await discord.edit(TEAM, native, payload(ReplyView(text=f"x{n}")))
    with pytest.raises(RateLimited) as limited:
        await discord.edit(TEAM, native, payload(ReplyView(text="x3")))
    assert 25 < limited.value.retry_after <= 30
    assert len(server.made("edit")) == 2
    server.limits["edit"] = (1, 0.2)
    other = await discord.send(THREAD, payload(ReplyView(text="y")))
    for n in range(3):  # a short one is waited for
        await discord.edit(THREAD, other, payload(ReplyView(text=f"y{n}")))
    assert [call.status for call in server.made("edit")[2:]] == [200] * 3


async def test_no_call_is_early_after_a_short_limit(
    server: DiscordServer, discord: DiscordAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timers that end as early as they may, and a limit whose last decimals are not told."""

    async def wait(seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds - 0.001))

    monkeypatch.setattr(clock, "wait", wait)
    server.limits["edit"] = (1, 0.07049)
    native = await discord.send(TEAM, payload(ReplyView(text="x")))
    for n in range(9):
        await discord.edit(TEAM, native, payload(ReplyView(text=f"x{n}")))
    assert [call.status for call in server.made("edit")] == [200] * 9


async def test_the_other_errors(server: DiscordServer, discord: DiscordAdapter) -> None:
    server.fail("send", 403, code=50001, message="Missing Access")
    with pytest.raises(Rejected, match="Missing Access"):
        await discord.send(TEAM, payload(ReplyView(text="x")))
    server.fail("edit", 503)
    with pytest.raises(Ambiguous):
        await discord.edit(TEAM, "5", payload(ReplyView(text="x")))
    with pytest.raises(Rejected, match="Unknown Message"):
        await discord.edit(TEAM, "5", payload(ReplyView(text="x")))
    with pytest.raises(Rejected, match="not a Discord id"):
        await discord.edit(TEAM, "../5", payload(ReplyView(text="x")))
    nobody = DiscordAdapter(server.token, "http://127.0.0.1:9/api/v10")
    with pytest.raises(Unsent):
        await nobody.send(TEAM, payload(ReplyView(text="x")))
    await nobody.close()


async def test_a_lost_answer_is_asked_for_again_with_the_same_nonce(
    server: DiscordServer, discord: DiscordAdapter
) -> None:
    server.drop("send")
    server.fail("send", 500, done=True)
    native = await discord.send(TEAM, payload(ReplyView(text="once")))
    assert [one["id"] for one in server.chats[CHANNEL]] == [native]
    server.fail("send", 502, times=9)
    with pytest.raises(Ambiguous):
        await discord.send(TEAM, payload(ReplyView(text="in doubt")))
    server._faults.clear()
    await discord.send(TEAM, payload(ReplyView(text="once")))
    assert len(server.chats[CHANNEL]) == 2, "the same words again are another message"


async def test_files_go_out_and_stay_at_an_edit(
    server: DiscordServer, discord: DiscordAdapter, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_bytes(b"a,b\n")
    (tmp_path / "shot").write_bytes(b"png")
    files = (
        MediaFile(ref="kept", name="Ünder t.csv", mime="text/csv", size=4),
        MediaFile(ref="shot", name="a.png", mime="image/png", size=3),
    )
    native = await discord.send(TEAM, payload(Media(files=files, caption="Two files")))
    assert server.uploads[native] == {"nder_t.csv": b"a,b\n", "a.png": b"png"}
    await discord.edit(TEAM, native, payload(Media(files=files, caption="Two files, really")))
    assert sorted(server.uploads[native]) == ["a.png", "nder_t.csv"]
    outside = (MediaFile(ref="../x", name="x", mime="", size=1),)
    for bad in (outside, (MediaFile(ref="gone", name="x", mime="", size=1),)):
        with pytest.raises(Rejected):
            await discord.send(TEAM, payload(Media(files=bad)))


async def test_fetching(server: DiscordServer, discord: DiscordAdapter) -> None:
    server.files["a.txt"] = b"hello"
    url = f"{server.base}/files/a.txt"
    server._said["8"] = {"attachments": [{"id": "5", "url": url}, {"id": "6", "url": "http://x/"}]}
    to = BytesIO()
    await discord.fetch(Attachment(ref="7100/8/5", name="a.txt"), to)
    assert to.getvalue() == b"hello"
    for ref in ("7100/8/6", "7100/8/9", "7100/9/5", "http://evil/", "1/2/../3"):
        with pytest.raises(Rejected):
            await discord.fetch(Attachment(ref=ref, name="x"), to)
    with pytest.raises(Rejected):
        await discord.fetch(Attachment(ref="7100/8/5", name="x", size=99 << 20), to)
    assert to.getvalue() == b"hello"


# ---- receiving -----------------------------------------------------------------------------


async def test_nothing_is_lost_while_the_store_fails(server: DiscordServer) -> None:
    store = Store()
    store.failures = 3
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        for n in range(5):
            await server.say(DM, f"m{n}", 7)
        await store.holds(5)
    assert store.texts == [f"m{n}" for n in range(5)]


async def test_a_restart_goes_on_where_the_last_one_kept(
    server: DiscordServer, tmp_path: Path
) -> None:
    memory, first, second = tmp_path / "place.json", Store(), Store()
    async with running(made(server, memory=memory), first):
        await server.wait(lambda: server.gateway.connected)
        await server.say(DM, "one", 7)
        await first.holds(1)
    await server.wait(lambda: not server.gateway.connected)
    await server.say(DM, "two", 7)
    async with running(made(server, memory=memory), second):
        await second.holds(1)
        await server.say(DM, "three", 7)
        await second.holds(2)
    assert second.texts == ["two", "three"]
    memory.write_text("no JSON")
    server.gateway.refuse = 4004
    with pytest.raises(Rejected, match="token"):
        await made(server, memory=memory).run(second.accept)


async def test_a_session_that_is_over_begins_anew(server: DiscordServer, tmp_path: Path) -> None:
    memory, first, store = tmp_path / "place.json", Store(), Store()
    async with running(made(server, memory=memory), first):
        await server.wait(lambda: server.gateway.connected)
        await server.say(DM, "one", 7)
        await first.holds(1)  # it knows its session by then
    server.gateway.sessions.clear()
    adapter = made(server, memory=memory)
    async with running(adapter, store):
        await server.wait(lambda: [op for _, op in server.gateway.ops].count(6) == 1)
    assert [op for _, op in server.gateway.ops if op != 1][:2] == [2, 6]


async def test_a_wrong_token_is_final(server: DiscordServer) -> None:
    adapter = DiscordAdapter("a.b.c", server.api_url, server.gateway.url)
    with pytest.raises(Rejected, match="401"):
        await adapter.run(Store().accept)


async def test_the_intent_for_all_that_is_said(server: DiscordServer) -> None:
    store, reading = Store(), Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await server.say(CHANNEL, "just talk", 7)
        await server.say(CHANNEL, "@bot hello", 7)
        await store.holds(1)
    assert store.texts == ["hello"], "without it Discord shows only what mentions the bot"
    async with running(made(server, reads=True), reading):
        await server.wait(lambda: server.gateway.connected)
        await server.say(CHANNEL, "just talk", 7)
        (said,) = await reading.holds(1)
    assert isinstance(said, MessageReceived) and not said.addressed


async def test_presses_and_private_words(server: DiscordServer) -> None:
    store, adapter = Store(), made(server, commands=Menu(our_commands))
    view = ChoiceCard(question="1", text="?", buttons=(Button(label="Yes", token="q:1:0"),))
    async with running(adapter, store):
        await server.wait(lambda: server.gateway.connected)
        await adapter.send(TEAM, adapter.render(view, TEAM)[0])
        pressed = await server.press(server.chats[CHANNEL][0], "Yes", 7)
        (press,) = await store.holds(1)
        assert isinstance(press, ButtonPressed) and press.conversation == TEAM
        await server.wait(lambda: pressed in server.answers)
        await adapter.tell(TEAM, press.press, "not yours")
        await adapter.tell(TEAM, press.press, "")
        await adapter.tell(TEAM, "1/too-old", "lost")
        await server.wait(lambda: server.commands)
        await adapter.tell(TEAM, press.press, say("plan_off"))
        assert adapter.last_contact > 0
    assert server.whispers[pressed] == [
        "not yours",
        "Plans run at once. `/plan on` makes me show them to you first.",
    ]


async def test_a_restart_knows_the_commands_before_the_menu_is_taken(
    server: DiscordServer, tmp_path: Path
) -> None:
    said, file = Notice(text=say("jobs_no_such")), tmp_path / "discord.json"
    first = made(server, commands=Menu(our_commands), memory=file)
    assert b"`/jobs` lists" in first.render(said, TEAM)[0]
    async with running(first, Store()):
        async with asyncio.timeout(PATIENCE):
            while b"</jobs:" not in first.render(said, TEAM)[0]:
                await asyncio.sleep(0)
    number = next(one["id"] for one in server.commands if one["name"] == "jobs")
    server.fail("menu", 500, times=100)
    second = made(server, commands=Menu(our_commands), memory=file)
    async with running(second, Store()):
        await server.wait(lambda: server.made("menu")[1:])
        assert f"</jobs:{number}> lists".encode() in second.render(said, TEAM)[0]


async def test_poison_holds_nothing_up(server: DiscordServer) -> None:
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        odd = ({}, {"channel_id": 5}, {"id": [], "channel_id": "1"}, {"type": 3, "data": []})
        for event in odd:
            for kind in ("MESSAGE_CREATE", "MESSAGE_DELETE", "INTERACTION_CREATE"):
                session_of = list(server.gateway.sessions.values())[-1]
                await server.gateway.dispatch_to(session_of, kind, event)
        await server.say(DM, "after it", 7)
        await store.holds(1)
    assert store.texts == ["after it"]


async def test_an_odd_frame_costs_a_connection_and_no_event(server: DiscordServer) -> None:
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await server.say(DM, "before", 7)
        await store.holds(1)
        await server.gateway.send_raw("[]")
        await server.say(DM, "after", 7)
        await store.holds(2)
        await server.wait(lambda: 6 in [op for _, op in server.gateway.ops])
    assert store.texts[:2] == ["before", "after"]


# ---- settings ------------------------------------------------------------------------------


def test_its_settings(tmp_path: Path) -> None:
    def read(**env: str) -> Settings:
        return Settings.read({"TURNKEEPER_HOME": str(tmp_path)} | env, tmp_path)

    assert read().discord is None
    bot = read(DISCORD_BOT_TOKEN="a.b.c").discord
    assert bot is not None and bot.api_base_url == "https://discord.com/api/v10"
    assert "a.b.c" not in repr(bot)
    for name, value in (
        ("DISCORD_BOT_TOKEN", "secret-value"),
        ("DISCORD_API_BASE_URL", "ftp://x"),
        ("DISCORD_GATEWAY_URL", "https://x"),
    ):
        with pytest.raises(SettingsError, match=name) as refused:
            read(**({"DISCORD_BOT_TOKEN": "a.b.c"} | {name: value}))
        assert "secret-value" not in str(refused.value)


async def test_without_a_token_nothing_of_discord_is_imported(tmp_path: Path) -> None:
    """As `python -X importtime` tells of a whole gateway, from its start to its end."""
    async with peopled(tmp_path) as world:
        run = await world.start(PYTHONPROFILEIMPORTTIME="1", **KEYLESS)
        await run.end()
        lines = [line for line in run.log.splitlines() if line.startswith("import time:")]
        imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "adapters.telegram.adapter" in imported, "the log tells what was imported"
    foreign = ("discord", "adapters.discord", "slack_sdk", "slack_bolt", "adapters.slack")
    assert not [name for name in imported if name.startswith(foreign)]


def test_the_same_view_is_the_same_bytes() -> None:
    view = ReplyView(text="| a | b |\n|---|---|\n| 1 | 22 |\n\n# Big\n##### Small\n- [x] done")
    (one,) = render(view)
    assert json.loads(one) == {
        "flags": 1 << 15 | 1 << 2,
        "allowed_mentions": {"parse": []},
        "components": [
            {
                "type": 10,
                "content": "```\na | b\n--+---\n1 | 22\n```\n\n# Big\n**Small**\n- ☑ done",
            }
        ],
    }


async def test_where_it_may_not_react_it_is_seen_typing(
    server: DiscordServer, discord: DiscordAdapter
) -> None:
    server.fail("react", 403, code=50013, message="Missing Permissions")
    await discord.receipt(TEAM, "1")
    assert server.typing == [CHANNEL] and not server.reactions["1"]


async def test_a_message_is_taken_out_once(discord: DiscordAdapter, server: DiscordServer) -> None:
    native = await discord.send(TEAM, payload(Notice(text="One")))
    kept = await discord.send(TEAM, payload(Notice(text="Two")))
    for _ in range(2):  # as after an answer that was lost
        await discord.remove(TEAM, native)
    assert [one["id"] for one in server.chats[CHANNEL]] == [kept]
    server.fail("remove", 403, code=50013)
    with pytest.raises(Rejected):
        await discord.remove(TEAM, kept)
