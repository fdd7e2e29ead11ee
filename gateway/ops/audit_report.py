"""The audit for people: a table or JSON lines, and the result of verifying its chains."""

import re
from collections import deque
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from agent_core import ambient
from gateway.services.audit_trail import AuditTrail
from gateway.store.audit_chain import ChainFlaw, ChainReport, FlawKind
from gateway.store.rows import AuditRow

MAX_LINES = 1_000_000
MAX_DETAIL = 160
"""Characters of a line's detail in the table."""
SPAN = re.compile(r"([0-9]{1,6})([mhdw])")
SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SINCE = "write a day as 2026-11-20, a moment as 2026-11-20T08:00, or a span as 30m, 12h, 7d, 2w."
FLAWS: dict[FlawKind, str] = {
    "changed": "was changed",
    "missing": "is missing",
    "twice": "stands there twice",
    "foreign": "a line without a signature stands among signed ones",
    "cut": "is missing at the end",
    "gone": "was deleted, with the conversation itself",
    "endless": "nothing says where the chain ends",
    "unknown_key": "was signed with a key that is not here (AUDIT_KEY, audit.key)",
}


class AuditQuery(Struct, frozen=True, kw_only=True):
    """Selects the newest `lines` that are not older than `since` (a day, a moment or a span, "" for
    all) and contain `who` and `what`."""

    lines: int = 1_000
    since: str = ""
    who: str = ""
    what: str = ""
    json: bool = False


class _Shown(Struct, frozen=True, kw_only=True):
    """A line as JSON, without its signature."""

    at: float
    time: str
    who: str
    what: str
    where: str
    detail: str


async def list_lines(trail: AuditTrail, query: AuditQuery) -> str:
    """Return the lines, oldest first. ValueError for a wrong query; StoreFailed."""
    if not 0 < query.lines <= MAX_LINES:
        raise ValueError(f"write how many lines, 1 to {MAX_LINES}.")
    since, found = read_since(query.since), deque[AuditRow](maxlen=query.lines)
    who, what = query.who.casefold(), query.what.casefold()

    def take(line: AuditRow) -> None:
        fits = who in line.who.casefold() and what in f"{line.what} {line.detail}".casefold()
        if line.at >= since and fits:
            found.append(line)

    await trail.read(take)
    if query.json:
        return "\n".join(msgspec.json.encode(_show(line)).decode() for line in found)
    return "\n".join(_lay_out([_show(line) for line in found])) or "No lines."


def read_since(text: str) -> float:
    """Seconds since 1970; times are UTC. Raises ValueError."""
    if not text:
        return 0.0
    if (span := SPAN.fullmatch(text.lower())) is not None:
        return ambient.now() - int(span[1]) * SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(SINCE) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def describe_report(report: ChainReport) -> str:
    """Describe the result of verifying the chains, flaws first."""
    lines = [_describe(flaw) for flaw in report.flaws]
    count = f"Looked at {report.lines} lines in {report.chains} chains"
    lines.append(f"{count}; flaws: {len(report.flaws)}." if lines else f"{count}: all hold.")
    if report.erased:
        lines.append(f"{report.erased} of them had a person's words, which were erased.")
    if report.unsigned:
        lines.append(f"{report.unsigned} lines are older than the chains and have no signature.")
    return "\n".join(lines)


def _describe(flaw: ChainFlaw) -> str:
    numbers = str(flaw.first) if flaw.first == flaw.last else f"{flaw.first} to {flaw.last}"
    line = f"line {numbers}: " if flaw.first else ""
    where = flaw.where or ("a conversation" if flaw.kind == "gone" else "gateway")
    return f"{where} (chain {flaw.chain or '–'}): {line}{FLAWS[flaw.kind]}"


def _show(line: AuditRow) -> _Shown:
    time = ambient.utc(line.at).strftime("%Y-%m-%d %H:%M:%S")
    return _Shown(
        at=line.at, time=time, who=line.who, what=line.what, where=line.where, detail=line.detail
    )


def _lay_out(lines: list[_Shown]) -> list[str]:
    if not lines:
        return []
    rows = [("time (UTC)", "who", "what", "where", "detail")]
    for one in lines:
        detail = " ".join(one.detail.split())
        short = detail if len(detail) <= MAX_DETAIL else f"{detail[: MAX_DETAIL - 1]}…"
        rows.append((one.time, one.who or "–", one.what, one.where or "–", short))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]))
        for row in rows
    ]
