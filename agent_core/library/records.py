"""Records of a library task in its journal: its start, its end, its usage."""

from collections.abc import Iterable

import msgspec

from agent_core.errors import AgentError, ModelFailed
from agent_core.events import ErrorMet
from agent_core.journal import Began, Emitted, Failed, Finished, Record, Replied
from agent_core.messages import Message
from agent_core.models.port import Usage
from agent_core.orchestration.brief import Brief, TurnResult
from agent_core.scope import restore_failure


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a task, or its end."""

    brief: Brief | None
    history: tuple[Message, ...]


def read_ending(records: Iterable[Record]) -> TurnResult | None:
    """Return the result of a finished task."""
    finished = messages = None
    for record in records:
        if isinstance(record, Finished):
            finished = record
        elif isinstance(record, Began) and record.key == "ended":
            messages = msgspec.json.decode(record.value, type=TaskRecord).history
    if finished is None or messages is None:
        return None
    return TurnResult(text=finished.text, messages=messages, finish=finished.finish)


def usage_of(records: Iterable[Record]) -> Usage:
    """Sum up the usage of all answers; the cost is None if one is unknown. Calls that were made
    in place of a model took nothing."""
    known = [
        record.reply.usage
        for record in records
        if isinstance(record, Replied) and (record.reply.model or record.reply.usage != Usage())
    ]
    costs = [usage.cost for usage in known]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in known),
        output_tokens=sum(usage.output_tokens for usage in known),
        cached_tokens=sum(usage.cached_tokens for usage in known),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in known),
        cost=None if any(one is None for one in costs) else sum(filter(None, costs)),
    )


def find_failure(records: Iterable[Record]) -> AgentError:
    """Return why a turn ended without an answer: the last failure in its journal."""
    failed, told = list[Failed](), list[ErrorMet]()
    for record in records:
        match record:
            case Failed():
                failed.append(record)
            case Emitted(event=ErrorMet() as met):
                told.append(met)
            case _:
                pass
    if not told:
        return restore_failure(failed[-1]) if failed else ModelFailed("No answer came.")
    last = told[-1]
    known = next((one for one in reversed(failed) if one.text == last.text), None)
    if known is not None:
        return restore_failure(known)
    return ModelFailed(last.phrases or last.text, "rejected")
