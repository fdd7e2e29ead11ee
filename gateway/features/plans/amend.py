"""People's edits of a plan, by its buttons and by /todo, before and while it runs.

An edit is one record in the turn's journal, committed with the inbox row that caused it, like an
answer, so it is visible at once and made once. The turn's code picks it up at its next look; a
running step that is skipped is ended by the scope.
"""

from typing import Literal

from agent_core import ambient
from agent_core.journal import Amended, Answered, Stopped
from agent_core.orchestration.edits import Why, apply_edit
from agent_core.orchestration.plan import Plan
from agent_core.plan_edit import PlanEdit
from agent_core.questions import Answer
from gateway.access.access import say_not_yours
from gateway.conversation.turns import OpenTurn
from gateway.delivery.plan_view import Course
from gateway.feature import Context
from gateway.features.plans.again import press_late
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    PlanPress,
    Sender,
)
from gateway.store.rows import InboxRow
from gateway.texts import Key, say
from gateway.views import STEP_MARKS

REFUSED: dict[Why, Key] = {
    "no_step": "plan_no_step",
    "begun": "plan_begun",
    "not_over": "plan_not_over",
    "circle": "plan_circle",
    "too_many": "plan_too_many",
}


async def find_planned_turn(context: Context) -> OpenTurn | None:
    """Return the turn whose plan is meant: the running one, otherwise the newest that waits."""
    rows = sorted(
        context.state.turns.values(), key=lambda row: (row.status == "running", row.begun)
    )
    for row in reversed(rows):
        open_turn = await context.turns.open(row.id)
        if not open_turn.closed and open_turn.fold.course is not None:
            return open_turn
        rest(context, open_turn)
    return None


def rest(context: Context, open_turn: OpenTurn) -> None:
    """Drop from memory a turn that waits for people and was only looked at."""
    if open_turn.row.status == "parked":
        context.state.loaded.pop(open_turn.id, None)
        context.state.outbox.forget(open_turn.id)


def amend(
    context: Context, open_turn: OpenTurn, edit: PlanEdit, by: Sender, seq: int
) -> Key | Literal[""]:
    """Make one edit; "" and the row `seq` is done, or why it cannot be."""
    course = open_turn.fold.course
    if course is None or open_turn.closed:
        return "plan_none"
    if course.listed:
        return "plan_listed"
    after = apply_edit(course.plan, edit)
    if not isinstance(after, Plan):
        return REFUSED[after]
    cut = _cut(course, edit)
    open_turn.done += (seq,)
    key = f"amend-{seq}"
    open_turn.journal.put(
        Amended(key=key, edit=edit, cut=cut, by=by.key), *_withdraw_questions(open_turn, cut, by)
    )
    context.state.turns[open_turn.id] = open_turn.row
    if open_turn.turn is not None and cut:
        open_turn.turn.cut(cut)
    rest(context, open_turn)
    return ""


def _cut(course: Course, edit: PlanEdit) -> str:
    """Return the branch to end: of a skipped step, or one that a person did."""
    running = (step for step in course.plan.select("running") if step.id == edit.step)
    ends = edit.action in ("skip", "done")
    return next((step.branch for step in running), "") if ends else ""


def _withdraw_questions(open_turn: OpenTurn, cut: str, by: Sender) -> tuple[Answered, ...]:
    """Withdraw the open questions of a skipped step."""
    if not cut:
        return ()
    answer = Answer(choice="cancelled", by=by.key, name=by.name, at=ambient.now())
    return tuple(
        Answered(key=f"{asked.key}#answer", asked=asked.key, answer=answer)
        for asked in open_turn.open_questions()
        if f"/{cut}/" in f"/{asked.key}"
    )


async def press(
    context: Context,
    row: InboxRow,
    press: ButtonPressed | FormSubmitted,
    asked: PlanPress,
) -> None:
    """Handle a plan's button."""
    turn_id, action, step = asked.turn, asked.action, asked.step
    sender, language = press.sender, press.sender.language
    role = context.services.access.role(sender) or "viewer"
    known = context.state.turns.get(turn_id)
    held = context.state.loaded.get(turn_id)
    if known is None or (held is not None and held.closed):
        await press_late(context, row, press, asked)
    elif not await context.services.access.may_act_for(known.sender, sender, role):
        word = say_not_yours(known.sender, context.state.conversation, language)
        context.state.acknowledge(row.seq, press.press, word)
    elif action == "stop":
        await stop(context, turn_id, sender, row.seq)
        context.state.tell(press.press, "")
    elif action == "edit":
        open_turn = await context.turns.open(turn_id)
        context.state.notice(row.seq, list_steps(open_turn.fold.course, language))
        context.state.tell(press.press, "")
        rest(context, open_turn)
    elif action in ("skip", "retry"):
        edit = PlanEdit(action=action, step=step)  # type: ignore[arg-type]  # one of the two
        why = amend(context, await context.turns.open(turn_id), edit, sender, row.seq)
        if why:
            context.state.acknowledge(row.seq, press.press, say(why, language))
        else:
            context.state.tell(press.press, "")
    else:
        context.state.acknowledge(row.seq, press.press, say("unknown_button", language))


async def stop(context: Context, turn_id: str, by: Sender, seq: int) -> None:
    """End the turn, also one that waits for people."""
    active = context.state.active
    if active is not None and active.id == turn_id:
        if not await context.turns.stop(by, "stop", (seq,)):
            context.state.acknowledge(seq, "", "")
        return
    open_turn = await context.turns.open(turn_id)
    context.turns.close(open_turn, Stopped(key="stopped", reason="stop", by=by.key), (seq,))


def list_steps(course: Course | None, language: str) -> str:
    """The steps with their numbers, and how to change them."""
    if course is None:
        return say("plan_none", language)
    lines = (
        f"{n}. {STEP_MARKS[step.state]} {step.description}"
        for n, step in enumerate(course.plan.steps, 1)
    )
    return "\n".join((*lines, "", say("todo_usage", language)))
