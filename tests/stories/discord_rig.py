"""A gateway in the test's loop with Discord as its only chat."""

import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import discord
import pytest
from msgspec.structs import replace

from adapters.discord import memory, receive, session
from adapters.discord.adapter import DiscordAdapter
from gateway.messages import Conversation
from tests.fakes.discord_server import BOT, DiscordServer, labels, text_of
from tests.fakes.model_server import ModelServer
from tests.gateway.process import KEY
from tests.stories.rig import Log, Rig

Json = dict[str, Any]
PERSON, FRIEND, ADMIN, STRANGER = 11, 12, 13, 77
DM, CHANNEL, THREAD = f"9000{PERSON}", "7100", "7200"


class DiscordRig(Rig):
    """As its parent, with Discord as the only chat."""

    def __init__(self, folder: Path, discord: DiscordServer, model: ModelServer, url: str) -> None:
        self.folder, self.discord, self.model, self.model_url = folder, discord, model, url
        self.log, self.url = Log(), ""
        self._task, self._gateway = None, None

    def env(self, **more: str) -> dict[str, str]:
        return {
            "TURNKEEPER_HOME": str(self.home), "TURNKEEPER_PORT": "0",
            "DISCORD_BOT_TOKEN": self.discord.token, "DISCORD_API_BASE_URL": self.discord.api_url,
            "DISCORD_GATEWAY_URL": self.discord.gateway.url,
            "DISCORD_ALLOWED_USERS": f"{PERSON},{FRIEND}", "DISCORD_ADMIN_USERS": str(ADMIN),
            "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{self.model_url}/v1",
            "PRO_MODEL": "openai/fake-model", "SANDBOX_PROVIDER": "unsafe-subprocess",
            "LOCAL_MODEL_DISCOVERY": "off",
        } | more  # fmt: skip

    async def start(self, **more: str) -> "DiscordRig":
        await super().start(**more)
        await self.discord.wait(lambda: self.discord.gateway.connected)
        return self

    @property
    def dm(self) -> Path:
        """The folder in which the agent works for the person."""
        where = Conversation(platform="discord", account=BOT, channel=DM, private=True)
        return self.host.services.agent.workspace(where)

    async def carded(self, channel: str = DM, label: str = "Approve once") -> Json:
        """The newest message with that button."""

        def found() -> list[Json]:
            return [one for one in self.discord.chats[channel] if label in labels(one)]

        await self.discord.wait(found)
        return found()[-1]

    def read(self, channel: str = DM) -> list[str]:
        return [text_of(one) for one in self.discord.chats[channel]]


async def _at_once(_client: object, _shard: int | None, *, initial: bool = False) -> None:
    """The SDK waits 5 seconds before a further identify."""


@contextlib.asynccontextmanager
async def opened(
    server: DiscordServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DiscordRig]:
    """A rig whose gateway has not started. At the end no call may have broken Discord's rules, and
    no bug may be in the log."""
    monkeypatch.setattr(
        DiscordAdapter, "abilities", replace(DiscordAdapter.abilities, edit_interval=0.05)
    )
    for module in (receive, session):
        monkeypatch.setattr(module, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(memory, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(discord.Client, "before_identify_hook", _at_once)
    model, loggers = ModelServer(KEY), [logging.getLogger(n) for n in ("turnkeeper", "adapters")]
    async with server:
        made = DiscordRig(folder, server, model, await model.start())
        for logger in loggers:
            logger.addHandler(made.log)
            logger.setLevel(logging.INFO)
        try:
            yield made
            assert made.log.bugs == []
            assert server.violations == []
        finally:
            await made.crash()
            await model.close()
            for logger in loggers:
                logger.removeHandler(made.log)
                logger.setLevel(logging.NOTSET)
