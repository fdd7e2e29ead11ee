"""Converts records to events, for streams, APIs and callbacks."""

import msgspec
from msgspec import Struct

from agent_core.events import (
    AgentEvent,
    AppShown,
    BrowserMoved,
    BrowserShown,
    CodeRan,
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
    Emitted,
    Failed,
    Finished,
    QuestionAsked,
    Record,
    Replied,
    Stopped,
    ToolFinished,
    ToolStarted,
)
from agent_core.messages import NO_OUTPUT, ToolCall
from agent_core.questions import Approval, Question

COMMANDS = frozenset({"run_command", "bash", "sandbox_shell"})
CODE = frozenset({"execute_code", "python_execute", "normal_python_execute", "execute_script"})
_LAST = 200
"""Characters of a command's last words that say why it did not end by itself."""


class _Asked(Struct):
    """The arguments of a command that events tell."""

    command: str = ""
    code: str = ""
    background: bool = False


def events_of(record: Record) -> tuple[AgentEvent, ...]:
    """Return the events of a record, in order; none for internal ones."""
    match record:
        case Replied(reply=reply):
            calls = tuple(
                ToolCalled(call_id=part.id, name=part.name, arguments=part.arguments)
                for part in reply.parts
                if isinstance(part, ToolCall)
            )
            if not reply.model:  # the turn itself made the call
                return calls
            usage = UsageCounted(model=reply.model, usage=reply.usage, prefix=reply.prefix)
            if not reply.instead_of:
                return (*calls, usage)
            answered = f"{reply.provider}/{reply.model}"
            return (FellBack(model=answered, instead_of=reply.instead_of), *calls, usage)
        case ToolStarted(call=call):
            return _tell_began(call)
        case ToolFinished():
            failed = record.outcome != "ok"
            told = ToolAnswered(
                call_id=record.call_id, name=record.name, content=record.content, error=failed
            )
            return (
                *_command_events(record),
                *_browser_events(record),
                *_artifact_events(record),
                told,
            )
        case QuestionAsked():
            return (Interrupted(key=record.id, text=question_text(record.question)),)
        case Answered():
            return (InterruptAnswered(key=record.asked, choice=record.answer.choice),)
        case Emitted():
            return (record.event,)
        case Failed():
            return (ErrorMet(text=record.text, phrases=record.phrases),)
        case Finished():
            return (Completed(text=record.text, finish=record.finish),)
        case Stopped():
            return (Completed(text=record.partial, finish="cancelled"),)
        case _:
            return ()


def _tell_began(call: ToolCall) -> tuple[AgentEvent, ...]:
    if call.name not in COMMANDS | CODE:
        return ()
    asked = msgspec.json.decode(call.arguments, type=_Asked)
    words = asked.code if call.name in CODE else asked.command
    if not words.strip():
        return ()  # only the shell is restarted
    return (CommandBegan(call_id=call.id, command=words, background=asked.background),)


def _command_events(record: ToolFinished) -> tuple[AgentEvent, ...]:
    """Return how a command or a program ended; nothing for one that was denied or runs on."""
    if record.name not in COMMANDS | CODE or record.outcome == "denied":
        return ()
    command = record.command if record.outcome == "ok" else None
    if record.outcome == "ok" and (command is None or command.handle):
        return ()  # it continues in the background
    exit_code = command.exit_code if command is not None else None
    told: list[AgentEvent] = []
    if record.name in CODE and command is not None:
        ended = exit_code is not None
        written = record.content[: command.written] or NO_OUTPUT
        output = written if ended else record.content
        told.append(CodeRan(call_id=record.call_id, output=output, exit_code=exit_code))
    if exit_code is None:
        why = record.content.rstrip()[-_LAST:]
        return (*told, CommandFailed(call_id=record.call_id, text=why))
    return (*told, CommandEnded(call_id=record.call_id, exit_code=exit_code))


def _browser_events(record: ToolFinished) -> tuple[AgentEvent, ...]:
    """Return what was done in the browser, or where it can be watched."""
    browsed = record.browsed
    if record.outcome != "ok" or browsed is None:
        return ()
    if not browsed.action:
        return (BrowserShown(call_id=record.call_id, url=browsed.url),)
    return (BrowserMoved(call_id=record.call_id, action=browsed.action, url=browsed.url),)


def _artifact_events(record: ToolFinished) -> tuple[AgentEvent, ...]:
    """Return a call's artifacts: changed files, pictures for people, and a running app."""
    told: list[AgentEvent] = []
    if record.changed:
        told.append(WorkspaceChanged(call_id=record.call_id, paths=record.changed))
    told += (
        ImageGiven(call_id=record.call_id, ref=one.ref, name=one.name, mime=one.mime, size=one.size)
        for one in record.files
        if one.mime.startswith("image/")
    )
    if record.link is not None and record.link.of == "app":
        link = record.link
        told.append(AppShown(call_id=record.call_id, name=link.name, url=link.url))
    return tuple(told)


def question_text(question: Question) -> str:
    """A question in words."""
    if isinstance(question, Approval):
        calls = "; ".join(f"{item.tool} {item.arguments}" for item in question.proposals)
        return f"May this run? {calls}"
    return question.text
