"""Questions to people and what they answer: who may decide, what a press means, what follows.

The first valid answer wins; late, double, foreign and forged ones change nothing and get a
private word.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_core import ambient
from agent_core.journal import Answered, Asked, Record, Stopped
from agent_core.questions import Answer, Approval, Choice, Decision, Input
from gateway.access import refusal
from gateway.errors import DeliveryError
from gateway.messages import ButtonPressed, FormSubmitted, QuestionExpired, Sender, read_token
from gateway.sessions.turns import OpenTurn
from gateway.store.rows import (
    AuditRow,
    Changes,
    InboxRow,
    QuestionRow,
    QuestionStatus,
    Rule,
)
from gateway.texts import Key, say

if TYPE_CHECKING:
    from gateway.sessions.session import Session

log = logging.getLogger("turnkeeper.decisions")

_STATUS: dict[Choice, QuestionStatus] = {"expired": "expired", "cancelled": "cancelled"}


class Decisions:
    """The questions of one session's conversation."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def press(self, row: InboxRow, press: ButtonPressed | FormSubmitted) -> None:
        session = self._session
        token = read_token(press.token)
        question, where = None, session.conversation.id
        if token is not None:
            question = session.questions.get(token[0])
            if question is None and (found := await session.services.store.find(token[0])):
                where, question = found
                if where == session.conversation.id and question.status == "open":
                    # the holder knows all open ones: this one's end is on its way to the store
                    question = replace(question, status="cancelled")
        if token is None or question is None:
            self.done(row.seq, press.press, say("unknown_button", press.sender.language))
            return
        role = session.services.access.role(press.sender)
        no = refusal(question, where, session.conversation, press.sender, role)
        answer = None if no else self._read(question, press, token[1])
        if answer is None:
            key: Key = no or "unknown_button"
            log.info("press_refused", extra={"question": question.id, "why": key})
            audit = session.audit(press.sender.key, "press_refused", f"{question.id} {key}")
            self.done(row.seq, press.press, say(key, press.sender.language), audit)
            return
        await self.decide(question, answer, row.seq)
        self.tell(press.press, "")

    def _read(
        self, question: QuestionRow, press: ButtonPressed | FormSubmitted, option: str
    ) -> Answer | None:
        match question.question:
            case Approval(proposals=proposals):
                if option == "always" and not all(proposal.rule for proposal in proposals):
                    return None
                if option in ("once", "conversation", "always", "deny"):
                    return self.answer(press.sender, option, press.text)  # type: ignore[arg-type]
                return None
            case Decision(options=options):
                if option.isdecimal() and int(option) < len(options):
                    return self.answer(press.sender, "once", options[int(option)])
                return None
            case Input():
                return self.answer(press.sender, "once", press.text) if press.text else None

    def answer(self, sender: Sender, choice: Choice, text: str) -> Answer:
        name = sender.name or sender.handle or sender.id
        return Answer(choice=choice, text=text, by=sender.key, name=name, at=ambient.now())

    async def decide(self, question: QuestionRow, answer: Answer, seq: int) -> None:
        """Record the answer; its turn becomes runnable in the same commit."""
        session = self._session
        open_turn = await session.open_turn(question.turn)
        if open_turn.closed:
            self.done(seq, "", "")
            return
        self._remember(open_turn, question, answer)
        open_turn.done += (seq,)
        record = Answered(key=f"{question.key}#answer", asked=question.key, answer=answer)
        session.turns[open_turn.id] = open_turn.row
        open_turn.journal.put(record)
        session.turns[open_turn.id] = open_turn.row
        if open_turn.turn is not None:
            open_turn.turn.answered(question.key, answer)

    def _remember(self, open_turn: OpenTurn, question: QuestionRow, answer: Answer) -> None:
        """'For this conversation' and 'always' store the narrowest rules that cover the calls."""
        asked = question.question
        if not isinstance(asked, Approval) or answer.choice not in ("conversation", "always"):
            return
        lasting = answer.choice == "always"
        rules = tuple(
            Rule(
                tool=proposal.tool,
                pattern=proposal.rule if lasting else f"risk:{proposal.risk}",
                person=open_turn.row.sender,
                lasting=lasting,
            )
            for proposal in asked.proposals
        )
        settings = self._session.row.settings
        new = tuple(rule for rule in rules if rule not in settings.rules)
        self._session.configure(replace(settings, rules=(*settings.rules, *new)))

    async def expired(self, row: InboxRow, expired: QuestionExpired) -> None:
        question = self._session.questions.get(expired.question)
        if question is None or question.status != "open":
            self.done(row.seq, "", "")
            return
        answer = Answer(choice="expired", at=ambient.now())
        await self.decide(question, answer, row.seq)

    def questions_of(
        self, open_turn: OpenTurn, records: Iterable[Record]
    ) -> tuple[QuestionRow, ...]:
        """Question rows that these records make or close."""
        session, rows = self._session, []
        for record in records:
            if isinstance(record, Asked):
                row = self._question(open_turn, record)
                session.questions[row.id] = row
                rows.append(row)
            elif isinstance(record, Answered | Stopped):
                for question in list(session.questions.values()):
                    if question.turn != open_turn.id or question.status != "open":
                        continue
                    if isinstance(record, Answered) and record.asked != question.key:
                        continue
                    choice = record.answer.choice if isinstance(record, Answered) else "cancelled"
                    closed = replace(question, status=_STATUS.get(choice, "answered"))
                    session.questions.pop(question.id)
                    rows.append(closed)
        return tuple(rows)

    def _question(self, open_turn: OpenTurn, record: Asked) -> QuestionRow:
        seconds = record.question.expires or self._session.services.question_expires
        expires = record.at + seconds if seconds else 0.0
        self._session.services.alarm(expires)
        return QuestionRow(
            id=record.id,
            turn=open_turn.id,
            key=record.key,
            status="open",
            question=record.question,
            entitled=(open_turn.row.sender,),
            asked=record.at,
            expires=expires,
        )

    def audit_of(self, open_turn: OpenTurn, records: Iterable[Record]) -> tuple[AuditRow, ...]:
        """Lines of the audit that these records make."""
        lines = []
        for record in records:
            if isinstance(record, Answered):
                answer = record.answer
                detail = f"{open_turn.id} {record.asked} {answer.choice}"
                lines.append(self._session.audit(answer.by, "answered", detail))
            elif isinstance(record, Asked) and isinstance(record.question, Approval):
                for proposal in record.question.proposals:
                    detail = (
                        f"{open_turn.id} {proposal.tool} {proposal.digest} {proposal.arguments}"
                    )
                    lines.append(self._session.audit(open_turn.row.sender, "asked", detail))
        return tuple(lines)

    def done(self, seq: int, press: str, word: str, audit: AuditRow | None = None) -> None:
        self._session.submit(Changes(done=(seq,), audit=(audit,) if audit else ()))
        self.tell(press, word)

    def tell(self, press: str, word: str) -> None:
        """A private word to who pressed, best effort."""
        session = self._session
        if not press:
            return

        async def tell() -> None:
            try:
                await session.adapter.tell(session.conversation, press, word)
            except DeliveryError as error:
                log.info("not_told", extra={"why": str(error)})

        session.services.spawn(tell(), "tell")


def describe(question: QuestionRow) -> str:
    """A question in one line."""
    match question.question:
        case Approval(proposals=proposals):
            calls = ", ".join(f"{item.tool} {item.arguments}" for item in proposals)
            return f"approval of {calls}"[:200]
        case Decision(text=text) | Input(text=text):
            return text[:200]
