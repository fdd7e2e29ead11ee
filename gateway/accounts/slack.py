"""Settings of the Slack app."""

from dataclasses import dataclass, field

from gateway.accounts.tokens import Token
from gateway.declaration import Env, Setting, SettingTables, Url

TOKEN = Setting(
    "SLACK_BOT_TOKEN",
    "",
    Token(owner="a Slack bot", looks="begins with xoxb-"),
    "the bot token, `xoxb-…`; without it, no Slack",
    secret="all",
)
APP_TOKEN = Setting(
    "SLACK_APP_TOKEN",
    "",
    Token(owner="a Slack app", looks="begins with xapp-"),
    "the app token, `xapp-…`: receive events by Socket Mode",
    secret="all",
)
SIGNING_SECRET = Setting(
    "SLACK_SIGNING_SECRET",
    "",
    str,
    "the signing secret: without an app token, receive events over HTTP at `/slack/events`",
    secret="all",
)
API_BASE_URL = Setting(
    "SLACK_API_BASE_URL",
    "https://slack.com/api/",
    Url(),
    "base URL of the API, for a proxy or a test server",
    secret="password",
)
TABLES: SettingTables = {"slack": (TOKEN, APP_TOKEN, SIGNING_SECRET, API_BASE_URL)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """One app in one workspace. With `app_token` it receives by Socket Mode, otherwise over
    HTTP."""

    token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)
    api_base_url: str = API_BASE_URL.default


def read_slack(env: Env) -> Slack | None:
    """Read the app's settings, None without a bot token; raises SettingsError."""
    token, app = TOKEN.read(env), APP_TOKEN.read(env)
    secret, base = SIGNING_SECRET.read(env), API_BASE_URL.read(env)
    if not token:
        return None
    if not app and not secret:
        over_http = f"{SIGNING_SECRET.name} (events over HTTP)"
        raise TOKEN.error("", f"set {APP_TOKEN.name} too (Socket Mode), or {over_http}.")
    return Slack(
        token=token,
        app_token=app,
        signing_secret="" if app else secret,
        api_base_url=f"{base.rstrip('/')}/",
    )
