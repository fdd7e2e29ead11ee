"""The session as a turn's code and its policy see it."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_core.events import AgentEvent, OutputAdded, TextRestarted, TokenAdded
from gateway.messages import Sender
from gateway.ports import Growing, Printed
from gateway.sessions.turns import OpenTurn
from gateway.spending.ledger import Payer
from gateway.store.rows import ConversationSettings

if TYPE_CHECKING:
    from gateway.sessions.session import Session


class Company:
    """The session as the turn's scope sees it."""

    def __init__(self, session: "Session", open_turn: OpenTurn) -> None:
        self._session = session
        self._open = open_turn

    def live(self, event: AgentEvent) -> None:
        session, open_turn = self._session, self._open
        if open_turn.row.firing is not None:
            return  # a report is delivered whole
        if isinstance(event, TokenAdded):
            open_turn.words += event.text
        elif isinstance(event, TextRestarted):
            open_turn.words = ""
        else:
            return
        key = (open_turn.id, "reply")
        if session.adapter.abilities.reads_views:
            growing = Growing(turn=open_turn.id, text=open_turn.words)
            session.services.feed.publish(session.conversation.id, growing)
        elif open_turn.words:
            session.outbox.grow(key, open_turn.words)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return self._session.take_steers(self._open)


class Circumstances:
    """The session as the policy sees it."""

    def __init__(self, session: "Session", open_turn: OpenTurn) -> None:
        self._session = session
        self._open = open_turn
        self.conversation = session.conversation

    def settings(self) -> ConversationSettings:
        return self._session.row.settings

    def payer(self) -> Payer:
        row = self._open.row
        spent = self._session.row.spent
        cost = spent.last.cost if spent.turn == row.id else 0.0
        payer = Payer(turn=row.id, person=row.sender, spent=cost, language=row.language)
        if (run := row.firing) is not None:
            payer = replace(payer, job=run.job, limit=run.terms.spend)
        return payer

    def sender(self) -> Sender:
        row = self._open.row
        platform, _, name = row.sender.partition(":")
        return Sender(platform=platform, id=name, name=row.sender_name, language=row.language)

    def asker(self) -> tuple[str, str]:
        return self._open.row.sender, self._open.row.role

    def output(self, event: OutputAdded) -> None:
        session, row = self._session, self._open.row
        if row.firing is None:  # a report is delivered whole
            printed = Printed(turn=row.id, call_id=event.call_id, text=event.text)
            session.services.feed.publish(session.conversation.id, printed)
