"""Answers that break off. An error in place of an answer's rest, or of a whole one with status 200,
means what it would mean as a status of its own."""

import httpx2
import msgspec

from agent_core.errors import ModelFailed, ModelFault
from agent_core.models.answers.refusals import read_error_message
from agent_core.models.credit import says_unpaid
from agent_core.models.overflow import find_fields, read_overflow
from agent_core.phrases import Phrase, phrase

PAUSE = 0.5
"""Seconds before the next attempt, if the provider names none."""
_NAMES = {
    400: ("invalid_request_error", "invalid_prompt", "invalid_argument", "badrequesterror"),
    401: ("authentication_error", "invalid_api_key", "unauthorized", "unauthenticated"),
    403: ("permission_error", "permission_denied"),
    404: ("not_found_error", "model_not_found", "not_found"),
    408: ("timeout_error", "deadline_exceeded"),
    429: ("rate_limit_error", "rate_limit_exceeded", "rate_limited", "resource_exhausted"),
    500: ("server_error", "api_error", "internal_error", "internal_server_error", "internal"),
    503: ("server_is_overloaded", "slow_down", "unavailable", "vector_store_timeout"),
    529: ("overloaded_error",),
}
STATUSES = {name: status for status, names in _NAMES.items() for name in names}
"""Statuses by the names of errors: OpenAI's, Anthropic's, Google's, vLLM's."""


class Broken(Exception):
    """The answer broke off or says nothing: worth a retry. `said` is a phrase without the
    provider's name, or the provider's own text. `window`: see ModelFailed. `told`: the phrase if
    there is no retry; `refusal`: the error as an answer with its status, which replaces all of
    these; `tries`: attempts that the allowance does not count."""

    def __init__(
        self,
        said: str | Phrase,
        fault: ModelFault = "unreachable",
        pause: float = 0.0,
        window: int = 0,
        told: ModelFailed | None = None,
    ) -> None:
        super().__init__(said if isinstance(said, str) else said.key)
        self.said = said
        self.fault = fault
        self.pause = pause
        self.window = window
        self.told = told
        self.refusal: httpx2.Response | None = None
        self.tries = 0


def make_broken(error: object, fault: ModelFault) -> Broken:
    """Translate an error that came in place of an answer's rest. `fault`: what it is if nothing in
    it says so."""
    status = find_status(error)
    if says_unpaid(error, status):
        return Broken(phrase("fault_credit"), "unpaid")
    if (window := read_overflow(error, status)) is not None:
        return Broken(phrase("fault_overflow"), "overflow", window=window)
    detail = read_error_message(error)
    said = phrase("fault_error", detail=detail) if detail else phrase("fault_cut")
    broken = Broken(said, fault, PAUSE)
    if status:
        body = msgspec.json.encode({"error": error})
        broken.refusal = httpx2.Response(status, content=body)
    return broken


def find_status(error: object) -> int:
    """Return the status that an error would have as an answer of its own, 0 if it does not say:
    OpenRouter and vLLM give the number, others a name for it."""
    fields = find_fields(error)
    for wanted in ("code", "status", "type"):
        for name, value in fields:
            if name == wanted and (status := _read_status(value)):
                return status
    return 0


def _read_status(value: object) -> int:
    told = str(value).lower()
    if told.isdecimal() and len(told) == 3 and 400 <= int(told) < 600:
        return int(told)
    return STATUSES.get(told, 0)
