"""What the settings say about our Discord bot. A ValueError's text is the mend."""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gateway.ports import SettingReader

TOKEN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discord:
    """One bot, connected to Discord's gateway."""

    token: str = field(repr=False)
    api_base_url: str = "https://discord.com/api/v10"
    gateway_url: str = "wss://gateway.discord.gg/"


def read_discord(parsed: SettingReader) -> Discord | None:
    """The bot that is set, None without a token."""
    token = parsed("DISCORD_BOT_TOKEN", _token)
    api = parsed("DISCORD_API_BASE_URL", lambda text: _url(text, "http"))
    gateway = parsed("DISCORD_GATEWAY_URL", lambda text: _url(text, "ws"))
    if not token:
        return None
    own = Discord(token=token)
    return Discord(
        token=token,
        api_base_url=api.rstrip("/") or own.api_base_url,
        gateway_url=gateway or own.gateway_url,
    )


def _token(text: str) -> str:
    if text and not TOKEN.fullmatch(text):
        raise ValueError("it has three parts with dots between them; copy it again.")
    return text


def _url(text: str, scheme: str) -> str:
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in (scheme, f"{scheme}s") or not parts.hostname or parts.port == 0:
        raise ValueError(f"must be a {scheme} or {scheme}s URL.")
    return text
