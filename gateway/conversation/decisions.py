"""Questions to people and their answers: who may decide, what a press means, and its effects.

The first valid answer wins; late, repeated, foreign and forged ones change nothing and get a
private reply.
"""

import logging
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agent_core import ambient
from agent_core.guardrails.redaction import Redactions
from agent_core.journal import Answered, Stopped
from agent_core.questions import (
    Answer,
    Approval,
    Choice,
    Decision,
    Input,
    PlanReview,
    list_choices,
)
from agent_core.text import parse_number
from gateway.access.access import refusal, say_not_yours
from gateway.access.mentions import MAX_MENTIONS, find_reminded, may_decide, name_people
from gateway.access.standing import add_rules
from gateway.approvers import DEFAULT, Deciders, Person, name_approvers
from gateway.conversation.turns import OpenTurn
from gateway.feature import Context
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    QuestionDue,
    QuestionExpired,
    QuestionPress,
    Sender,
)
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
from gateway.texts.call_lines import summarize_call
from gateway.views import MentionedPerson, Notice

log = logging.getLogger("turnkeeper.decisions")

_WIDTH: tuple[Choice, ...] = ("once", "conversation", "always")
"""The extents of a yes, narrowest first."""
_STATUS: dict[Choice, QuestionStatus] = {"expired": "expired", "cancelled": "cancelled"}

DENY_IN_WORDS = "why"
"""The option of an approval by which its person says no in words of their own."""
MAX_DESCRIBED = 200
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
"""Characters of a question in one line."""
MAX_CALLS = 3
"""Calls that a line names."""


def _takes_words(question: QuestionRow, option: str) -> bool:
    """Return True if the option of a choice stands for free text."""
    asked = question.question
    return isinstance(asked, Decision) and asked.free and option == "text"


ASKER = Deciders(who=("asker",))
"""The word for the asker, the only one who answers questions other than approvals."""


class Decisions:
    """The questions of one conversation."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def press(
        self, row: InboxRow, press: ButtonPressed | FormSubmitted, asked: QuestionPress | None
    ) -> None:
        """Handle a question's button; `asked` is None for an unknown button."""
        state = self._context.state
        person = await self._context.services.access.person(press.sender)
        question, where = None, state.conversation.id
        if asked is not None:
            question = state.questions.get(asked.question)
            if question is None and (
                found := await self._context.services.store.find(asked.question)
            ):
                where, question = found
                if where == state.conversation.id and question.status == "open":
                    # the holder knows all open ones, and is already committing the end of this one
                    question = replace(question, status="cancelled")
        if asked is None or question is None:
            state.acknowledge(row.seq, press.press, say("unknown_button", press.sender.language))
            return
        no = refusal(question, where, state.conversation, person)
        wishes = isinstance(question.question, PlanReview) and asked.option == "edit"
        takes = _takes_words(question, asked.option)
        if not no and not press.text and (wishes or takes):
            self._await_words(row, press, question, "plan_wish" if wishes else "own_words")
            return
        if not no and isinstance(question.question, Approval) and asked.option == DENY_IN_WORDS:
            self._await_reason(row, press, question)
            return
        answer = None if no else self._read(question, press, asked.option)
        if answer is None:
            key: Key = no or "unknown_button"
            log.info("press_refused", extra={"question": question.id, "why": key})
            audit = state.audit(press.sender.key, "press_refused", f"{question.id} {key}")
            word = why_not(key, question, press.sender.language, person)
            if key == "not_yours":
                word = say_not_yours(question.asker, state.conversation, press.sender.language)
            state.acknowledge(row.seq, press.press, word, audit)
            return
        word = await self.settle(question, person, answer, row.seq)
        if word:
            state.acknowledge(row.seq, press.press, word)
        else:
            state.tell(press.press, self._count_notice(question.id, press.sender.language))

    def _await_reason(
        self, row: InboxRow, press: ButtonPressed | FormSubmitted, question: QuestionRow
    ) -> None:
        """Wait for the presser's reason of a denial; where approvals have a chat of their own, by
        command."""
        if not question.chat:
            self._await_words(row, press, question, "deny_words")
        else:
            word = say("deny_by_number", press.sender.language)
            self._context.state.acknowledge(row.seq, press.press, word)

    def _await_words(
        self, row: InboxRow, press: ButtonPressed | FormSubmitted, question: QuestionRow, how: Key
    ) -> None:
        """Wait for the presser's words. `how`: the text that tells them so."""
        state, sender = self._context.state, press.sender
        others, denies = (*question.writers, sender.key), isinstance(question.question, Approval)
        writers = tuple(
            key for key in dict.fromkeys(others) if denies or key not in question.entitled
        )
        writes = question.writes or not denies
        if (writes, writers) != (question.writes, question.writers):
            question = replace(question, writes=writes, writers=writers, since=row.seq)
        state.questions[question.id] = question
        state.submit(Changes(done=(row.seq,), questions=(question,)))
        state.tell(press.press, say(how, sender.language))

    def _read(
        self, question: QuestionRow, press: ButtonPressed | FormSubmitted, option: str
    ) -> Answer | None:
        match question.question:
            case Approval(proposals=proposals):
                if option in ("once", "deny", *list_choices(proposals)):
                    return self.answer(press.sender, option, press.text)  # type: ignore[arg-type]
                return None
            case Decision(options=options):
                if _takes_words(question, option):
                    return self.answer(press.sender, "once", press.text)
                if (n := parse_number(option)) is not None and n < len(options):
                    return self.answer(press.sender, "once", options[n])
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
        """Decide, or count one of several yeses; the first no decides. Return a private reply, ""
        if the shown card says it and the row `seq` is done."""
        needed = question.deciders.needed if question.deciders else 1
        if needed <= 1 or not answer.allowed:
            await self.decide(question, answer, seq)
            return ""
        state, language = self._context.state, self._language(question)
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
        audit = state.audit(answer.by, "voted", f"{question.id} {answer.choice}")
        self._change(replace(question, votes=votes), seq, text, audit)
        return ""

    def _count_notice(self, name: str, language: str) -> str:
        """Return the reply to a person whose yes was counted in another chat than the card's."""
        question = self._context.state.questions.get(name)
        if question is None or not question.chat or question.deciders is None or not question.votes:
            return ""
        given, needed = len(question.votes), question.deciders.needed
        name = question.votes[-1].name
        return say("voted", language, name=name, given=given, needed=needed)

    def _change(
        self,
        question: QuestionRow,
        seq: int,
        text: str,
        audit: AuditRow | None = None,
        people: tuple[MentionedPerson, ...] = (),
    ) -> None:
        """Commit the question's new state, a note on it, and the row that caused it. A reminder
        notifies `people`."""
        state = self._context.state
        reminds = question.reminded and not state.questions[question.id].reminded
        quiet = reminds and not people
        state.questions[question.id] = question
        notice = Notice(text=text, quiet=quiet, mentions=people)
        view = state.want(f"row-{seq}", "notice", notice, 1, final=True)
        state.show(
            Changes(
                done=(seq,),
                questions=(question,),
                views=(view,),
                row=state.row,
                audit=(audit,) if audit else (),
            )
        )

    def _mention(
        self, question: QuestionRow, then: Iterable[str] = ()
    ) -> tuple[MentionedPerson, ...]:
        """Return the people who are to decide now, in a group: of the words `then` if given,
        otherwise all who have not decided."""
        state, turn = self._context.state, self._context.state.turns.get(question.turn)
        if state.conversation.private or turn is None:
            return ()
        access, platform = state.services.access, state.conversation.platform
        gone = [key for vote in question.votes for key in vote.accounts]
        if then:
            return name_people(access, then, platform, (turn.sender, *gone))
        rule = question.deciders if isinstance(question.question, Approval) else ASKER
        found = find_reminded(access, rule, platform, (turn.sender, turn.role), gone)
        if rule is None or not question.escalated:
            return found
        more = name_people(access, rule.then, platform, (turn.sender, *gone))
        return tuple(dict.fromkeys((*found, *more)))[:MAX_MENTIONS]

    def _language(self, question: QuestionRow) -> str:
        turn = self._context.state.turns.get(question.turn)
        return turn.language if turn is not None else self._context.state.language

    async def decide(self, question: QuestionRow, answer: Answer, seq: int) -> None:
        """Record the answer; its turn becomes runnable in the same commit."""
        state = self._context.state
        open_turn = await self._context.turns.open(question.turn)
        if open_turn.closed:
            state.acknowledge(seq, "", "")
            return
        if isinstance(question.question, PlanReview) and answer.choice in ("deny", "expired"):
            text = say("plan_expired", self._language(question)) if not answer.by else ""
            stopped = Stopped(key="stopped", reason="stop", by=answer.by, text=text)
            self._context.turns.close(open_turn, stopped, (seq,))
            return
        await self._remember(open_turn, question, answer)
        if open_turn.closed:
            state.acknowledge(seq, "", "")
            return
        open_turn.done += (seq,)
        record = Answered(key=f"{question.key}#answer", asked=question.key, answer=answer)
        state.turns[open_turn.id] = open_turn.row
        open_turn.journal.put(record)
        state.turns[open_turn.id] = open_turn.row
        if open_turn.turn is not None:
            open_turn.turn.deliver_answer(question.key, answer)

    async def _remember(self, open_turn: OpenTurn, question: QuestionRow, answer: Answer) -> None:
        """Store the rules that the card offered for 'in this conversation' and 'always'."""
        asked = question.question
        if not isinstance(asked, Approval):
            return
        rules = make_rules(asked, open_turn.row.sender, answer)
        if not rules:
            return
        if answer.choice == "always":
            await self._store_standing(open_turn, rules)
            return
        settings = self._context.state.row.settings
        known = {_mark(rule) for rule in settings.rules}
        new = tuple(rule for rule in rules if _mark(rule) not in known)
        self._context.state.configure(replace(settings, rules=(*settings.rules, *new)))

    async def _store_standing(self, open_turn: OpenTurn, rules: tuple[Rule, ...]) -> None:
        """Store 'always' rules for the asker, with their role, before the answer is committed:
        after a crash between the two they are stored again unchanged."""
        state, person = self._context.state, open_turn.row.sender
        where, role = state.conversation, open_turn.row.role
        await add_rules(self._context.services.store, person, rules, where, role)
        settings = state.row.settings
        if person not in settings.people:
            state.configure(replace(settings, people=(*settings.people, person)))

    async def expire(self, row: InboxRow, expired: QuestionExpired) -> None:
        state = self._context.state
        question = self._context.state.questions.get(expired.question)
        if question is None or question.status != "open":
            state.acknowledge(row.seq, "", "")
            return
        answer = Answer(choice="expired", at=ambient.now())
        await self.decide(question, answer, row.seq)

    async def on_due(self, row: InboxRow, occasion: QuestionExpired | QuestionDue) -> None:
        """Handle a question's due time: reminder, escalation or expiry."""
        if isinstance(occasion, QuestionExpired):
            await self.expire(row, occasion)
        else:
            await self._due(row, occasion)

    async def _due(self, row: InboxRow, due: QuestionDue) -> None:
        """Remind of the question, or say who else may decide it now; each once."""
        state = self._context.state
        if due.what == "told":
            await self._note_told(row, due.question)
            return
        question = self._context.state.questions.get(due.question)
        if question is None or question.status != "open":
            state.acknowledge(row.seq, "", "")
            return
        language = self._language(question)
        what = summarize(question, language, self._context.services.find_redactions())
        if due.what == "escalation" and question.deciders and not question.escalated:
            who = people_of(question.deciders.then, language)
            text = say("escalated", language, what=what, who=who)
            self._change(
                replace(question, escalated=True),
                row.seq,
                text,
                people=self._mention(question, question.deciders.then),
            )
        elif due.what == "relayed" and not question.relayed:
            rule, turn = question.deciders or DEFAULT, state.turns.get(question.turn)
            decides = turn is None or may_decide(rule, turn.sender, turn.role)
            who = people_of(rule.who, language, asker=decides)
            text = say("relayed", language, what=what, who=who)
            self._change(replace(question, relayed=True), row.seq, text)
        elif due.what == "reminder" and not question.reminded:
            kind = question.question
            key: Key = "remind_approval" if isinstance(kind, Approval) else "remind_question"
            text = say(key, language, what=what)
            if views := await state.recheck_card(question):
                state.show(Changes(views=views))
            self._change(
                replace(question, reminded=True), row.seq, text, people=self._mention(question)
            )
        else:
            state.acknowledge(row.seq, "", "")

    async def _note_told(self, row: InboxRow, name: str) -> None:
        """The approvers' chat knows of the question's end."""
        state = self._context.state
        found = await self._context.services.store.find(name)
        if found is None or found[1].status == "open":
            state.acknowledge(row.seq, "", "")
            return
        told = replace(found[1], told=True)
        self._context.state.submit(Changes(done=(row.seq,), questions=(told,)))


def describe(question: QuestionRow) -> str:
    """A question in one line for a model, which knows tools by their own names."""
    match question.question:
        case Approval(proposals=proposals):
            calls = ", ".join(f"{item.tool} {item.arguments}" for item in proposals)
            return _clip(say("approval_of", "", calls=calls))
        case Decision(text=text) | Input(text=text) | PlanReview(text=text):
            return _clip(text)


def summarize(question: QuestionRow, language: str, words: Redactions) -> str:
    """Summarize a question in one line for a list, in plain words; of a longer text, its first two
    lines. `words` are redacted."""
    match question.question:
        case Approval(proposals=proposals):
            first = proposals[:MAX_CALLS]
            return "; ".join(summarize_call(one.tool, one.arguments, language) for one in first)
        case Decision(text=text) | Input(text=text) | PlanReview(text=text):
            shown = _BOLD.sub(r"\1", words.hide(text))
            lines = (" ".join(line.split()) for line in shown.splitlines())
            return _clip(" · ".join([line for line in lines if line][:2]))


def _clip(text: str) -> str:
    return text if len(text) <= MAX_DESCRIBED else f"{text[: MAX_DESCRIBED - 1]}…"


def why_not(key: Key, question: QuestionRow, language: str, person: Person) -> str:
    """Return a private reply to `person`, who may not, or no longer, decide."""
    if key != "not_entitled":
        return say(key, language)
    rule = question.deciders or DEFAULT
    words, own = rule.words(ambient.now() - question.asked), question.asker in person.accounts
    return say(key, language, who=people_of(words, language, asker=not own))


def people_of(words: Sequence[str], language: str, *, asker: bool = True) -> str:
    """Name the deciders for people: `admins, telegram:7`; without `asker`, who asked is none of
    them."""
    others = [word for word in words if not word.startswith("asker")]
    keys: dict[str, Key] = {"asker": "who_asker", "admin": "who_admin", "user": "who_user"}
    return name_approvers(
        words if asker else others or words, lambda word: say(keys[word], language)
    )


def make_rules(asked: Approval, person: str, answer: Answer) -> tuple[Rule, ...]:
    """Return the rules that an answer stores: exactly those that the card offered."""
    if answer.choice not in list_choices(asked.proposals):
        return ()
    rules = [
        Rule(
            tool=offer.tool,
            pattern=offer.pattern,
            person=person,
            lasting=offer.choice == "always",
            by=answer.name,
            at=answer.at,
            covers=offer.covers,
        )
        for proposal in asked.proposals
        for offer in proposal.list_offers()
        if offer.choice == answer.choice
    ]
    return tuple(rule for n, rule in enumerate(rules) if rule not in rules[:n])


def _mark(rule: Rule) -> tuple[str, str, str, bool]:
    """Return the identity of a rule within a conversation."""
    return rule.tool, rule.pattern, rule.person, rule.lasting
