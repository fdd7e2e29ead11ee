"""The cards of jobs: their buttons, and their updates after changes.

A button of a list names the card that it is on, so that the card is changed in place; other cards
of the same job shown here are updated too.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from agent_core.text import parse_number
from gateway.feature import Context
from gateway.jobs_port import Job, JobPorts
from gateway.messages import MAX_TOKEN, JobPress, job_token, read_press
from gateway.store.rows import OutboxRow
from gateway.texts import Key, say
from gateway.texts.runs import describe_due, describe_means, describe_run, show_moment, show_moments
from gateway.views import Button, ChoiceCard, View

NEWEST = 40
"""Views that are looked through for cards of a job."""
TURNS: dict[str, tuple[Key, str]] = {
    "active": ("jobs_pause", "pause"),
    "paused": ("jobs_resume", "resume"),
}
"""The button that turns a job off or on again, by its state."""


class CardPlace(Struct, frozen=True, kw_only=True):
    """The place of a card: of the `n`-th job in the list that the inbox row `seq` asked for."""

    seq: int
    n: int

    @property
    def slot(self) -> str:
        """The place as encoded in a button."""
        return f"c{self.seq}-{self.n}"

    @property
    def view(self) -> tuple[str, str]:
        """The card among the conversation's views."""
        return f"row-{self.seq}", f"job-{self.n}"


def read_place(slot: str) -> CardPlace | None:
    """Parse a button's place, None if it has none."""
    seq, _, n = slot.removeprefix("c").partition("-")
    return _make_place(seq, n) if slot.startswith("c") else None


async def card(
    jobs: JobPorts, job: Job, at: CardPlace, language: str, *, sure: bool = False, hint: str = ""
) -> ChoiceCard:
    """The job's card at that place; `sure`: it asks whether the job shall be deleted; `hint`: a
    line below."""
    text, offers = await line(jobs, job, at.n, language), _offers(job)
    text = f"{text}\n{hint}" if hint else text
    if sure:
        text = f"{text}\n\n{say('jobs_sure', language, title=job.title)}"
        offers = (("jobs_remove", "remove"), ("jobs_keep", "keep"))
    buttons = tuple(
        Button(
            label=say(key, language),
            token=_token(job.id, action, at),
            style="bad" if action == "remove" else "plain",
        )
        for key, action in offers
    )
    return ChoiceCard(question="", text=text, buttons=buttons, language=language)


def _token(job: str, action: str, at: CardPlace) -> str:
    token = job_token(job, action, at.slot)
    return token if len(token.encode()) <= MAX_TOKEN else job_token(job, action)


def _offers(job: Job) -> tuple[tuple[Key, str], ...]:
    turn = (TURNS[job.state],) if job.state in TURNS else ()
    rest: tuple[tuple[Key, str], ...] = (
        ("jobs_edit", "edit"),
        ("jobs_history", "history"),
        ("jobs_delete", "delete"),
    )
    return (("jobs_run", "run"), *turn, *rest)


def head(jobs: JobPorts, job: Job, n: int, language: str) -> str:
    """Describe a job in one line: its number, title, schedule and state."""
    state: Key = f"jobs_{job.state}"  # type: ignore[assignment]  # keys of texts
    words = describe_due(jobs.times, job, language)
    return say("jobs_line", language, n=n, title=job.title, words=words, state=say(state, language))


def order_jobs(jobs: Sequence[Job]) -> list[tuple[int, Job]]:
    """Return jobs with their numbers: first those that are not over, then the others, the newest
    first."""
    numbered = list(enumerate(jobs, 1))
    going = [one for one in numbered if not one[1].is_over]
    return [*going, *(one for one in reversed(numbered) if one[1].is_over)]


async def line(jobs: JobPorts, job: Job, n: int, language: str) -> str:
    """Describe a job in a few lines: task, schedule, last run."""
    lines = [head(jobs, job, n, language)]
    if means := describe_means(job, language):
        lines.append(means)
    if times := jobs.book.next_times(job):
        lines.append(say("jobs_next", language, times=show_moments(jobs.times, times, job.zone)))
    runs = await jobs.store.runs(job.id, 1)
    if runs:
        when = show_moment(jobs.times, runs[0].due, job.zone)
        lines.append(say("jobs_last", language, when=when, state=describe_run(runs[0], language)))
    else:
        lines.append(say("jobs_never", language))
    return "\n".join(lines)


async def redraw_cards(
    context: Context, name: str, at: CardPlace | None = None, *, sure: bool = False, title: str = ""
) -> tuple[OutboxRow, ...]:
    """Redraw the cards of the job `name` here, to be committed at once: the one at `at`, and the
    newest others. `sure`: the one at `at` asks whether to delete it; `title`: the name of a job
    just deleted."""
    jobs, store = context.services.jobs, context.services.store
    if jobs is None:
        return ()
    job = await jobs.store.get(name)
    rows: tuple[OutboxRow, ...] = ()
    await context.state.flush()
    newest = await store.latest(context.state.conversation.id, NEWEST)
    known = {(one.turn, one.name): one.view for one in newest if name in _jobs(one.view)}
    if at is not None and (row := await find_card(context, at)) is not None:
        known[at.view] = row.view
    for where, view in known.items():
        asks = sure and at is not None and where == at.view
        if job is None:
            after = _render_deleted(view, where, title)
        else:
            after = await _as_now(jobs, job, where, view, sure=asks)
        rows += await context.state.redraw(*where, partial(_replace_view, after))
    return rows


async def find_card(context: Context, at: CardPlace) -> OutboxRow | None:
    """Return the card at that place of this conversation."""
    await context.state.flush()
    rows = await context.services.store.outbox(context.state.lease.conversation, at.view[0])
    return next((row for row in rows if (row.turn, row.name) == at.view), None)


async def ask_sure(
    context: Context, job: Job, at: CardPlace, language: str
) -> tuple[OutboxRow, ...]:
    """Ask on the card at `at` whether to delete the job; on a new card if there is none."""
    views = await redraw_cards(context, job.id, at, sure=True)
    jobs = context.services.jobs
    if jobs is None or await find_card(context, at) is not None:
        return views
    asking = await card(jobs, job, at, language, sure=True)
    return (*views, context.state.want(*at.view, asking, 1, final=True))


def _replace_view(after: View, _: View) -> View:
    return after


def _jobs(view: View) -> Iterator[str]:
    """The jobs that the view's buttons are about."""
    for one in view.buttons if isinstance(view, ChoiceCard) else ():
        if isinstance(press := read_press(one.token), JobPress):
            yield press.job


async def _as_now(
    jobs: JobPorts, job: Job, where: tuple[str, str], view: View, *, sure: bool
) -> View:
    """The view of a job as the job is now."""
    if not isinstance(view, ChoiceCard) or not view.buttons:
        return view
    if (at := _place(where)) is not None:
        return await card(jobs, job, at, view.language, sure=sure)
    buttons = [await _refresh_button(jobs, job, one, view.language) for one in view.buttons]
    return replace(view, buttons=tuple(one for one in buttons if one is not None))


def _render_deleted(view: View, where: tuple[str, str], title: str) -> View:
    """Render the card of a deleted job: its failure stays readable."""
    if not isinstance(view, ChoiceCard) or not view.buttons:
        return view
    if title and _place(where) is not None:
        text = say("jobs_is_deleted", view.language, title=title)
        return replace(view, text=text, buttons=(), state="cancelled")
    gone = say("jobs_gone", view.language)
    return replace(view, buttons=(), state="cancelled", outcome=gone)


def _place(where: tuple[str, str]) -> CardPlace | None:
    """The place of a card of a list, None for other cards."""
    seq, n = where[0].removeprefix("row-"), where[1].removeprefix("job-")
    return _make_place(seq, n)


def _make_place(seq: str, n: str) -> CardPlace | None:
    row, number = parse_number(seq), parse_number(n)
    return None if row is None or number is None else CardPlace(seq=row, n=number)


async def _refresh_button(jobs: JobPorts, job: Job, button: Button, language: str) -> Button | None:
    """Return the button of a failure as of now; one that is being retried is no longer offered."""
    press = read_press(button.token)
    action, slot = (press.action, press.slot) if isinstance(press, JobPress) else ("", "")
    if action == "retry":
        run = await jobs.store.run(job.id, slot)
        return button if run is not None and run.state == "failed" else None
    if action not in ("pause", "resume"):
        return button
    if job.state not in TURNS:
        return None
    key, turn = TURNS[job.state]
    return replace(button, label=say(key, language), token=job_token(job.id, turn, slot))
