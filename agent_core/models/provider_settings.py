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
"""Work beside the conversation that may have a chain of models of its own."""


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
        "the first that is set, in this order, serves the tiers that are not set. Several keys "
        "with commas between them: see below",
        secret="all",
    )
    for name in BASE_URLS
}
URLS = {
    name: Setting(
        f"{name.upper()}_BASE_URL",
        url,
        Url(),
        "another address that speaks the same",
        secret="password",
        default_text="Google's OpenAI-compatible address" if name == "gemini" else "",
    )
    for name, url in BASE_URLS.items()
}
_MODE_HELP = {
    "openai": "`codex_responses`: by the Responses API, in which OpenAI's models reason beside "
    "tools; `chat_completions`: as most other servers speak",
    "gemini": "`generate_content`: Google is called by its own protocol; needs the extra: "
    "`pip install 'turnkeeper[gemini]'`",
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
        "`provider/model`; a tier that is not set follows the first one that is",
        default_text="the provider's model for the tier",
    )
    for tier in TIERS
}
PROVIDERS = {
    tier: Setting(
        f"{tier.upper()}_MODEL_PROVIDER",
        "",
        str,
        "the provider alone; its model for the tier is taken",
    )
    for tier in TIERS
}
REASONING = {
    tier: Setting(
        f"{tier.upper()}_REASONING_EFFORT",
        None,
        Choice(words=EFFORTS),
        f"how much the tier's model reasons: {', '.join(f'`{one}`' for one in EFFORTS)}; what a "
        "model does not know is left out",
        default_text="the model's own",
    )
    for tier in TIERS
}
LITE_PROVIDER = Setting(
    "LITE_MODEL_PROVIDER", "", str, f"another name of `{PROVIDERS['flash'].name}`"
)
FALLBACKS = Setting(
    "FALLBACK_PROVIDERS",
    NO_WORDS,
    parse_models,
    "`provider/model,provider/model`: who answers where a provider fails, see below",
)
CHAINS = {
    name: Setting(
        f"AUXILIARY_{name.upper()}",
        NO_WORDS,
        parse_models,
        "models for work beside the conversation, in the order in which they are tried",
        default_text=f"FLASH, then `{FALLBACKS.name}`",
    )
    for name in AUXILIARY
}
SILENCE = Setting(
    "MODEL_TIMEOUT",
    TIMEOUT,
    Number(least=0.1, most=3600, mend="write seconds, from 0.1 to 3600."),
    "seconds without a word after which a provider counts as failed",
)
PRICES = Setting(
    "MODEL_PRICES",
    "",
    str,
    "JSON, dollars per million tokens of models that are not known here or cost something else: "
    '`{"provider/model": {"input": 1.0, "cached": 0.1, "output": 5.0}}`',
)
WINDOWS = Setting(
    "MODEL_WINDOWS",
    "",
    str,
    'JSON, tokens that a model holds: `{"provider/model": 128000}`; without it the '
    "catalogue or the model's server says it, else it is 128,000",
)
ASKED_CONTEXT = Setting(
    "OLLAMA_NUM_CTX",
    NUM_CTX,
    WholeNumber(most=10_000_000),
    "tokens that Ollama's models are asked to hold, at most as many as each was trained for; one "
    "that is loaded with more keeps it, and `MODEL_WINDOWS` says it of one model. `0`: what the "
    "server gives them",
)
TRANSCRIPTION = Setting(
    "TRANSCRIPTION_MODEL",
    "",
    str,
    "`provider/model` that puts voice notes into words (OpenAI's audio transcriptions, or a "
    "server that speaks them); without it people are asked to write",
)
COMPATIBLE = Setting(
    "OPENAI_COMPATIBLE_PROVIDERS",
    "",
    str,
    "a JSON list of servers that speak OpenAI's chat completions or responses or Anthropic's "
    "messages, see below",
    secret="api_keys",
)
CUSTOM = Setting("CUSTOM_PROVIDERS", "", str, "another name of it", secret="api_keys")
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
