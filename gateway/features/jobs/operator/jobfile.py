"""Parses `jobs.toml`: a table for each job. All faults are reported at once, by line."""

import difflib
import re
import tomllib
from collections.abc import Iterator
from typing import TypeVar, cast, get_args

from msgspec import Struct

from agent_core.config.toml_text import parse_toml
from gateway.jobs_port import JobRequest, Missing, Overlap

FILE = "jobs.toml"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,23}")
"""Matches a job's id, which must be short enough for buttons."""
NAME_RULE = "A job's name is 1 to 24 small letters, digits, _ and -."
KINDS: dict[str, tuple[type, ...]] = {
    "title": (str,), "prompt": (str,), "schedule": (str,), "zone": (str,), "where": (str,),
    "missed": (str,), "window": (int, float), "overlap": (str,), "jitter": (int, float),
    "script": (str,), "context_from": (str,), "hook": (str,), "deliver": (str, list),
    "spend": (int, float), "talk": (bool,), "model": (str,), "profile": (str,), "tools": (str,),
}  # fmt: skip
WORDS: dict[type, str] = {
    str: "text in quotes", int: "a number", list: "a list of texts", bool: "true or false",
}  # fmt: skip
_PIECE = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|"(?:[^"\\\n]|\\.)*+"|#[^\n]*|[\[\]{}\n]|'''
    r"""'{3}(?:[^']|'(?!''))*+'{3,5}|'[^'\n]*'""",
    re.DOTALL,
)
"""Matches texts and comments, whose brackets and ends of lines mean nothing, and those that do."""
_SYNTAX = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)

MAX_FAULTS = 100
"""Faults that are reported at once."""
MAX_FAULT = 600
"""Characters of a fault: it may quote a field."""

T = TypeVar("T")


class Fault(Struct, frozen=True, kw_only=True, order=True):
    """A fault in a line."""

    line: int
    text: str


class Faulty(ValueError):
    """The file cannot be applied; `faults` by line, the first of many."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(sorted(faults)[:MAX_FAULTS])
        super().__init__("\n".join(f"{FILE}, line {one.line}: {one.text}" for one in self.faults))


class JobTable(Struct, frozen=True, kw_only=True):
    """One table: the job `name` in the conversation `where`. `lines`: the line of each field."""

    name: str
    where: str
    wish: JobRequest
    lines: dict[str, int]

    def fault(self, text: str, about: str = "") -> Fault:
        """Return a fault of the job, or of one field of it."""
        field = "context_from" if about == "feeds_on" else about
        told = f"[{self.name}] {text}"
        told = told if len(told) <= MAX_FAULT else f"{told[:MAX_FAULT]}…"
        return Fault(line=self.lines.get(field, self.lines[""]), text=told)


def read(text: str) -> tuple[tuple[JobTable, ...], list[Fault]]:
    """Return the jobs of the file and the faults within them. Faulty: it is no TOML."""
    try:
        tables = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX.fullmatch(str(error))
        line = int(found[2]) if found and found[2] else text.rstrip("\n").count("\n") + 1
        why = found[1] if found else str(error)
        raise Faulty([Fault(line=line, text=f"This is not TOML: {why}.")]) from None
    lines, faults, entries = positions(text), list[Fault](), list[JobTable]()
    for name, table in tables.items():
        own = lines.get(name, {})
        if not isinstance(table, dict):
            fault = f"{name!r} stands outside of a job: begin each job with a line like [report]."
            faults.append(Fault(line=own.get("", 1), text=fault))
            continue
        entry = _entry(name, table, own, faults)
        entries.append(entry)
    return tuple(entries), faults + _find_chains(entries)


def positions(text: str) -> dict[str, dict[str, int]]:
    """By job, the line on which it (key "") and each of its keys begins. `text` is valid TOML."""
    found: dict[str, dict[str, int]] = {}
    table = ""
    for number, statement in _split_statements(text):
        header = statement.startswith("[")
        for name, value in parse_toml(statement).items():
            if header:
                table = name
            job, keys = (name, [""]) if header or not table else (table, [name])
            if header and isinstance(value, dict):
                keys += list(value)
            for key in keys:
                found.setdefault(job, {}).setdefault(key, number)
    return found


def _split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements and the lines on which they begin, in time linear to the text: a line
    ends one outside of brackets and texts."""
    line = first = 1
    start = depth = 0
    for piece in _PIECE.finditer(text + "\n"):
        said = piece[0]
        depth += (said in "[{") - (said in "]}")
        line += said.count("\n")
        if said == "\n" and not depth:
            yield first, text[start : piece.start()].strip()
            start, first = piece.end(), line


def _entry(
    name: str, table: dict[str, object], lines: dict[str, int], faults: list[Fault]
) -> JobTable:
    lines.setdefault("", 1)
    empty = JobRequest(title="", prompt="", schedule="")
    entry = JobTable(name=name, where="", wish=empty, lines=lines)
    if not NAME.fullmatch(name):
        faults.append(entry.fault(NAME_RULE))
    for key, value in table.items():
        if why := _explain_refusal(key, value):
            faults.append(entry.fault(why, key))
    if not table.get("where"):
        faults.append(
            entry.fault("It has no `where`: the address that /jobs here shows in a chat.")
        )

    def read_value(key: str, kind: type[T], default: T) -> T:
        value = table.get(key, default)
        return value if isinstance(value, kind) else default

    def number(key: str, default: float) -> float:
        value = table.get(key, default)
        return float(value) if isinstance(value, int | float) else default

    places = table.get("deliver", ())
    places = (places,) if isinstance(places, str) else places
    wish = JobRequest(
        title=read_value("title", str, name),
        prompt=read_value("prompt", str, ""),
        schedule=read_value("schedule", str, ""),
        zone=read_value("zone", str, ""),
        missed=cast(Missing, read_value("missed", str, "latest")),
        window=number("window", 3_600.0),
        overlap=cast(Overlap, read_value("overlap", str, "skip")),
        jitter=number("jitter", 0.0),
        script=read_value("script", str, ""),
        feeds_on=read_value("context_from", str, ""),
        hook=read_value("hook", str, ""),
        deliver=tuple(map(str, places)) if isinstance(places, list | tuple) else (),
        spend=number("spend", 0.0),
        talk=read_value("talk", bool, False),
        model=read_value("model", str, ""),
        profile=read_value("profile", str, ""),
        tools=read_value("tools", str, ""),
    )
    return JobTable(name=name, where=read_value("where", str, ""), wish=wish, lines=lines)


def _explain_refusal(key: str, value: object) -> str:
    """Return the reason why a job cannot have this value, "" if it can."""
    if key not in KINDS:
        near = difflib.get_close_matches(key, KINDS, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KINDS)}."
        return f"There is no {key!r}; {hint}"
    kinds = KINDS[key]
    fits = isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds)
    if isinstance(value, list):
        fits = fits and all(isinstance(one, str) for one in value)
    if not fits:
        return f"{key} must be {' or '.join(WORDS[kind] for kind in kinds if kind in WORDS)}."
    choices = {"missed": get_args(Missing), "overlap": get_args(Overlap)}.get(key)
    if choices and value not in choices:
        return f"{key} must be one of {', '.join(choices)}."
    if isinstance(value, int | float) and not 0 <= value < 10_000_000:
        return f"{key} must be 0 or more."
    return ""


def _find_chains(entries: list[JobTable]) -> list[Fault]:
    """Find jobs of the file that would receive their own reports."""
    feeds = {entry.name: entry.wish.feeds_on for entry in entries}
    faults = []
    for entry in entries:
        seen, name = set[str](), entry.name
        while name and name not in seen:
            seen.add(name)
            name = feeds.get(name, "")
        if name == entry.name:
            faults.append(entry.fault("It would be given its own output.", "feeds_on"))
    return faults
