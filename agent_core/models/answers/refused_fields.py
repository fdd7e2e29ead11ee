"""Learns the fields because of which a server refuses requests that it would take without them:
what a protocol has beyond its beginnings is unknown to many servers, proxies and models."""

import re

import httpx2

from agent_core.models.answers.refusals import read_body, read_text
from agent_core.models.overflow import find_fields, read_overflow

STATUSES = (400, 404, 422)
"""Of refusals of a field; 404 is OpenRouter's."""
_MAX_READ = 4_000
_CAPITAL = re.compile(r"(?<=[a-z])[A-Z]")
_UNKNOWN = re.compile(
    r"support|recognized|recognised|unknown|unexpected|\bextra|permitted|allowed|forbidden|invalid"
    r"|not (?:a )?valid|does not (?:accept|exist|match)|cannot be used|additional propert"
    r"|not implemented|unavailable|deprecated"
    r"|\u4e0d\u652f\u6301|\u672a\u77e5|\u65e0\u6548|\u4e0d\u5141\u8bb8|\u6709\u8bef",  # Chinese
    re.IGNORECASE,
)


_NEAR = 12
_BEFORE = re.compile(r"(?:['\"`\[(:.\\]|propert(?:y|ies)|parameters?|arguments?|fields?) ?\Z|\A\Z")
_AFTER = re.compile(r"['\"`\])\\:.,]| is |[^\x00-\x7f]|\Z")
"""Text around a common word that is the name of a field."""


class RefusedFields:
    """Fields of requests that the models of one server refuse, of the `optional` ones. `implied`:
    may also be refused where it is not sent, as its default."""

    def __init__(self, optional: tuple[str, ...], implied: str = "") -> None:
        self._optional, self._implied = optional, implied
        named = "|".join(optional)
        self._named = re.compile(rf"(?<![A-Za-z0-9_-])(?:{named})(?![A-Za-z0-9_-])")
        self.by_model: dict[str, set[str]] = {}
        """The fields that each model refuses."""

    def find(self, response: httpx2.Response, sent: bytes) -> str:
        """Return the optional field of the request `sent` that an answer refuses, "" if it refuses
        something else. xAI writes `reasoningEffort` for `reasoning_effort`."""
        body = read_body(response)
        if response.status_code not in STATUSES:
            return ""
        if read_overflow(body, response.status_code) is not None:
            return ""
        for name, value in find_fields(body):
            if name == "param" and isinstance(value, str) and (field := self._match(value, sent)):
                return field
        text = _CAPITAL.sub(lambda one: "_" + one[0].lower(), read_text(response)[:_MAX_READ])
        return self._search(text, sent) if _UNKNOWN.search(text) else ""

    def _match(self, path: str, sent: bytes) -> str:
        """Return the field that a path such as `reasoning.effort` leads to or through."""
        names = path.split(".")
        known = (one for one in (names[-1], *names) if one in self._optional)
        return next((one for one in known if self._is_sent(sent, one)), "")

    def _search(self, text: str, sent: bytes) -> str:
        for found in self._named.finditer(text):
            plain = "_" in found[0] or _is_named(text, found.start(), found.end())
            if plain and self._is_sent(sent, found[0]):
                return found[0]
        return ""

    def _is_sent(self, sent: bytes, field: str) -> bool:
        return field == self._implied or f'"{field}":'.encode() in sent

    def add(self, model: str, field: str) -> bool:
        """Leave `field` out for a model from now on. Return False if it is none, or is left out
        already."""
        known = self.by_model.setdefault(model, set())
        if not field or field in known:
            return False
        known.add(field)
        return True


def _is_named(text: str, start: int, end: int) -> bool:
    """Return True if a common word at a place of a text is meant as the name of a field."""
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    return bool(_BEFORE.search(before) and _AFTER.match(after))
