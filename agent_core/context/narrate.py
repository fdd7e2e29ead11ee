"""Records told as events: what happened in a turn, for streams, APIs and callbacks."""

from agent_core.events import (
    AgentEvent,
    Completed,
    ErrorMet,
    FellBack,
    InterruptAnswered,
    Interrupted,
    ToolAnswered,
    ToolCalled,
    UsageCounted,
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
)
from agent_core.messages import ToolCall
from agent_core.questions import Approval, Question


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
        case ToolFinished():
            failed = record.outcome != "ok"
            return (
                ToolAnswered(
                    call_id=record.call_id, name=record.name, content=record.content, error=failed
                ),
            )
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


def question_text(question: Question) -> str:
    """A question in words."""
    if isinstance(question, Approval):
        calls = "; ".join(f"{item.tool} {item.arguments}" for item in question.proposals)
        return f"May this run? {calls}"
    return question.text
