"""How servers say that a request is longer than their model holds: forms that others recorded.

Each: what it answers to a request that is too long, for a model that holds `HELD` tokens, and
whether it says how many these are.
"""

import json
from dataclasses import dataclass

from tests.fakes.model_steps import Events, Fail, Json, Step

HELD = 8192


@dataclass(frozen=True)
class Overflow:
    """A form. `protocol`: `chat`, `responses`, `anthropic` or `gemini`."""

    protocol: str
    step: Step
    told: bool = True


def _error(http: int, /, **error: object) -> Fail:
    return Fail(http, body={"error": error})


def _events(*events: object) -> Events:
    return Events(tuple(json.dumps(one) for one in events))


def _end_stream(body: Json) -> Step:
    """Ends a stream before its first word, and says why where none is asked for (llama-cpp-python
    0.3)."""
    return Events(()) if body.get("stream") else _REASON


_REASON = _error(
    400,
    message=f"This model's maximum context length is {HELD} tokens. However, you requested "
    "9000 tokens (8999 in the messages, 1 in the completion). Please reduce the length of the "
    "messages or completion.",
    type="invalid_request_error",
    param="messages",
    code="context_length_exceeded",
)


OVERFLOWS = {
    "OpenAI": Overflow(
        "chat",
        _error(
            400,
            message=f"This model's maximum context length is {HELD} tokens. However, your messages "
            "resulted in 9000 tokens. Please reduce the length of the messages.",
            type="invalid_request_error",
            param="messages",
            code="context_length_exceeded",
        ),
    ),
    "OpenAI by responses, in the stream": Overflow(
        "responses",
        _events(
            {"type": "response.created", "response": {"status": "in_progress"}},
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "code": "context_length_exceeded",
                    "message": "Your input exceeds the context window of this model.",
                },
            },
        ),
        told=False,
    ),
    "OpenAI by responses, failed": Overflow(
        "responses",
        _events(
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {
                        "code": "context_length_exceeded",
                        "message": "Your input exceeds the context window of this model.",
                    },
                },
            },
        ),
        told=False,
    ),
    "Anthropic": Overflow(
        "anthropic",
        Fail(
            400,
            body={
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": f"prompt is too long: 9000 tokens > {HELD} maximum",
                },
            },
        ),
    ),
    "Anthropic, with the answer": Overflow(
        "anthropic",
        Fail(
            400,
            body={
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "input length and `max_tokens` exceed context limit: 3000 + 64000 > "
                    f"{HELD}, decrease input length or `max_tokens` and try again",
                },
            },
        ),
    ),
    "Anthropic, as a reason to stop": Overflow(
        "anthropic",
        _events(
            {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}}},
            {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}},
            {"type": "message_stop"},
        ),
        told=False,
    ),
    "Gemini": Overflow(
        "gemini",
        _error(
            400,
            code=400,
            status="INVALID_ARGUMENT",
            message="The input token count (9000) exceeds the maximum number of tokens allowed "
            f"({HELD}).",
        ),
    ),
    "OpenRouter, wrapped": Overflow(
        "chat",
        _error(
            502,
            message="Provider returned error",
            code=502,
            metadata={
                "raw": f"This endpoint's maximum context length is {HELD} tokens. However, you "
                "requested about 9000 tokens"
            },
        ),
    ),
    "llama-cpp-python": Overflow("chat", _end_stream),
    "llama.cpp": Overflow(
        "chat",
        _error(
            400,
            code=400,
            message="the request exceeds the available context size, try increasing it",
            type="exceed_context_size_error",
            n_prompt_tokens=9000,
            n_ctx=HELD,
        ),
    ),
    "llama.cpp, through a proxy": Overflow(
        "chat",
        _events(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9000,
                    "n_ctx": HELD,
                }
            }
        ),
    ),
    "vLLM": Overflow(
        "chat",
        Fail(
            400,
            body={
                "object": "error",
                "message": f"This model's maximum context length is {HELD} tokens. However, your "
                "prompt contains at least 9000 input tokens.",
                "type": "BadRequestError",
                "code": 400,
            },
        ),
    ),
    "LM Studio": Overflow(
        "chat",
        Fail(
            400,
            body={
                "error": "Trying to keep the first 9000 tokens when context the overflows. However, "
                f"the model is loaded with context length of only {HELD} tokens, which is not "
                "enough. (error: n_keep: 9000>= n_ctx: 8192)"
            },
        ),
    ),
    "LM Studio, in the stream": Overflow(
        "chat",
        _events({"error": {"message": "Input does not fit in context length"}}),
        told=False,
    ),
    "Ollama, after it cut": Overflow(
        "chat", _error(500, message="no user query found in messages"), told=False
    ),
}

OTHERS = {
    "over the rate": _error(
        429,
        message="Request too large for gpt-5: Limit 30000, Requested 90000 tokens. The input or "
        "output context length exceeds your rate limit.",
        code="rate_limit_exceeded",
    ),
    "another limit": _error(400, message="max_tokens is too large: 9000. At most 4096."),
    "a bad field": _error(400, message="Unknown parameter: 'context_window'."),
    "a tool": _error(400, message="tools[3].description is too long: 2000 characters > 1024."),
    "down": _error(503, message="The model is loading its context."),
}
"""What is about something else."""
