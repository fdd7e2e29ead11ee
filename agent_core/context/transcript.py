"""A turn's messages from its records: for turns that were stopped, and where code and journal
parted."""

from collections.abc import Iterable

from agent_core.inner_calls import describe_calls
from agent_core.journal import Record, Replied, Steered, ToolFinished, ToolStarted
from agent_core.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, calls_of, user

NOT_RUN = "Not run: the turn was stopped before."
ASIDE = "aside-"
"""Prefixes of model calls that are no part of the conversation (a plan, a check)."""
STOPPED = "Cancelled by the user. It was running when the turn was stopped; outcome unknown."


def is_aside(record: Replied) -> bool:
    """Return True if it answers a model call that is no part of the conversation."""
    return record.key.rpartition("/")[2].startswith(ASIDE)


def messages_of(records: Iterable[Record], started: str = STOPPED) -> tuple[Message, ...]:
    """Build a turn's messages from its records, acceptable to a provider: every call has its
    result. `started` is the result of a call that began and has no end."""
    known = tuple(records)
    results = {record.call_id: record for record in known if isinstance(record, ToolFinished)}
    begun = {
        record.call.id: describe_calls(known, f"{record.key.removesuffix('#start')}/")
        for record in known
        if isinstance(record, ToolStarted) and record.call.id not in results
    }
    messages: list[Message] = []
    for record in known:
        if isinstance(record, Replied):
            if is_aside(record):
                continue
            reply = Message(role="assistant", parts=record.reply.parts)
            if messages and messages[-1].role == "assistant":  # consecutive steps of a plan
                reply = _join_answers(messages.pop(), reply)
            messages.append(reply)
            if calls := calls_of(reply):
                parts = tuple(_result(call, results, begun, started) for call in calls)
                messages.append(Message(role="tool", parts=parts))
        elif isinstance(record, Steered) and record.texts:
            messages.append(user("\n".join(record.texts)))
    return tuple(messages)


def _join_answers(first: Message, second: Message) -> Message:
    """Join two consecutive answers, without their reasoning: a provider takes that back only
    unchanged."""
    parts = (*without_thinking(first).parts, *without_thinking(second).parts)
    return Message(role="assistant", parts=parts)


def _result(
    call: ToolCall, results: dict[str, ToolFinished], begun: dict[str, str], started: str
) -> ToolResult:
    record = results.get(call.id)
    if record is not None:
        return ToolResult(
            call_id=call.id,
            name=call.name,
            content=record.content,
            error=record.outcome != "ok",
            pictures=record.pictures,
            seal=record.seal,
        )
    ended = f"{started}\n{begun[call.id]}".rstrip() if call.id in begun else NOT_RUN
    return ToolResult(call_id=call.id, name=call.name, content=ended, error=True)


def settle_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """`messages` so that the next user message may follow: ends with words of the assistant."""
    known = tuple(messages)
    if known and known[-1].role != "assistant":
        end: tuple[Part, ...] = (Text(text="(stopped)"),)
        return (*known, Message(role="assistant", parts=end))
    return known


def without_thinking(message: Message) -> Message:
    """`message` without reasoning, for a provider that did not make it."""
    parts = tuple(part for part in message.parts if not isinstance(part, Thinking))
    return message if len(parts) == len(message.parts) else Message(role=message.role, parts=parts)
