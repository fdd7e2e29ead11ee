"""Messages in parts: albums, long pastes split by clients, and bursts of typed messages.

The parts stay inbox rows of their own; this module decides which of them form one message and how
long to wait for more.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice, pairwise, takewhile

from msgspec.structs import replace

from agent_core.context.data_marks import mark_data
from gateway.conversation.inbox.unfinished import is_unfinished
from gateway.messages import MessageReceived, Quote, is_forwarded
from gateway.store.rows import InboxRow

MAX_QUOTED, MAX_OWN = 2_000, 300
"""Characters of quoted text, and of a quote of the agent, which knows the rest."""
SETTLE = 1.0
"""Seconds within which the next part arrives."""
LONG = 4_000
"""Minimum characters of a message that may be a part of a longer paste."""


def take_whole(queue: Sequence[InboxRow], burst: float = 0.0) -> list[InboxRow]:
    """Return the rows at the head of `queue` that form one message. `burst`: seconds within which a
    message continues an unfinished one."""
    rows = list(islice(queue, 1))
    for before, row in pairwise(queue):
        if not goes_on(before, row, burst) and not _is_comment(rows, row):
            break
        rows.append(row)
    return rows


def take_surplus(
    queue: Sequence[InboxRow], parts: Sequence[InboxRow], surplus: int
) -> list[InboxRow]:
    """Return the rows at the head of `queue` for one turn: `parts`, and at most `surplus` further
    messages of the same person."""
    more = islice(queue, len(parts), len(parts) + max(surplus, 0))
    return [*parts, *takewhile(partial(is_by_same_person, parts[0]), more)]


def settles_in(rows: Sequence[InboxRow], now: float) -> float:
    """Seconds until no other part of `rows` is to be expected, 0 if it is whole."""
    last = rows[-1].inbound
    if isinstance(last, MessageReceived) and is_part(last):
        left = rows[-1].at + SETTLE - now
        return left if 0 < left <= SETTLE else 0.0  # otherwise the clock was set back
    return 0.0


def join_rows(rows: Sequence[InboxRow]) -> InboxRow:
    """Join the parts into one row: all words, all files, the first part's position. A comment comes
    before what it is about."""
    parts = [row.inbound for row in rows if isinstance(row.inbound, MessageReceived)]
    parts.sort(key=is_forwarded)
    if len(parts) < 2:
        return rows[0]
    first, *others = parts
    said = (
        render_text(one) if one.reply_to == first.reply_to else render_words(one) for one in others
    )
    text = "\n".join(filter(None, (render_text(first), *said)))
    files = tuple(file for part in parts for file in part.attachments)
    whole = replace(first, text=text, attachments=files, described=False)
    return replace(rows[0], inbound=whole)


def is_command(row: InboxRow) -> bool:
    """Return True if a command is run for the row, without a model."""
    return isinstance(row.inbound, MessageReceived) and bool(row.inbound.command)


def is_by_same_person(first: InboxRow, second: InboxRow) -> bool:
    """Return True for two messages of one person."""
    one, other = first.inbound, second.inbound
    if not isinstance(one, MessageReceived) or not isinstance(other, MessageReceived):
        return False
    return one.sender.key == other.sender.key and not (is_command(first) or is_command(second))


def is_part(message: MessageReceived) -> bool:
    """Return True if more parts may follow."""
    return bool(message.album) or _is_cut(message) or is_forwarded(message)


def render_words(message: MessageReceived) -> str:
    """Return the message's words for the model, after what it quotes or forwards."""
    return f"{render_quote(message.reply_to)}{render_text(message)}".rstrip("\n")


def render_answer(message: MessageReceived) -> str:
    """Return the message's words as an answer to the agent, after what it quotes of others."""
    quote = message.reply_to
    own = quote is None or (quote.mine and not quote.forwarded)
    return render_text(message) if own else render_words(message)


def render_text(message: MessageReceived) -> str:
    """Return the message's text, marked as data where it only describes something."""
    return mark_data(message.text) if message.described else message.text


def render_quote(quote: Quote | None) -> str:
    """`quote` as lines of a quotation with its author, "" if there is nothing to read in it."""
    if quote is None or not quote.text:
        return ""
    most = MAX_OWN if quote.mine and not quote.marked else MAX_QUOTED
    text = quote.text if len(quote.text) <= most else f"{quote.text[:most]} […]"
    author = "You" if quote.mine else quote.author or "Somebody"
    head = f"Forwarded, by {author}" if quote.forwarded else author
    lines = "\n".join(f"> {line}" for line in text.splitlines())
    return f"> {head}:\n{lines}\n"


def goes_on(before: InboxRow, after: InboxRow, burst: float = 0.0) -> bool:
    """Return True if `after` is a further part of the message of `before`, or continues its
    words."""
    one, other = before.inbound, after.inbound
    if not isinstance(one, MessageReceived) or not isinstance(other, MessageReceived):
        return False
    if one.sender.key != other.sender.key or one.command or other.command:
        return False
    soon = after.at - before.at <= SETTLE
    if is_forwarded(other) and soon:  # a comment precedes the message it forwards
        return True
    if one.album or other.album:
        return one.album == other.album
    if _is_cut(one):
        return soon
    return 0 <= after.at - before.at <= burst and _is_begun(one) and bool(other.message)


def _is_comment(forwarded: Sequence[InboxRow], row: InboxRow) -> bool:
    """Return True if `row` says what the messages before it were forwarded for: on Discord the
    comment follows them."""
    whole, said = (*forwarded, row), [one.inbound for one in forwarded]
    if not all(isinstance(one, MessageReceived) and is_forwarded(one) for one in said):
        return False
    soon = row.at - forwarded[-1].at <= SETTLE
    return soon and all(is_by_same_person(one, two) for one, two in pairwise(whole))


def _is_begun(message: MessageReceived) -> bool:
    """Return True for a few words that look unfinished."""
    plain = message.message and not (message.attachments or message.reply_to or message.retry)
    return bool(plain) and is_unfinished(message.text)


def _is_cut(message: MessageReceived) -> bool:
    """Return True if it may be a part of a paste. Words that stand for a press never are."""
    return bool(message.message) and len(message.text) >= LONG
