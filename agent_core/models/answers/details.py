"""Reads what stands beside the words of an answer: counts of tokens, of which a mistake does not
spoil it, and the reason with which it ended, in the words of providers and of proxies."""

from agent_core.models.port import Finish

MAX_COUNT = 1_000_000_000
CUT = frozenset(
    [
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",  # Mistral
        "model_context_window_exceeded",
        "continuation",  # Google
        "pause_turn",  # Anthropic, after a long work of its own
    ]
)
REFUSED = frozenset(
    [
        "content_filter",
        "sensitive",  # Zhipu
        "refusal",
        "safety",  # the others are Google's
        "recitation",
        "language",
        "blocklist",
        "prohibited_content",
        "spii",
        "model_armor",
    ]
)
CALLS = frozenset(["tool_calls", "function_call", "tool_use"])
GARBLED = frozenset(
    [
        "function_call_filter",  # Google's, by OpenAI's protocol
        "malformed_function_call",
        "malformed_response",
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
    ]
)
"""Reasons of an answer that its provider could not read: it is asked for again."""
GIVEN_UP = frozenset(
    [
        "error",  # Mistral, OpenRouter
        "abort",  # vLLM, SGLang
        "network_error",  # Zhipu
        "insufficient_system_resource",  # DeepSeek
    ]
)
"""Reasons that make the answer a part of one."""


def read_count(usage: object, *path: str) -> int:
    """Return the number at `path`, 0 if there is none that can be meant."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, dict) else None
    return clean_count(usage)


def clean_count(given: object) -> int:
    """Return the number that a server gives as a count, 0 if it cannot be meant."""
    try:
        count = int(float(given)) if isinstance(given, int | float | str) else 0
    except (ValueError, OverflowError):
        return 0
    return count if 0 < count <= MAX_COUNT else 0


def read_ending(reason: str | None) -> str:
    """Return the reason in one form. Proxies write `MAX_TOKENS` or `FinishReason.MAX_TOKENS`, and
    Google adds its own after a colon: `content_filter: PROHIBITED_CONTENT`."""
    return (reason or "").partition(":")[0].rpartition(".")[2].strip().lower()


def find_finish(ending: str) -> Finish:
    """Return how an answer with this ending is meant; any other one is whole."""
    if ending in CUT:
        return "length"
    if ending in REFUSED:
        return "refused"
    return "tool_calls" if ending in CALLS else "stop"
