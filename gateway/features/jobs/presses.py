"""Handles buttons of a job's card. Deletion takes a second press on the same card."""

from gateway.feature import Context
from gateway.features.jobs.cards import CardPlace, ask_sure, find_card, read_place, redraw_cards
from gateway.features.jobs.commands import act
from gateway.features.jobs.runs import find_managed, identify
from gateway.jobs_port import Job
from gateway.messages import ButtonPressed, FormSubmitted, JobPress
from gateway.store.rows import InboxRow, OutboxRow
from gateway.texts import say
from gateway.views import Notice

CHANGES = ("pause", "resume", "retry")
"""Actions that change a job's cards."""


async def press(
    context: Context,
    row: InboxRow,
    pressed: ButtonPressed | FormSubmitted,
    asked: JobPress,
) -> None:
    """Do what the button says, and show it on its card."""
    name, action, slot = asked.job, asked.action, asked.slot
    language, at, keyed = pressed.sender.language, read_place(slot), slot
    if at is not None:
        keyed, at = "", at if await find_card(context, at) is not None else None
    job = await find_managed(context, pressed.sender, name)
    views: tuple[OutboxRow, ...] = ()
    text = word = ""
    if job is None:
        gone = await _is_gone(context, name)
        word = say("jobs_no_such" if gone else "not_yours", language)
        if gone:
            views = await redraw_cards(context, name, at)
    elif action == "delete" and not job.of_file:
        at = at or await _place_new_card(context, pressed, row, job)
        views = await ask_sure(context, job, at, language)
    elif action == "keep":
        views = await redraw_cards(context, name, at)
    elif action == "remove":
        text = (await act(context, job, "delete", str(row.seq), language)).text
        views = await redraw_cards(context, name, at, title=job.title)
        text = "" if views else text  # the card shows it
    else:
        deed = await act(context, job, action, keyed or str(row.seq), language)
        text, word = ("", deed.text) if deed.idle else (deed.text, "")  # such as a double press
        views = await redraw_cards(context, name, at) if action in CHANGES else ()
    if text:
        views += (context.draw(row.seq, "notice", Notice(text=text)),)
    context.finish(row.seq, *views)
    context.state.tell(pressed.press, word)


async def _place_new_card(
    context: Context, pressed: ButtonPressed | FormSubmitted, row: InboxRow, job: Job
) -> CardPlace:
    """Return the place of a new card, for a press on one that names none."""
    jobs, n = context.services.jobs, 1
    if jobs is not None:
        known = await jobs.book.list_visible(await identify(context, pressed.sender))
        n = next((n for n, one in enumerate(known, 1) if one.id == job.id), 1)
    return CardPlace(seq=row.seq, n=n)


async def _is_gone(context: Context, name: str) -> bool:
    jobs = context.services.jobs
    return jobs is not None and await jobs.store.get(name) is None
