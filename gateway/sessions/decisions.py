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
from agent_core.questions import Answer, Approval, Choice, Decision, Input, PlanReview, Question
from gateway.access import refusal
from gateway.errors import DeliveryError
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    QuestionDue,
    QuestionExpired,
    QuestionPress,
    Sender,
)
from gateway.people.approvers import DEFAULT, Approvers, Deciders, Person, named
from gateway.sessions.turns import OpenTurn
from gateway.store.rows import (
    AuditRow,
    Changes,
    InboxRow,
    QuestionRow,
    QuestionStatus,
    Rule,
    Vote,
)
from gateway.texts import Key, say
from gateway.views import Notice

if TYPE_CHECKING:
    from gateway.sessions.session import Session

log = logging.getLogger("turnkeeper.decisions")

_WIDTH: tuple[Choice, ...] = ("once", "conversation", "always")
"""From the narrowest yes to the widest."""
_STATUS: dict[Choice, QuestionStatus] = {"expired": "expired", "cancelled": "cancelled"}


class Decisions:
    """The questions of one session's conversation."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def press(
        self, row: InboxRow, press: ButtonPressed | FormSubmitted, asked: QuestionPress | None
    ) -> None:
        """A button of a question; `asked` is None for a button that nobody knows."""
        session = self._session
        person = await session.services.access.person(press.sender)
        question, where = None, session.conversation.id
        if asked is not None:
            question = session.questions.get(asked.question)
            if question is None and (found := await session.services.store.find(asked.question)):
                where, question = found
                if where == session.conversation.id and question.status == "open":
                    # the holder knows all open ones: this one's end is on its way to the store
                    question = replace(question, status="cancelled")
        if asked is None or question is None:
            self.done(row.seq, press.press, say("unknown_button", press.sender.language))
            return
        no = refusal(question, where, session.conversation, person)
        wishes = isinstance(question.question, PlanReview) and asked.option == "edit"
        if not no and wishes and not press.text:
            self.done(row.seq, press.press, say("plan_wish", press.sender.language))
            return
        answer = None if no else self._read(question, press, asked.option)
        if answer is None:
            key: Key = no or "unknown_button"
            log.info("press_refused", extra={"question": question.id, "why": key})
            audit = session.audit(press.sender.key, "press_refused", f"{question.id} {key}")
            self.done(row.seq, press.press, why_not(key, question, press.sender.language), audit)
            return
        word = await self.settle(question, person, answer, row.seq)
        if word:
            self.done(row.seq, press.press, word)
        else:
            self.tell(press.press, self._counted(question.id, press.sender.language))

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
            case PlanReview():
                if option in ("once", "edit", "deny"):
                    return self.answer(press.sender, option, press.text)  # type: ignore[arg-type]
                return None

    def answer(self, sender: Sender, choice: Choice, text: str) -> Answer:
        name = sender.name or sender.handle or sender.id
        return Answer(choice=choice, text=text, by=sender.key, name=name, at=ambient.now())

    async def settle(self, question: QuestionRow, person: Person, answer: Answer, seq: int) -> str:
        """Decide, or count one of several yeses: the first no decides. A private word for who
        answered, "" if what is shown says it and the row `seq` is done."""
        needed = question.deciders.needed if question.deciders else 1
        if needed <= 1 or not answer.allowed:
            await self.decide(question, answer, seq)
            return ""
        session, language = self._session, self._language(question)
        if any(not person.accounts.isdisjoint(vote.accounts) for vote in question.votes):
            return say("voted_before", language, left=needed - len(question.votes))
        accounts = tuple(sorted(person.accounts))
        vote = Vote(accounts=accounts, name=answer.name, choice=answer.choice, at=answer.at)
        votes = (*question.votes, vote)
        if len(votes) >= needed:
            narrowest = min((vote.choice for vote in votes), key=_WIDTH.index)
            names = ", ".join(vote.name for vote in votes)
            await self.decide(question, replace(answer, choice=narrowest, name=names), seq)
            return ""
        text = say("voted", language, name=answer.name, given=len(votes), needed=needed)
        audit = session.audit(answer.by, "voted", f"{question.id} {answer.choice}")
        self._changed(replace(question, votes=votes), seq, text, audit)
        return ""

    def _counted(self, name: str, language: str) -> str:
        """A word for whose yes was counted in another chat than the one that shows it."""
        question = self._session.questions.get(name)
        if question is None or not question.chat or question.deciders is None or not question.votes:
            return ""
        given, needed = len(question.votes), question.deciders.needed
        name = question.votes[-1].name
        return say("voted", language, name=name, given=given, needed=needed)

    def _changed(
        self, question: QuestionRow, seq: int, text: str, audit: AuditRow | None = None
    ) -> None:
        """One commit: the question's new state, a word on it, the row that brought it about."""
        session = self._session
        quiet = question.reminded and not session.questions[question.id].reminded
        session.questions[question.id] = question
        notice = Notice(text=text, quiet=quiet)
        view = session.want(f"row-{seq}", "notice", notice, 1, final=True)
        session.show(
            Changes(
                done=(seq,),
                questions=(question,),
                views=(view,),
                row=session.row,
                audit=(audit,) if audit else (),
            )
        )

    def _language(self, question: QuestionRow) -> str:
        turn = self._session.turns.get(question.turn)
        return turn.language if turn is not None else self._session.language

    async def decide(self, question: QuestionRow, answer: Answer, seq: int) -> None:
        """Record the answer; its turn becomes runnable in the same commit."""
        session = self._session
        open_turn = await session.open_turn(question.turn)
        if open_turn.closed:
            self.done(seq, "", "")
            return
        if isinstance(question.question, PlanReview) and answer.choice in ("deny", "expired"):
            text = say("plan_expired", self._language(question)) if not answer.by else ""
            stopped = Stopped(key="stopped", reason="stop", by=answer.by, text=text)
            session.close_turn(open_turn, stopped, (seq,))
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
                by=answer.name,
                at=answer.at,
            )
            for proposal in asked.proposals
        )
        settings = self._session.row.settings
        known = {replace(rule, by="", at=0.0) for rule in settings.rules}
        new = tuple(rule for rule in rules if replace(rule, by="", at=0.0) not in known)
        self._session.configure(replace(settings, rules=(*settings.rules, *new)))

    async def expired(self, row: InboxRow, expired: QuestionExpired) -> None:
        question = self._session.questions.get(expired.question)
        if question is None or question.status != "open":
            self.done(row.seq, "", "")
            return
        answer = Answer(choice="expired", at=ambient.now())
        await self.decide(question, answer, row.seq)

    async def timed(self, row: InboxRow, occasion: QuestionExpired | QuestionDue) -> None:
        """A question's time came, for whatever it is."""
        if isinstance(occasion, QuestionExpired):
            await self.expired(row, occasion)
        else:
            await self._due(row, occasion)

    async def _due(self, row: InboxRow, due: QuestionDue) -> None:
        """Remind of the question, or say who else may decide it now; each once."""
        if due.what == "told":
            await self._told(row, due.question)
            return
        question = self._session.questions.get(due.question)
        if question is None or question.status != "open":
            self.done(row.seq, "", "")
            return
        language = self._language(question)
        what = describe(question, language)
        if due.what == "escalation" and question.deciders and not question.escalated:
            who = people_of(question.deciders.then, language)
            text = say("escalated", language, what=what, who=who)
            self._changed(replace(question, escalated=True), row.seq, text)
        elif due.what == "relayed" and not question.relayed:
            who = people_of((question.deciders or DEFAULT).who, language)
            text = say("relayed", language, what=what, who=who)
            self._changed(replace(question, relayed=True), row.seq, text)
        elif due.what == "reminder" and not question.reminded:
            kind = question.question
            key: Key = "remind_approval" if isinstance(kind, Approval) else "remind_question"
            self._changed(replace(question, reminded=True), row.seq, say(key, language, what=what))
        else:
            self.done(row.seq, "", "")

    async def _told(self, row: InboxRow, name: str) -> None:
        """The approvers' chat knows of the question's end."""
        found = await self._session.services.store.find(name)
        if found is None or found[1].status == "open":
            self.done(row.seq, "", "")
            return
        told = replace(found[1], told=True)
        self._session.submit(Changes(done=(row.seq,), questions=(told,)))

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

    def reopen(self, open_turn: OpenTurn) -> None:
        """Open the questions again that the journal waits for and nobody could answer: those of a
        turn that was set aside and resubmitted."""
        session = self._session
        rows = [
            self._question(open_turn, asked)
            for asked in open_turn.open_questions()
            if asked.id not in session.questions and not open_turn.closed
        ]
        for row in rows:
            session.questions[row.id] = row
        if rows:
            session.submit(Changes(questions=tuple(rows)))

    def _question(self, open_turn: OpenTurn, record: Asked) -> QuestionRow:
        services, asked = self._session.services, record.question
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
            deciders=self._deciders(asked),
            chat=self._chat(asked),
        )

    def _chat(self, asked: Question) -> str:
        """The approvers' chat, unless this is it."""
        chat = self._session.services.access.policy.chat
        other = isinstance(asked, Approval) and chat != self._session.conversation.id
        return chat if other else ""

    def _deciders(self, asked: Question) -> Deciders | None:
        approvers = self._session.services.access.policy.approvers
        if not isinstance(asked, Approval) or approvers == Approvers():
            return None
        risks = (proposal.risk for proposal in asked.proposals)
        return approvers.of(risks, self._session.conversation.platform)

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

        session.services.spawn(tell, "tell")


def describe(question: QuestionRow, language: str = "") -> str:
    """A question in one line."""
    match question.question:
        case Approval(proposals=proposals):
            calls = ", ".join(f"{item.tool} {item.arguments}" for item in proposals)
            return say("approval_of", language, calls=calls)[:200]
        case Decision(text=text) | Input(text=text) | PlanReview(text=text):
            return text[:200]


def why_not(key: Key, question: QuestionRow, language: str) -> str:
    """A private word for who may not decide, or not any more."""
    if key != "not_entitled":
        return say(key, language)
    rule = question.deciders or DEFAULT
    who = people_of(rule.words(ambient.now() - question.asked), language)
    return say(key, language, who=who)


def people_of(words: Iterable[str], language: str) -> str:
    """Who decides, for people: `admins, telegram:7`."""
    keys: dict[str, Key] = {"asker": "who_asker", "admin": "who_admin", "user": "who_user"}
    return named(words, lambda word: say(keys[word], language))
