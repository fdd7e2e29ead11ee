"""Records told as events: what happened in a turn, for streams, APIs and callbacks."""

import re

import msgspec
from msgspec import Struct

from agent_core.events import (
    AgentEvent,
    CommandBegan,
    CommandEnded,
    CommandFailed,
    Completed,
    ErrorMet,
    FellBack,
    ImageGiven,
    InterruptAnswered,
    Interrupted,
    ToolAnswered,
    ToolCalled,
    UsageCounted,
    WorkspaceChanged,
)
from agent_core.journal import (
    Answered,
    Asked,
    Emitted,
    Failed,
    Finished,
    Record,
    Replied,
    Stopped,
    ToolFinished,
    ToolStarted,
)
from agent_core.messages import ToolCall
from agent_core.questions import Approval, Question

COMMAND = "run_command"
_EXIT = re.compile(r"\[exit code (-?\d+)\]\s*$")
_STOPPED = re.compile(r"\[stopped[^\]]*\]\s*$")
_LAST = 200
"""Characters of a command's last words that say why it did not end by itself."""


class _Asked(Struct):
    """What is told of a command's arguments; the others do not matter here."""

    command: str
    background: bool = False


def events_of(record: Record) -> tuple[AgentEvent, ...]:
    """The events that a record stands for, in order; none for what nobody sees."""
    match record:
        case Replied(reply=reply):
            calls = tuple(
                ToolCalled(call_id=part.id, name=part.name, arguments=part.arguments)
                for part in reply.parts
                if isinstance(part, ToolCall)
            )
            usage = UsageCounted(model=reply.model, usage=reply.usage)
            if not reply.instead_of:
                return (*calls, usage)
            answered = f"{reply.provider}/{reply.model}"
            return (FellBack(model=answered, instead_of=reply.instead_of), *calls, usage)
        case ToolStarted(call=call):
            return _began(call)
        case ToolFinished():
            failed = record.outcome != "ok"
            told = ToolAnswered(
                call_id=record.call_id, name=record.name, content=record.content, error=failed
            )
            return (*_ended(record), *_left(record), told)
        case Asked():
            return (Interrupted(key=record.id, text=question_text(record.question)),)
        case Answered():
            return (InterruptAnswered(key=record.asked, choice=record.answer.choice),)
        case Emitted():
            return (record.event,)
        case Failed():
            return (ErrorMet(text=record.text),)
        case Finished():
            return (Completed(text=record.text, finish=record.finish),)
        case Stopped():
            return (Completed(text=record.partial, finish="cancelled"),)
        case _:
            return ()


def _began(call: ToolCall) -> tuple[AgentEvent, ...]:
    if call.name != COMMAND:
        return ()
    asked = msgspec.json.decode(call.arguments, type=_Asked)
    event = CommandBegan(call_id=call.id, command=asked.command, background=asked.background)
    return (event,)


def _ended(record: ToolFinished) -> tuple[AgentEvent, ...]:
    """How a command ended; none for one that was denied or runs on."""
    if record.name != COMMAND or record.outcome == "denied":
        return ()
    if record.outcome == "ok":
        if code := _EXIT.search(record.content):
            return (CommandEnded(call_id=record.call_id, exit_code=int(code[1])),)
        if not _STOPPED.search(record.content):
            return ()  # it runs on in the background
    return (CommandFailed(call_id=record.call_id, text=record.content.rstrip()[-_LAST:]),)


def _left(record: ToolFinished) -> tuple[AgentEvent, ...]:
    """What a call left behind: changed files, and pictures for people."""
    images = (
        ImageGiven(call_id=record.call_id, ref=one.ref, name=one.name, mime=one.mime, size=one.size)
        for one in record.files
        if one.mime.startswith("image/")
    )
    if not record.changed:
        return tuple(images)
    return (WorkspaceChanged(call_id=record.call_id, paths=record.changed), *images)


def question_text(question: Question) -> str:
    """A question in words."""
    if isinstance(question, Approval):
        calls = "; ".join(f"{item.tool} {item.arguments}" for item in question.proposals)
        return f"May this run? {calls}"
    return question.text
