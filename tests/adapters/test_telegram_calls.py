"""Rich messages and their fallback, uploads, menus, a changed webhook, a server gone deaf."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.telegram import receive
from adapters.telegram.adapter import NO_CHAT, TelegramAdapter
from adapters.telegram.transport import READ_TIMEOUT
from gateway.errors import ChatClosed, Rejected, Unsent
from gateway.messages import Conversation
from gateway.texts import CATALOGUE
from gateway.views import (
    Activity,
    Media,
    MediaFile,
    PlanStep,
    PlanView,
    ReplyView,
    ReportView,
    ToolLine,
    View,
)
from gateway.wiring.features import our_commands
from gateway.wiring.menu import Menu
from tests.adapters.telegram_rig import Store, running
from tests.fakes.telegram_server import TelegramServer

ANN = Conversation(platform="telegram", account="123456", channel="7", private=True)
TOPIC = Conversation(platform="telegram", account="123456", channel="-1007", thread="5")
PLAN = PlanView(title="Trip", steps=(PlanStep(id="a", text="Book", state="running"),))
DONE = PlanView(title="Trip", steps=(PlanStep(id="a", text="Book", state="done"),), state="done")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server
        assert server.violations == []


@pytest.fixture
async def telegram(server: TelegramServer, tmp_path: Path) -> AsyncIterator[TelegramAdapter]:
    """Not running: for sends and edits."""
    adapter = TelegramAdapter(server.token, server.base_url, outputs=tmp_path)
    yield adapter
    await adapter.close()


async def send_all(adapter: TelegramAdapter, view: View, chat: Conversation = ANN) -> list[str]:
    return [await adapter.send(chat, payload) for payload in adapter.render(view, chat)]


async def deliver(adapter: TelegramAdapter, view: View, tries: int = 3) -> list[str]:
    """As the outbox does: a call that did not arrive is made again from a fresh render."""
    for _ in range(tries):
        try:
            return await send_all(adapter, view)
        except Unsent:
            continue
    raise AssertionError("never delivered")


# ---- rich messages -------------------------------------------------------------------------


async def test_a_plan_ticks_in_place(server: TelegramServer, telegram: TelegramAdapter) -> None:
    (native,) = await send_all(telegram, PLAN)
    await telegram.edit(ANN, native, telegram.render(DONE, ANN)[0])
    await telegram.edit(ANN, native, telegram.render(DONE, ANN)[0])  # not modified: harmless
    (message,) = server.chats[7]
    assert message["text"] == "☑ Trip 1/1\n☑ 1. Book"
    assert message["rich_message"]["blocks"][1]["items"][0]["is_checked"] is True
    (text,) = telegram.render(ReplyView(text="over"), ANN)
    await telegram.edit(ANN, native, text)
    assert message["text"] == "over"
    assert "rich_message" not in message


async def test_an_older_server_is_asked_once(
    server: TelegramServer, telegram: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    server.rich = False
    (native,) = await deliver(telegram, PLAN)
    await telegram.edit(ANN, native, telegram.render(DONE, ANN)[0])
    await deliver(telegram, ReportView(title="R", text="| a | b |\n|---|---|\n| 1 | 2 |"))
    texts = [message["text"] for message in server.chats[7]]
    assert texts[0] == "☑ Trip 1/1\n\n☑ 1. Book"
    assert "1 | 2" in texts[1]
    assert len(server.made("sendRichMessage")) == 1
    assert telegram.rich is False
    assert caplog.messages.count("telegram_no_rich_messages") == 1


async def test_after_a_move_to_an_older_server_an_edit_finds_it_out(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    (native,) = await send_all(telegram, PLAN)
    server.rich = False
    rich = telegram.render(DONE, ANN)[0]
    with pytest.raises(Unsent):
        await telegram.edit(ANN, native, rich)
    assert telegram.render(DONE, ANN)[0] != rich
    await telegram.edit(ANN, native, telegram.render(DONE, ANN)[0])
    assert server.chats[7][0]["text"] == "☑ Trip 1/1\n\n☑ 1. Book"


async def test_one_refused_rich_message_is_sent_plainly_and_others_stay_rich(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    line = ToolLine(call_id="1", tool="t", summary="", state="done", output="out")
    server.fail("sendRichMessage", 400, description="Bad Request: RICH_MESSAGE_INVALID")
    await deliver(telegram, Activity(lines=(line,)))
    await deliver(telegram, PLAN)
    first, second = server.chats[7]
    assert first["text"] == "☑ t\nout"
    assert "rich_message" not in first
    assert "rich_message" in second
    assert telegram.rich is True


@pytest.mark.parametrize("why", ["have no rights to send a message", "TOPIC_CLOSED"])
async def test_a_rich_message_of_a_closed_chat_is_not_made_plain(
    server: TelegramServer, telegram: TelegramAdapter, why: str
) -> None:
    server.fail("sendRichMessage", 400, description=f"Bad Request: {why}")
    with pytest.raises(ChatClosed):
        await deliver(telegram, PLAN)
    assert [call.method for call in server.calls].count("sendMessage") == 0


# ---- files out -----------------------------------------------------------------------------


def kept(folder: Path, name: str, mime: str, data: bytes = b"data") -> MediaFile:
    """A file as the gateway keeps it for sending."""
    path = folder / "t1" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return MediaFile(ref=f"t1/{name}", name=name, mime=mime, size=len(data))


async def test_a_picture_and_a_file_are_uploaded(
    server: TelegramServer, telegram: TelegramAdapter, tmp_path: Path
) -> None:
    picture = kept(tmp_path, "a.png", "image/png", b"\x89PNG")
    table = kept(tmp_path, "ä b\n.csv", "text/csv")
    view = Media(files=(picture, table), caption="123")
    natives = await send_all(telegram, view, TOPIC)
    photo, document = server.chats[-1007]
    assert [str(photo["message_id"]), str(document["message_id"])] == natives
    assert (photo["shows"], photo["text"], photo["message_thread_id"]) == ("photo", "123", 5)
    (sent,) = server.uploads[photo["message_id"]]
    assert (sent.name, sent.mime, sent.data) == ("a.png", "image/png", b"\x89PNG")
    (sent,) = server.uploads[document["message_id"]]
    assert (sent.name, sent.mime, sent.data) == ("ä b_.csv", "text/csv", b"data")
    payload = telegram.render(Media(files=(picture,), caption="new"), TOPIC)[0]
    await telegram.edit(TOPIC, natives[0], payload)
    assert photo["text"] == "new"


async def test_an_album_is_one_call_known_by_its_first_message(
    server: TelegramServer, telegram: TelegramAdapter, tmp_path: Path
) -> None:
    files = tuple(kept(tmp_path, f"{n}.png", "image/png", bytes([n])) for n in range(3))
    (native,) = await send_all(telegram, Media(files=files, caption="three"))
    shown = server.chats[7]
    assert str(shown[0]["message_id"]) == native
    assert [message["text"] for message in shown] == ["three", "", ""]
    assert [server.uploads[m["message_id"]][0].data for m in shown] == [b"\0", b"\1", b"\2"]
    assert len({message["media_group_id"] for message in shown}) == 1


async def test_pictures_that_are_no_photos_go_as_files(
    server: TelegramServer, telegram: TelegramAdapter, tmp_path: Path
) -> None:
    server.bad_photos = {"wide.png"}
    wide, good = (kept(tmp_path, name, "image/png") for name in ("wide.png", "good.png"))
    await send_all(telegram, Media(files=(wide,), caption="w"))
    await send_all(telegram, Media(files=(wide, good)))
    assert [message["shows"] for message in server.chats[7]] == ["document"] * 3
    assert server.chats[7][0]["text"] == "w"


async def test_a_moved_group_gets_the_whole_file(
    server: TelegramServer, telegram: TelegramAdapter, tmp_path: Path
) -> None:
    server.migrated[-1007] = -100_9
    where = Conversation(platform="telegram", account="123456", channel="-1007")
    await send_all(
        telegram, Media(files=(kept(tmp_path, "a.csv", "text/csv", b"x" * 99_999),)), where
    )
    (message,) = server.chats[-100_9]
    assert len(server.uploads[message["message_id"]][0].data) == 99_999


async def test_only_kept_files_are_sent(
    server: TelegramServer, telegram: TelegramAdapter, tmp_path: Path
) -> None:
    (tmp_path.parent / "secret").write_text("s")
    for ref in ("gone.csv", "../secret", "/etc/hostname"):
        one = MediaFile(ref=ref, name="a.csv", mime="text/csv", size=1)
        with pytest.raises(Rejected, match=r"a\.csv"):
            await send_all(telegram, Media(files=(one,)))
    bare = TelegramAdapter(server.token, server.base_url)
    with pytest.raises(Rejected, match="folder"):
        await send_all(bare, Media(files=(one,)))
    assert not server.made("sendDocument")


async def test_a_long_answer_comes_with_its_file(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    text = "A line with an ü in it.\n\n" * 50_000
    natives = await send_all(telegram, ReplyView(text=text))
    assert len(natives) == 2
    (sent,) = server.uploads[int(natives[-1])]
    assert (sent.name, sent.mime, sent.data.decode()) == ("answer.md", "text/markdown", text)
    words, document = telegram.render(ReplyView(text=text), ANN)
    await telegram.edit(ANN, natives[0], document)
    await telegram.edit(ANN, natives[0], words)


# ---- menus ---------------------------------------------------------------------------------


async def test_menus_by_scope_role_and_language(server: TelegramServer) -> None:
    adapter = TelegramAdapter(
        server.token, server.base_url, commands=Menu(our_commands, ["13", "no-number"])
    )
    async with running(adapter, Store()):
        await server.wait(lambda: len(server.menus) == 3 * len(CATALOGUE.list_codes()))
    private, german = server.menus["all_private_chats", ""], server.menus["all_private_chats", "de"]
    names = [one["command"] for one in private]
    assert "stop" in names
    assert "pair" not in names
    assert "pair" in [one["command"] for one in server.menus["13", ""]]
    assert server.menus["all_group_chats", ""] == private
    assert [one["command"] for one in german] == names
    said = {one["command"]: one["description"] for one in german}
    assert said["new"] == "Eine neue Unterhaltung beginnen"
    french = {one["command"]: one["description"] for one in server.menus["13", "fr"]}
    assert french["new"] == "Commencer une nouvelle conversation"
    assert {language for _, language in server.menus} == {"", *CATALOGUE.list_codes()} - {"en"}
    assert all(re.fullmatch(r"[a-z0-9_]{1,32}", name) for name in names)


async def test_a_menu_that_is_refused_holds_nothing_up(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail("setMyCommands", 400, description="Bad Request: chat not found", times=3)
    server.say(7, "one")
    adapter = TelegramAdapter(server.token, server.base_url, commands=Menu(our_commands, ["13"]))
    async with running(adapter, Store()) as store:
        await store.holds(1)
        await server.wait_calls("setMyCommands", 3)
        await server.wait_calls("getUpdates", 2)
    assert len(server.made("setMyCommands")) == 3  # what is refused in one language is in all
    assert "telegram_no_menu" in caplog.messages


async def test_a_menu_that_comes_too_fast_is_set_later(server: TelegramServer) -> None:
    server.fail("setMyCommands", 429, retry_after=0, times=2)
    adapter = TelegramAdapter(server.token, server.base_url, commands=Menu(our_commands, ["13"]))
    async with running(adapter, Store()):
        await server.wait(lambda: len(server.menus) == 3 * len(CATALOGUE.list_codes()))


@pytest.mark.parametrize("receives", ["polls", "hook"])
async def test_a_menu_without_an_answer_holds_nothing_up(
    server: TelegramServer, receives: str
) -> None:
    server.hold("setMyCommands")
    url = "https://bot.example/telegram/webhook" if receives == "hook" else ""
    adapter = TelegramAdapter(
        server.token,
        server.base_url,
        webhook_url=url,
        webhook_secret="s" * 20 if url else "",
        commands=Menu(our_commands, ["13"]),
    )
    async with running(adapter, Store()) as store:
        await server.wait_calls("setMyCommands", 1)
        async with asyncio.timeout(READ_TIMEOUT * 0.7):  # when it has not been given up yet
            if url:
                adapter.change_webhook(f"{url}/2", "t" * 20)
                await server.wait_calls("setWebhook", 2)
            else:
                for text in ("one", "two", "three"):
                    server.say(7, text)
                    await store.holds(len(store.texts) + 1)


# ---- a server gone deaf --------------------------------------------------------------------


def test_a_deaf_poll_is_noticed_within_a_minute() -> None:
    assert receive.POLL + receive.GRACE + 5 + receive.MIN_PAUSE < 60


async def test_a_poll_that_is_never_answered_is_made_anew(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "POLL", 0)
    monkeypatch.setattr(receive, "GRACE", 0.2)
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        server.say(7, "before")
        await store.holds(1)
        server.hold("getUpdates")
        held = len(server.made("getUpdates"))
        server.say(7, "meanwhile")
        await server.wait_calls("getUpdates", held + 3)  # each one given up and made again
        assert store.texts == ["before"]
        server.release("getUpdates")
        await store.holds(2)
    assert store.texts == ["before", "meanwhile"]


async def test_a_first_call_that_is_never_answered_is_made_anew(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.telegram.transport.READ_TIMEOUT", 0.1)
    server.hold("getMe")
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        server.say(7, "one")
        await server.wait_calls("getMe", 2)
        server.release("getMe")
        await store.holds(1)
    assert store.texts == ["one"]


@pytest.mark.parametrize(
    ("said", "closed"),
    [
        ("Topic_closed", True),
        ("Topic_deleted", True),
        ("Message thread not found", True),
        ("Not enough rights to send text messages to the chat", True),
        ("Chat_write_forbidden", True),
        ("Not enough rights to send photos to the chat", False),
        ("Message to be replied not found", False),
    ],
)
def test_a_chat_where_no_word_may_be_written_is_closed(said: str, closed: bool) -> None:
    assert bool(NO_CHAT.search(said)) == closed
