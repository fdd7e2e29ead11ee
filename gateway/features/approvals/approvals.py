"""/approvals, /approve and /deny: questions are listed and decided by number."""

from msgspec.structs import replace

from agent_core import ambient
from agent_core.questions import Answer, Approval
from gateway.access.access import refusal
from gateway.conversation.decisions import Decisions, describe, why_not
from gateway.feature import Call
from gateway.features.approvals.relays import decide_there, list_relayed
from gateway.texts import say


async def approvals(call: Call) -> str:
    """List what waits for a decision here."""
    questions = [
        *call.context.state.open_questions(),
        *(one for _, one in await list_relayed(call.context)),
    ]
    if not questions:
        return say("no_approvals", call.language)
    described = (describe(question, call.language) for question in questions)
    return "\n".join(f"{n}. {what}" for n, what in enumerate(described, 1))


async def approve(call: Call) -> str:
    """Say yes to what waits, by its number."""
    return await _decide(call, Answer(choice="once"))


async def deny(call: Call) -> str:
    """Say no to what waits, by its number, for a reason."""
    reason = call.words[1:] if _read_number(call) else call.words
    return await _decide(call, Answer(choice="deny", text=" ".join(reason)))


def _read_number(call: Call) -> int:
    """The number of a question that the command begins with; 0 if it names none."""
    first = call.words[0] if call.words else ""
    return int(first) if first.isdecimal() and len(first) < 4 else 0


async def _decide(call: Call, answer: Answer) -> str:
    context = call.context
    elsewhere = await list_relayed(context)
    person = await context.services.access.person(call.command.sender)
    own = [q for q in context.state.open_questions() if isinstance(q.question, Approval)]
    questions = [*own, *(question for _, question in elsewhere)]
    if not questions:
        return say("no_approvals", call.language)
    number = _read_number(call)
    if number > len(questions) or (len(questions) > 1 and not number):
        return say("answer_usage", call.language, name=call.command.name)
    chosen = max(number, 1) - 1
    if chosen >= len(own):
        asked, given = elsewhere[chosen - len(own)], (call.command, call.seq)
        return await decide_there(context, asked, answer, person, given)
    question = questions[chosen]
    sender, where = call.command.sender, context.state.conversation
    no = refusal(question, where.id, where, person)
    if no is not None:
        return why_not(no, question, call.language)
    decided = replace(answer, by=sender.key, name=sender.name or sender.id, at=ambient.now())
    return await Decisions(context).settle(question, person, decided, call.seq)
