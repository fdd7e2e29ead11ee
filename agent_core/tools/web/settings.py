"""Settings of the web: the search provider, and readable hosts of the operator's own network."""

import re
from typing import Literal, get_args

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables, WrongValue
from agent_core.config.kinds import Choice, Url, parse_key, split_commas
from agent_core.tools.web.hosts import read_hosts

Provider = Literal["ddgs", "tavily", "brave", "exa", "searxng"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
KEYED: dict[Provider, str] = {
    "tavily": "https://api.tavily.com",
    "brave": "https://api.search.brave.com",
    "exa": "https://api.exa.ai",
}
"""Providers that need a key, in the order in which a key alone decides, and where they are."""

_PLACE = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\]):(\d{1,5})")


def parse_places(text: str) -> frozenset[str]:
    """`host:port`, with commas between, each as the fetch compares it."""
    return frozenset(map(_parse_place, split_commas(text)))


def _parse_place(text: str) -> str:
    found = _PLACE.fullmatch(text.lower())
    if found is None or not 0 < int(found[2]) < 65_536:
        raise WrongValue("write host:port, with commas between.", text)
    return f"{found[1].strip('[]')}:{int(found[2])}"


def parse_hosts(text: str) -> frozenset[str]:
    """Hosts and words for several, with commas between."""
    return frozenset(read_hosts(split_commas(text)))


PROVIDER = Setting(
    "SEARCH_PROVIDER",
    None,
    Choice(words=PROVIDERS),
    "`tavily`, `brave`, `exa`, `searxng`, or `ddgs` (no key)",
    default_text="the first with a key",
)
KEYS = {
    name: Setting(
        f"{name.upper()}_API_KEY", "", parse_key, "API keys of search providers", secret="all"
    )
    for name in KEYED
}
URLS = {
    name: Setting(
        f"{name.upper()}_BASE_URL",
        url,
        Url(),
        "base URL, for example of your proxy",
        secret="password",
        default_text="the provider's own",
    )
    for name, url in KEYED.items()
}
SEARXNG = Setting(
    "SEARXNG_URL",
    "",
    Url(),
    "URL of your SearXNG, with its JSON format enabled",
    secret="password",
)
ALLOWED = Setting(
    "WEB_ALLOWED_HOSTS",
    frozenset[str](),
    parse_places,
    "`host:port`, separated by commas: addresses in your own network that may be read. All other "
    "non-public addresses are refused",
)
OPEN = Setting(
    "SANDBOX_HOSTS",
    frozenset[str](),
    parse_hosts,
    "hosts that commands may access without approval, separated by commas: names, `name:port`, "
    "or the presets `packages` and `git` for the usual package indexes and git hosts",
)
TABLES: SettingTables = {
    "running": (OPEN,),
    "web": (PROVIDER, *KEYS.values(), *URLS.values(), SEARXNG, ALLOWED),
}


class WebSettings(Struct, frozen=True, kw_only=True):
    """`provider` is asked at `url` with `key`; `allowed`: places (`host:port`) that the guarded
    fetch admits wherever they are; `open`: hosts that commands reach unasked."""

    provider: Provider = "ddgs"
    url: str = ""
    key: str = ""
    allowed: frozenset[str] = ALLOWED.default
    open: frozenset[str] = OPEN.default

    def __repr__(self) -> str:
        return f"WebSettings(provider={self.provider!r})"

    @classmethod
    def read(cls, env: Env) -> "WebSettings":
        """The settings in `env`; raises SettingsError."""
        provider = PROVIDER.read(env) or _pick_provider(env)
        key, url = "", ""
        if provider in KEYED:
            key, url = KEYS[provider].read(env), URLS[provider].read(env)
            if not key:
                raise PROVIDER.error(provider, f"set {KEYS[provider].name} too.")
        elif provider == "searxng":
            url = SEARXNG.read(env)
            if not url:
                raise PROVIDER.error(provider, f"set {SEARXNG.name} too.")
        return cls(
            provider=provider,
            url=url.rstrip("/"),
            key=key,
            allowed=ALLOWED.read(env),
            open=OPEN.read(env),
        )


def _pick_provider(env: Env) -> Provider:
    """Return the first provider that has what it needs."""
    keyed = (name for name in KEYED if KEYS[name].text(env))
    return next(keyed, "searxng" if SEARXNG.text(env) else "ddgs")
