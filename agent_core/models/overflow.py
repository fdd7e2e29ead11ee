"""Recognises errors about a request that is too long for its model, and the model's window in them.

Each server reports it in its own way: by a code, a status, words, or in a stream that began well.
The forms are those of OpenAI, Anthropic, Google, OpenRouter, Ollama, llama.cpp, vLLM, LM Studio,
Mistral, xAI, Alibaba, Zhipu, Cohere and TGI (November 2026); test_overflow.py has them.
"""

import re

CODES = frozenset(
    [
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "request_too_large",
    ]
)
PASSING = (401, 402, 403, 408, 429)
"""Statuses that are about something else, whatever their words."""
TOO_LARGE = 413
"""A proxy's status for a request that is too large, whatever its words."""
_MAX_READ = 4_000
_DEEPEST = 4
_WORDS = re.compile(
    r"context[ _-](?:length|window|size|limit)|prompt is too long|input is too long"
    r"|maximum (?:number of )?(?:input |prompt )?tokens|n_keep: ?\d+ ?>= ?n_ctx"
    r"|does not fit in(?:to)? (?:the )?context|no user query found in messages",
    re.IGNORECASE,
)
_EXCEEDS = re.compile(
    r"exceed|longer|larger|greater|too (?:long|large|many)|does not fit|maximum|overflow|>"
    r"|no user query found",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"maximum prompt length|range of input length|prompt exceeds max length|too many tokens:"
    r"|inputs` tokens \+ `max_new_tokens` must be|inputs` must have less than",
    re.IGNORECASE,
)
"""Words that say it all."""
_HELD = (
    re.compile(r"n_ctx\W{1,4}(\d+)", re.IGNORECASE),
    re.compile(r"maximum context length (?:is|of) (\d+)", re.IGNORECASE),
    re.compile(r"number of tokens allowed \((\d+)\)", re.IGNORECASE),
    re.compile(r"(\d+) maximum context length", re.IGNORECASE),
    re.compile(r"maximum prompt length is (\d+)", re.IGNORECASE),
    re.compile(r"input length should be \[\d+, ?(\d+)\]", re.IGNORECASE),
    re.compile(r"(?:cannot exceed|must be <=|must have less than|limit is) (\d+)", re.IGNORECASE),
    re.compile(r"> (\d+)"),
    re.compile(r"context (?:window|size|length|limit)\D{1,24}(\d+)", re.IGNORECASE),
)


def read_overflow(error: object, status: int = 0) -> int | None:
    """Tokens that the model holds, by its provider's `error` (a body, or its part); 0: it does not
    say; None: the error is about something else. `status`: the answer's, 0 in a stream."""
    if status in PASSING:
        return None
    fields = dict(find_fields(error))
    code = str(fields.get("code") or ""), str(fields.get("type") or "")
    held = fields.get("n_ctx")
    if isinstance(held, int) and not isinstance(held, bool) and held > 0:
        return held
    text = str(error)[:_MAX_READ]
    told = CODES.intersection(code) or _PLAIN.search(text)
    told = told or (_WORDS.search(text) and _EXCEEDS.search(text))
    if not told and status != TOO_LARGE:
        return None
    return next((int(found[1]) for one in _HELD if (found := one.search(text))), 0)


def find_fields(error: object, depth: int = 0) -> list[tuple[str, object]]:
    """Return the fields of a nested error; an inner one comes after its outer one."""
    if not isinstance(error, dict) or depth == _DEEPEST:
        return []
    found: list[tuple[str, object]] = [
        (str(name), value) for name, value in error.items() if not isinstance(value, dict)
    ]
    for value in error.values():
        found += find_fields(value, depth + 1)
    return found
