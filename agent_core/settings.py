"""The agent's settings: which provider and model serve each tier, with which key, at which address.

This module and `gateway.settings`, which embeds it, are the only readers of the environment.
"""

import os
from collections.abc import Mapping
from typing import Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from agent_core.context.settings import ContextSettings
from agent_core.mcp.settings import McpSettings
from agent_core.memory.settings import MemorySettings
from agent_core.models.catalog import Price, parse_prices, parse_windows
from agent_core.models.providers import (
    BASE_URLS,
    DEFAULT_MODELS,
    OWN_MODES,
    TIERS,
    TIMEOUT,
    ApiMode,
    CompatibleProvider,
    Endpoint,
    SettingsError,
    Tier,
    TierModels,
    is_http,
    is_key,
    normalize_base_url,
    parse_compatible,
    split_keys,
)
from agent_core.orchestration.settings import AgentSettings
from agent_core.skills.images.settings import ImageSettings
from agent_core.tools.finding.toolsets import Toolsets
from agent_core.tools.web.settings import WebSettings

__all__ = [
    "AUXILIARY",
    "BASE_URLS",
    "DEFAULT_MODELS",
    "TIERS",
    "ApiMode",
    "Auxiliary",
    "CompatibleProvider",
    "Endpoint",
    "ModelSettings",
    "SettingsError",
    "Tier",
    "TierModels",
    "ToolSettings",
]

Auxiliary = Literal["vision", "compression", "web_extract", "session_search"]
AUXILIARY: tuple[Auxiliary, ...] = get_args(Auxiliary)
"""Work beside the conversation that may have a chain of models of its own."""


class ToolSettings(BaseModel):
    """What is set about tools. `hooks`: entries `package.module:function`."""

    model_config = ConfigDict(frozen=True)

    command_max_seconds: int = 600
    hooks: tuple[str, ...] = ()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    sets: Toolsets = Toolsets()

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "ToolSettings":
        """The settings in `env`; raises SettingsError."""
        setting = "command_max_seconds"
        text = _read(env, setting) or "600"
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 86_400):
            mend = "write whole seconds, from 1 to 86400."
            raise SettingsError(setting.upper(), text, mend)
        hooks = tuple(filter(None, (entry.strip() for entry in _read(env, "hooks").split(","))))
        return cls(
            command_max_seconds=int(text),
            hooks=hooks,
            web=WebSettings.read(env),
            mcp=McpSettings.read(env),
            sets=Toolsets.read(env),
        )


class ModelSettings(BaseModel):
    """Everything about models that can be set, and what the agent does besides: `tools`. `tiers`
    and `tier_providers` hold what was set; `fallbacks` and `auxiliary` name models by
    provider/model, in the order in which they are tried; `timeout`: seconds without a byte."""

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    tiers: dict[Tier, str] = {}
    tier_providers: dict[Tier, str] = {}
    keys: dict[str, tuple[str, ...]] = Field(default={}, repr=False)
    base_urls: dict[str, str] = BASE_URLS
    compatible: tuple[CompatibleProvider, ...] = ()
    modes: dict[str, ApiMode] = {}
    fallbacks: tuple[str, ...] = ()
    auxiliary: dict[Auxiliary, tuple[str, ...]] = {}
    timeout: float = TIMEOUT
    prices: dict[str, Price] = {}
    windows: dict[str, int] = {}
    transcription: str = ""
    tools: ToolSettings = ToolSettings()
    context: ContextSettings = ContextSettings()
    memory: MemorySettings = MemorySettings()
    agent: AgentSettings = AgentSettings()
    images: ImageSettings = ImageSettings()

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
            modes=_read_mode(env),
            fallbacks=_read_models(env, "fallback_providers"),
            auxiliary=_read_auxiliary(env),
            timeout=_read_timeout(env),
            prices=parse_prices("MODEL_PRICES", _read(env, "model_prices")),
            windows=parse_windows("MODEL_WINDOWS", _read(env, "model_windows")),
            transcription=_read(env, "transcription_model"),
            tools=ToolSettings.read(env),
            context=ContextSettings.read(env),
            memory=MemorySettings.read(env),
            agent=AgentSettings.read(env),
            images=ImageSettings.read(env),
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
        """How to reach `provider` with its first key; `setting` names it. Raises SettingsError."""
        return self.endpoints(provider, setting)[0]

    def endpoints(self, provider: str, setting: str = "MAX_MODEL") -> tuple[Endpoint, ...]:
        """How to reach `provider`, once with each key; `setting` names it. Raises SettingsError."""
        own = self._compatible_by_name().get(provider)
        if own:
            mode, url, keys, thinking = own.mode, own.base_url, own.keys, own.enable_thinking
            key_setting = f"api_key of {provider} in OPENAI_COMPATIBLE_PROVIDERS"
        elif provider not in BASE_URLS:
            known = ", ".join((*BASE_URLS, *self._compatible_by_name()))
            raise SettingsError(setting, provider, f"no such provider; use one of: {known}.")
        else:
            url, key_setting, thinking = self.base_urls[provider], _key_setting(provider), None
            if provider not in self.keys:
                raise SettingsError(setting, provider, f"it has no key; set {key_setting}.")
            speaks: ApiMode = (
                "anthropic_messages" if provider == "anthropic" else "chat_completions"
            )
            mode, keys = self.modes.get(provider, speaks), self.keys[provider]
        return tuple(
            Endpoint(
                provider=provider,
                base_url=normalize_base_url(url, mode),
                api_key=key,
                key_setting=key_setting,
                timeout=self.timeout,
                thinking=thinking,
                api_mode=mode,
            )
            for key in keys
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
        if endpoint.api_mode in ("anthropic_messages", "generate_content"):
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
    if not is_http(url):
        raise SettingsError(setting.upper(), url, "must be an http or https URL.")
    return url


def _key_setting(provider: str) -> str:
    return f"{provider.upper()}_API_KEY"


def _read_keys(env: Mapping[str, str], provider: str) -> tuple[str, ...]:
    """One key or several, with commas between them."""
    setting = _key_setting(provider)
    keys = split_keys(_read(env, setting))
    if not all(is_key(key) for key in keys):
        raise SettingsError(setting, "", "holds characters that no key has; copy it again.")
    return keys


def _read_mode(env: Mapping[str, str]) -> dict[str, ApiMode]:
    """What OpenAI's and Google's own addresses are spoken to in, where that is set."""
    modes: dict[str, ApiMode] = {}
    for provider, own in OWN_MODES.items():
        setting, mode = f"{provider}_api_mode", _read(env, f"{provider}_api_mode")
        if mode and mode not in own:
            raise SettingsError(setting.upper(), mode, f"use {' or '.join(own)}.")
        modes |= {provider: mode} if mode else {}
    return modes


def _read_models(env: Mapping[str, str], setting: str) -> tuple[str, ...]:
    """Models by provider/model, with commas between them."""
    names = split_keys(_read(env, setting))
    for name in names:
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise SettingsError(setting.upper(), name, "write provider/model,provider/model.")
    return names


def _read_auxiliary(env: Mapping[str, str]) -> dict[Auxiliary, tuple[str, ...]]:
    chains = {name: _read_models(env, f"auxiliary_{name}") for name in AUXILIARY}
    return {name: chain for name, chain in chains.items() if chain}


def _read_timeout(env: Mapping[str, str]) -> float:
    setting, text = "MODEL_TIMEOUT", _read(env, "model_timeout")
    try:
        seconds = float(text) if text else TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise SettingsError(setting, text, "write seconds, from 0.1 to 3600.")
    return seconds


def _read_compatible(env: Mapping[str, str]) -> tuple[CompatibleProvider, ...]:
    setting = "OPENAI_COMPATIBLE_PROVIDERS"
    text, alias = _read(env, setting), _read(env, "CUSTOM_PROVIDERS")
    if text and alias and text != alias:
        raise SettingsError("CUSTOM_PROVIDERS", "", f"{setting} says something else; keep one.")
    if alias and not text:
        setting, text = "CUSTOM_PROVIDERS", alias
    return parse_compatible(setting, text)
