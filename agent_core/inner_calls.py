"""Calls made by a running call, such as a script's, in the journal.

Their records are below the call's own key, each call by its number, with a note of what it is. Such
a call is an effect: it is never run again, so neither are its inner calls.
"""

from collections.abc import Iterable

import msgspec

from agent_core.journal import (
    Answered,
    Noted,
    QuestionAsked,
    Record,
    ToolFinished,
    ToolStarted,
    call_digest,
)
from agent_core.messages import ToolCall
from agent_core.questions import Answer

REQUEST = "request"
"""Name of the note that holds a call of them."""
MAX_TOLD, MAX_RESULT, MAX_ARGUMENTS = 8_000, 1_000, 300
"""Characters of all results together, of one, and of the arguments of one."""
_HEAD = "Calls that it made before that, in their order, and what became of them:"


def close_calls(
    records: Iterable[Record], prefix: str, unknown: str, at: float
) -> tuple[Record, ...]:
    """Return the records that end what is open below `prefix`: calls with unknown outcomes, and
    questions that need no answer any more."""
    known = [record for record in records if record.key.startswith(prefix)]
    there = {record.key for record in known}
    begun = {one.call.id for one in known if isinstance(one, ToolStarted)}
    begun |= {one.call_id for one in known if isinstance(one, ToolFinished)}
    closed: list[Record] = []
    for path, call in _list_requests(known):
        if call.id not in begun:
            closed.append(
                ToolFinished(
                    key=f"{path}{call.id}",
                    call_id=call.id,
                    name=call.name,
                    digest=call_digest(call),
                    content=_describe(known, path, call, MAX_RESULT),
                    outcome="cancelled",
                )
            )
    for record in known:
        if isinstance(record, QuestionAsked) and f"{record.key}#answer" not in there:
            answer = Answer(choice="cancelled", at=at)
            key = f"{record.key}#answer"
            closed.append(Answered(key=key, asked=record.key, answer=answer))
        elif isinstance(record, ToolStarted) and record.key.removesuffix("#start") not in there:
            closed.append(
                ToolFinished(
                    key=record.key.removesuffix("#start"),
                    call_id=record.call.id,
                    name=record.call.name,
                    digest=record.digest,
                    content=unknown,
                    outcome="unknown",
                )
            )
    return tuple(closed)


def describe_calls(records: Iterable[Record], prefix: str) -> str:
    """Describe the outcomes of the calls below `prefix` for the model; "" if there are none."""
    known = [record for record in records if record.key.startswith(prefix)]
    calls = _list_requests(known)
    if not calls:
        return ""
    room = max(80, min(MAX_RESULT, MAX_TOLD // len(calls)))
    lines = [
        f"{n}. {call.name} {_cut(call.arguments, min(MAX_ARGUMENTS, room))}\n"
        f"   {_describe(known, path, call, room)}"
        for n, (path, call) in enumerate(calls, 1)
    ]
    return "\n".join((_HEAD, *lines))


def _list_requests(known: list[Record]) -> list[tuple[str, ToolCall]]:
    """The calls that were wanted, each with the beginning of its records' keys."""
    return [
        (record.key.removesuffix(REQUEST), msgspec.json.decode(record.value, type=ToolCall))
        for record in known
        if isinstance(record, Noted) and record.key.rpartition("/")[2] == REQUEST
    ]


def _describe(known: list[Record], path: str, call: ToolCall, room: int) -> str:
    own = [record for record in known if record.key.startswith(path)]
    for record in own:
        if isinstance(record, ToolFinished) and record.call_id == call.id:
            return f"{record.outcome}: {_cut(record.content, room)}"
    if any(isinstance(record, ToolStarted) for record in own):
        return "Outcome unknown: it was under way. Check before you do it again."
    for record in own:
        if isinstance(record, Answered) and record.answer.allowed:
            return "Not run, though a person allowed it: the script that asked for it was gone."
    if any(isinstance(record, QuestionAsked) for record in own):
        return "Not run: it needed a person's permission."
    return "Not finished; it had changed nothing."


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most} characters)"
