"""Finds the field because of which a server refuses a request that it would take without it: what
OpenAI's protocol has beyond its beginnings is unknown to many servers and models."""

import re

import httpx2

from agent_core.models.answers.refusals import read_body, read_text
from agent_core.models.overflow import read_overflow

OPTIONAL = (
    "stream_options",
    "prompt_cache_key",
    "enable_thinking",
    "reasoning_effort",
    "reasoning_content",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
)
"""Fields of chat completions that can be left out."""
_MAX_READ = 4_000
_FIELD = re.compile(rf"(?<!\w)(?:{'|'.join(OPTIONAL)})(?!\w)")
_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")
_UNKNOWN = re.compile(
    r"support|recognized|recognised|unknown|unexpected|\bextra|permitted|allowed|forbidden|invalid"
    r"|not (?:a )?valid|does not (?:accept|exist|match)|cannot be used|additional propert",
    re.IGNORECASE,
)


def find_refused_field(response: httpx2.Response) -> str:
    """Return the optional field that an answer with status 400 or 422 refuses, "" if it refuses
    something else. xAI writes `reasoningEffort` for `reasoning_effort`."""
    body = read_body(response)
    if read_overflow(body, response.status_code) is not None:
        return ""
    error = body.get("error", body) if isinstance(body, dict) else body
    param = error.get("param") if isinstance(error, dict) else None
    if isinstance(param, str) and (field := param.rpartition(".")[2]) in OPTIONAL:
        return field
    text = _CAPITAL.sub(lambda one: "_" + one[0].lower(), read_text(response)[:_MAX_READ])
    found = _FIELD.search(text) if _UNKNOWN.search(text) else None
    return found[0] if found else ""
