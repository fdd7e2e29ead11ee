"""Every adapter folder passes the contract, on a server that speaks its platform's protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import adapters
from adapters.discord import receive, session
from adapters.discord.adapter import DiscordAdapter
from adapters.slack import receive as slack_receive
from adapters.slack.adapter import SlackAdapter
from adapters.telegram import receive as telegram_receive
from adapters.telegram.adapter import TelegramAdapter
from adapters.web.render import draw
from examples.plain_adapter import PlainAdapter
from gateway.accounts.slack import Slack
from gateway.messages import Conversation, read_conversation
from gateway.ports import Adapter, Shown
from gateway.views import View
from gateway.wiring.features import our_commands
from gateway.wiring.menu import Menu
from tests.adapters import slack_rig, telegram_rig
from tests.contracts.adapter_contract import (
    YES,
    AdapterCase,
    AdapterContract,
    RecallingContract,
    SendingContract,
)
from tests.fakes import slack_server
from tests.fakes.discord_server import BOT, DiscordServer, text_of
from tests.fakes.plain import PlainServer, plain
from tests.fakes.slack_server import SlackServer
from tests.fakes.telegram_server import TelegramServer
from tests.fakes.telegram_wire import Json
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_server import WebServer, serve


def _button(words: str) -> str:
    """A command on the page."""
    about = f'class="command" data-command="/{words}" data-runs="true"'
    return f'<button type="button" {about}>/{words}</button>'


NOWHERE = "http://127.0.0.1:1"
CHAT = "/api/conversations/c1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (receive, session, telegram_receive, slack_receive):
        if hasattr(module, "MIN_PAUSE"):
            monkeypatch.setattr(module, "MIN_PAUSE", 0.01)


async def until(met: Callable[[], object]) -> None:
    """For what no server sees."""
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0)


class TelegramCase(AdapterCase):
    writes = ("/help", "/stop all")
    where = Conversation(platform="telegram", account="123456", channel="7", private=True)

    def __init__(self, server: TelegramServer) -> None:
        super().__init__()
        self.server = server
        self.adapter = self._adapter = TelegramAdapter(server.token, server.base_url)
        self._said: Json = {}

    @asynccontextmanager
    async def absent(self) -> AsyncIterator[Adapter]:
        adapter = TelegramAdapter(self.server.token, f"{NOWHERE}/bot")
        yield adapter
        await adapter.close()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        async with telegram_rig.running(self._adapter, self.store):
            await self.server.wait_calls("getUpdates")
            yield

    async def say(self, text: str) -> None:
        self._said = self.server.say(7, text)

    async def again(self) -> None:
        self.server.redeliver(self._said)

    async def press(self, label: str) -> None:
        newest = self.server.chats[7][-1]
        rows = newest["reply_markup"]["inline_keyboard"]
        tokens = {one["text"]: one["callback_data"] for row in rows for one in row}
        self.server.press(7, newest["message_id"], tokens[label])

    def shown(self) -> list[str]:
        return [one["text"] for one in self.server.chats[7]]

    def fails(self, how: str, told: Any = 7.0) -> None:
        status = {"limited": 429, "lost": 502, "refused": 403}[how]
        self.server.fail("sendMessage", status, retry_after=told if how == "limited" else None)

    def delete_messages(self) -> None:
        self.server.chats[7].clear()

    def revoke_token(self) -> None:
        self.server.token = "1:other"


@asynccontextmanager
async def telegram(_folder: Path) -> AsyncIterator[AdapterCase]:
    async with TelegramServer() as server:
        case = TelegramCase(server)
        yield case
        await case._adapter.close()
    assert server.violations == []


class DiscordCase(AdapterCase):
    writes = (f"</help:{7_000 + list(our_commands()).index('help')}>", "`/stop all`")
    where = Conversation(platform="discord", account=BOT, channel="90007", private=True)

    def __init__(self, server: DiscordServer) -> None:
        super().__init__()
        self.server = server
        self.adapter = self._adapter = DiscordAdapter(
            server.token, server.api_url, server.gateway.url, Menu(our_commands)
        )

    @asynccontextmanager
    async def absent(self) -> AsyncIterator[Adapter]:
        adapter = DiscordAdapter(self.server.token, NOWHERE)
        yield adapter
        await adapter.close()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        async with telegram_rig.running(self._adapter, self.store):
            await self.server.wait(lambda: self.server.gateway.connected and self.server.commands)
            yield

    async def say(self, text: str) -> None:
        await self.server.say("90007", text, 7)

    async def again(self) -> None:
        await self.server.gateway.again([-1])

    async def press(self, label: str) -> None:
        await self.server.press(self.server.chats["90007"][-1], label, 7)

    def shown(self) -> list[str]:
        return [text_of(one) for one in self.server.chats["90007"]]

    def fails(self, how: str, told: Any = 7.0) -> None:
        match how:
            case "limited":
                self.server.fail("send", 429, retry_after=told, **{"global": False})
            case "lost":
                self.server.fail("send", 502, times=3)
            case _:
                self.server.fail("send", 403, code=50001)

    def delete_messages(self) -> None:
        self.server.chats["90007"].clear()

    def revoke_token(self) -> None:
        self.server.token = "other"


@asynccontextmanager
async def discord(_folder: Path) -> AsyncIterator[AdapterCase]:
    async with DiscordServer() as server:
        case = DiscordCase(server)
        yield case
        await case._adapter.close()
    assert server.violations == []


class SlackCase(AdapterCase):
    writes = ("`/turnkeeper help`", "`/turnkeeper stop all`")
    where = slack_rig.where()

    def __init__(self, server: SlackServer) -> None:
        super().__init__()
        self.server = server
        self.adapter = self._adapter = slack_rig.adapter_of(server)
        self._said: Json = {}

    @asynccontextmanager
    async def absent(self) -> AsyncIterator[Adapter]:
        adapter = SlackAdapter(
            Slack(token=slack_server.TOKEN, app_token="xapp-1", api_base_url=f"{NOWHERE}/api/")
        )
        yield adapter
        await adapter._wire.close()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        async with telegram_rig.running(self._adapter, self.store):
            await self.server.wait(lambda: self.server.connections)
            yield

    async def say(self, text: str) -> None:
        """Slack delivers again what is not acknowledged."""
        self._said = self.server.say("D0ANN", text)
        while self.store.failures:
            left = self.store.failures
            await until(lambda left=left: self.store.failures < left)
            self.server.again(self._said)

    async def again(self) -> None:
        self.server.again(self._said)

    async def press(self, label: str) -> None:
        self.server.press(self.server.channels["D0ANN"][-1], label)

    def shown(self) -> list[str]:
        return [slack_server.shown(one) for one in self.server.channels["D0ANN"]]

    def fails(self, how: str, told: Any = 7.0) -> None:
        match how:
            case "limited":
                self.server.fail("chat.postMessage", 429, "ratelimited", retry_after=told)
            case "lost":
                self.server.fail("chat.postMessage", 503)
            case _:
                self.server.fail("chat.postMessage", error="channel_not_found")

    def delete_messages(self) -> None:
        self.server.channels["D0ANN"].clear()

    def revoke_token(self) -> None:
        for method in ("chat.postMessage", "chat.update"):
            self.server.fail(method, error="token_revoked")


@asynccontextmanager
async def slack(_folder: Path) -> AsyncIterator[AdapterCase]:
    async with SlackServer() as server:
        case = SlackCase(server)
        yield case
        await case._adapter._wire.close()
    assert server.violations == []


class WebCase(AdapterCase):
    writes = (_button("help"), _button("stop all"))

    def __init__(self, server: WebServer) -> None:
        super().__init__()
        self.server, self.adapter = server, server.adapter
        self.where = read_conversation(server.address("c1"))
        server.backend.accept = self.store.accept  # type: ignore[method-assign]
        self._message: dict[str, str] = {}
        self._keys = 0

    def absent(self) -> AbstractAsyncContextManager[Adapter]:
        raise NotImplementedError

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        async with telegram_rig.running(self.server.adapter, self.store):
            await until(lambda: self.adapter.last_contact)
            yield

    async def say(self, text: str) -> None:
        """A page asks again with the same key until its message is taken."""
        self._keys += 1
        self._message = {"text": text, "key": f"k{self._keys}"}
        while await self._post("messages", self._message) != 202:
            pass

    async def again(self) -> None:
        assert await self._post("messages", self._message) == 202

    async def press(self, label: str) -> None:
        assert label == "Yes"
        assert await self._post("answers", {"token": YES, "key": "p1"}) == 202

    def draw(self, view: View) -> str:
        """The page draws what the API gives."""
        shown = draw(Shown(rev=1, turn="t", name="v", position=1, at=0.0, view=view))
        return f"{shown.html} {shown.view}"

    async def _post(self, what: str, body: object) -> int:
        async with self.server.http.post(f"{CHAT}/{what}", json=body) as answer:
            return answer.status


@asynccontextmanager
async def web(folder: Path) -> AsyncIterator[AdapterCase]:
    async with serve(folder) as server:
        yield WebCase(server)


class PlainCase(AdapterCase):
    writes = ("/help", "/stop all")
    where = Conversation(platform="plain", account="bot", channel="ann", private=True)

    def __init__(self, server: PlainServer) -> None:
        super().__init__()
        self.server = server
        self.adapter = self._adapter = PlainAdapter(server.url)

    @asynccontextmanager
    async def absent(self) -> AsyncIterator[Adapter]:
        yield PlainAdapter(NOWHERE)

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        async with telegram_rig.running(self._adapter, self.store):
            yield

    async def say(self, text: str) -> None:
        self._said = self.server.do(text)

    async def again(self) -> None:
        self.server.deliver(self._said)

    async def press(self, label: str) -> None:
        number, newest = list(self.server.messages.items())[-1]
        buttons = newest["buttons"]
        assert isinstance(buttons, dict)
        self.server.do(buttons[label], number)

    def shown(self) -> list[str]:
        return [str(one["text"]) for one in self.server.messages.values()]

    def fails(self, how: str, told: Any = 7.0) -> None:
        self.server.fault = {"limited": (429, str(told)), "lost": (502, ""), "refused": (403, "")}[
            how
        ]

    def delete_messages(self) -> None:
        self.server.messages.clear()

    def revoke_token(self) -> None:
        self.server.revoked = True


@asynccontextmanager
async def plainly(_folder: Path) -> AsyncIterator[AdapterCase]:
    async with plain() as server:
        yield PlainCase(server)


class TestPlain(SendingContract):
    """The smallest one: no folder, and nothing of it is shipped."""

    case = staticmethod(plainly)


class TestTelegram(SendingContract):
    case = staticmethod(telegram)


class TestDiscord(RecallingContract):
    case = staticmethod(discord)


class TestSlack(SendingContract):
    case = staticmethod(slack)


class TestWeb(AdapterContract):
    case = staticmethod(web)


def test_each_folder_passes_the_contract() -> None:
    root = Path(adapters.__path__[0])
    folders = {one.parent.name for one in root.glob("*/adapter.py")}
    passed = {one.removeprefix("Test").lower() for one in globals() if one.startswith("Test")}
    assert folders == passed - {"plain"}
    for folder in folders:
        files = [one for one in (root / folder).rglob("*.py") if one.name != "__init__.py"]
        assert 3 <= len(files) <= 24, f"{folder}: a platform is a folder of a few files"
