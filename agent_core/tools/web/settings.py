"""What is set about the web: who is asked for search results, and which hosts of the operator's
own network may be read."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from agent_core.models.providers import SettingsError, is_http, is_key

Provider = Literal["ddgs", "tavily", "brave", "exa", "searxng"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
KEYED: dict[Provider, str] = {
    "tavily": "https://api.tavily.com",
    "brave": "https://api.search.brave.com",
    "exa": "https://api.exa.ai",
}
"""Providers that need a key, in the order in which a key alone decides, and where they are."""

_PLACE = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\]):(\d{1,5})")


class WebSettings(BaseModel):
    """`provider` is asked at `url` with `key`; `allowed`: places (`host:port`) that the guarded
    fetch lets through wherever they are."""

    model_config = ConfigDict(frozen=True)

    provider: Provider = "ddgs"
    url: str = ""
    key: str = Field(default="", repr=False)
    allowed: frozenset[str] = frozenset()

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "WebSettings":
        """The settings in `env`; raises SettingsError."""
        provider = _provider(env)
        key = _read(env, f"{provider}_api_key") if provider in KEYED else ""
        if provider in KEYED and not key:
            raise SettingsError("SEARCH_PROVIDER", provider, f"set {provider.upper()}_API_KEY too.")
        if not is_key(key):
            mend = "holds characters that no key has; copy it again."
            raise SettingsError(f"{provider.upper()}_API_KEY", "", mend)
        return cls(
            provider=provider,
            url=_url(env, provider),
            key=key,
            allowed=frozenset(
                map(_place, filter(None, _read(env, "web_allowed_hosts").split(",")))
            ),
        )


def _provider(env: Mapping[str, str]) -> Provider:
    """What was chosen, else the first one that has what it needs."""
    chosen = _read(env, "search_provider").lower()
    if chosen and chosen not in PROVIDERS:
        raise SettingsError("SEARCH_PROVIDER", chosen, f"use one of: {', '.join(PROVIDERS)}.")
    if chosen:
        return chosen
    keyed = (name for name in KEYED if _read(env, f"{name}_api_key"))
    return next(keyed, "searxng" if _read(env, "searxng_url") else "ddgs")


def _url(env: Mapping[str, str], provider: Provider) -> str:
    if provider == "ddgs":
        return ""
    setting = "searxng_url" if provider == "searxng" else f"{provider}_base_url"
    url = _read(env, setting) or KEYED.get(provider, "")
    if not url:
        raise SettingsError("SEARCH_PROVIDER", provider, "set SEARXNG_URL too.")
    if not is_http(url):
        raise SettingsError(setting.upper(), url, "must be an http or https URL.")
    return url.rstrip("/")


def _place(text: str) -> str:
    """`host:port` as the fetch compares it."""
    found = _PLACE.fullmatch(text.strip().lower())
    if found is None or not 0 < int(found[2]) < 65_536:
        raise SettingsError(
            "WEB_ALLOWED_HOSTS", text.strip(), "write host:port, with commas between."
        )
    return f"{found[1].strip('[]')}:{int(found[2])}"


def _read(env: Mapping[str, str], name: str) -> str:
    return env.get(name.upper(), "").strip()
