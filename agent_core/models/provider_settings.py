"""Settings of models: which provider and model serve each tier, with which key and address."""

from typing import Literal, get_args

from agent_core.config.declaration import Setting, SettingTables, WrongValue
from agent_core.config.kinds import (
    NO_WORDS,
    Choice,
    Number,
    Url,
    WholeNumber,
    parse_keys,
    split_commas,
)
from agent_core.models.providers import BASE_URLS, EFFORTS, NUM_CTX, OWN_MODES, TIERS, TIMEOUT

Auxiliary = Literal["vision", "compression", "web_extract", "session_search"]
AUXILIARY: tuple[Auxiliary, ...] = get_args(Auxiliary)
"""Auxiliary work that may have a chain of models of its own."""


def parse_models(text: str) -> tuple[str, ...]:
    """Models by provider/model, with commas between them."""
    names = split_commas(text)
    for name in names:
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise WrongValue("write provider/model,provider/model.", name)
    return names


KEYS = {
    name: Setting(
        f"{name.upper()}_API_KEY",
        NO_WORDS,
        parse_keys,
        "API keys; the first in this order serves the tiers that are not set. May be several, "
        "separated by commas: see below",
        secret="all",
    )
    for name in BASE_URLS
}
URLS = {
    name: Setting(
        f"{name.upper()}_BASE_URL",
        url,
        Url(),
        "base URL with the same protocol",
        secret="password",
        default_text="Google's OpenAI-compatible address" if name == "gemini" else "",
    )
    for name, url in BASE_URLS.items()
}
_MODE_HELP = {
    "openai": (
        "`codex_responses`: the Responses API, which lets OpenAI's models reason while they use "
        "tools; `chat_completions`: the protocol of most other servers"
    ),
    "gemini": (
        "`generate_content`: Google's own protocol, which needs the extra: `pip install "
        "'turnkeeper[gemini]'`"
    ),
}
_MODE_DEFAULT = {
    "openai": "`codex_responses` at api.openai.com, else `chat_completions`",
    "gemini": "`chat_completions`",
}
MODES = {
    name: Setting(
        f"{name.upper()}_API_MODE",
        None,
        Choice(words=modes, mend=f"use {' or '.join(modes)}."),
        _MODE_HELP[name],
        default_text=_MODE_DEFAULT[name],
    )
    for name, modes in OWN_MODES.items()
}
MODELS = {
    tier: Setting(
        f"{tier.upper()}_MODEL",
        "",
        str,
        "`provider/model`; a tier that is not set uses the first one that is",
        default_text="the provider's model for the tier",
    )
    for tier in TIERS
}
PROVIDERS = {
    tier: Setting(
        f"{tier.upper()}_MODEL_PROVIDER",
        "",
        str,
        "only the provider; its model for the tier is used",
    )
    for tier in TIERS
}
REASONING = {
    tier: Setting(
        f"{tier.upper()}_REASONING_EFFORT",
        None,
        Choice(words=EFFORTS),
        f"reasoning effort of the tier's model: {', '.join(f'`{one}`' for one in EFFORTS)}; "
        "omitted where a model does not support it",
        default_text="the model's own",
    )
    for tier in TIERS
}
LITE_PROVIDER = Setting("LITE_MODEL_PROVIDER", "", str, f"alias of `{PROVIDERS['flash'].name}`")
FALLBACKS = Setting(
    "FALLBACK_PROVIDERS",
    NO_WORDS,
    parse_models,
    "`provider/model,provider/model`: fallbacks for a failing provider, see below",
)
CHAINS = {
    name: Setting(
        f"AUXILIARY_{name.upper()}",
        NO_WORDS,
        parse_models,
        "models for auxiliary tasks, in the order in which they are tried",
        default_text=f"FLASH, then `{FALLBACKS.name}`",
    )
    for name in AUXILIARY
}
SILENCE = Setting(
    "MODEL_TIMEOUT",
    TIMEOUT,
    Number(least=0.1, most=3600, mend="write seconds, from 0.1 to 3600."),
    "seconds of silence after which a provider is considered failed; an answer may take twelve "
    "times as long",
)
PRICES = Setting(
    "MODEL_PRICES",
    "",
    str,
    "JSON, dollars per million tokens of models whose price is unknown or different: "
    '`{"provider/model": {"input": 1.0, "cached": 0.1, "output": 5.0}}`',
)
WINDOWS = Setting(
    "MODEL_WINDOWS",
    "",
    str,
    'JSON, context windows of models in tokens: `{"provider/model": 128000}`; by default from '
    "the catalogue or the model's server, else 128,000",
)
ASKED_CONTEXT = Setting(
    "OLLAMA_NUM_CTX",
    NUM_CTX,
    WholeNumber(most=10_000_000),
    "context length requested from Ollama in tokens, at most the one each model was trained for; "
    "a model loaded with more keeps it, and `MODEL_WINDOWS` overrides it per model. `0`: the "
    "server's default",
)
TRANSCRIPTION = Setting(
    "TRANSCRIPTION_MODEL",
    "",
    str,
    "`provider/model` that transcribes voice messages (OpenAI's audio transcription API or "
    "compatible); without it people are asked to write",
)
COMPATIBLE = Setting(
    "OPENAI_COMPATIBLE_PROVIDERS",
    "",
    str,
    "JSON list of servers with OpenAI's chat completions or responses API or Anthropic's "
    "messages API, see below",
    secret="api_keys",
)
CUSTOM = Setting("CUSTOM_PROVIDERS", "", str, "alias of it", secret="api_keys")
TABLES: SettingTables = {
    "models": (
        *KEYS.values(),
        *URLS.values(),
        *MODES.values(),
        *MODELS.values(),
        *PROVIDERS.values(),
        *REASONING.values(),
        LITE_PROVIDER,
        FALLBACKS,
        *CHAINS.values(),
        SILENCE,
        PRICES,
        WINDOWS,
        ASKED_CONTEXT,
        TRANSCRIPTION,
        COMPATIBLE,
        CUSTOM,
    )
}
