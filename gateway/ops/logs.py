"""The log: one line an event, with time, level, name and fields; no secret in any of them.

Redaction works on the finished line, so it covers messages, arguments, fields and exceptions.
"""

import json
import logging
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO

from agent_core.guardrails.redaction import NOTHING, Hides, Redactions
from agent_core.guardrails.secret_shapes import hide_shapes
from agent_core.guardrails.secret_spellings import spell_secret

_LOOSE = re.compile(
    r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{20,}|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{12,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/-]{8,}"
)
"""Matches possible tokens, which a log can do without, unlike a text for people."""

MIN_SECRET = 6
"""Characters that a configured value must have to be hidden: shorter ones are words."""
QUIET = (
    "httpx",
    "httpx2",
    "httpcore",
    "telegram",
    "openai",
    "anthropic",
    "aiohttp.access",
    "markdown_it",
)
_OURS = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_BARE = re.compile(r"[^\s\"=\\]+")


class Redactor:
    """Hides the values of `secrets` in all forms of `spell_secret`. `read_lent` returns further
    words, those that people lend to commands; they may change."""

    def __init__(self, secrets: Iterable[str], read_lent: Hides | None = None) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET}
        words = {form: "…" for one in known for form in spell_secret(one)}
        self._known, self._lent = Redactions(words).with_shapes(), NOTHING
        self.read_lent = read_lent

    def clean(self, text: str) -> str:
        """Redact the secrets, and words that look like tokens."""
        if self.read_lent is not None:
            with suppress(OSError):  # those known before stay hidden
                self._lent = self.read_lent().with_shapes()
        hidden = self._known.hide_words(self._lent.hide_words(text))
        return hide_shapes(_LOOSE.sub("…", hidden), "…")


class Lines(logging.Formatter):
    """`time level event key=value …`, or the same as a JSON object; always one line."""

    def __init__(self, redactor: Redactor, *, as_json: bool) -> None:
        super().__init__()
        self.redactor = redactor
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """The record's line."""
        try:
            event = record.getMessage()
        except (TypeError, ValueError):
            event = str(record.msg)
        fields: dict[str, object] = {
            key: value for key, value in vars(record).items() if key not in _OURS
        }
        if record.name.partition(".")[0] not in ("turnkeeper", "adapters"):
            fields["logger"] = record.name
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        at = datetime.fromtimestamp(record.created, UTC)
        time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = record.levelname.lower()
        if self._json:
            line = json.dumps(
                {"time": time, "level": level, "event": event, **fields},
                ensure_ascii=False,
                default=str,
            )
        else:
            words = (f"{key}={_word(value)}" for key, value in fields.items())
            line = " ".join((time, level, _escape_controls(event), *words))
        return self.redactor.clean(line)


def set_up(
    level: str, secrets: Iterable[str], *, as_json: bool = False, stream: IO[str] | None = None
) -> None:
    """Write the log of this process to `stream`, standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(Redactor(secrets), as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def hide_lent(read_lent: Hides) -> None:
    """Hide these words, too, in the log of this process."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, Lines):
            handler.formatter.redactor.read_lent = read_lent


def show_errors(secrets: Iterable[str], *, as_json: bool = False) -> None:
    """Log errors alone to standard error, unless a log is set up."""
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.ERROR)
        logging.lastResort.setFormatter(Lines(Redactor(secrets), as_json=as_json))


def _escape_controls(text: str) -> str:
    """`text` in one line, without anything that moves a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _word(value: object) -> str:
    text = str(value)
    plain = text.isprintable()
    return text if plain and _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=not plain)
