"""Sixty tasks with a model that makes each kind of mistake once, by the agent and by a bare loop; then
with the wire of each provider between, and one mistake or another in each task.

`python -m benchmarks.faults` prints JSON and the rows of benchmarks/faults/README.md; the numbers are
the same each time. It ends with 1 if a turn of the agent ends in silence, or if less is solved than
`LEAST` and `LEAST_EACH` say.
"""

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from agent_core.context.limits import limit_observed
from agent_core.context.settings import ContextSettings
from agent_core.errors import AgentError, ModelFailed
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
from agent_core.tools.contract import Tool
from benchmarks.agent.course import Course
from benchmarks.faults.bare import loop
from benchmarks.faults.faults import FAULTS, Faulty
from benchmarks.faults.tasks import TASKS, TOOLS, Task, pad_tool
from benchmarks.faults.wire import SHAPES, Shape, Wired, break_off, connected, say_nothing

HEAD = (
    "| {what} | solved by the agent | by the bare loop | tokens where both solve | silent |",
    "| --- | --- | --- | --- | --- |",
)
TOLD = ("refusal",)
"""Faults that no harness can mend: to tell of them is to solve the task."""
LOST = {"break in mid-stream": break_off, "empty answer": say_nothing}
"""What goes wrong on the way."""
WINDOW, PADDED = 4_096, 1_500
SMALL = "4k window"
WINDOW_USUAL = 128_000
LEAST, LEAST_EACH = 0.95, 0.85


@dataclass(slots=True)
class Tally:
    """What became of the tasks with one fault, or with one shape."""

    agent: int = 0
    bare: int = 0
    silent: int = 0
    agent_tokens: int = 0
    bare_tokens: int = 0
    failed: list[str] = field(default_factory=list)

    def line(self, name: str, count: int) -> str:
        """Its row."""
        ratio = f"{self.agent_tokens / self.bare_tokens:.2f} x" if self.bare_tokens else "–"
        solved = f"{self.agent} of {count} | {self.bare} of {count}"
        return f"| {name} | {solved} | {ratio} | {self.silent} |"


class Narrow:
    """A model that holds so many tokens, and refuses what is longer, as servers do."""

    def __init__(self, inner: Model, window: int) -> None:
        self.provider = inner.provider
        self._inner, self._window = inner, window

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        reply = await self._inner.complete(request, on_delta)
        if reply.usage.input_tokens > self._window:
            raise ModelFailed("The request is too long.", "overflow", window=self._window)
        return reply

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stands between a task and its model."""

    fault: str
    wrap: Callable[[Faulty], Model] = lambda model: model
    tools: tuple[Tool, ...] = TOOLS
    window: int = 0

    def model(self, task: Task, n: int) -> Model:
        """A model for the task; where the fault comes differs from task to task."""
        return self.wrap(Faulty(task.make_mind(), FAULTS.get(self.fault), n % 2))


async def run_task(task: Task, n: int, setting: Setting, made: Tally) -> None:
    """Have both do the task."""
    told_only = setting.fault in TOLD
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        task.prepare(Path(folder))
        course = Course(Path(folder))
        room = ContextSettings().make_limits(setting.window or WINDOW_USUAL, "m")
        most = limit_observed(setting.window or WINDOW_USUAL)
        model, tools = setting.model(task, n), setting.tools
        result = await course.turn(model, task.text, tools, room=room, most_observed=most)
        text = result.text
        told = told_only and "error" in course.run.kinds
        agent = told or _is_solved(told_only, task, text, Path(folder))
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        task.prepare(Path(folder))
        try:
            bare = await loop(setting.model(task, n), task.text, setting.tools, Path(folder))
            right = _is_solved(told_only, task, bare.text, Path(folder))
        except AgentError:
            right, bare = False, None
    made.agent += agent
    made.bare += right
    made.silent += not (text.strip() or "error" in course.run.kinds)
    if not agent:
        made.failed.append(f"{task.name}: {setting.fault}: {text[:200]!r}")
    if agent and right and bare is not None:
        made.agent_tokens += course.run.tokens
        made.bare_tokens += bare.tokens


def _is_solved(told: bool, task: Task, text: str, folder: Path) -> bool:
    if told:
        return bool(text.strip())
    try:
        return task.check(text.strip(), folder)
    except OSError:
        return False


async def tally_fault(fault: str, tasks: tuple[Task, ...]) -> Tally:
    """All tasks with one fault."""
    made = Tally()
    async with AsyncExitStack() as stack:
        setting = Setting(fault=fault)
        if fault in LOST:
            wrap = await _enter_wire(stack, SHAPES["OpenAI chat"], fault)
            setting = Setting(fault=fault, wrap=wrap)
        elif fault == SMALL:
            padded = tuple(pad_tool(one, PADDED) for one in TOOLS)
            narrow: Callable[[Faulty], Model] = lambda model: Narrow(model, WINDOW)  # noqa: E731
            setting = Setting(fault=fault, wrap=narrow, tools=padded, window=WINDOW)
        for n, task in enumerate(tasks):
            await run_task(task, n, setting, made)
    return made


async def tally_shape(shape: Shape, tasks: tuple[Task, ...]) -> Tally:
    """All tasks over one wire, each with one of the faults that it can carry, in turn."""
    made = Tally()
    faults = [name for name in (*FAULTS, *LOST) if name not in shape.cannot]
    async with AsyncExitStack() as stack:
        wraps = {name: await _enter_wire(stack, shape, name) for name in faults}
        for n, task in enumerate(tasks):
            fault = faults[n % len(faults)]
            await run_task(task, n // len(faults), Setting(fault=fault, wrap=wraps[fault]), made)
    return made


async def _enter_wire(stack: AsyncExitStack, shape: Shape, fault: str) -> Callable[[Faulty], Model]:
    server, client = await stack.enter_async_context(connected(shape))
    return lambda model: Wired(model, server, client, LOST.get(fault))


async def main(every: int) -> int:
    """`every`: take one of so many tasks."""
    logging.disable(logging.CRITICAL)
    tasks = TASKS[::every]
    faults = {name: await tally_fault(name, tasks) for name in (*FAULTS, *LOST, SMALL)}
    shapes = {name: await tally_shape(shape, tasks) for name, shape in SHAPES.items()}
    count, rows = len(tasks), [*faults.values(), *shapes.values()]
    solved = sum(one.agent for one in rows) / (count * len(rows))
    worst = min(one.agent for one in rows) / count
    silent = sum(one.silent for one in rows)
    told = {"tasks": count, "solved": round(solved, 3), "worst": worst, "silent": silent}
    print(json.dumps({"faults": told}))
    for what, found in (("fault", faults), ("wire", shapes)):
        print("\n".join(HEAD).format(what=what))
        print("\n".join(one.line(name, count) for name, one in found.items()))
    for one in rows:
        for line in one.failed:
            print(line, file=sys.stderr)
    return int(silent > 0 or solved < LEAST or worst < LEAST_EACH)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
