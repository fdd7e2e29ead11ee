"""The context of a turn's message, read as it begins and recorded in its brief."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from agent_core import ambient
from agent_core.context.surroundings import Surroundings, describe_time, render_surroundings
from agent_core.orchestration.brief import Brief
from gateway.conversation.inbox.reading import TurnInput
from gateway.conversation.services import SandboxFacts
from gateway.feature import AddToBrief, Context, OnBegin
from gateway.messages import Conversation
from gateway.store.rows import Thread, TurnRow

FindZone: TypeAlias = Callable[[Context, TurnRow], Awaitable[tuple[str, bool]]]
"""The zone of whoever a turn works for, and whether it is known to be theirs. StoreFailed."""
GUESSED = "; the person's time zone is not known"


def make_reader(find_zone: FindZone) -> OnBegin:
    """Make the reader of a new turn's surroundings."""
    return partial(_read, find_zone)


async def _read(find_zone: FindZone, context: Context, row: TurnRow) -> AddToBrief:
    zone, known = await find_zone(context, row)
    now = describe_time(ambient.now(), zone)
    around = Surroundings(
        now=now if known else f"{now}{GUESSED}",
        person=f"{row.sender_name or row.sender}, {row.role}",
        place=describe_place(context.state.conversation),
        sandbox=describe_sandbox(context.services.sandbox),
    )
    return partial(_append, around)


def _append(around: Surroundings, brief: Brief, seen: Thread, asked: TurnInput) -> Brief:
    """Put them at the end of the brief's text, as far as the model does not know them."""
    newest = (message for messages in reversed(seen) for message in reversed(messages))
    text = render_surroundings(around, newest)
    return brief.append(text, asked.said)


def describe_place(where: Conversation) -> str:
    """The surface, and who reads along there."""
    kind = "private chat" if where.private else "group"
    thread = ", a thread" if where.thread and not where.private else ""
    return f"{where.platform}, {kind}{thread}"


def describe_sandbox(sandbox: SandboxFacts | None) -> str:
    """Describe the tier in which commands run, and its limits; "" for none."""
    if sandbox is None:
        return ""
    if sandbox.missing:
        return "none works here, so no command can run"
    if not sandbox.isolated:
        return f"{sandbox.name}: not isolated, commands reach this machine and the network"
    limits = sandbox.limits
    sizes = f"{limits.memory / 2**30:g} GB memory, {limits.disk / 2**30:g} GB disk"
    return f"{sandbox.name}: no network but allowed hosts, {sizes}, {limits.processes} processes"
