"""Settings of the Discord bot."""

from dataclasses import dataclass, field

from gateway.accounts.tokens import Token
from gateway.declaration import Env, Setting, SettingTables, Url

TOKEN = Setting(
    "DISCORD_BOT_TOKEN",
    "",
    Token(owner="a Discord bot", looks="has three parts with dots between them"),
    "the bot's token; without it, no Discord",
    secret="all",
)
API_BASE_URL = Setting(
    "DISCORD_API_BASE_URL",
    "https://discord.com/api/v10",
    Url(),
    "base URL of the API, for a proxy or a test server",
    secret="password",
)
GATEWAY_URL = Setting(
    "DISCORD_GATEWAY_URL",
    "wss://gateway.discord.gg/",
    Url(scheme="ws"),
    "URL of the gateway for new sessions; a resumed session uses the URL that Discord returned",
    secret="password",
)
TABLES: SettingTables = {"discord": (TOKEN, API_BASE_URL, GATEWAY_URL)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Discord:
    """One bot, connected to Discord's gateway."""

    token: str = field(repr=False)
    api_base_url: str = API_BASE_URL.default
    gateway_url: str = GATEWAY_URL.default


def read_discord(env: Env) -> Discord | None:
    """Read the bot's settings, None without a token; raises SettingsError."""
    token, api, gateway = (setting.read(env) for setting in (TOKEN, API_BASE_URL, GATEWAY_URL))
    if not token:
        return None
    return Discord(token=token, api_base_url=api.rstrip("/"), gateway_url=gateway)
