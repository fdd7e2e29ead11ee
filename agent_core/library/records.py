"""What a library's task leaves in its journal: how it began, how it ended, what it took."""

from collections.abc import Iterable

import msgspec

from agent_core.journal import Began, Finished, Record, Replied
from agent_core.messages import Message
from agent_core.models.port import Usage
from agent_core.orchestration.brief import Brief, TurnResult


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a task begins with, or ends with."""

    brief: Brief | None
    history: tuple[Message, ...]


def read_ending(records: Iterable[Record]) -> TurnResult | None:
    """How a finished task ended."""
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
    known = [record.reply.usage for record in records if isinstance(record, Replied)]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in known),
        output_tokens=sum(usage.output_tokens for usage in known),
        cached_tokens=sum(usage.cached_tokens for usage in known),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in known),
    )
