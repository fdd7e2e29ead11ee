"""Settings of the Telegram bot."""

from dataclasses import dataclass, field

from gateway.accounts.tokens import Token
from gateway.declaration import Env, Setting, SettingTables, SharedSecret, Url

TOKEN = Setting(
    "TELEGRAM_BOT_TOKEN",
    "",
    Token(owner="a Telegram bot", looks="looks like 123456:ABC"),
    "the bot's token; without it, no Telegram",
    secret="all",
)
WEBHOOK_URL = Setting(
    "TELEGRAM_WEBHOOK_URL",
    "",
    Url(),
    "receive updates by webhook at this URL (ending in `/telegram/webhook`) instead of long "
    "polling",
    secret="password",
)
WEBHOOK_SECRET = Setting(
    "TELEGRAM_WEBHOOK_SECRET",
    "",
    SharedSecret(pattern="[A-Za-z0-9_-]{1,256}", mend="use 16 to 256 letters, digits, _ and -."),
    "required with a webhook: 16 to 256 letters, digits, `_` and `-`",
    secret="all",
)
API_BASE_URL = Setting(
    "TELEGRAM_API_BASE_URL",
    "https://api.telegram.org",
    Url(),
    "URL of your own Bot API server",
    secret="password",
)
TABLES: SettingTables = {"telegram": (TOKEN, WEBHOOK_URL, WEBHOOK_SECRET, API_BASE_URL)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Telegram:
    """One bot. With `webhook_url` it receives by webhook, otherwise by long polling."""

    token: str = field(repr=False)
    api_base_url: str = API_BASE_URL.default
    webhook_url: str = ""
    webhook_secret: str = field(default="", repr=False)


def read_telegram(env: Env) -> Telegram | None:
    """Read the bot's settings, None without a token; raises SettingsError."""
    token = TOKEN.read(env)
    if not token:
        return None
    base, url = API_BASE_URL.read(env), WEBHOOK_URL.read(env)
    secret = WEBHOOK_SECRET.read(env)
    if url and not secret:
        raise WEBHOOK_SECRET.error("", "a webhook needs one; set it.")
    return Telegram(
        token=token, api_base_url=base, webhook_url=url, webhook_secret=secret if url else ""
    )
