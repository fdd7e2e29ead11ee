"""Retries a step of a finished plan.

The press waits in the queue like a message, and the first commit of its turn replaces the old card.
The old card then says so and offers nothing, so that only one card can be acted on, whatever was
pressed twice, late, or before a crash.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_core.journal import Amended, Record
from agent_core.orchestration.plan import Step
from gateway.conversation.quotas import refuse_turn
from gateway.conversation.turns import OpenTurn, read_brief, read_retry
from gateway.delivery.retire import retire_plan
from gateway.feature import Context, Pressed
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    MessageReceived,
    PlanPress,
    PlanRetry,
    dedupe_keys,
    read_press,
)
from gateway.store.rows import InboxRow
from gateway.texts import say
from gateway.views import PlanView


class RetryRequest(Struct, frozen=True, kw_only=True):
    """A request to retry step `n` of the plan of the turn `turn`, as a message."""

    turn: str
    n: int
    message: MessageReceived


async def press_late(context: Context, row: InboxRow, press: Pressed, asked: PlanPress) -> None:
    """Handle a press on a finished plan: its asker may retry a failed step, once."""
    language = press.sender.language
    wish = await _wish(context, press, asked)
    if wish is None:
        context.state.acknowledge(row.seq, press.press, say("plan_over", language))
    elif _waits(context, wish.turn) or not await _is_offered(context, wish.turn, press.token):
        context.state.acknowledge(row.seq, press.press, say("plan_again_before", language))
    elif why := await refuse_turn(context.services, wish.message):
        context.state.acknowledge(row.seq, press.press, why)
    else:
        busy = context.state.active is not None or bool(context.state.queue)
        context.state.queue.append(row)
        context.state.tell(press.press, say("plan_again_waits", language) if busy else "")


async def begin(context: Context, row: InboxRow, press: Pressed) -> OpenTurn | None:
    """The turn of the press that waits longest; its first commit changes the old card."""
    asked = read_press(press.token)
    wish = await _wish(context, press, asked) if isinstance(asked, PlanPress) else None
    if wish is None:
        context.state.queue.popleft()
        context.state.notice(row.seq, say("plan_over", press.sender.language))
        return None
    context.state.queue[0] = replace(row, inbound=wish.message)
    context.state.along += await context.state.redraw(
        wish.turn, "plan", retire_plan("plan_retried", n=wish.n)
    )
    begun = await context.turns.begin_next()
    if begun is not None and not begun.stored:
        begun.journal.put()  # update the old card before the model's first answer
    return begun


async def _wish(context: Context, press: Pressed, asked: PlanPress) -> RetryRequest | None:
    """Return the request, None if this person cannot retry anything."""
    turn_id, step = asked.turn, asked.step
    if asked.action != "retry":
        return None
    await context.state.flush()
    store, access, sender = context.services.store, context.services.access, press.sender
    turn = await store.turn(turn_id)
    if turn is None or turn.sender not in await access.accounts(sender.key):
        return None
    fold, records = context.turns.fold(turn), await store.records(turn_id)
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
        text=_words(steps[n - 1], _list_undone(steps, step, unwanted), sender.language),
        retry=_count_try(records, fold.course.plan.title if fold.course is not None else ""),
    )
    return RetryRequest(turn=turn_id, n=n, message=message)


def _count_try(records: Sequence[Record], title: str) -> PlanRetry:
    """The next try of the plan called `title` so far."""
    before = read_retry(read_brief(records)) or PlanRetry(title=title, tries=1)
    return replace(before, tries=before.tries + 1)


def _list_undone(steps: tuple[Step, ...], failed: str, unwanted: set[str]) -> list[str]:
    """Return the steps that were not run because the step `failed` failed, in order, without those
    that a person skipped."""
    behind, left = {failed}, []
    for one in steps:  # the steps that a step depends on come before it
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


def _waits(context: Context, turn: str) -> bool:
    """A press on that plan waits in line already."""
    for row in context.state.queue:
        if isinstance(row.inbound, ButtonPressed | FormSubmitted):
            asked = read_press(row.inbound.token)
            if isinstance(asked, PlanPress) and asked.turn == turn:
                return True
    return False


async def _is_offered(context: Context, turn: str, token: str) -> bool:
    """The plan's card bears the button still."""
    known = await context.services.store.outbox(context.state.lease.conversation, turn)
    rows = {(row.turn, row.name): row for row in known}
    row = context.state.outbox.rows.get((turn, "plan")) or rows.get((turn, "plan"))
    view = row.view if row is not None else None
    return isinstance(view, PlanView) and any(one.token == token for one in view.buttons)
