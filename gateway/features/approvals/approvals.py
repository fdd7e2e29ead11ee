"""/approvals, /approve and /deny: questions are listed and decided by number."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_core import ambient
from agent_core.questions import Answer, Approval
from agent_core.text import parse_number
from gateway.access.access import refusal
from gateway.conversation.decisions import Decisions, summarize, why_not
from gateway.feature import Call
from gateway.features.approvals.relays import decide_there, list_relayed
from gateway.features.approvals.waiting import OpenQuestion, list_waiting
from gateway.ports import account_scope
from gateway.store.rows import Changes, QuestionRow
from gateway.texts import say


async def approvals(call: Call) -> str:
    """List the questions that wait for the person: here, and from a private chat in all their
    conversations. Approvals have the number by which commands decide them."""
    own, language = call.context.state.open_questions(), call.language
    for question in own:  # a card that was deleted comes again
        if views := await call.context.state.recheck_card(question):
            call.context.state.show(Changes(views=views))
    elsewhere, words = await _list_elsewhere(call), call.context.services.find_redactions()
    here = [one for one in own if _takes_yes(one)]
    here += [one for _, one in await list_relayed(call.context)]
    there = [one for one in elsewhere if _takes_yes(one.question)]
    listed = (*(one.id for one in here), *(one.question.id for one in there))
    call.context.state.row = replace(call.context.state.row, listed=listed)
    lines = [summarize(one, language, words) for one in here]
    lines += [one.describe(language, words) for one in there]
    numbered = [f"{n}. {line}" for n, line in enumerate(lines, 1)]
    others = [f"- {summarize(one, language, words)}" for one in own if not _takes_yes(one)]
    others += [
        f"- {one.describe(language, words)}" for one in elsewhere if not _takes_yes(one.question)
    ]
    lists = ("\n".join(one) for one in (numbered, others) if one)
    return "\n\n".join(lists) or say("no_approvals", language)


def _takes_yes(question: QuestionRow) -> bool:
    return isinstance(question.question, Approval)


async def _list_elsewhere(call: Call) -> list[OpenQuestion]:
    """Return the questions that wait for the person in other conversations; none where others would
    read them."""
    context, here = call.context, call.context.state.conversation
    if not here.private:
        return []
    person = await context.services.access.person(call.command.sender)
    found = await list_waiting(context.services, person, (account_scope(here),))
    brought = set(context.state.row.brought)
    return [one for one in found if one.conversation != here.id and one.question.id not in brought]


async def approve(call: Call) -> str:
    """Approve a question by its number."""
    return await _decide(call, Answer(choice="once"))


async def deny(call: Call) -> str:
    """Deny a question by its number, with a reason."""
    return await _decide(call, Answer(choice="deny"))


def _read_number(call: Call) -> int:
    """Return the question's number at the start of the command; 0 if there is none."""
    first = call.words[0] if call.words else ""
    return (parse_number(first) or 0) if len(first) < 4 else 0


def _number_questions(call: Call, questions: Sequence[QuestionRow]) -> tuple[str, ...]:
    """Return the questions by their numbers: as they were listed while one of those waits, then
    those that have come since."""
    waiting = tuple(one.id for one in questions)
    listed = call.context.state.row.listed
    known = listed if not set(listed).isdisjoint(waiting) else ()
    return (*known, *(name for name in waiting if name not in known))


async def _decide(call: Call, answer: Answer) -> str:
    context = call.context
    asked = [(one.conversation, one.question) for one in await _list_elsewhere(call)]
    elsewhere = [*await list_relayed(context), *(one for one in asked if _takes_yes(one[1]))]
    person = await context.services.access.person(call.command.sender)
    own = [one for one in context.state.open_questions() if _takes_yes(one)]
    questions = [*own, *(question for _, question in elsewhere)]
    if not questions:
        return say("no_approvals", call.language)
    number, names = _read_number(call), _number_questions(call, questions)
    if answer.choice == "deny":
        alone = len(questions) == 1 and len(call.words) > 1
        number = 0 if alone and number > len(names) else number  # '2 copies are enough'
        answer = replace(answer, text=" ".join(call.words[1 if number else 0 :]))
    unread = answer.choice != "deny" and call.words and not number  # '/approve nothing'
    if number > len(names) or (len(questions) > 1 and not number) or unread:
        return say("answer_usage", call.language, name=call.command.name)
    found = [n for n, one in enumerate(questions) if not number or one.id == names[number - 1]]
    if not found:  # it was decided since it was listed
        return say("not_open", call.language)
    chosen = found[0]
    if chosen >= len(own):
        there, given = elsewhere[chosen - len(own)], (call.command, call.seq)
        return await decide_there(context, there, answer, person, given)
    question = questions[chosen]
    sender, where = call.command.sender, context.state.conversation
    no = refusal(question, where.id, where, person)
    if no is not None:
        return why_not(no, question, call.language, person)
    decided = replace(answer, by=sender.key, name=sender.name or sender.id, at=ambient.now())
    return await Decisions(context).settle(question, person, decided, call.seq)
