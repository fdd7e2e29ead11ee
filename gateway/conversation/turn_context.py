"""The session as a turn's code and its policy see it."""

from collections.abc import Callable

from msgspec.structs import replace

from agent_core.events import AgentEvent, OutputAdded, TextRestarted, TokenAdded
from gateway.access.standing import list_heeded, read_rules
from gateway.conversation.state import ConversationState
from gateway.conversation.turns import OpenTurn
from gateway.messages import JobFired, Sender, sender_of
from gateway.ports import Growing, Printed
from gateway.services.ledger import Payer
from gateway.store.rows import ConversationSettings, Rule

TakeSteers = Callable[[OpenTurn], tuple[tuple[int, str], ...]]


class SessionTurnHost:
    """The session as the turn's scope sees it. `take_steers` returns messages for the turn since
    the last call."""

    def __init__(
        self, state: ConversationState, open_turn: OpenTurn, take_steers: TakeSteers
    ) -> None:
        self._state = state
        self._open = open_turn
        self._take_steers = take_steers

    def live(self, event: AgentEvent) -> None:
        state, open_turn = self._state, self._open
        if open_turn.row.firing is not None:
            return  # a report is delivered completely
        if isinstance(event, TokenAdded):
            open_turn.words += event.text
        elif isinstance(event, TextRestarted):
            open_turn.words = ""
        else:
            return
        key = (open_turn.id, "reply")
        if state.adapter.abilities.reads_views:
            growing = Growing(turn=open_turn.id, text=open_turn.words)
            state.services.feed.publish(state.conversation.id, growing)
        elif open_turn.words:
            state.outbox.grow(key, open_turn.words)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return self._take_steers(self._open)


class TurnContext:
    """The session as the policy sees it."""

    def __init__(self, state: ConversationState, open_turn: OpenTurn) -> None:
        self._state = state
        self._open = open_turn
        self.conversation = state.conversation
        self._role: str = open_turn.row.role
        self._standing: tuple[Rule, ...] = ()

    def settings(self) -> ConversationSettings:
        return self._state.row.settings

    def payer(self) -> Payer:
        row = self._open.row
        spent = self._state.row.spent
        cost = spent.last.cost if spent.turn == row.id else 0.0
        payer = Payer(turn=row.id, person=row.sender, spent=cost, language=row.language)
        if (run := row.firing) is not None:
            payer = replace(payer, job=run.job, limit=run.terms.spend)
        return payer

    async def find_accounts(self) -> tuple[str, ...]:
        return tuple(sorted(await self._state.services.access.accounts(self._open.row.sender)))

    def sender(self) -> Sender:
        """The person, with the groups that they had when they wrote: the lists may name those."""
        row = self._open.row
        if (known := self._find_writer()) is not None:
            return replace(known, name=row.sender_name, language=row.language)
        platform, _, name = row.sender.partition(":")
        return Sender(platform=platform, id=name, name=row.sender_name, language=row.language)

    def _find_writer(self) -> Sender | None:
        begun = [one.inbound for one in self._open.read_first_rows()]
        wrote = [one.owner if isinstance(one, JobFired) else sender_of(one) for one in begun]
        return next((one for one in wrote if one and one.key == self._open.row.sender), None)

    def asker(self) -> tuple[str, str]:
        return self._open.row.sender, self._role

    def rules(self) -> tuple[Rule, ...]:
        return (*self._state.row.settings.rules, *self._standing)

    async def refresh(self) -> None:
        if self._open.row.firing is None:  # a job's role was checked when its run began
            await self._refresh_role()
        services, person = self._state.services, self._open.row.sender
        accounts = await services.access.accounts(person)
        found = await read_rules(services.store, accounts, self.conversation)
        mine = (replace(one, person=person) for one in list_heeded(found, self._role))
        self._standing = tuple(mine)

    async def _refresh_role(self) -> None:
        row = self._open.row
        known = self._find_writer()
        role = await self._state.services.access.learn(known or self.sender())
        # a person removed meanwhile can only read
        self._role = role or ("viewer" if known is not None else row.role)

    def output(self, event: OutputAdded) -> None:
        state, row = self._state, self._open.row
        if row.firing is None:  # a report is delivered completely
            printed = Printed(turn=row.id, call_id=event.call_id, text=event.text)
            state.services.feed.publish(state.conversation.id, printed)
