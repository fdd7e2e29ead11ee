"""Reads the reason with which an answer ended, in the words of providers and of proxies."""

from agent_core.models.port import Finish

CUT = frozenset(
    [
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",  # Mistral
        "model_context_window_exceeded",
        "continuation",  # Google
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
