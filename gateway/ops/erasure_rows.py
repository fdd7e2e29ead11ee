"""A person's traces in the rows of a conversation, and the rows without them. Pure."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.journal import Amended, Answered, Noted, Record
from agent_core.journal import encode as encode_record
from agent_core.messages import text_of
from agent_core.questions import Answer, Approval, Input, PlanReview, Question
from gateway.messages import (
    Inbound,
    JobFailed,
    JobFired,
    JobReported,
    Terms,
    sender_of,
)
from gateway.store.removal.stored import Stored
from gateway.store.rows import (
    ConversationRow,
    Letter,
    OutboxRow,
    QuestionRow,
    TranscriptRow,
    TurnRow,
    find_brought,
    find_reported,
)
from gateway.views import ReplyView, ReportView

ERASED = "(erased)"
MIN_WORDS = 16
"""Minimum characters of a phrase that is searched for in others' messages; shorter ones are too
common."""

_encode = msgspec.json.Encoder().encode
_INBOUND: msgspec.json.Decoder[Inbound] = msgspec.json.Decoder(Inbound)
_RECORD: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)
Row = TypeVar("Row", bound=Struct)


class Traces(Struct, frozen=True, kw_only=True):
    """Traces of a person to remove: their `accounts`, `turns` and `jobs`, the `questions` asked in
    their turns, and their `phrases`, as JSON has them. `mixed`: also texts that may
    contain anybody's words, such as summaries."""

    accounts: frozenset[str]
    turns: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    phrases: tuple[bytes, ...] = ()
    mixed: bool = True


def read_row(body: bytes, kind: type[Row]) -> Row | None:
    """The row, None if this version cannot read it."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError):
        return None


def find_phrases(text: str) -> set[bytes]:
    """Return the text as it occurs within a JSON string, and its lines, also without an author's
    name."""
    lines = text.splitlines()
    parts = {text, *lines, *(line.partition(": ")[2] for line in lines)}
    return {_encode(one)[1:-1] for one in parts if len(one.strip()) >= MIN_WORDS}


def sort_phrases(phrases: Iterable[bytes]) -> tuple[bytes, ...]:
    """The longest first, as a shorter one may be a part of it."""
    return tuple(sorted(phrases, key=len, reverse=True))


def find_spoken(entry: TranscriptRow) -> set[bytes]:
    """Return what people said in the turn of `entry`."""
    found: set[bytes] = set()
    for message in entry.messages:
        if message.role == "user":
            found |= find_phrases(text_of(message))
    return found


def find_answered(body: bytes, accounts: frozenset[str]) -> set[bytes] | None:
    """Return what the accounts said in a record of another person's turn: an answer, a change of
    its plan; None if it is not theirs."""
    match record := _read_record(body):
        case Answered() if record.answer.by in accounts:
            answer = record.answer
            texts = (answer.text, answer.said, answer.heard, f"{answer.name}: {answer.text}")
            return set().union(*map(find_phrases, texts))
        case Amended() if record.by in accounts:
            return find_phrases(record.edit.text)
        case _:
            return None


def find_asked(question: Question) -> set[bytes]:
    """Return what a question asks about, which others' turns and notices repeat while it is
    open."""
    match question:
        case Approval():
            texts = [text for one in question.proposals for text in _list_words(one.arguments)]
        case PlanReview():
            texts = [question.title, *question.steps]
        case _:
            texts = [question.text]
    return set[bytes]().union(*map(find_phrases, texts))


def _list_words(arguments: str) -> list[str]:
    """The arguments of a call, whole and one by one."""
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, ValueError):
        return [arguments]
    values = given.values() if isinstance(given, dict) else ()
    return [arguments, *(one for one in values if isinstance(one, str))]


def find_said(body: bytes, accounts: frozenset[str]) -> tuple[str, set[bytes]] | None:
    """Return what the accounts said in a message to a group, and that group's address."""
    inbound = _read_inbound(body)
    sender = sender_of(inbound) if inbound is not None else None
    if inbound is None or sender is None or sender.key not in accounts:
        return None
    if inbound.conversation.private:
        return None
    texts = (getattr(inbound, "text", ""), getattr(inbound, "arguments", ""))
    return inbound.conversation.id, set().union(*map(find_phrases, texts))


def find_report(view: OutboxRow) -> set[bytes]:
    """Return the words of a job's report that was delivered to another chat."""
    if not isinstance(view.view, ReportView):
        return set()
    return find_phrases(view.view.text) | find_phrases(view.view.title)


def blank_row(row: Stored, traces: Traces) -> Stored:
    """Return the row without the person's words, and without the words said to them."""
    theirs, phrases = traces.turns, traces.phrases
    match row.kind:
        case "turn" if (turn := read_row(row.body, TurnRow)) is not None and turn.id in theirs:
            body = _encode(_blank_turn(turn))
        case "record" if row.key.rpartition(" ")[0] in theirs:
            body = encode_record(Noted(key=row.key, value=msgspec.Raw(b"null")))
        case "record":
            body = _cut(_blank_record(row.body, traces.accounts), phrases)
        case "view" if (view := read_row(row.body, OutboxRow)) is not None and _concerns(
            view, traces
        ):
            body = _encode(replace(view, view=ReplyView(text=ERASED)))
        case "question" if (one := read_row(row.body, QuestionRow)) is not None:
            body = _blank_question(one, traces)
        case "transcript" if (entry := read_row(row.body, TranscriptRow)) is not None:
            own = entry.turn in theirs or entry.person in traces.accounts
            # summaries and copies of messages from elsewhere may contain anybody's words
            mixed = traces.mixed and entry.kind in ("summary", "resumed")
            body = _encode(replace(entry, messages=())) if own or mixed else _cut(row.body, phrases)
        case "letter" if (letter := read_row(row.body, Letter)) is not None:
            body = _blank_letter(letter, traces)
        case "conversation" if (known := read_row(row.body, ConversationRow)) is not None:
            said = any(known.title.encode()[:40] in phrase for phrase in phrases)
            body = _cut(_encode(replace(known, title="" if said else known.title)), phrases)
        case _:
            body = _cut(row.body, phrases)
    return row._replace(body=body)


def _concerns(view: OutboxRow, traces: Traces) -> bool:
    return (
        view.turn in traces.turns
        or find_reported(view)[0] in traces.jobs
        or find_brought(view) in traces.questions
    )


def _blank_turn(turn: TurnRow) -> TurnRow:
    firing = turn.firing
    if firing is not None:
        firing = replace(firing, title="", terms=Terms())
    return replace(turn, text="", sender_name="", firing=firing)


def _blank_record(body: bytes, accounts: frozenset[str]) -> bytes:
    """Remove the person from a record of another person's turn."""
    match record := _read_record(body):
        case Answered() if record.answer.by in accounts:
            answer = replace(record.answer, by="", name=ERASED)
            return encode_record(replace(record, answer=_blank_reason(answer)))
        case Amended() if record.by in accounts:
            return encode_record(replace(record, by=""))
        case _:
            return body


def _blank_reason(answer: Answer) -> Answer:
    """Remove the reason of a denial, however short; options are not the person's own words."""
    return replace(answer, text=ERASED) if answer.choice == "deny" and answer.text else answer


def _blank_question(one: QuestionRow, traces: Traces) -> bytes:
    if one.turn in traces.turns:
        return _encode(replace(one, question=Input(text=ERASED), votes=()))
    votes = tuple(vote for vote in one.votes if traces.accounts.isdisjoint(vote.accounts))
    return _cut(_encode(replace(one, votes=votes)), traces.phrases)


def _blank_letter(letter: Letter, traces: Traces) -> bytes:
    name = letter.name.split(" ")[0]
    if (
        name in traces.turns
        or letter.turn in traces.turns
        or _is_theirs(letter.payload, traces.accounts, traces.jobs)
    ):
        return _encode(replace(letter, payload=b"{}", kind="conversation"))
    return _encode(replace(letter, payload=_cut(letter.payload, traces.phrases)))


def blank_message(body: bytes, traces: Traces) -> bytes:
    """Remove a message of the person or of their jobs; blank quotes of them in others'
    messages."""
    if _is_theirs(body, traces.accounts, traces.jobs):
        return b"{}"
    return _cut(body, traces.phrases)


def _is_theirs(payload: bytes, accounts: frozenset[str], jobs: frozenset[str]) -> bool:
    """Return True if the inbound value came from the accounts, or from one of the jobs."""
    inbound = _read_inbound(payload)
    if isinstance(inbound, JobFired | JobFailed | JobReported):
        return inbound.job in jobs
    sender = sender_of(inbound) if inbound is not None else None
    return sender is not None and sender.key in accounts


def _read_inbound(payload: bytes) -> Inbound | None:
    try:
        return _INBOUND.decode(payload)
    except (msgspec.MsgspecError, ValueError):
        return None


def _read_record(body: bytes) -> Record | None:
    try:
        return _RECORD.decode(body)
    except (msgspec.MsgspecError, ValueError):
        return None


def _cut(body: bytes, phrases: Sequence[bytes]) -> bytes:
    for phrase in phrases:
        body = body.replace(phrase, ERASED.encode())
    return body
