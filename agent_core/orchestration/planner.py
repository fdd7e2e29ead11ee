"""Makes a plan, and re-plans what is left after a failure. Stateless: a re-plan is told what
happened."""

import re
from typing import TypeAlias

from msgspec import Struct

from agent_core.context.compression import Window
from agent_core.context.limits import limit_aside
from agent_core.errors import BudgetExceeded, ModelFailed, TimedOut
from agent_core.messages import Message, user
from agent_core.models.port import ModelRequest
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.fitting import ask_within
from agent_core.orchestration.plan import (
    Plan,
    Step,
    checklist,
    problem,
    revise_plan,
    still_open,
    title,
)
from agent_core.orchestration.side_calls import Unusable, ask_json, find_json, tier
from agent_core.scope import Scope

FORM = """{"title": "what it is about", "steps": [{"id": "s1", "description": "what to do", \
"outcome": "what can be seen to be so afterwards", "needs": [], "files": [], "command": false}]}

- title: at most six words.
- needs: ids of the steps whose results this one takes. Steps that do not need each other run at \
the same time.
- files: paths in the workspace that exist after the step and are not empty; none if it writes none.
- command: true if the last command of the step has to end with exit code 0.
- Write title, description and outcome in the language of the request. No step for the final \
answer: it is written after the last step."""
PLAN = f"""\
[Planning]
Do not answer yet and call no tool. Divide the request above into the steps it takes: as few as \
make sense, at most eight. Answer with JSON alone, in this form:
{FORM}
If it takes no plan, answer {{"steps": []}}."""
REVISE = """\
[Planning again]
This is how far the plan is:
{checklist}

{why}

Call no tool. What is done stays done; to do it once more, give it a new id. Answer with JSON \
alone, in the same form as before: the steps that are still to do, another way where one failed. \
They replace all steps that have not begun; keep the id of a step that stays. If the request \
cannot be met, answer {{"steps": []}}."""

_ALIASES: dict[str, tuple[str, ...]] = {
    "description": ("description", "do", "task", "text", "step"),
    "outcome": ("outcome", "expected_outcome", "expect", "expected"),
    "needs": ("needs", "dependencies", "depends_on"),
}


Means: TypeAlias = tuple[Brief, Hands, Window]
"""The means of planning; the window is the model's view of the thread."""


class Drafted(Struct, frozen=True, kw_only=True):
    """The result of asking for a plan; None if it was unusable or has no steps. `messages`: added
    to the thread by asking."""

    plan: Plan | None
    messages: tuple[Message, ...] = ()


async def draft(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    window: Window,
    errors: str = "",
) -> Drafted:
    """Make a plan for the request in `brief`. `errors`: how the attempt without a plan, which is in
    `history`, failed. `window`: the model's view of the history."""
    empty = Plan(title=brief.choose_title(), steps=())
    told = f"That did not work: {errors} Another way is needed." if errors else brief.text
    ask = user(f"{told}\n\n{PLAN}", () if errors else brief.pictures)
    return await _ask(scope, (brief, hands, window), history, ask, empty)


async def redraft(
    scope: Scope,
    means: Means,
    thread: tuple[Message, ...],
    ask: Message,
    plan: Plan,
) -> Drafted:
    """Replace the steps of `plan` that have not begun. `ask` follows the `thread`: `after_failure`
    or `after_wish`."""
    return await _ask(scope, means, thread, ask, plan)


def after_failure(plan: Plan) -> Message:
    """Asks for another way where steps failed."""
    failed = "\n".join(f"The step {s.id} failed: {s.note}" for s in plan.select("failed"))
    return user(REVISE.format(checklist=checklist(plan), why=failed))


def after_wish(plan: Plan, wish: str) -> Message:
    """Asks for the plan that the person wants instead."""
    why = f"Nothing has begun. The person wants the plan changed: {wish}"
    return user(REVISE.format(checklist=checklist(plan), why=why))


async def _ask(
    scope: Scope, means: Means, thread: tuple[Message, ...], ask: Message, before: Plan
) -> Drafted:
    brief, hands, window = means

    def read(text: str) -> Plan | None:
        steps = still_open(before, read_steps(text))
        named = (not brief.title and read_title(text)) or before.title
        new = revise_plan(before, steps) if before.steps else Plan(title=named, steps=steps)
        if why := problem(new):
            raise Unusable(why)
        return new if steps else None

    async def consult(
        part: Scope, seen: tuple[Message, ...]
    ) -> tuple[Plan | None, tuple[Message, ...]]:
        request = _request(brief, hands, (*seen, ask))
        return await ask_json(part, hands, request, read, brief.limit)

    try:
        plan, said = await ask_within(scope, brief, hands, window, thread, consult)
    except (ModelFailed, TimedOut, BudgetExceeded):
        return Drafted(plan=None)
    return Drafted(plan=plan, messages=(ask, *said))


def _request(brief: Brief, hands: Hands, messages: tuple[Message, ...]) -> ModelRequest:
    """Make a request like any other of the turn, so that it begins with the same words, but without
    calls."""
    return ModelRequest(
        model=tier(brief.model, "pro"),
        system=brief.system,
        messages=messages,
        tools=hands.toolbox.specs(brief.tools),
        tool_choice="none",
        cache_key=brief.cache_key,
        max_tokens=limit_aside(brief.most_observed),
    )


def read_steps(text: str) -> tuple[Step, ...]:
    """The steps that a model wrote down, in any of the forms that models use. Raises Unusable."""
    found = find_json(text)
    if isinstance(found, dict):
        found = found.get("steps", found.get("plan"))
    if not isinstance(found, list):
        raise Unusable("There is no list of steps in it.")
    return tuple(_step(row, n) for n, row in enumerate(found, 1))


def read_title(text: str) -> str:
    """Return the plan's title, "" if the model gave none. Raises Unusable."""
    found = find_json(text)
    named = found.get("title") if isinstance(found, dict) else None
    return title(named) if isinstance(named, str) else ""


def _step(row: object, n: int) -> Step:
    if isinstance(row, str):
        return Step(id=f"s{n}", description=_line(row))
    if not isinstance(row, dict):
        raise Unusable(f"Step {n} is not an object.")
    return Step(
        id=_id(row.get("id"), n),
        description=_line(_field(row, "description")),
        outcome=_line(_field(row, "outcome")),
        needs=tuple(_id(need, 0) for need in _list_values(_field(row, "needs"))),
        files=tuple(str(path) for path in _list_values(row.get("files"))),
        command=row.get("command") is True,
    )


def _line(value: object) -> str:
    """A text as one line: in a checklist a second one could pass for another step."""
    return " ".join(str(value or "").split())


def _field(row: dict[str, object], name: str) -> object:
    return next((row[alias] for alias in _ALIASES[name] if alias in row), None)


def _list_values(value: object) -> tuple[object, ...]:
    """The texts and numbers of a list, or the only one; of objects their id."""
    rows = value if isinstance(value, list) else [value]
    plain = (row.get("id") if isinstance(row, dict) else row for row in rows)
    kept = (row for row in plain if isinstance(row, str | int) and not isinstance(row, bool))
    return tuple(dict.fromkeys(row for row in kept if row != ""))


def _id(value: object, n: int) -> str:
    """Return an id that may be part of a key; models write numbers too."""
    text = re.sub(r"[^\w-]+", "-", str(value if value is not None else "")).strip("-")[:20]
    return text or f"s{n}"
