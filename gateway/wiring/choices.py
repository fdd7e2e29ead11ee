"""Completes a command's arguments while they are typed.

Read-only: no turn is touched, and nobody is shown what the command itself would not show.
"""

from collections.abc import Iterable, Sequence

from agent_core.orchestration.routes.classifier import MODES
from agent_core.profiles.built_in import PROFILES
from agent_core.settings import TIERS
from gateway.conversation.host import Host
from gateway.feature import is_allowed
from gateway.features.history.resume import look_for
from gateway.features.jobs.asker import identify_asker
from gateway.features.jobs.commands import ACTIONS
from gateway.folded_text import fold_text
from gateway.jobs_port import Asker
from gateway.messages import Conversation, Sender

Choice = tuple[str, str]
"""A label, and the words it stands for."""

EDITS = ("done", "skip", "retry", "drop", "move")
"""Edits of a plan's step, by its number."""
WORDS: dict[str, tuple[str, ...]] = {
    "mode": (
        *("ask", "auto", "queue", "steer", "interrupt"),
        *MODES,
        *PROFILES,
    ),
    "plan": ("on", "off"),
    "todo": (*EDITS, "add", "insert"),
    "jobs": ACTIONS,
    "memory": ("forget", "clear", "off", "on"),
    "model": TIERS,
    "link": ("off",),
    "permissions": ("drop",),
    "stop": ("all",),
    "undo": ("all", "keep"),
}
"""The first words that a command knows."""


async def choices(
    host: Host, conversation: Conversation, sender: Sender, name: str, typed: str
) -> Sequence[Choice]:
    """Return completions for somebody who may give the command."""
    access, command = host.services.access, host.features.commands.get(name)
    role = await access.learn(sender)
    if command is None or not is_allowed(access, role, command):
        return ()
    if name == "resume":
        parts = await look_for(host.services, conversation, sender, typed.strip())
        return [(one.part.title, one.part.title) for one in parts]
    first, space, rest = typed.lstrip().partition(" ")
    if not space:
        return _match_choices(((word, word) for word in WORDS.get(name, ())), first)
    found: Iterable[Choice] = ()
    if name == "jobs" and first in ACTIONS:
        found = await _jobs(host, await identify_asker(access, conversation, sender))
    elif name == "todo" and first in EDITS:
        found = _steps(host, conversation)
    return [
        (f"{first} {shown}", f"{first} {words}") for shown, words in _match_choices(found, rest)
    ]


async def _jobs(host: Host, who: Asker) -> Iterable[Choice]:
    jobs = host.services.jobs
    known = await jobs.book.list_visible(who) if jobs is not None else ()
    return [(f"{n} {job.title}", str(n)) for n, job in enumerate(known, 1)]


def _steps(host: Host, conversation: Conversation) -> Iterable[Choice]:
    """Return the steps of the plan that runs here."""
    session = host.sessions.get(conversation.id)
    active = session.state.active if session is not None else None
    course = active.fold.course if active is not None else None
    steps = course.plan.steps if course is not None else ()
    return [(f"{n} {step.description}", str(n)) for n, step in enumerate(steps, 1)]


def _match_choices(found: Iterable[Choice], typed: str) -> Sequence[Choice]:
    """Return the matches that begin with the typed words, then those that contain them."""
    words = fold_text(typed.strip())
    hits = [one for one in found if words in fold_text(one[0])]
    return sorted(hits, key=lambda one: not fold_text(one[0]).startswith(words))
