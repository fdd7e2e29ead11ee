"""A plan: steps with stable ids, their dependencies, outcomes and states.

Values and pure transitions; plans are made and carried out in `orchestration`.
"""

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

StepState = Literal["pending", "running", "done", "failed", "skipped"]

MAX_STEPS = 20
TITLE = 60
CONTEXT = 2_000
"""Characters of the checklist that a step is shown."""
_BOXES: dict[StepState, str] = {
    "pending": "[ ]",
    "running": "[~]",
    "done": "[x]",
    "failed": "[!]",
    "skipped": "[-]",
}


class Step(Struct, frozen=True, kw_only=True):
    """One step.

    `outcome`: the intended result; `needs`: ids of earlier steps. Checked without a model: `files`
    of the workspace exist afterwards and are not empty; `command`: the last command exits with 0.
    `note`: how it went, in a few words; `tries`: how often it was started again. `own`: a person
    added it.
    """

    id: str
    description: str
    outcome: str = ""
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    command: bool = False
    state: StepState = "pending"
    note: str = ""
    tries: int = 0
    own: bool = False

    @property
    def branch(self) -> str:
        """The name of the scope in which it is worked on."""
        return f"step-{self.id}.{self.tries}" if self.tries else f"step-{self.id}"


class Plan(Struct, frozen=True, kw_only=True):
    """The steps of a turn in the order people see them. `revision` counts its re-plans."""

    title: str
    steps: tuple[Step, ...]
    revision: int = 0

    @property
    def ready(self) -> tuple[Step, ...]:
        """Steps that may begin now: their dependencies are done."""
        over = {step.id for step in self.steps if step.state in ("done", "skipped")}
        return tuple(s for s in self.steps if s.state == "pending" and over.issuperset(s.needs))

    def select(self, *states: StepState) -> tuple[Step, ...]:
        """The steps in these states."""
        return tuple(step for step in self.steps if step.state in states)


def find_parallel(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the steps that can run concurrently from now on, in the plan's order: the ready ones,
    and those that wait for some of these but not for all; by id, with everything that each waits
    for."""
    over = {step.id for step in plan.select("done", "skipped")}
    ready = {step.id for step in plan.ready}
    behind: dict[str, frozenset[str]] = {one: frozenset() for one in ready}
    grown = -1
    while grown != len(behind):
        grown = len(behind)
        for step in plan.select("pending"):
            needs = frozenset(step.needs) - over
            if step.id not in behind and needs <= behind.keys():
                waits = needs.union(*(behind[need] for need in needs))
                if not waits >= ready:
                    behind[step.id] = waits
    return {step.id: behind[step.id] for step in plan.steps if step.id in behind}


def set_step_state(plan: Plan, step_id: str, state: StepState, note: str = "") -> Plan:
    """`plan` with one step in another state."""
    steps = tuple(
        replace(step, state=state, note=note) if step.id == step_id else step for step in plan.steps
    )
    return replace(plan, steps=steps)


def revise_plan(plan: Plan, steps: Iterable[Step]) -> Plan:
    """Replace the steps of `plan` that had not begun by `steps`.

    Done and failed ones stay. Of those not begun, a step named again is replaced, and the others
    are skipped, except those that a person added: they come last. An ended step's id is not used
    again. A plan of which nothing has begun is replaced as a whole.
    """
    wanted = tuple(steps)
    taken = {step.id for step in plan.steps if step.state != "pending"}
    named = {step.id: _free(step.id, taken, plan.revision + 2) for step in wanted}
    new = tuple(
        replace(step, id=named[step.id], needs=tuple(named.get(need, need) for need in step.needs))
        for step in wanted
    )
    begun = len(plan.select("pending")) < len(plan.steps)
    left = tuple(s for s in plan.select("pending") if s.id not in named)
    own = tuple(step for step in left if step.own)
    gone = {step.id for step in left if not step.own}
    kept = tuple(
        replace(step, state="skipped") if step.id in gone else step
        for step in plan.steps
        if begun and step not in own and (step.state != "pending" or step.id in gone)
    )
    own = tuple(_rebase_step(step, plan, own, new) for step in own)
    return replace(plan, steps=(*kept, *new, *own), revision=plan.revision + 1)


def still_open(plan: Plan, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return `steps` without those that are done verbatim: models asked for what is left write down
    the whole plan, and nothing is done twice for that."""
    done = {(step.id, _words(step)) for step in plan.select("done")}
    return tuple(step for step in steps if (step.id, _words(step)) not in done)


def _words(step: Step) -> str:
    return " ".join(step.description.casefold().split())


def _rebase_step(step: Step, plan: Plan, own: tuple[Step, ...], new: tuple[Step, ...]) -> Step:
    """Return a person's step after a re-plan: it comes after the new steps if its dependencies will
    not be done any more, unless they wait for it."""
    there = {one.id for one in (*plan.select("done"), *own, *new)}
    needs = tuple(need for need in step.needs if need in there)
    if needs != step.needs and not any(step.id in one.needs for one in new):
        needs = tuple(dict.fromkeys((*needs, *(one.id for one in new))))
    return replace(step, needs=needs)


def _free(wanted: str, taken: set[str], n: int) -> str:
    """`wanted`, or the first of `wanted-n`, `wanted-n+1` … that no ended step has."""
    if wanted not in taken:
        return wanted
    while f"{wanted}-{n}" in taken:
        n += 1
    return f"{wanted}-{n}"


def problem(plan: Plan) -> str:
    """Return the reason why `plan` cannot be carried out, "" if it can; the words help to correct
    it."""
    ids = [step.id for step in plan.steps]
    if twice := next((one for one in ids if ids.count(one) > 1), ""):
        return f"The id {twice!r} is given to two steps."
    if len(ids) > MAX_STEPS:
        return f"{len(ids)} steps are too many: at most {MAX_STEPS}."
    over = {step.id for step in plan.select("done")}
    usable = over | {step.id for step in plan.select("pending")}
    for step in plan.select("pending"):
        if not step.description.strip():
            return f"The step {step.id!r} does not say what to do."
        for need in step.needs:
            if need not in usable:
                return f"The step {step.id!r} needs {need!r}, which is no step that can be done."
    circle = _circle(plan, over)
    return f"These steps wait for each other: {', '.join(circle)}." if circle else ""


def _circle(plan: Plan, over: set[str]) -> tuple[str, ...]:
    """Ids of steps that could never begin."""
    left = {step.id: set(step.needs) - over for step in plan.select("pending")}
    while free := [step_id for step_id, needs in left.items() if needs.isdisjoint(left)]:
        for step_id in free:
            del left[step_id]
    return tuple(left)


def title(text: str) -> str:
    """The first words of a request, without the name of who wrote it."""
    line = " ".join(re.sub(r"^\[[^\]\n]{1,80}\] ", "", text).split())
    if len(line) <= TITLE:
        return line
    return f"{line[:TITLE].rpartition(' ')[0] or line[:TITLE]}…"


def checklist(plan: Plan) -> str:
    """The plan as a markdown checklist."""
    return "\n".join(_line(step) for step in plan.steps)


def active_context(plan: Plan) -> str:
    """The checklist under its heading, as a step is shown it: cut after CONTEXT characters."""
    text = f"[Active Task Context]\n{checklist(plan)}"
    return text if len(text) <= CONTEXT else text[: CONTEXT - 1] + "…"


def _line(step: Step) -> str:
    note = f" ({step.note})" if step.note else ""
    return f"- {_BOXES[step.state]} {step.id}: {step.description}{note}"
