"""Who can be called: the providers known by name, compatible ones, and how each is spoken to.

Values only; `agent_core.settings` reads them from the environment.
"""

import json
from dataclasses import dataclass, field
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

Tier = Literal["max", "pro", "flash"]
TIERS: tuple[Tier, ...] = get_args(Tier)
ApiMode = Literal["chat_completions", "codex_responses", "anthropic_messages", "generate_content"]
API_MODES: tuple[ApiMode, ...] = get_args(ApiMode)

OWN_MODES: dict[str, tuple[ApiMode, ...]] = {
    "openai": ("chat_completions", "codex_responses"),
    "gemini": ("chat_completions", "generate_content"),
}
"""What providers known by name speak besides what they speak by default, which is the first."""

BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai/",
}
"""Providers known by name, in the order in which a key alone decides."""

DEFAULT_MODELS: dict[str, dict[Tier, str]] = {
    "openai": {"max": "gpt-5.6-sol", "pro": "gpt-5.6-terra", "flash": "gpt-5.6-luna"},
    "anthropic": {
        "max": "claude-opus-5-5",
        "pro": "claude-sonnet-5-5",
        "flash": "claude-haiku-5-5",
    },
    "gemini": {
        "max": "gemini-3.1-pro-preview",
        "pro": "gemini-3.8-flash",
        "flash": "gemini-3.5-flash-lite",
    },
}
"""What a tier means when only a key is set: ids that openai 3.54 and anthropic 2.12 list, and
Google's own pages (November 2026)."""

TIMEOUT = 300.0


class SettingsError(Exception):
    """A setting cannot work; the text names it, its value (never a secret's) and the mend."""

    def __init__(self, setting: str, value: str, mend: str) -> None:
        shown = f"{setting}={value}" if value else setting
        super().__init__(f"{shown}: {mend}")
        self.setting = setting
        self.value = value
        self.mend = mend


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a provider is and how it is spoken to. `timeout` is in seconds without a byte."""

    provider: str
    base_url: str
    api_key: str = field(repr=False)
    key_setting: str = "the API key"
    """What a person has to look at when the key is refused."""
    timeout: float = TIMEOUT
    retries: int = 2
    """Tries after the first one, of all kinds together."""
    cache_key: bool | None = None
    """Send `prompt_cache_key`; None: only to OpenAI itself, others may refuse it."""
    thinking: bool | None = None
    """Ask for visible reasoning; None: say nothing about it."""
    api_mode: ApiMode = "chat_completions"


class TierModels(BaseModel):
    """The models of a compatible provider."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    max: str = ""
    pro: str = ""
    flash: str = ""


class CompatibleProvider(BaseModel):
    """A provider at `base_url`. `api_key`: one, or several with commas or as a list. `api_mode`:
    what it speaks; "": see `mode`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, pattern=r"^[^/\s,]+$")
    base_url: str
    api_key: str = Field(default="", repr=False)
    tier_models: TierModels = TierModels()
    enable_thinking: bool | None = None
    api_mode: str = ""

    @property
    def mode(self) -> ApiMode:
        """What was set, else what its address speaks."""
        return cast(ApiMode, self.api_mode) if self.api_mode else detect_api_mode(self.base_url)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys in the order in which they are tried; a server without keys takes any."""
        return split_keys(self.api_key) or ("none",)

    @field_validator("api_mode")
    @classmethod
    def _is_spoken(cls, value: str) -> str:
        if value and value not in API_MODES:
            raise ValueError(f"must be one of: {', '.join(API_MODES)}")
        return value

    @field_validator("api_key", mode="before")
    @classmethod
    def _is_one_or_several(cls, value: object) -> object:
        several = isinstance(value, list) and all(isinstance(key, str) for key in value)
        return ",".join(cast("list[str]", value)) if several else value

    @field_validator("api_key")
    @classmethod
    def _has_no_odd_letters(cls, value: str) -> str:
        if not all(is_key(key) for key in split_keys(value)):
            raise ValueError("holds characters that no key has; copy it again")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if not is_http(value):
            raise ValueError("must be an http or https URL")
        return value


def detect_api_mode(base_url: str) -> ApiMode:
    """What an address speaks: Anthropic's messages at Anthropic or where a path ends in
    /anthropic, as other providers offer it; responses where it ends in /responses or /codex."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    if parts.hostname == "api.anthropic.com" or path.endswith("/anthropic"):
        return "anthropic_messages"
    if path.endswith(("/responses", "/codex")):
        return "codex_responses"
    return "chat_completions"


def normalize_base_url(base_url: str, mode: ApiMode) -> str:
    """`base_url` as the client of `mode` wants it: each adds the rest of the path by itself."""
    if mode == "anthropic_messages":
        return base_url.rstrip("/").removesuffix("/v1")
    if mode == "codex_responses":
        return base_url.rstrip("/").removesuffix("/responses")
    if mode == "generate_content":
        return base_url.rstrip("/").removesuffix("/openai").removesuffix("/v1beta")
    return base_url


def split_keys(text: str) -> tuple[str, ...]:
    """One key or several, with commas between them."""
    return tuple(key for key in (piece.strip() for piece in text.split(",")) if key)


def is_key(key: str) -> bool:
    """False for characters that no key has."""
    return key.isascii() and key.isprintable() and " " not in key


def is_http(url: str) -> bool:
    """True for an http or https address with a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def parse_compatible(setting: str, text: str) -> tuple[CompatibleProvider, ...]:
    """The providers in the JSON list `text`; raises SettingsError. Values stay out of error
    texts: they may hold keys."""
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        raise SettingsError(setting, "", "is not valid JSON; write a list of objects.") from None
    if not isinstance(entries, list):
        raise SettingsError(setting, "", "must be a JSON list of objects.")
    providers = tuple(_entry(setting, index, entry) for index, entry in enumerate(entries))
    names = [provider.name for provider in providers]
    for index, name in enumerate(names):
        if name in BASE_URLS or name in names[:index]:
            raise SettingsError(f"{setting}[{index}].name", name, "is taken; choose another name.")
    return providers


def _entry(setting: str, index: int, entry: object) -> CompatibleProvider:
    try:
        return CompatibleProvider.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = "".join(f".{part}" for part in first["loc"])
        mend = f"{first['msg'].removeprefix('Value error, ')}."
        raise SettingsError(f"{setting}[{index}]{path}", "", mend) from None
