"""A step of a plan that is over is asked for anew: the press waits in line like a message, and the
turn that it begins takes the place of the old card in its first commit.

The old card then says what became of it and offers nothing any more, so that one card is shown
that can be acted on, whatever was pressed twice, late, or before a crash.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.journal import Amended
from agent_core.orchestration.plan import Step
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    MessageReceived,
    PlanPress,
    dedupe_keys,
    read_press,
)
from gateway.plans.texts import PlanKey
from gateway.sessions.turns import OpenTurn
from gateway.store.rows import InboxRow
from gateway.texts import say
from gateway.views import PlanView, View

if TYPE_CHECKING:
    from gateway.sessions.intake import Intake
    from gateway.sessions.session import Session

Pressed: TypeAlias = ButtonPressed | FormSubmitted


class Wish(Struct, frozen=True, kw_only=True):
    """What a press asks for anew: step `n` of the plan of the turn `turn`, as a message."""

    turn: str
    n: int
    message: MessageReceived


async def press_late(
    session: "Session", intake: "Intake", row: InboxRow, press: Pressed, asked: PlanPress
) -> None:
    """The turn is over: what failed can be asked for anew, once, by who asked for it."""
    language = press.sender.language
    wish = await _wish(session, press, asked)
    if wish is None:
        session.decisions.done(row.seq, press.press, say("plan_over", language))
    elif _waits(session, wish.turn) or not await _offered(session, wish.turn, press.token):
        session.decisions.done(row.seq, press.press, say("plan_again_before", language))
    elif why := await _over_quota(session, intake, wish.message):
        session.decisions.done(row.seq, press.press, why)
    else:
        busy = session.active is not None or bool(session.queue)
        session.queue.append(row)
        session.decisions.tell(press.press, say("plan_again_waits", language) if busy else "")


async def begin(session: "Session", intake: "Intake", press: Pressed) -> OpenTurn | None:
    """The turn of the press that waits longest; its first commit changes the old card."""
    row = session.queue[0]
    asked = read_press(press.token)
    wish = await _wish(session, press, asked) if isinstance(asked, PlanPress) else None
    if wish is None:
        session.queue.popleft()
        session.notice(row.seq, say("plan_over", press.sender.language))
        return None
    session.queue[0] = replace(row, inbound=wish.message)
    session.along += await session.redrawn(wish.turn, "plan", superseded("plan_retried", n=wish.n))
    begun = await intake.begin()
    if begun is not None and not begun.stored:
        begun.journal.put()  # the old card does not wait for the model's first answer
    return begun


def superseded(key: PlanKey, **values: object) -> Callable[[View], View]:
    """What makes a plan's card one that is over: a word on what came instead, no buttons."""
    return partial(_superseded, key, values)


def _superseded(key: PlanKey, values: dict[str, object], view: View) -> View:
    if not isinstance(view, PlanView) or not view.buttons:
        return view
    return replace(view, buttons=(), outcome=say(key, view.language, **values))


async def _wish(session: "Session", press: Pressed, asked: PlanPress) -> Wish | None:
    """None where nothing can be asked for anew by this person."""
    turn_id, step = asked.turn, asked.step
    if asked.action != "retry":
        return None
    await session.written()
    store, access, sender = session.services.store, session.services.access, press.sender
    turn = await store.turn(turn_id)
    if turn is None or turn.sender not in await access.accounts(sender.key):
        return None
    fold, records = session.fold(turn), await store.records(turn_id)
    for record in records:
        fold.add(record)
    steps = fold.course.plan.steps if fold.course is not None else ()
    n = next((n for n, one in enumerate(steps, 1) if one.id == step), 0)
    if not n:
        return None
    edits = [record.edit for record in records if isinstance(record, Amended)]
    unwanted = {edit.step for edit in edits if edit.action == "skip"}
    message = MessageReceived(
        conversation=press.conversation,
        sender=sender,
        event=dedupe_keys(press)[0],
        message="",
        text=_words(steps[n - 1], _left(steps, step, unwanted), sender.language),
    )
    return Wish(turn=turn_id, n=n, message=message)


def _left(steps: tuple[Step, ...], failed: str, unwanted: set[str]) -> list[str]:
    """What was never done because the step `failed` was not, in order; without what a person
    skipped."""
    behind, left = {failed}, []
    for one in steps:  # those that a step needs stand before it
        if behind.isdisjoint(one.needs) or one.state != "skipped" or one.id in unwanted:
            continue
        behind.add(one.id)
        left.append(one.description)
    return left


def _words(failed: Step, left: list[str], language: str) -> str:
    why = failed.note or "—"
    if not left:
        return say("plan_again", language, step=failed.description, why=why)
    rest = "\n".join(f"{n}. {text}" for n, text in enumerate(left, 1))
    return say("plan_again_on", language, step=failed.description, why=why, rest=rest)


def _waits(session: "Session", turn: str) -> bool:
    """A press on that plan waits in line already."""
    for row in session.queue:
        if isinstance(row.inbound, ButtonPressed | FormSubmitted):
            asked = read_press(row.inbound.token)
            if isinstance(asked, PlanPress) and asked.turn == turn:
                return True
    return False


async def _offered(session: "Session", turn: str, token: str) -> bool:
    """The plan's card bears the button still."""
    known = await session.services.store.outbox(session.lease.conversation, turn)
    rows = {(row.turn, row.name): row for row in known}
    row = session.outbox.rows.get((turn, "plan")) or rows.get((turn, "plan"))
    view = row.view if row is not None else None
    return isinstance(view, PlanView) and any(one.token == token for one in view.buttons)


async def _over_quota(session: "Session", intake: "Intake", message: MessageReceived) -> str:
    role = session.services.access.role(message.sender)
    return "" if role == "admin" else await intake.over_quota(message)
