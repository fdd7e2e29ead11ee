"""The agent's settings: which provider and model serve each tier, with which key, at which address.

This module and `gateway.settings`, which embeds it, are the only readers of the environment.
"""

import os
from collections.abc import Mapping
from typing import TypeVar, cast

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from agent_core.config.declaration import Env, Setting, SettingsError
from agent_core.context.settings import ContextSettings
from agent_core.guardrails.settings import GuardrailSettings
from agent_core.mcp.settings import McpSettings
from agent_core.memory.settings import MemorySettings
from agent_core.models import provider_settings as declared
from agent_core.models.catalog import Price, parse_prices, parse_windows
from agent_core.models.compatible import CompatibleProvider, TierModels, parse_compatible
from agent_core.models.endpoint import Endpoint
from agent_core.models.provider_settings import AUXILIARY, Auxiliary
from agent_core.models.providers import (
    BASE_URLS,
    DEFAULT_MODELS,
    TIERS,
    ApiMode,
    Effort,
    Tier,
    detect_api_mode,
    is_own_server,
    normalize_base_url,
)
from agent_core.orchestration.settings import AgentSettings
from agent_core.sandboxes.buckets.settings import BucketAccess, read_bucket
from agent_core.skills.images.settings import ImageSettings
from agent_core.tools.finding.toolsets import Toolsets
from agent_core.tools.tool_settings import (
    EXECUTION_MODE,
    HOOKS,
    MAX_SECONDS,
    PREVIEW_HOST,
    PREVIEW_PORT,
    PREVIEW_URL,
    SKILLS,
    SNAPSHOT_BYTES,
    SNAPSHOT_HOURS,
    ExecutionMode,
)
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

N = TypeVar("N", bound=str)
T = TypeVar("T")
MAX_MODEL = declared.MODELS["max"].name


class ToolSettings(Struct, frozen=True, kw_only=True):
    """Settings of tools. `hooks`, `skills`: entries `package.module:function`."""

    command_max_seconds: int = MAX_SECONDS.default
    snapshot_hours: int = SNAPSHOT_HOURS.default
    snapshot_bytes: int = SNAPSHOT_BYTES.default
    bucket: BucketAccess = BucketAccess()
    preview_port: int = PREVIEW_PORT.default
    preview_host: str = PREVIEW_HOST.default
    preview_url: str = PREVIEW_URL.default
    hooks: tuple[str, ...] = HOOKS.default
    skills: tuple[str, ...] = SKILLS.default
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    sets: Toolsets = Toolsets()
    execution_mode: ExecutionMode = EXECUTION_MODE.default

    @classmethod
    def read(cls, env: Env) -> "ToolSettings":
        """The settings in `env`; raises SettingsError."""
        return cls(
            command_max_seconds=MAX_SECONDS.read(env),
            snapshot_hours=SNAPSHOT_HOURS.read(env),
            snapshot_bytes=SNAPSHOT_BYTES.read(env),
            bucket=read_bucket(env),
            preview_port=PREVIEW_PORT.read(env),
            preview_host=PREVIEW_HOST.read(env),
            preview_url=PREVIEW_URL.read(env),
            hooks=HOOKS.read(env),
            skills=SKILLS.read(env),
            web=WebSettings.read(env),
            mcp=McpSettings.read(env),
            sets=Toolsets.read(env),
            execution_mode=EXECUTION_MODE.read(env),
        )


class ModelSettings(BaseModel):
    """All settings of models, and those of the agent's tools: `tools`.

    `tiers` and `tier_providers` hold what was set; `fallbacks` and `auxiliary` name models by
    provider/model, in the order in which they are tried; `timeout`: seconds without a byte;
    `has_lite`: FLASH's provider was given as LITE's; `price_file`: a table of prices newer than the
    built-in one, "" for none.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    tiers: dict[Tier, str] = {}
    tier_providers: dict[Tier, str] = {}
    has_lite: bool = False
    keys: dict[str, tuple[str, ...]] = Field(default={}, repr=False)
    base_urls: dict[str, str] = BASE_URLS
    compatible: tuple[CompatibleProvider, ...] = ()
    modes: dict[str, ApiMode] = {}
    efforts: dict[Tier, Effort] = {}
    fallbacks: tuple[str, ...] = ()
    auxiliary: dict[Auxiliary, tuple[str, ...]] = {}
    timeout: float = declared.SILENCE.default
    num_ctx: int = declared.ASKED_CONTEXT.default
    prices: dict[str, Price] = {}
    price_file: str = ""
    windows: dict[str, int] = {}
    transcription: str = ""
    tools: ToolSettings = ToolSettings()
    context: ContextSettings = ContextSettings()
    memory: MemorySettings = MemorySettings()
    agent: AgentSettings = AgentSettings()
    images: ImageSettings = ImageSettings()
    guardrails: GuardrailSettings = GuardrailSettings()

    @classmethod
    def read(cls, env: Env | None = None) -> "ModelSettings":
        """The settings in `env`, by default the process's environment; raises SettingsError."""
        env = os.environ if env is None else env
        prices, windows = declared.PRICES, declared.WINDOWS
        return cls(
            tiers=_read_each(declared.MODELS, env),
            tier_providers=_read_providers(env),
            has_lite=bool(declared.LITE_PROVIDER.read(env)),
            keys=_read_each(declared.KEYS, env),
            base_urls=_read_each(declared.URLS, env),
            compatible=_read_compatible(env),
            modes=_read_each(declared.MODES, env),
            efforts=_read_each(declared.REASONING, env),
            fallbacks=declared.FALLBACKS.read(env),
            auxiliary=_read_each(declared.CHAINS, env),
            timeout=declared.SILENCE.read(env),
            num_ctx=declared.ASKED_CONTEXT.read(env),
            prices=prices.parse(prices.text(env) or "{}", parse_prices),
            windows=windows.parse(windows.text(env) or "{}", parse_windows),
            transcription=declared.TRANSCRIPTION.read(env),
            tools=ToolSettings.read(env),
            context=ContextSettings.read(env),
            memory=MemorySettings.read(env),
            agent=AgentSettings.read(env),
            images=ImageSettings.read(env),
            guardrails=GuardrailSettings.read(env),
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
        """Return provider and model of `tier`; None if nothing is configured. Raises SettingsError.

        A tier that is not set follows the first one that is (its provider's model for this tier),
        otherwise the first provider that has a key.
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
        """Return the provider's model for `tier`, or for a neighbouring tier; "" if it has none."""
        own = self._compatible_by_name().get(provider)
        models = own.tier_models.model_dump() if own else DEFAULT_MODELS.get(provider, {})
        named = (cast(str, models.get(name, "")) for name in (tier, *TIERS))
        return next((model for model in named if model), "")

    def knows(self, name: str) -> bool:
        """`name` is a tier, or a model of a provider that there is."""
        provider, slash, model = name.partition("/")
        known = provider in BASE_URLS or provider in self._compatible_by_name()
        return name in TIERS or bool(slash and model and known)

    def endpoint(self, provider: str, setting: str = MAX_MODEL) -> Endpoint:
        """Return the endpoint of `provider` with its first key; `setting` names it in errors.
        Raises SettingsError."""
        return self.endpoints(provider, setting)[0]

    def endpoints(self, provider: str, setting: str = MAX_MODEL) -> tuple[Endpoint, ...]:
        """Return the endpoints of `provider`, one for each key; `setting` names it in errors.
        Raises SettingsError."""
        own = self._compatible_by_name().get(provider)
        if own:
            mode, url, keys, thinking = own.mode, own.base_url, own.keys, own.enable_thinking
            named = bool(own.api_mode)
            key_setting = f"api_key of {provider} in {declared.COMPATIBLE.name}"
        elif provider not in BASE_URLS:
            known = ", ".join((*BASE_URLS, *self._compatible_by_name()))
            why = f"no such provider; use one of: {known}; or name a server of your own in"
            raise SettingsError(setting, provider, f"{why} {declared.COMPATIBLE.name}.")
        else:
            url, thinking, named = self.base_urls[provider], None, provider in self.modes
            key_setting = declared.KEYS[provider].name
            if provider not in self.keys:
                raise SettingsError(setting, provider, f"it has no key; set {key_setting}.")
            mode, keys = (
                self.modes.get(provider) or self._detect_mode(provider),
                self.keys[provider],
            )
        return tuple(
            Endpoint(
                provider=provider,
                base_url=normalize_base_url(url, mode),
                api_key=key,
                key_setting=key_setting,
                timeout=self.timeout,
                thinking=thinking,
                api_mode=mode,
                own_server=not named and mode == "chat_completions" and is_own_server(url),
                num_ctx=self.num_ctx,
            )
            for key in keys
        )

    def listener(self) -> tuple[Endpoint, str] | None:
        """Return the endpoint and model that transcribe voice notes; raises SettingsError."""
        setting, text = declared.TRANSCRIPTION, self.transcription
        if not text:
            return None
        provider, _, model = text.partition("/")
        if not model:
            raise setting.error(text, "write it as provider/model.")
        endpoint = self.endpoint(provider, setting.name)
        if endpoint.api_mode in ("anthropic_messages", "generate_content"):
            raise setting.error(text, f"{provider} transcribes nothing; name another one.")
        return endpoint, model

    def with_provider(self, provider: CompatibleProvider) -> "ModelSettings":
        """Return these settings with one more provider (found on this machine)."""
        return self.model_copy(update={"compatible": (*self.compatible, provider)})

    def effort(self, name: str, provider: str, model: str) -> Effort | None:
        """Return the reasoning effort of `name`, a tier or a model that is also a tier's; None for
        the model's default."""
        for tier in TIERS:
            named = tier in self.efforts and name in (tier, f"{provider}/{model}")
            if named and self.choice(tier) == (provider, model):
                return self.efforts[tier]
        return None

    def _detect_mode(self, provider: str) -> ApiMode:
        """Return the API mode of a known provider at its configured address."""
        if provider == "anthropic":
            return "anthropic_messages"
        detected = detect_api_mode(self.base_urls[provider])
        return detected if detected == "codex_responses" else "chat_completions"

    def with_mode(self, provider: str, mode: ApiMode) -> "ModelSettings":
        """Return these settings with `mode` for `provider`, overriding its setting and address."""
        own = (
            one.model_copy(update={"api_mode": mode}) if one.name == provider else one
            for one in self.compatible
        )
        modes = {**self.modes, provider: mode}
        return self.model_copy(update={"compatible": tuple(own), "modes": modes})

    def _compatible_by_name(self) -> dict[str, CompatibleProvider]:
        return {provider.name: provider for provider in self.compatible}

    def _own_choice(self, name: Tier, tier: Tier) -> tuple[str, str] | None:
        """Return the provider and model that the settings of tier `name` give for `tier`."""
        text, provider = self.tiers.get(name, ""), self.tier_providers.get(name, "")
        setting = declared.MODELS[name]
        head, slash, rest = text.partition("/")
        known = head in BASE_URLS or head in self._compatible_by_name()
        if text and slash and rest and (known or not provider):
            provider, model = head, rest
        elif text and not provider:
            raise setting.error(text, "write it as provider/model.")
        elif provider:
            model = text or self.default_model(provider, tier)
            if not text:
                lite = name == "flash" and self.has_lite
                setting = declared.LITE_PROVIDER if lite else declared.PROVIDERS[name]
        else:
            return None
        self.endpoint(provider, setting.name)
        if text and name != tier:
            model = self.default_model(provider, tier) or model
        if not model:
            mend = f"{provider} has no model for this tier; set {declared.MODELS[tier].name}."
            raise setting.error(provider, mend)
        return provider, model


def _read_each(settings: Mapping[N, Setting[T | None]], env: Env) -> dict[N, T]:
    """Read several settings, keyed by purpose; those unset and without a default are left out."""
    found = {name: setting.read(env) for name, setting in settings.items()}
    return {name: value for name, value in found.items() if value}


def _read_providers(env: Env) -> dict[Tier, str]:
    found = _read_each(declared.PROVIDERS, env)
    own, alias = found.get("flash", ""), declared.LITE_PROVIDER.read(env)
    if own and alias and own != alias:
        name = declared.PROVIDERS["flash"].name
        mend = f"{name}={own} says something else; keep one of the two."
        raise declared.LITE_PROVIDER.error(alias, mend)
    return found | ({"flash": alias} if alias else {})


def _read_compatible(env: Env) -> tuple[CompatibleProvider, ...]:
    setting, alias = declared.COMPATIBLE, declared.CUSTOM
    if setting.text(env) and alias.text(env) and setting.text(env) != alias.text(env):
        raise alias.error("", f"{setting.name} says something else; keep one.")
    chosen = setting if setting.text(env) else alias
    return chosen.parse(chosen.text(env) or "[]", parse_compatible)
