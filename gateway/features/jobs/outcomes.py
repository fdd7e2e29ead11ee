"""What a job's turn came to, from its row and its records. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from agent_core.journal import Failed, Finished, Record, Replied, Stopped, ToolFinished
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
    """`again`: it failed by what may be over in a while; `report`: the whole text;
    `terms`: how the run was done."""

    state: RunState
    reason: Reason = ""
    text: str = ""
    cost: float = 0.0
    again: bool = False
    report: str = ""
    terms: Terms = Terms()


def is_silent(text: str) -> bool:
    """The answer says that there is nothing to report."""
    words = text.strip()
    return words.startswith(SILENT) or words.endswith(SILENT)


def outcome(turn: TurnRow, records: Iterable[Record]) -> RunOutcome | None:
    """None while the turn is not over."""
    if turn.status in ("running", "parked"):
        return None
    known = tuple(records)
    cost = sum(one.reply.usage.cost or 0.0 for one in known if isinstance(one, Replied))
    for record in reversed(known):
        match record:
            case Finished(finish="error"):
                return _make_failed(known, cost)
            case Finished(text=text):
                state: RunState = "silent" if is_silent(text) else "done"
                return RunOutcome(state=state, text=text[:MAX_TEXT], cost=cost, report=text)
            case Stopped(reason="stop", by=by):
                return RunOutcome(state="stopped", text=by, cost=cost)
            case Stopped(reason="interrupt"):
                return RunOutcome(state="stopped", reason="overlap", cost=cost)
            case Stopped(text=text):
                return RunOutcome(state="failed", reason="bug", text=text, cost=cost)
            case _:
                continue
    return RunOutcome(state="failed", reason="bug", cost=cost)


def _make_failed(records: tuple[Record, ...], cost: float) -> RunOutcome:
    script = next((one for one in records if _is_script(one)), None)
    last = next((one for one in reversed(records) if isinstance(one, Failed)), None)
    if isinstance(script, ToolFinished) and last is None:
        text = script.content[-MAX_ERROR:]
        return RunOutcome(state="failed", reason="script", text=text, cost=cost)
    text = last.text if last is not None else ""
    if last is not None and last.error == "budget":
        return RunOutcome(state="failed", reason="money", text=text, cost=cost)
    rejected = last is not None and last.fault == "rejected"
    return RunOutcome(state="failed", reason="model", text=text, cost=cost, again=not rejected)


def _is_script(record: Record) -> bool:
    return isinstance(record, ToolFinished) and record.call_id == SCRIPT
