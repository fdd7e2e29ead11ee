"""The plan's copy as a file of the workspace: rewritten after each change; only ticks of known
steps are read back. The journal is the truth; the file is untrusted."""

import re
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.orchestration.edits import TICKED
from agent_core.orchestration.plan import Plan, checklist, set_step_state
from agent_core.tools import backups, paths

PLACE = f"{paths.OWN}/todo.md"
MAX_BYTES = 100_000
"""Bytes of the file that are read."""
_TICK = re.compile(r"^[ \t]*[-*] \[[xX]\] ([\w-]{1,40}):", re.MULTILINE)


def read_ticks(workspace: Path, turn: str) -> list[str]:
    """Return the ids ticked in the file of this turn, [] if there is none."""
    if not paths.is_folder(workspace, workspace.resolve()):
        return []
    try:
        with paths.open_read(workspace, PLACE) as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
            return _TICK.findall(text) if _mark(turn) in text else []
    except ToolFailed:
        return []


def tick_steps(plan: Plan, ids: list[str]) -> Plan:
    """Mark ticked steps that had not begun as done."""
    for step in plan.select("pending"):
        if step.id in ids:
            plan = set_step_state(plan, step.id, "done", TICKED)
    return plan


def write(workspace: Path, turn: str, plan: Plan) -> bool:
    """Put the copy where there is a workspace; whether it was put."""
    if not paths.is_folder(workspace, workspace.resolve()):
        return False
    text = f"# {plan.title}\n{_mark(turn)}\n\n{checklist(plan)}\n"
    try:
        real = workspace.resolve() / PLACE
        backups.store(workspace, real, text.encode(), 0o644)
    except (OSError, ToolFailed):
        return False
    return True


def _mark(turn: str) -> str:
    """Return the mark of the plan's turn, as another turn's steps have the same ids."""
    return f"<!-- turn {turn} -->"
