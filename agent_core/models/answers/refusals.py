"""A provider's refusal: its message, and the seconds that it asks to wait."""

import math
import re
from email.utils import mktime_tz, parsedate_tz

import httpx2
import msgspec

from agent_core import ambient

MESSAGES = ("message", "detail", "msg", "error_msg", "status_msg", "reason")
"""Fields of an error that hold its message."""
MAX_WAIT = 31 * 86_400.0
"""Seconds: a longer wait is a mistake of the server, and counts as none."""
MAX_READ = 4_000
"""Characters of an error in which its pause is looked for."""
EPOCH = 1e9
"""Seconds above which a wait is a point in time."""
_LASTING = (
    r"\d{1,9}(?:\.\d{1,9})? ?(?:ms|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?)(?![a-z])"
)
_AGAIN = re.compile(
    r"(?:try again|retry|wait)(?:ing)?(?: again)?(?: in| after| for)? "
    rf"({_LASTING}(?:[, ]{{0,2}}{_LASTING}){{0,2}})"
    r"|retryDelay\W{1,6}(\d{1,9}(?:\.\d{1,9})?s)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<(?:title|message)(?: [^<>]{0,100})?>([^<]{1,200})", re.IGNORECASE)
_LASTS = re.compile(r"(\d{1,13}(?:\.\d{1,9})?) ?(ms|[smh]?)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "": 1.0}


def read_text(response: httpx2.Response) -> str:
    """Return the body as text, whatever its charset is called."""
    try:
        return response.content.decode(response.charset_encoding or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return response.content.decode("utf-8", "replace")


def read_body(response: httpx2.Response) -> object:
    """Return the body as JSON, otherwise as text."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return read_text(response)


def read_error_message(error: object) -> str:
    """Return the message of a provider's error object in any form, "" if it has none. Of a web
    page it is the title."""
    told = _find_message(error).strip()
    if not told.startswith("<"):
        return told
    title = _TITLE.search(told[:MAX_READ])
    return " ".join(title[1].split()) if title else ""


def _find_message(error: object) -> str:
    if not isinstance(error, dict):
        return str(error or "")
    told = next(filter(None, map(error.get, MESSAGES)), None)
    if told is None:  # not the status once more
        told = {k: one for k, one in error.items() if k != "status" and type(one) is not int}
        told = told if any(told.values()) else ""
    return told if isinstance(told, str) else msgspec.json.encode(told).decode()


def read_detail(response: httpx2.Response) -> str:
    """Return the message in an error body of any form, otherwise what its status means."""
    body = read_body(response)
    body = body[0] if isinstance(body, list) and body else body  # Google's
    error = body.get("error") or body if isinstance(body, dict) else body
    moved = response.headers.get("location", "") if response.has_redirect_location else ""
    return read_error_message(error) or f"{response.reason_phrase} {moved}".strip()


def read_pause(response: httpx2.Response) -> float | None:
    """Return the seconds that an answer asks to wait: by a header for that, in its words, or by the
    reset of a used-up limit."""
    for header, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wait = _read_wait(response.headers.get(header, ""), unit)
        if wait is not None:
            return wait
    if response.status_code != 429:
        return None
    told = _AGAIN.search(read_text(response)[:MAX_READ])
    if told:
        return _limit_wait(_read_seconds(told[1] or told[2]))
    return _read_reset(response.headers)


def _read_wait(said: str, unit: float) -> float | None:
    try:
        return _limit_wait(float(said) * unit)
    except ValueError:
        until = parsedate_tz(said)
    try:
        return None if until is None else _limit_wait(mktime_tz(until))
    except (ValueError, OverflowError):  # a date that no calendar has
        return None


def _limit_wait(seconds: float | None) -> float | None:
    """Return the seconds from now on, None if they cannot be meant."""
    if seconds is None:
        return None
    seconds = seconds - ambient.now() if seconds > EPOCH else seconds
    return max(0.0, seconds) if seconds <= MAX_WAIT else None


def _read_reset(headers: httpx2.Headers) -> float | None:
    """Return the seconds until every used-up limit is reset."""
    waits = []
    for of in ("-requests", "-tokens", ""):
        said, left = (headers.get(f"x-ratelimit-{one}{of}", "") for one in ("reset", "remaining"))
        if left != "0" or not (seconds := _read_seconds(said)):
            continue
        seconds = seconds / 1000 if seconds > EPOCH * 100 else seconds  # OpenRouter: milliseconds
        waits.append(_limit_wait(seconds) or 0.0)
    return max(waits, default=None)


def _read_seconds(said: str) -> float | None:
    """`6m0s`, `20 seconds` or `34.5` in seconds."""
    parts = _LASTS.findall(said)
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts) if parts else None


def write_time(seconds: float) -> str:
    """About so long, rounded up, in a unit that all languages have: 20 s, 5 min, 3 h."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3_600, 48)):
        if seconds <= length * most:
            return f"{max(1, math.ceil(seconds / length))} {unit}"
    return f"{math.ceil(seconds / 86_400)} d"
