"""A whole gateway beside a Slack of its own."""

import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.fakes.model_server import ModelServer
from tests.fakes.slack_server import (
    APP_TOKEN,
    SECRET,
    TOKEN,
    SlackServer,
    elements,
    shown,
)
from tests.gateway.process import KEY
from tests.stories.rig import Log, Rig

Json = dict[str, Any]


DM, DEV = "D0ANN", "C0DEV"


class SlackRig(Rig):
    """A gateway that has Slack only."""

    def __init__(self, folder: Path, slack: SlackServer, model: ModelServer, url: str) -> None:
        self.folder, self.slack, self.model, self.model_url = folder, slack, model, url
        self.log, self.url, self.transport = Log(), "", "socket"
        self._task = self._gateway = None

    def env(self, **more: str) -> dict[str, str]:
        inherited = {
            "TURNKEEPER_HOME": str(self.home), "TURNKEEPER_PORT": "0",
            "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{self.model_url}/v1",
            "PRO_MODEL": "openai/fake-model", "SANDBOX_PROVIDER": "unsafe-subprocess",
            "LOCAL_MODEL_DISCOVERY": "off",
        }  # fmt: skip
        by = (
            ("SLACK_APP_TOKEN", APP_TOKEN)
            if self.transport == "socket"
            else ("SLACK_SIGNING_SECRET", SECRET)
        )
        slack = {
            "SLACK_BOT_TOKEN": TOKEN, "SLACK_API_BASE_URL": self.slack.base_url,
            "SLACK_ALLOWED_USERS": "U0ANN,U0BOB", "SLACK_ADMIN_USERS": "U0ADM", by[0]: by[1],
        }  # fmt: skip
        return inherited | slack | more

    async def start(self, **more: str) -> "SlackRig":
        await super().start(**more)
        if self.transport == "http":
            adapter = self.host.services.adapters["slack"]
            self.slack.hook = f"{self.url}slack/events"
            await self.until(lambda: adapter.last_contact)
        else:
            await self.slack.wait(lambda: self.slack.connections)
        return self

    def said(self, channel: str = DM) -> list[str]:  # type: ignore[override]
        return [shown(message) for message in self.slack.channels[channel]]

    async def shows(self, text: str, channel: str = DM) -> Json:  # type: ignore[override]
        return await self.slack.shows(channel, text)

    def streaming(self, channel: str = DM) -> list[str]:
        """How each stream there stands."""
        states = [message.get("streaming_state", "") for message in self.slack.channels[channel]]
        return [state for state in states if state]

    async def asks(self, channel: str = DM) -> Json:
        """The newest message there with buttons of a question."""

        def found() -> list[Json]:
            messages = self.slack.channels[channel]
            return [m for m in messages if any(":" in str(e.get("value", "")) for e in elements(m))]

        await self.slack.wait(found)
        return found()[-1]


@contextlib.asynccontextmanager
async def living(folder: Path) -> AsyncIterator[SlackRig]:
    model = ModelServer(KEY)
    async with SlackServer() as slack:
        rig = SlackRig(folder, slack, model, await model.start())
        watched = [logging.getLogger(name) for name in ("turnkeeper", "adapters")]
        before = [logger.level for logger in watched]
        for logger in watched:
            logger.addHandler(rig.log)
            logger.setLevel(logging.INFO)
        try:
            yield rig
            assert rig.log.bugs == []
            assert slack.violations == [], slack.violations[:3]
        finally:
            await rig.crash()
            await model.close()
            for logger, level in zip(watched, before, strict=True):
                logger.removeHandler(rig.log)
                logger.setLevel(level)
