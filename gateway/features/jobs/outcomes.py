"""Computes the outcome of a job's turn from its row and its records. Pure."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import ErrorMet
from agent_core.journal import Emitted, Failed, Finished, Record, Replied, Stopped, ToolFinished
from gateway.jobs_port import RunState
from gateway.messages import Terms
from gateway.shown_jobs import Reason
from gateway.store.rows import TurnRow

SILENT = "[SILENT]"
SCRIPT = "script"
"""The id of the call that runs a job's command."""
MAX_TEXT = 2_000
MAX_ERROR = 600


class RunOutcome(Struct, frozen=True, kw_only=True):
    """`unpriced`: model calls without a known price; `again`: the failure may pass, so that a retry
    makes sense; `report`: the whole text; `terms`: the run's settings."""

    state: RunState
    reason: Reason = ""
    text: str = ""
    cost: float = 0.0
    unpriced: int = 0
    again: bool = False
    report: str = ""
    terms: Terms = Terms()


def is_silent(text: str) -> bool:
    """The answer says that there is nothing to report."""
    words = text.strip()
    return words.startswith(SILENT) or words.endswith(SILENT)


def outcome(turn: TurnRow, records: Iterable[Record]) -> RunOutcome | None:
    """Return the outcome, None while the turn is not over."""
    if turn.status in ("running", "parked"):
        return None
    known = tuple(records)
    costs = [one.reply.usage.cost for one in known if isinstance(one, Replied)]
    paid, unpriced = sum(one or 0.0 for one in costs), costs.count(None)
    return replace(_read_end(known), cost=paid, unpriced=unpriced)


def _read_end(known: tuple[Record, ...]) -> RunOutcome:
    for record in reversed(known):
        match record:
            case Finished(finish="error"):
                return _make_failed(known)
            case Finished(text=text):
                state: RunState = "silent" if is_silent(text) else "done"
                return RunOutcome(state=state, text=text[:MAX_TEXT], report=text)
            case Stopped(reason="stop", by=by):
                return RunOutcome(state="stopped", text=by)
            case Stopped(reason="interrupt"):
                return RunOutcome(state="stopped", reason="overlap")
            case Stopped(text=text):
                return RunOutcome(state="failed", reason="bug", text=text)
            case _:
                continue
    return RunOutcome(state="failed", reason="bug")


def _make_failed(records: tuple[Record, ...]) -> RunOutcome:
    script = next((one for one in records if _is_script(one)), None)
    last = next((one for one in reversed(records) if isinstance(one, Failed)), None)
    if isinstance(script, ToolFinished) and last is None:
        text = script.content[-MAX_ERROR:]
        return RunOutcome(state="failed", reason="script", text=text)
    met = [one.event for one in records if isinstance(one, Emitted)]
    told = next((one.text for one in reversed(met) if isinstance(one, ErrorMet)), "")
    text = last.text if last is not None else told
    if last is not None and last.error == "budget":
        return RunOutcome(state="failed", reason="money", text=text)
    hopeless = last is not None and last.fault in ("rejected", "missing", "unpaid")
    return RunOutcome(state="failed", reason="model", text=text, again=not hopeless)


def _is_script(record: Record) -> bool:
    return isinstance(record, ToolFinished) and record.call_id == SCRIPT
