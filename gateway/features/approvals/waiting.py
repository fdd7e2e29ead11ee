"""The questions that wait for a person in any of their conversations."""

from collections.abc import Iterable
from typing import NamedTuple

from agent_core.guardrails.redaction import Redactions
from gateway.access.access import refusal
from gateway.approvers import Person
from gateway.conversation.decisions import summarize
from gateway.conversation.question_rows import list_open_questions
from gateway.conversation.services import Services
from gateway.messages import read_conversation
from gateway.ports import ListScope, Summary, person_scope
from gateway.store.rows import QuestionRow
from gateway.views import Button, FormCard

RECENT, MOST = 100, 20
"""Conversations of a list that are looked at, and questions in all."""


class OpenQuestion(NamedTuple):
    """A question that a person may answer. `conversation`: the address where it was asked; `title`:
    its name for people. `buttons`: those of its card, none if it takes words."""

    conversation: str
    title: str
    question: QuestionRow
    buttons: tuple[Button, ...]

    def describe(self, language: str, words: Redactions) -> str:
        """Describe the question, and where it was asked, in one line."""
        platform = read_conversation(self.conversation).platform.capitalize()
        where = f"{platform}, {self.title}" if self.title else platform
        return f"{summarize(self.question, language, words)} ({where})"


async def list_waiting(
    services: Services, person: Person, others: Iterable[ListScope] = (), most: int = MOST
) -> list[OpenQuestion]:
    """Return at most `most` questions that wait for the person in their private conversations, by
    any linked account, and in the lists `others`; newest conversations first. StoreFailed."""
    scopes = (*map(person_scope, sorted(person.accounts)), *others)
    seen: dict[str, Summary] = {}
    for scope in scopes:
        seen |= {one.conversation: one for one in await services.store.recent(scope, RECENT)}
    found: list[OpenQuestion] = []
    for one in sorted(seen.values(), key=lambda one: -one.at):
        if len(found) >= most:
            break
        if one.state != "idle":
            found += await _list_there(services, one, person)
    return found[:most]


async def _list_there(services: Services, summary: Summary, person: Person) -> list[OpenQuestion]:
    where, found = read_conversation(summary.conversation), []
    for card, question in await list_open_questions(services.store, where.id):
        if refusal(question, where.id, where, person) is None:
            buttons = () if isinstance(card, FormCard) else card.buttons
            found.append(OpenQuestion(where.id, summary.title, question, buttons))
    return found
