"""Sixty tasks with a model that makes each kind of mistake once, by the agent and by a bare loop.

`python -m benchmarks.faults` prints JSON and the rows of benchmarks/faults/README.md; the numbers are
the same each time. It ends with 1 if a turn of the agent ends in silence.
"""

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent_core.errors import AgentError
from benchmarks.agent.course import Course
from benchmarks.faults.bare import loop
from benchmarks.faults.faults import FAULTS, Faulty
from benchmarks.faults.tasks import TASKS, TOOLS, Task

HEAD = (
    "| fault | solved by the agent | by the bare loop | tokens where both solve | silent |",
    "| --- | --- | --- | --- | --- |",
)
TOLD = ("refusal",)
"""Faults that no harness can mend: to tell of them is to solve the task."""


@dataclass(slots=True)
class Tally:
    """What became of the tasks with one fault."""

    agent: int = 0
    bare: int = 0
    silent: int = 0
    agent_tokens: int = 0
    bare_tokens: int = 0

    def line(self, fault: str, count: int) -> str:
        """Its row."""
        ratio = f"{self.agent_tokens / self.bare_tokens:.2f} x" if self.bare_tokens else "–"
        solved = f"{self.agent} of {count} | {self.bare} of {count}"
        return f"| {fault} | {solved} | {ratio} | {self.silent} |"


async def tally(fault: str, tasks: tuple[Task, ...]) -> Tally:
    """All tasks with one fault; where it comes differs from task to task."""
    made = Tally()
    for n, task in enumerate(tasks):
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            task.prepare(Path(folder))
            course = Course(Path(folder))
            text = (
                await course.turn(Faulty(task.think, FAULTS[fault], n % 2), task.text, TOOLS)
            ).text
            told = fault in TOLD and "error" in course.run.kinds
            agent = told or _is_solved(fault, task, text, Path(folder))
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            task.prepare(Path(folder))
            try:
                bare = await loop(
                    Faulty(task.think, FAULTS[fault], n % 2), task.text, TOOLS, Path(folder)
                )
                right = _is_solved(fault, task, bare.text, Path(folder))
            except AgentError:
                right, bare = False, None
        made.agent += agent
        made.bare += right
        made.silent += not (text.strip() or "error" in course.run.kinds)
        if agent and right and bare is not None:
            made.agent_tokens += course.run.tokens
            made.bare_tokens += bare.tokens
    return made


def _is_solved(fault: str, task: Task, text: str, folder: Path) -> bool:
    if fault in TOLD:
        return bool(text.strip())
    try:
        return task.check(text.strip(), folder)
    except OSError:
        return False


async def main(every: int) -> int:
    """`every`: take one of so many tasks."""
    tasks = TASKS[::every]
    rows = {fault: await tally(fault, tasks) for fault in FAULTS}
    count = len(tasks)
    solved = sum(one.agent for one in rows.values())
    share = round(solved / (count * len(rows)), 3)
    silent = sum(one.silent for one in rows.values())
    told = {"faults": {"tasks": count, "solved": share, "silent": silent}}
    print(json.dumps(told))
    print("\n".join((*HEAD, *(one.line(fault, count) for fault, one in rows.items()))))
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
