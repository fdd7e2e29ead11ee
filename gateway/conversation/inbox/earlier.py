"""Earlier messages of a thread: read from the platform, bounded, and shown to the model as data.

So a reply to a report, or below it, is understood in its context.
"""

import logging
from collections.abc import Sequence

from agent_core import ambient
from agent_core.context.data_marks import BEGINS, ENDS, make_seal
from gateway.conversation.state import ConversationState
from gateway.errors import DeliveryError
from gateway.messages import MessageReceived, Quote
from gateway.ports import ThreadReading
from gateway.store.rows import InboxRow

log = logging.getLogger("turnkeeper.earlier")

MAX_MESSAGES, MAX_CHARACTERS = 30, 8_000
MAX_FIRST, MAX_EACH = 4_000, 1_500
"""Characters of a thread's first message, and of each later one."""
PATIENCE = 5.0
"""Seconds after which a turn begins without it."""
HEAD = "[Said in this thread before, the oldest first]"


async def read_earlier(state: ConversationState, rows: Sequence[InboxRow]) -> str:
    """Return the thread's messages before `rows` for the model; "" if there are none that are new
    or readable. Later turns get the messages since the agent's last one, unless the agent receives
    all of them anyway."""
    where, adapter, first = state.conversation, state.adapter, rows[0].inbound
    if not isinstance(adapter, ThreadReading) or not isinstance(first, MessageReceived):
        return ""
    if not first.message or first.message == where.thread:
        return ""
    fresh = not state.row.end and not state.row.title
    if not fresh and (where.private or state.services.access.policy.group != "mention"):
        return ""
    try:
        async with ambient.limit(PATIENCE):
            said = await adapter.read_thread(where, first.message, MAX_MESSAGES)
    except (DeliveryError, TimeoutError) as error:
        log.info("thread_not_read", extra={"why": str(error)})
        return ""
    known = {one.inbound.message for one in rows if isinstance(one.inbound, MessageReceived)}
    if first.reply_to is not None:
        known.add(first.reply_to.message)
    if where.private:  # text after it was addressed to the agent, or is its reply to a command
        said = tuple(one for one in said if one.message == where.thread)
    new = said if fresh else _cut_after_own(said)
    return render_earlier([one for one in new if one.message not in known], where.thread)


def _cut_after_own(said: Sequence[Quote]) -> Sequence[Quote]:
    own = [n for n, one in enumerate(said) if one.mine]
    return said[own[-1] + 1 :] if own else said


def render_earlier(said: Sequence[Quote], thread: str) -> str:
    """Render messages with their authors as data: the first of the thread, and as many of the
    newest as fit."""
    root = [one for one in said if one.message == thread and one.text]
    lines = [_render(one, MAX_FIRST) for one in root]
    room, last = MAX_CHARACTERS - sum(map(len, lines)), list[str]()
    for one in reversed([one for one in said if one.message != thread and one.text]):
        line = _render(one, MAX_EACH)
        if len(line) > room:
            last.append("[…]")
            break
        last.append(line)
        room -= len(line)
    if not lines and not last:
        return ""
    text = "\n".join((HEAD, *lines, *reversed(last)))
    seal = make_seal(text)
    return "\n".join((BEGINS.format(seal=seal), text, ENDS.format(seal=seal))) + "\n\n"


def _render(one: Quote, most: int) -> str:
    """Render a message with its later lines indented, so that no name or text can imitate another
    message."""
    author = "You" if one.mine else " ".join(one.author.split()) or "Somebody"
    text = one.text if len(one.text) <= most else f"{one.text[:most]} […]"
    moved = "\n  ".join(text.splitlines())
    return f"{author}: {moved}"
