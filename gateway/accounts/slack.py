"""What the settings say about our Slack app. A ValueError's text is the mend."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gateway.ports import SettingReader

TOKEN = re.compile(r"xox[be][A-Za-z0-9.-]+")
APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """One app in one workspace. With `app_token` it receives by Socket Mode, else over HTTP."""

    token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)
    api_base_url: str = "https://slack.com/api/"


def read_slack(parsed: SettingReader) -> Slack | None:
    """The app that is set, None without a bot token."""
    token = parsed("SLACK_BOT_TOKEN", _token)
    app = parsed("SLACK_APP_TOKEN", _app_token)
    secret = parsed("SLACK_SIGNING_SECRET", str)
    base = parsed("SLACK_API_BASE_URL", _url)
    if not token:
        return None
    if not app and not secret:
        parsed("SLACK_BOT_TOKEN", _alone)
    own = Slack(token=token, app_token=app, signing_secret="" if app else secret)
    if not base:
        return own
    return Slack(
        token=token,
        app_token=app,
        signing_secret=own.signing_secret,
        api_base_url=f"{base.rstrip('/')}/",
    )


def _token(text: str) -> str:
    if text and not TOKEN.fullmatch(text):
        raise ValueError("a bot token begins with xoxb-; copy it again.")
    return text


def _app_token(text: str) -> str:
    if text and not APP_TOKEN.fullmatch(text):
        raise ValueError("an app token begins with xapp-; copy it again.")
    return text


def _alone(_text: str) -> str:
    raise ValueError(
        "set SLACK_APP_TOKEN too (Socket Mode), or SLACK_SIGNING_SECRET (events over HTTP)."
    )


def _url(text: str) -> str:
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("must be an http or https URL.")
    return text
