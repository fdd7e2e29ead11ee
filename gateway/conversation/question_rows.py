"""Question rows and audit lines, as they follow from a turn's records."""

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from agent_core.guardrails.answers import redact_arguments
from agent_core.guardrails.redaction import Redactions
from agent_core.journal import (
    Answered,
    QuestionAsked,
    Record,
    Stopped,
    ToolFinished,
    ToolStarted,
)
from agent_core.questions import Approval, Choice, Proposal, Question
from gateway.approvers import Approvers, Deciders
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn
from gateway.messages import (
    Inbound,
    QuestionBrought,
    QuestionDue,
    QuestionExpired,
    read_conversation,
)
from gateway.store.port import Store
from gateway.store.rows import AuditRow, Changes, QuestionRow, QuestionStatus
from gateway.views import Card, awaits_answer

NEWEST = 20
"""Views of a conversation that are looked at."""
MAX_RUN = 500
"""Characters of the audit's line about a call that ran; the line about its approval has all."""
_STATUS: dict[Choice, QuestionStatus] = {"expired": "expired", "cancelled": "cancelled"}


def derive_questions(
    state: ConversationState, open_turn: OpenTurn, records: Iterable[Record]
) -> tuple[QuestionRow, ...]:
    """Make or close the questions that these records are about; their rows, to be committed."""
    rows = []
    for record in records:
        if isinstance(record, QuestionAsked):
            row = _make_question(state, open_turn, record)
            state.questions[row.id] = row
            rows.append(row)
        elif isinstance(record, Answered | Stopped):
            for question in list(state.questions.values()):
                if question.turn != open_turn.id or question.status != "open":
                    continue
                if isinstance(record, Answered) and record.asked != question.key:
                    continue
                choice = record.answer.choice if isinstance(record, Answered) else "cancelled"
                closed = replace(question, status=_STATUS.get(choice, "answered"))
                state.questions.pop(question.id)
                rows.append(closed)
    return tuple(rows)


def reopen_questions(state: ConversationState, open_turn: OpenTurn) -> None:
    """Reopen the questions that the journal waits for, of a turn that was set aside and
    resubmitted."""
    rows = [
        _make_question(state, open_turn, asked)
        for asked in open_turn.open_questions()
        if asked.id not in state.questions and not open_turn.closed
    ]
    for row in rows:
        state.questions[row.id] = row
    if rows:
        state.submit(Changes(questions=tuple(rows)))


def _make_question(
    state: ConversationState, open_turn: OpenTurn, record: QuestionAsked
) -> QuestionRow:
    services, asked = state.services, record.question
    seconds = asked.expires or services.question_expires
    expires = record.at + seconds if seconds else 0.0
    remind = record.at + services.question_reminder
    wanted = services.question_reminder and (not expires or remind < expires)
    return QuestionRow(
        id=record.id,
        turn=open_turn.id,
        key=record.key,
        status="open",
        question=asked,
        entitled=(open_turn.row.sender,),
        asked=record.at,
        expires=expires,
        remind=remind if wanted else 0.0,
        deciders=_deciders(state, asked),
        chat=_chat(state, asked),
        since=state.seen,
    )


def _chat(state: ConversationState, asked: Question) -> str:
    """The approvers' chat, unless this is it."""
    chat = state.services.access.policy.chat
    other = isinstance(asked, Approval) and chat != state.conversation.id
    return chat if other else ""


def _deciders(state: ConversationState, asked: Question) -> Deciders | None:
    approvers = state.services.access.policy.approvers
    if not isinstance(asked, Approval) or approvers == Approvers():
        return None
    risks = (proposal.risk for proposal in asked.proposals)
    return approvers.find_deciders(risks, state.conversation.platform)


def audit_records(
    state: ConversationState, open_turn: OpenTurn, records: Iterable[Record]
) -> tuple[AuditRow, ...]:
    """Lines of the audit that these records make."""
    lines = []
    for record in records:
        if isinstance(record, Answered):
            answer = record.answer
            detail = f"{open_turn.id} {record.asked} {answer.choice}"
            lines.append(state.audit(answer.by, "answered", detail))
        elif isinstance(record, QuestionAsked) and isinstance(record.question, Approval):
            for proposal in record.question.proposals:
                detail = f"{open_turn.id} {proposal.tool} {proposal.digest} {proposal.arguments}"
                lines.append(
                    state.audit(open_turn.row.sender, "asked", detail + _tell_lent(proposal))
                )
        elif isinstance(record, ToolFinished) and record.outcome != "denied":
            detail = _describe_run(open_turn, record, state.services.find_redactions())
            lines.append(state.audit(open_turn.row.sender, "ran", detail, MAX_RUN))
        elif isinstance(record, Stopped):
            lines.append(state.audit(record.by, "stopped", f"{open_turn.id} {record.reason}"))
    return tuple(lines)


def _tell_lent(proposal: Proposal) -> str:
    names = (note.fields.get("names", "") for note in proposal.notes if note.key == "why_lent")
    return "".join(f" [lent: {name}]" for name in names)


def _describe_run(open_turn: OpenTurn, record: ToolFinished, words: Redactions) -> str:
    """Describe the call, how it ended, and whether somebody was asked."""
    asked, given = False, ""
    for one in reversed(open_turn.journal.records):
        if isinstance(one, ToolStarted) and one.call.id == record.call_id:
            given = f" {redact_arguments(one.call.arguments, words, MAX_RUN)}"
        elif isinstance(one, QuestionAsked) and isinstance(one.question, Approval):
            asked = any(call.call_id == record.call_id for call in one.question.proposals)
        if asked:
            break
    how = "approved" if asked else "unasked"
    return f"{open_turn.id} {record.name} {record.digest} {record.outcome} {how}{given}"


async def list_open_questions(store: Store, conversation: str) -> list[tuple[Card, QuestionRow]]:
    """Return a conversation's open questions with their cards, oldest first, whoever holds it.
    Raises StoreFailed."""
    found: list[tuple[Card, QuestionRow]] = []
    for shown in await store.latest(conversation, NEWEST):
        card = shown.view
        if not awaits_answer(card) or not card.question:
            continue
        asked = await store.find(card.question)
        if asked is not None and asked[0] == conversation:  # else it shows another one
            found.append((card, asked[1]))
    return found


def list_due_rows(where: str, question: QuestionRow, now: float) -> tuple[Inbound, ...]:
    """Return the inbound rows of a due question, one for each occasion."""
    conversation, name = read_conversation(where), question.id

    def due(what: Literal["reminder", "escalation", "relayed", "told"]) -> QuestionDue:
        event = f"{what}:{name}"
        return QuestionDue(conversation=conversation, event=event, question=name, what=what)

    if question.status != "open" or (question.chat and not question.relayed):
        what: Literal["relayed", "told"] = "relayed" if question.status == "open" else "told"
        chat = read_conversation(question.chat)
        shown = QuestionBrought(conversation=chat, event=f"show-{what}:{name}", question=name)
        return (shown, due(what))
    if question.expires and question.expires <= now:
        event = f"expired:{name}"
        return (QuestionExpired(conversation=conversation, event=event, question=name),)
    return (due("escalation" if 0 < question.escalates <= now else "reminder"),)
