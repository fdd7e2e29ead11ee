"""The operator's own rules and their matching. Values and pure functions.

Deny is stronger than ask, ask stronger than allow. An allow holds only if all of a call is covered;
a deny or an ask if any of it is.
"""

import re
from collections.abc import Iterator
from datetime import datetime, time
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from agent_core.tools import paths
from agent_core.tools.globs import Glob
from agent_core.tools.secret_files import list_named
from agent_core.tools.shell_reading.handing_over import hands_over
from agent_core.tools.shell_reading.meeting import could_begin, could_name
from agent_core.tools.shell_reading.possible_words import read_possible
from agent_core.tools.shell_words import split_plainly

Effect = Literal["allow", "ask", "deny"]
PREFIX = "operator:"
"""Prefix of a verdict's rule that an operator wrote."""
_STRENGTH: tuple[Effect, ...] = ("deny", "ask", "allow")
_APART = re.compile(r"[\s;|&<>()'\"`=$\\{}]+")
_APART_IN_CODE = re.compile(r"[\s;|&<>()'\"`=$\\{},\[\]]+")
_QUOTES = re.compile(r"\\\n|\$?['\"]|\\")
_BLANK = re.compile(r"\$\{?IFS\b\}?")
_NAMED_HOST = re.compile(
    r"://(?:[^\s/@]{0,200}@)?(\[[0-9a-fA-F:.]+\]|[^\s/:?#@]{1,253})"
    r"|\A(?:[\w.+-]{1,64}@)([\w-]{1,63}(?:\.[\w-]{1,63}){0,8})(?![\w.-])"
    r"|\A([\w-]{1,63}(?:\.[\w-]{1,63}){0,8})\.?(?::(?!//)\S*)?\Z"
)
MAX_OPTIONS = 6
"""Maximum options of a program before the words that a rule names: `git -C a push`."""


class Hours(Struct, frozen=True, kw_only=True):
    """A time of the day in a zone, over midnight where it ends before it begins; on `days` (0 is
    Monday) of its beginning."""

    begin: time
    end: time
    days: frozenset[int]
    zone: str = "UTC"

    def hold(self, now: float) -> bool:
        """True at the moment `now`."""
        there = datetime.fromtimestamp(now, ZoneInfo(self.zone))
        at, today = there.time(), there.weekday()
        if self.begin < self.end:
            return today in self.days and self.begin <= at < self.end
        if at >= self.begin:
            return today in self.days
        return at < self.end and (today - 1) % 7 in self.days


class OperatorRule(Struct, frozen=True, kw_only=True):
    """One rule. Each condition that is not () has to hold; within one, any of its patterns."""

    name: str
    effect: Effect
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Words that a command begins with."""
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    hours: Hours | None = None
    reason: str = ""
    unclear: bool = False
    """It might hold, as a part of the command is unknown; a deny asks then."""

    @property
    def rule(self) -> str:
        """The rule's name in a verdict."""
        return PREFIX + self.name


class RuledCall(Struct, frozen=True, kw_only=True):
    """The call as rules see it. `code`: for an interpreter; `now`: seconds since 1970."""

    tool: str
    command: str = ""
    code: str = ""
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    role: str = ""
    conversation: str = ""
    now: float = 0.0


def find_rule(rules: tuple[OperatorRule, ...], call: RuledCall) -> OperatorRule | None:
    """Return the strongest rule that holds for the call, the first of several. A deny or ask that
    might hold, because the command's words cannot tell, asks."""
    holding = [rule for rule in rules if _holds(rule, call)]
    holding += [
        replace(rule, effect="ask", unclear=True)
        for rule in rules
        if rule not in holding and rule.effect != "allow" and _could_hold(rule, call)
    ]
    return min(holding, key=lambda rule: _STRENGTH.index(rule.effect), default=None)


def opens_host(rules: tuple[OperatorRule, ...], call: RuledCall, host: str) -> bool:
    """An allow names the host, and holds for the call but for the rest of its hosts."""
    alone = replace(call, hosts=(host,))
    return any(
        rule.effect == "allow" and bool(rule.hosts) and _holds(rule, alone) for rule in rules
    )


def match_stars(pattern: str, text: str) -> bool:
    """Return True if all of `text` matches; `*` is any letters. Goes back to the last star at most,
    so it takes at most the product of both lengths."""
    at = to = kept = 0
    star = -1
    while to < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, kept, at = at, to, at + 1
        elif at < len(pattern) and pattern[at] == text[to]:
            at, to = at + 1, to + 1
        elif star >= 0:
            kept += 1
            at, to = star + 1, kept
        else:
            return False
    return not pattern[at:].strip("*")


def _holds(rule: OperatorRule, call: RuledCall) -> bool:
    return _is_meant(rule, call) and _covers_command(rule, call) and _covers_paths(rule, call)


def _is_meant(rule: OperatorRule, call: RuledCall) -> bool:
    """Return True if the rule's person, place, time and tool match."""
    return (
        _any_fits(rule.tools, call.tool)
        and _any_fits(rule.roles, call.role)
        and _any_fits(rule.conversations, call.conversation)
        and (rule.hours is None or rule.hours.hold(call.now))
        and _covers_hosts(rule, call)
    )


def _could_hold(rule: OperatorRule, call: RuledCall) -> bool:
    if not call.command or not (rule.commands or rule.paths) or not _is_meant(rule, call):
        return False
    possible = read_possible(call.command)
    wanted = [tuple(one.split()) for one in rule.commands]
    by_command = _covers_command(rule, call) or any(
        could_begin(command, one) for command in possible for one in wanted
    )
    return by_command and (
        _covers_paths(rule, call)
        or any(could_name(command, glob) for command in possible for glob in rule.paths)
    )


def _any_fits(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(match_stars(one, text) for one in patterns)


def _covers_hosts(rule: OperatorRule, call: RuledCall) -> bool:
    if not rule.hosts:
        return True
    named = list(map(_cut_port, call.hosts))
    found = [any(match_stars(one, host.lower()) for one in rule.hosts) for host in named]
    if rule.effect == "allow":
        return bool(found) and all(found)
    return any(found) or _names_host(rule.hosts, call)


def _names_host(patterns: tuple[str, ...], call: RuledCall) -> bool:
    """Return True if a command or code names a host in a URL, as `a@host`, or alone as `host` or
    `host:b`. A lone word may also be a file, and is not matched by `*`."""
    words = dict.fromkeys(word for words in _read_words(call) for word in words)
    for found in (found for word in words for found in _NAMED_HOST.finditer(word)):
        host = (found[1] or found[2] or found[3]).rstrip(".").strip("[]").lower()
        meant = patterns if found[3] is None else [one for one in patterns if one.strip("*.")]
        if any(match_stars(one, host) for one in meant):
            return True
    return False


def _cut_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and not name.endswith(":") else host


def _covers_paths(rule: OperatorRule, call: RuledCall) -> bool:
    if not rule.paths:
        return True
    globs = [Glob(one) for one in rule.paths]
    named = call.paths
    if rule.effect != "allow":
        named = (*named, *(word for words in _read_words(call) for word in words))
    found = [any(glob.fits(_plain_path(path)) for glob in globs) for path in named if path]
    return bool(found) and (all(found) if rule.effect == "allow" else any(found))


def _plain_path(path: str) -> str:
    parts = [part for part in paths.locate_inside(path).split("/") if part not in ("", ".")]
    return "/".join(parts)


def _covers_command(rule: OperatorRule, call: RuledCall) -> bool:
    if not rule.commands:
        return True
    wanted = [tuple(one.split()) for one in rule.commands]
    if rule.effect != "allow":
        readings = _read_words(call)
        return any(_has_words(words, one) for words in readings for one in wanted)
    parts = split_plainly(call.command)
    return bool(parts) and all(
        any(_fit(part, one) and not hands_over(part, one) for one in wanted)
        and not any(map(_leads_out, part))
        for part in parts
    )


def _read_words(call: RuledCall) -> tuple[tuple[str, ...], ...]:
    """Return the words of a command in several readings: split at quotes, as for a nested shell;
    with quotes and backslashes removed; and expanded."""
    joined = _QUOTES.sub("", _BLANK.sub(" ", call.command))
    parted = [_APART.split(text) for text in dict.fromkeys((call.command, joined))]
    parted += [list(one.words) for one in read_possible(call.command)] if call.command else []
    parted += [_APART_IN_CODE.split(text) for text in (call.command, call.code) if text]
    return tuple(dict.fromkeys(tuple(word for word in words if word) for words in parted))


def _has_words(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return True if the wanted words occur one after the other; the first may have a path in
    front, and options after it."""
    size = len(wanted)
    for at in range(len(words)):
        if _begins(words[at : at + size], wanted):
            return True
        if size > 1 and _begins(words[at : at + 1], wanted[:1]):
            rest = (words[n : n + size - 1] for n in _skip_options(words, at + 1))
            if any(_begins((words[at], *one), wanted) for one in rest):
                return True
    return False


def _skip_options(words: tuple[str, ...], at: int) -> Iterator[int]:
    """Yield where the words of a program may continue: at once, and after its options with their
    values."""
    yield at
    for _ in range(MAX_OPTIONS):
        if at >= len(words) or not words[at].startswith("-"):
            return
        yield from (at + 1, at + 2, at + 3)  # `-c a=b` is split at the sign
        behind = (n for n in (1, 2, 3) if words[at + n : at + n + 1])
        following = next((n for n in behind if words[at + n].startswith("-")), 0)
        if not following:
            return
        at += following


def _begins(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return True if they are the first words, whatever folder the program is in."""
    if words and "/" not in wanted[0]:
        words = (words[0].rpartition("/")[2], *words[1:])
    return _fit(words, wanted)


def _fit(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return True if they are the first words as they stand: `bin/ls` is a file of the workspace,
    and neither `ls` nor `b*`."""
    other_place = "/" in words[0] and "/" not in wanted[0] and wanted[0] != "*"
    return len(words) >= len(wanted) and not other_place and all(map(match_stars, wanted, words))


def _leads_out(word: str) -> bool:
    """Return True for words that an allow does not cover: a path outside, a file with secrets; also
    as `--option=path`, `-opath` and `@path`."""
    if word.endswith("/..."):  # Go's for all that is below
        word = word.removesuffix("...")
    parts = list_named(word)
    return any(paths.has_steps_up(part) or paths.why_refused(part) is not None for part in parts)
