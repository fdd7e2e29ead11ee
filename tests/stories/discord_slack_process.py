"""A gateway with Discord and Slack as a process of its own, and the servers around it."""

from pathlib import Path

from agent_core.context.surroundings import strip_surroundings
from tests.fakes.discord_server import DiscordServer, text_of
from tests.fakes.model_server import Json, ModelServer, Say, Slow, Step
from tests.fakes.slack_server import APP_TOKEN, TOKEN, SlackServer, shown
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import Run, World

ANN = 11
DM, DEV, PRIVATE = f"9000{ANN}", "C0DEV", "D0ANN"
THREAD = "1700000000.000001"
SOON = 20.0
"""Seconds that anything may take on a busy machine."""
LONG = "\n\n".join(f"line {n}, with some words of its own." for n in range(30))


class Chats(World):
    """Discord and Slack and no other; a model that says the same again when it is asked again."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        super().__init__(folder, TelegramServer(), model)
        self.discord, self.slack = DiscordServer(), SlackServer()
        self.slowly = True
        model.script(*[self._tells] * 500)

    def _tells(self, body: Json) -> Step:
        """The number that was asked for, and a long text."""
        asked = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        whole = f"Number {strip_surroundings(asked).split()[-1]}: once upon a time.\n\n{LONG}\n\nThe end."
        return Slow(0.02, whole) if self.slowly else Say(whole, words=9)

    def env(self, **more: str) -> dict[str, str]:
        found = super().env(
            DISCORD_BOT_TOKEN=self.discord.token, DISCORD_API_BASE_URL=self.discord.api_url,
            DISCORD_GATEWAY_URL=self.discord.gateway.url, DISCORD_ADMIN_USERS=str(ANN),
            SLACK_BOT_TOKEN=TOKEN, SLACK_APP_TOKEN=APP_TOKEN, SLACK_ADMIN_USERS="U0ANN",
            SLACK_API_BASE_URL=self.slack.base_url, LOCAL_MODEL_DISCOVERY="off",
        )  # fmt: skip
        ours = {name: value for name, value in found.items() if not name.startswith("TELEGRAM")}
        return ours | more

    async def live(self) -> Run:
        run = await self.start()
        await self.discord.wait(lambda: self.discord.gateway.connected, SOON)
        await self.slack.wait(lambda: self.slack.connections, SOON)
        return run

    def in_discord(self) -> list[str]:
        return [text_of(one) for one in self.discord.chats[DM]]

    def in_slack(self, channel: str = PRIVATE) -> list[str]:
        return [shown(one) for one in self.slack.channels[channel]]

    def shown(self) -> dict[str, list[str]]:
        """What stands in each chat."""
        return {
            "Discord": self.in_discord(), "Slack": self.in_slack(DEV), "thread": self.in_slack()
        }  # fmt: skip

    async def all_show(self, text: str, times: int = 1) -> None:
        """Until `text` stands in each chat so many times."""

        def stands(chat: str) -> bool:
            return "".join(self.shown()[chat]).count(text) >= times

        await self.discord.wait(lambda: stands("Discord"), SOON)
        for chat in ("Slack", "thread"):
            await self.slack.wait(lambda chat=chat: stands(chat), SOON)

    async def discord_shows(self, text: str) -> None:
        await self.discord.wait(lambda: any(text in one for one in self.in_discord()), SOON)

    async def slack_shows(self, text: str, channel: str = PRIVATE) -> None:
        await self.slack.wait(lambda: any(text in one for one in self.in_slack(channel)), SOON)
