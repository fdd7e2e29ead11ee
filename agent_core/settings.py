"""The agent's settings: which provider and model serve each tier, with which key, at which address.

This module and `gateway.settings`, which embeds it, are the only readers of the environment.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

Tier = Literal["max", "pro", "flash"]
TIERS: tuple[Tier, ...] = get_args(Tier)
ApiMode = Literal["chat_completions", "anthropic_messages"]
API_MODES: tuple[ApiMode, ...] = get_args(ApiMode)
LATER_MODES = ("codex_responses",)

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
    timeout: float = 300.0
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
    """A provider at `base_url`. `api_mode`: what it speaks; "": see `mode`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, pattern=r"^[^/\s]+$")
    base_url: str
    api_key: str = Field(default="", repr=False)
    tier_models: TierModels = TierModels()
    enable_thinking: bool | None = None
    api_mode: str = ""

    @property
    def mode(self) -> ApiMode:
        """What was set; else what its address speaks: one of Anthropic's, or a path that ends
        in /anthropic, where other providers offer the same protocol."""
        if self.api_mode:
            return cast(ApiMode, self.api_mode)
        parts = urlsplit(self.base_url)
        path = parts.path.rstrip("/").removesuffix("/v1")
        if parts.hostname == "api.anthropic.com" or path.endswith("/anthropic"):
            return "anthropic_messages"
        return "chat_completions"

    @field_validator("api_mode")
    @classmethod
    def _is_spoken(cls, value: str) -> str:
        if value in LATER_MODES:
            raise ValueError(f"{value} is not in this version; use {' or '.join(API_MODES)}")
        if value and value not in API_MODES:
            raise ValueError(f"must be {' or '.join(API_MODES)}")
        return value

    @field_validator("api_key")
    @classmethod
    def _has_no_odd_letters(cls, value: str) -> str:
        if not _is_key(value):
            raise ValueError("holds characters that no key has; copy it again")
        return value

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if not _is_http(value):
            raise ValueError("must be an http or https URL")
        return value


class ToolSettings(BaseModel):
    """What is set about tools. `hooks`: entries `package.module:function`."""

    model_config = ConfigDict(frozen=True)

    command_max_seconds: int = 600
    hooks: tuple[str, ...] = ()

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "ToolSettings":
        """The settings in `env`; raises SettingsError."""
        setting = "command_max_seconds"
        text = _read(env, setting) or "600"
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 86_400):
            mend = "write whole seconds, from 1 to 86400."
            raise SettingsError(setting.upper(), text, mend)
        hooks = tuple(filter(None, (entry.strip() for entry in _read(env, "hooks").split(","))))
        return cls(command_max_seconds=int(text), hooks=hooks)


class ModelSettings(BaseModel):
    """Everything about models that can be set, and what the agent does besides: `tools`. `tiers`
    and `tier_providers` hold what was set."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tiers: dict[Tier, str] = {}
    tier_providers: dict[Tier, str] = {}
    keys: dict[str, tuple[str, ...]] = Field(default={}, repr=False)
    base_urls: dict[str, str] = BASE_URLS
    compatible: tuple[CompatibleProvider, ...] = ()
    transcription: str = ""
    tools: ToolSettings = ToolSettings()

    @classmethod
    def read(cls, env: Mapping[str, str] | None = None) -> "ModelSettings":
        """The settings in `env`, by default the process's environment; raises SettingsError."""
        env = os.environ if env is None else env
        urls = {name: _read_url(env, name) for name in BASE_URLS}
        keys = {name: _read_keys(env, name) for name in BASE_URLS}
        return cls(
            tiers=_per_tier({tier: _read(env, f"{tier}_model") for tier in TIERS}),
            tier_providers=_per_tier({tier: _read_provider(env, tier) for tier in TIERS}),
            keys={name: found for name, found in keys.items() if found},
            base_urls=urls,
            compatible=_read_compatible(env),
            transcription=_read(env, "transcription_model"),
            tools=ToolSettings.read(env),
        )

    @property
    def empty(self) -> bool:
        """True if nothing about models is set."""
        return not (self.configured or self.tiers or self.tier_providers)

    @property
    def configured(self) -> tuple[str, ...]:
        """Providers that can be called, in the order in which they are chosen."""
        return (*(name for name in BASE_URLS if name in self.keys), *self._compatible_by_name())

    def choice(self, tier: Tier) -> tuple[str, str] | None:
        """Provider and model of `tier`; None if nothing is configured. Raises SettingsError.

        A tier that is not set follows the first one that is (its provider's model for this tier),
        else the first provider that has a key.
        """
        for name in (tier, *TIERS):
            chosen = self._own_choice(name, tier)
            if chosen:
                return chosen
        for provider in self.configured:
            model = self.default_model(provider, tier)
            if model:
                return provider, model
        return None

    def default_model(self, provider: str, tier: Tier) -> str:
        """What `tier` means at `provider`, or ''; a neighbouring tier's where it has none."""
        own = self._compatible_by_name().get(provider)
        models = own.tier_models.model_dump() if own else DEFAULT_MODELS.get(provider, {})
        named = (cast(str, models.get(name, "")) for name in (tier, *TIERS))
        return next((model for model in named if model), "")

    def endpoint(self, provider: str, setting: str = "MAX_MODEL") -> Endpoint:
        """How to reach `provider`, which `setting` names; raises SettingsError."""
        own = self._compatible_by_name().get(provider)
        if own:
            speaks = own.mode
            url = own.base_url
            if speaks == "anthropic_messages":  # the client adds /v1 by itself
                url = url.rstrip("/").removesuffix("/v1")
            return Endpoint(
                provider=provider,
                base_url=url,
                api_key=own.api_key or "none",
                key_setting=f"api_key of {provider} in OPENAI_COMPATIBLE_PROVIDERS",
                thinking=own.enable_thinking,
                api_mode=speaks,
            )
        if provider not in BASE_URLS:
            known = ", ".join((*BASE_URLS, *self._compatible_by_name()))
            raise SettingsError(setting, provider, f"no such provider; use one of: {known}.")
        key_setting = f"{provider.upper()}_API_KEY"
        if provider not in self.keys:
            raise SettingsError(setting, provider, f"it has no key; set {key_setting}.")
        return Endpoint(
            provider=provider,
            base_url=self.base_urls[provider],
            api_key=self.keys[provider][0],
            key_setting=key_setting,
            api_mode="anthropic_messages" if provider == "anthropic" else "chat_completions",
        )

    def listener(self) -> tuple[Endpoint, str] | None:
        """Where voice notes are transcribed, and by which model; raises SettingsError."""
        setting, text = "TRANSCRIPTION_MODEL", self.transcription
        if not text:
            return None
        provider, _, model = text.partition("/")
        if not model:
            raise SettingsError(setting, text, "write it as provider/model.")
        endpoint = self.endpoint(provider, setting)
        if endpoint.api_mode == "anthropic_messages":
            raise SettingsError(setting, text, f"{provider} transcribes nothing; name another one.")
        return endpoint, model

    def with_provider(self, provider: CompatibleProvider) -> "ModelSettings":
        """These settings and one more provider (found on this machine)."""
        return self.model_copy(update={"compatible": (*self.compatible, provider)})

    def _compatible_by_name(self) -> dict[str, CompatibleProvider]:
        return {provider.name: provider for provider in self.compatible}

    def _own_choice(self, name: Tier, tier: Tier) -> tuple[str, str] | None:
        """What the settings of tier `name` say for `tier`."""
        text, provider = self.tiers.get(name, ""), self.tier_providers.get(name, "")
        setting = f"{name.upper()}_MODEL"
        head, slash, rest = text.partition("/")
        known = head in BASE_URLS or head in self._compatible_by_name()
        if text and slash and rest and (known or not provider):
            provider, model = head, rest
        elif text and not provider:
            raise SettingsError(setting, text, "write it as provider/model.")
        elif provider:
            model = text or self.default_model(provider, tier)
            setting = setting if text else f"{setting}_PROVIDER"
        else:
            return None
        self.endpoint(provider, setting)
        if text and name != tier:
            model = self.default_model(provider, tier) or model
        if not model:
            mend = f"{provider} has no model for this tier; set {tier.upper()}_MODEL."
            raise SettingsError(setting, provider, mend)
        return provider, model


def _per_tier(found: dict[Tier, str]) -> dict[Tier, str]:
    return {tier: value for tier, value in found.items() if value}


def _read(env: Mapping[str, str], name: str) -> str:
    return env.get(name.upper(), "").strip()


def _read_provider(env: Mapping[str, str], tier: Tier) -> str:
    own = _read(env, f"{tier}_model_provider")
    if tier != "flash":
        return own
    alias = _read(env, "lite_model_provider")
    if own and alias and own != alias:
        mend = f"FLASH_MODEL_PROVIDER={own} says something else; keep one of the two."
        raise SettingsError("LITE_MODEL_PROVIDER", alias, mend)
    return own or alias


def _read_url(env: Mapping[str, str], provider: str) -> str:
    setting = f"{provider}_base_url"
    url = _read(env, setting) or BASE_URLS[provider]
    if not _is_http(url):
        raise SettingsError(setting.upper(), url, "must be an http or https URL.")
    return url


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _read_keys(env: Mapping[str, str], provider: str) -> tuple[str, ...]:
    """One key or several, with commas between them."""
    setting = f"{provider}_api_key"
    keys = tuple(key for key in (piece.strip() for piece in _read(env, setting).split(",")) if key)
    if not all(_is_key(key) for key in keys):
        raise SettingsError(setting.upper(), "", "holds characters that no key has; copy it again.")
    return keys


def _is_key(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key


def _read_compatible(env: Mapping[str, str]) -> tuple[CompatibleProvider, ...]:
    """The list of compatible providers. Values stay out of error texts: they may hold keys."""
    setting = "OPENAI_COMPATIBLE_PROVIDERS"
    text, alias = _read(env, setting), _read(env, "CUSTOM_PROVIDERS")
    if text and alias and text != alias:
        raise SettingsError("CUSTOM_PROVIDERS", "", f"{setting} says something else; keep one.")
    if alias and not text:
        setting, text = "CUSTOM_PROVIDERS", alias
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
