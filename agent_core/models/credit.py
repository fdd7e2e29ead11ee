"""Recognises errors of an account without credit. A retry does not help then, unlike after a rate
limit, for which some providers use the same status (November 2026)."""

import re

from agent_core.models.overflow import find_fields

PAYMENT_REQUIRED = 402
CODES = frozenset(["insufficient_quota", "billing_not_active", "billing_error"])
"""OpenAI's and Anthropic's."""
_MAX_READ = 4_000
_WORDS = re.compile(
    r"credit balance is too low|insufficient (?:balance|credits?|funds)", re.IGNORECASE
)
"""Anthropic's (400), DeepSeek's and OpenRouter's (402, or in a stream)."""


def says_unpaid(error: object, status: int = 0) -> bool:
    """True if `error` (a body, or its part) says so. `status`: the answer's, 0 in a stream."""
    fields = dict(find_fields(error))
    code = str(fields.get("code") or ""), str(fields.get("type") or "")
    told = CODES.intersection(code) or _WORDS.search(str(error)[:_MAX_READ])
    return status == PAYMENT_REQUIRED or bool(told)
