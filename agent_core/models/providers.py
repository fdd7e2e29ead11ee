"""Providers known by name, and their APIs."""

from typing import Literal, get_args
from urllib.parse import urlsplit

Tier = Literal["max", "pro", "flash"]
TIERS: tuple[Tier, ...] = get_args(Tier)
ApiMode = Literal[
    "chat_completions",
    "codex_responses",
    "anthropic_messages",
    "generate_content",
    "ollama_chat",
]
API_MODES: tuple[ApiMode, ...] = get_args(ApiMode)

OWN_MODES: dict[str, tuple[ApiMode, ...]] = {
    "openai": ("chat_completions", "codex_responses"),
    "gemini": ("chat_completions", "generate_content"),
}
"""APIs of providers known by name; the first is the default unless their address implies
another."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""Reasoning efforts, from none to the maximum."""

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
"""The tiers' models when only a key is set: ids that openai 3.54 and anthropic 2.12 list, and
Google's own pages (November 2026)."""

TIMEOUT = 300.0
NUM_CTX = 16_384
"""Tokens that a model of Ollama is asked to hold: enough for tools, a conversation and an answer,
and 2 GB of memory for a model of 8B."""


def detect_api_mode(base_url: str) -> ApiMode:
    """Return the API that an address implies: Anthropic's messages at Anthropic or for a path
    ending in /anthropic, as other providers offer it; responses at OpenAI itself, whose models
    reason beside tools only there, or for a path ending in /responses or /codex."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    if parts.hostname == "api.anthropic.com" or path.endswith("/anthropic"):
        return "anthropic_messages"
    if parts.hostname == "api.openai.com" or path.endswith(("/responses", "/codex")):
        return "codex_responses"
    return "chat_completions"


def is_own_server(base_url: str) -> bool:
    """Return True if `base_url` looks like a server of the operator's own: no provider is reached
    without TLS."""
    return urlsplit(base_url).scheme == "http"


def normalize_base_url(base_url: str, mode: ApiMode) -> str:
    """`base_url` as the client of `mode` wants it: each adds the rest of the path by itself."""
    if mode == "anthropic_messages":
        return base_url.rstrip("/").removesuffix("/v1")
    if mode == "codex_responses":
        return base_url.rstrip("/").removesuffix("/responses")
    if mode == "generate_content":
        return base_url.rstrip("/").removesuffix("/openai").removesuffix("/v1beta")
    return base_url
