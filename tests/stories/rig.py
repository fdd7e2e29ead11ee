"""A whole gateway in the test's loop: the composition root itself, the real SDKs, and the servers
around it. A life ends well (`stop`) or in the middle of everything (`crash`); the next one goes on
in the same folder."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

import gateway.__main__ as root
from adapters.telegram import receive
from adapters.telegram.adapter import TelegramAdapter
from agent_core.context.data_marks import strip_marks
from agent_core.context.surroundings import strip_surroundings
from gateway.conversation.host import Host
from gateway.conversation.session import Session
from gateway.messages import Conversation
from gateway.ops import lock
from gateway.ops.http import listen
from gateway.settings import Settings
from gateway.store.sqlite import SqliteStore
from tests.fakes.model_server import Call, ModelServer
from tests.fakes.telegram_server import TelegramServer
from tests.fakes.waiting import PATIENCE
from tests.gateway.process import KEY, TOKEN

PERSON, FRIEND, ADMIN, STRANGER = 11, 12, 13, 77
GROUP = -1007
Json = dict[str, Any]


def quick(monkeypatch: pytest.MonkeyPatch, edit_interval: float = 0.05) -> None:
    """The same pacing as in life, on a shorter scale."""
    faster = replace(TelegramAdapter.abilities, edit_interval=edit_interval)
    monkeypatch.setattr(TelegramAdapter, "abilities", faster)
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)


class Log(logging.Handler):
    """What the gateway wrote into its log: events with their fields."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def named(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.records if record.msg == event]

    @property
    def bugs(self) -> list[str]:
        """Events that hold a traceback: nothing that is meant to happen does."""
        return [
            f"{record.msg}: {record.exc_info[1]!r}" for record in self.records if record.exc_info
        ]


class Rig:
    """A folder, two servers, and one gateway after another."""

    def __init__(self, folder: Path, telegram: TelegramServer, model: ModelServer, url: str):
        self.folder, self.telegram, self.model, self.model_url = folder, telegram, model, url
        self.log = Log()
        self.url = self.link = ""
        self._task: asyncio.Task[None] | None = None
        self._gateway: root.Gateway | None = None

    # ---- lives ---------------------------------------------------------------------------

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def env(self, **more: str) -> dict[str, str]:
        return {
            "TURNKEEPER_HOME": str(self.home), "TURNKEEPER_PORT": "0",
            "TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_API_BASE_URL": self.telegram.base_url,
            "TELEGRAM_ALLOWED_USERS": f"{PERSON},{FRIEND}", "TELEGRAM_ADMIN_USERS": str(ADMIN),
            "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{self.model_url}/v1",
            "PRO_MODEL": "openai/fake-model", "SANDBOX_PROVIDER": "unsafe-subprocess",
            "LOCAL_MODEL_DISCOVERY": "off",
        } | more  # fmt: skip

    async def start(self, **more: str) -> "Rig":
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = Settings.read(self.env(**more), self.folder)
        self._task = asyncio.create_task(self._live(settings, said))
        await asyncio.wait({self._task, said}, timeout=PATIENCE, return_when="FIRST_COMPLETED")
        if self._task.done():
            self._task.result()
        self.url = said.result().split("ready: ")[1].split()[0]
        self.link = said.result().splitlines()[-1].removeprefix("open ")
        return self

    async def _live(self, settings: Settings, said: asyncio.Future[str]) -> None:
        with lock.hold(settings.home), listen(settings.host, settings.port) as listening:
            self._gateway = root.Gateway(settings, said.set_result)
            await self._gateway.run(listening)

    async def sign_in(self) -> tuple[str, str]:
        """The cookie of who opens the link that `run` prints."""
        async with ClientSession() as http, http.get(self.link) as answer:
            assert answer.status == 200, await answer.text()
            name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
            return name, value

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self._gateway is not None and self._task is not None:
            self._gateway._stop.set()
            await asyncio.wait_for(self._task, PATIENCE)
        self._task = None

    async def crash(self) -> None:
        """Everything ends where it stands; leases are not given back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=PATIENCE)
        self._task = None

    # ---- looking inside ------------------------------------------------------------------

    @property
    def host(self) -> Host:
        assert self._gateway is not None and self._gateway._parts is not None
        return self._gateway._parts.host

    @property
    def store(self) -> SqliteStore:
        store = self.host.services.store
        assert isinstance(store, SqliteStore)
        return store

    @staticmethod
    def where(chat: int = PERSON) -> Conversation:
        account = TOKEN.split(":")[0]
        return Conversation(
            platform="telegram", account=account, channel=str(chat), private=chat > 0
        )

    def session(self, chat: int = PERSON) -> Session | None:
        return self.host.sessions.get(self.where(chat).id)

    def workspace(self, chat: int = PERSON) -> Path:
        return self.host.services.agent.workspace(self.where(chat))

    async def until(self, met: Callable[[], object], what: str = "") -> None:
        """For what no server sees."""
        async with asyncio.timeout(PATIENCE):
            while not met():
                await asyncio.sleep(0.005)

    async def quiet(self) -> None:
        """Until nobody has work and nothing is left to send."""
        await self.until(lambda: not self.host.sessions)

    async def audit(self) -> list[tuple[str, str, str]]:
        """(who, what, detail), oldest first."""
        rows = await self.store.audit(1000)
        return [(row.who, row.what, row.detail) for row in reversed(rows)]

    # ---- what people see and do ----------------------------------------------------------

    def said(self, chat: int = PERSON) -> list[str]:
        """What the bot's messages in the chat show now."""
        return [message["text"] for message in self.telegram.chats[chat]]

    def cards(self, chat: int = PERSON) -> list[Json]:
        """The messages of the chat that ask something with buttons."""
        return [m for m in self.telegram.chats[chat] if _tokens(m, "q:")]

    def buttons(self, chat: int = PERSON) -> list[Json]:
        """The messages of the chat that bear buttons of any kind."""
        return [m for m in self.telegram.chats[chat] if _tokens(m, "")]

    def plan(self, chat: int = PERSON) -> Json:
        """The newest message of the chat that bears a plan's buttons."""
        return [m for m in self.telegram.chats[chat] if _tokens(m, "p:")][-1]

    async def shows(self, text: str, chat: int = PERSON) -> Json:
        return await self.telegram.wait_text(chat, text, PATIENCE)

    async def card(self, chat: int = PERSON, count: int = 1) -> Json:
        """The newest open card, once there are `count` of them."""
        await self.telegram.wait(lambda: len(self.cards(chat)) >= count, PATIENCE)
        return self.cards(chat)[-1]

    def press(
        self,
        card: Json,
        label: str,
        user: int = PERSON,
        chat: int | None = None,
        *,
        old: bool = False,
    ) -> Json:
        at = card["chat"]["id"] if chat is None else chat
        return self.telegram.press(at, card["message_id"], token(card, label), user, old=old)

    async def told(self, update: Json) -> str:
        """The private word that answers a press, "" if it was only acknowledged."""
        query = update["callback_query"]["id"]
        answers = self.telegram.answers

        def mine() -> list[Json]:
            return [one for one in answers if one["callback_query_id"] == query]

        await self.telegram.wait(lambda: bool(mine()), PATIENCE)
        return str(mine()[0].get("text", ""))

    def seen(self, n: int = -1, role: str = "") -> list[str]:
        """The contents of a model request's messages, of one role if it is given; without what
        the gateway tells of their surroundings, and without the marks around data."""
        return [strip_marks(strip_surroundings(text)) for text in self.sent(n, role)]

    def sent(self, n: int = -1, role: str = "") -> list[str]:
        """As `seen`, with all that was sent."""
        messages = self.model.requests[n].body["messages"]
        return [str(m["content"]) for m in messages if not role or m["role"] == role]


def token(card: Json, label: str) -> str:
    """What the card's button carries whose label begins with `label`."""
    rows = card["reply_markup"]["inline_keyboard"]
    return next(b["callback_data"] for row in rows for b in row if b["text"].startswith(label))


def _tokens(message: Json, kind: str) -> list[str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    tokens = [b["callback_data"] for row in rows for b in row if "callback_data" in b]
    return [one for one in tokens if one.startswith(kind)]


def labels(card: Json) -> list[str]:
    return [b["text"] for row in card["reply_markup"]["inline_keyboard"] for b in row]


def mention(text: str, name: str = "test_bot") -> Json:
    """What `say` needs besides for a text that begins by naming the bot."""
    length = len(name) + 1
    return {"entities": [{"type": "mention", "offset": 0, "length": length}]}


def write(path: str, content: str = "x", **more: str) -> Call:
    return Call("write_file", f'{{"path": "{path}", "content": "{content}"}}', **more)


def run(command: str, **more: object) -> Call:
    return Call("run_command", json.dumps({"command": command} | more))


@contextlib.asynccontextmanager
async def living(folder: Path, strict: bool = True) -> AsyncIterator[Rig]:
    """A rig whose gateway has not started. At the end nothing may be left of it, no call may
    break the platform's schema, and (`strict`) no bug may be in the log."""
    model = ModelServer(KEY)
    folder.mkdir(exist_ok=True)
    async with TelegramServer(token=TOKEN) as telegram:
        rig = Rig(folder, telegram, model, await model.start())
        watched: Sequence[logging.Logger] = tuple(
            logging.getLogger(name) for name in ("turnkeeper", "adapters")
        )
        before = [logger.level for logger in watched]
        for logger in watched:
            logger.addHandler(rig.log)
            logger.setLevel(logging.INFO)
        try:
            yield rig
            if strict:
                assert rig.log.bugs == []
            assert telegram.violations == []
        finally:
            await rig.crash()
            await model.close()
            for logger, level in zip(watched, before, strict=True):
                logger.removeHandler(rig.log)
                logger.setLevel(level)
