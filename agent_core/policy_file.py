"""Parses the operator's rules from TOML. Faults are reported with line, value and mend."""

import difflib
import re
import tomllib
from collections.abc import Collection
from datetime import time
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_core.config.declaration import SettingsError
from agent_core.config.toml_text import parse_toml
from agent_core.errors import ToolFailed
from agent_core.policy_rules import Effect, Hours, OperatorRule
from agent_core.tools.finding.mcp_tools import NAME_SEPARATOR
from agent_core.tools.globs import Glob

MAX_BYTES = 256_000
MAX_RULES = 500
MAX_PATTERN, MAX_STARS = 200, 8
_KEYS = (
    *("name", "effect", "tool", "command", "host", "path", "role", "conversation"),
    *("time", "days", "zone", "reason"),
)
_ROLES = ("admin", "user", "viewer")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HEADER = re.compile(r"\s*\[\[\s*rule\s*\]\]\s*(#.*)?")
_TIME = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_COMMAND, _ADDRESS = re.compile(r"[^;|&<>\n]+"), re.compile(r"[^\s:]{0,40}[:*]\S*")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")


def parse_rules(text: str, file: str, tools: Collection[str] = ()) -> tuple[OperatorRule, ...]:
    """Parse the rules in `text`; SettingsError names `file`, line, value and mend. `tools`: names
    that a rule may have beside those of servers; empty: any."""
    place = _Place(text, file)
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SettingsError(file, "", f"the file is larger than {MAX_BYTES:,} bytes.")
    try:
        found = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise place.explain_syntax(str(error)) from None
    for key in found:
        if key != "rule":
            raise place.refuse_top(key)
    rows = found.get("rule", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SettingsError(f"{file}: rule", "", "write each rule below a line [[rule]].")
    if len(rows) > MAX_RULES:
        raise SettingsError(file, str(len(rows)), f"at most {MAX_RULES} rules.")
    rules = tuple(_Row(row, place, number, tools).make() for number, row in enumerate(rows))
    names: dict[str, int] = {}
    for number, rule in enumerate(rules):
        if rule.name in names:
            raise place.refuse(number, "name", rule.name, "another rule has this name.")
        names[rule.name] = number
    return rules


class _Place:
    """Positions in the file."""

    def __init__(self, text: str, file: str) -> None:
        self._lines, self._file = text.splitlines(), file
        self._headers = [n for n, line in enumerate(self._lines) if _HEADER.fullmatch(line)]

    def refuse(self, rule: int, key: str, value: object, mend: str) -> SettingsError:
        """The error for a key of the rule of this number."""
        shown = value if isinstance(value, str) else repr(value)
        return SettingsError(f"{self._file}, line {self._find(rule, key)}, {key}", shown[:80], mend)

    def refuse_top(self, key: str) -> SettingsError:
        """Return the error for a top-level key that is no rule."""
        known = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(key)}\b")
        line = next((n for n, text in enumerate(self._lines, 1) if known.match(text)), 1)
        return SettingsError(f"{self._file}, line {line}", key, "write rules below [[rule]].")

    def explain_syntax(self, said: str) -> SettingsError:
        """Return the error for a text that is no TOML."""
        found = _AT_LINE.search(said)
        line = found[1] if found and found[1] else str(len(self._lines) or 1)
        why = _AT_LINE.sub("", said).strip()
        shown = self._lines[int(line) - 1].strip()[:80] if self._lines else ""
        return SettingsError(f"{self._file}, line {line}", shown, f"this is no TOML: {why}.")

    def _find(self, rule: int, key: str) -> int:
        if rule >= len(self._headers):
            return 1
        start = self._headers[rule]
        after = self._headers[rule + 1] if rule + 1 < len(self._headers) else len(self._lines)
        wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        lines = range(start + 1, after)
        return next((n for n in lines if wanted.match(self._lines[n])), start) + 1


def _write_label(label: str) -> str:
    """A part of a host's name in ASCII. UnicodeError if it cannot be one."""
    if label.isascii():
        return label
    if "*" in label:
        raise UnicodeError("a star stands for no letters of another alphabet")
    return label.encode("idna").decode()


class _Row:
    """One rule as it was written."""

    def __init__(
        self, row: dict[str, object], place: _Place, number: int, tools: Collection[str]
    ) -> None:
        self._row, self._place, self._number, self._tools = row, place, number, tools

    def make(self) -> OperatorRule:
        """The rule; SettingsError."""
        for key in self._row:
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, 1)
                known = f"did you mean {near[0]}?" if near else f"known are {', '.join(_KEYS)}."
                raise self._refuse(key, self._row[key], known)
        name = self._text("name")
        if not _NAME.fullmatch(name):
            mend = "give each rule a name of small letters, digits and -, such as no-push."
            raise self._refuse("name", name, mend)
        effect = self._read_effect()
        rule = OperatorRule(
            name=name,
            effect=effect,
            tools=self._read_tools(),
            commands=self._read_shaped(
                "command", _COMMAND, "write the words that one command begins with."
            ),
            hosts=self._read_hosts(),
            paths=self._globs(),
            roles=self._read_roles(),
            conversations=self._read_shaped(
                "conversation",
                _ADDRESS,
                "write an address as /secret shows it, such as telegram:-100*.",
            ),
            hours=self._read_hours(),
            reason=self._text("reason")[:300],
        )
        bound = rule.tools or rule.commands or rule.hosts or rule.paths
        if effect == "allow" and not bound:
            mend = "an allow needs a tool, command, host or path: it would allow everything."
            raise self._refuse("effect", effect, mend)
        return rule

    def _refuse(self, key: str, value: object, mend: str) -> SettingsError:
        return self._place.refuse(self._number, key, value, mend)

    def _text(self, key: str) -> str:
        value = self._row.get(key, "")
        if not isinstance(value, str):
            raise self._refuse(key, value, "write a text in quotes.")
        return value.strip()

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._row.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise self._refuse(key, value, 'write a text, or a list of texts: ["a", "b"].')
        texts = tuple(one.strip() for one in listed)
        if key in self._row and not all(texts):
            raise self._refuse(key, value, "write at least one text that is not empty.")
        if key in self._row and not texts:
            raise self._refuse(key, value, "write at least one text, or leave it out.")
        return texts

    def _patterns(self, key: str) -> tuple[str, ...]:
        for one in (texts := self._texts(key)):
            if len(one) > MAX_PATTERN or one.count("*") > MAX_STARS:
                mend = f"use at most {MAX_PATTERN} characters and {MAX_STARS} stars."
                raise self._refuse(key, one, mend)
        return texts

    def _read_shaped(self, key: str, shape: re.Pattern[str], mend: str) -> tuple[str, ...]:
        for one in (texts := self._patterns(key)):
            if not shape.fullmatch(one):
                raise self._refuse(key, one, mend)
        return texts

    def _read_tools(self) -> tuple[str, ...]:
        """Check that some tool has each name: a rule for another one would never hold. A star, and
        a name with two underscores, may be for tools of servers that are not known yet."""
        for one in (texts := self._patterns("tool")):
            if not self._tools or "*" in one or NAME_SEPARATOR in one or one in self._tools:
                continue
            near = difflib.get_close_matches(one.lower().replace("-", "_"), self._tools, 1, 0.5)
            known = f"did you mean {near[0]}?" if near else f"known are {', '.join(self._tools)}."
            raise self._refuse("tool", one, f"no tool has this name; {known}")
        return texts

    def _read_hosts(self) -> tuple[str, ...]:
        """Hosts as calls name them: small letters, without a dot at the end or brackets, names of
        other alphabets in ASCII."""
        read = []
        for one in self._patterns("host"):
            host = one.lower().removesuffix(".")
            if host[:1] + host[-1:] == "[]":
                host = host[1:-1]
            port = host.count(":") == 1
            if port or not all(char.isalnum() or char in "*.-_:" for char in host):
                mend = "write a host alone, such as example.com or *.example.com."
                raise self._refuse("host", one, mend)
            try:
                read.append(".".join(map(_write_label, host.split("."))))
            except UnicodeError:
                mend = "this is no name of a host."
                raise self._refuse("host", one, mend) from None
        return tuple(read)

    def _globs(self) -> tuple[str, ...]:
        for one in (texts := self._patterns("path")):
            if one.startswith(("/", "~")) or ".." in one.split("/"):
                mend = "write it from the workspace's folder, such as docs/**."
                raise self._refuse("path", one, mend)
            try:
                Glob(one)
            except ToolFailed as error:
                raise self._refuse("path", one, str(error)) from None
        return texts

    def _read_effect(self) -> Effect:
        wanted = self._text("effect")
        for effect in get_args(Effect):
            if effect == wanted:
                return effect  # type: ignore[no-any-return]  # one of the words
        raise self._refuse("effect", wanted, "write allow, ask or deny.")

    def _read_roles(self) -> tuple[str, ...]:
        for one in (texts := self._texts("role")):
            if one not in _ROLES:
                raise self._refuse("role", one, f"write one of {', '.join(_ROLES)}.")
        return texts

    def _read_hours(self) -> Hours | None:
        text, days, zone = self._text("time"), self._texts("days"), self._text("zone") or "UTC"
        for one in days:
            if one not in _DAYS:
                raise self._refuse("days", one, f"write days as {', '.join(_DAYS)}.")
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise self._refuse("zone", zone, "write a time zone such as Europe/Berlin.") from None
        if not text and not days:
            return None
        found = _TIME.fullmatch(text or "00:00-00:00")
        try:
            if found is None:
                raise ValueError(text)
            begin = time(int(found[1]), int(found[2]))
            end = time(int(found[3]) % 24, int(found[4]))
            if found[3] == "24" and found[4] != "00":
                raise ValueError(text)
        except ValueError:
            raise self._refuse("time", text, "write it as 18:00-08:00.") from None
        numbers = frozenset(_DAYS.index(one) for one in days) or frozenset(range(7))
        return Hours(begin=begin, end=end, days=numbers, zone=zone)
