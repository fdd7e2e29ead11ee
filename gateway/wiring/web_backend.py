"""Answers the HTTP API from the store, the feed and the access lists."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from gateway.access.access import Role
from gateway.command_texts import drop_marks
from gateway.conversation.host import Host
from gateway.declaration import SettingsError
from gateway.features.approvals.waiting import list_waiting
from gateway.messages import Inbound, MessageDeleted, MessageEdited, MessageReceived, Sender
from gateway.ports import (
    Growing,
    ListScope,
    Live,
    Offered,
    Shown,
    Standing,
    Summary,
    Waiting,
    WaitingCard,
)
from gateway.store.rows import ConversationSettings, InboxRow
from gateway.wiring.choices import WORDS

RANKS: tuple[Role, ...] = ("viewer", "user", "admin")


class GatewayBackend:
    """gateway.ports.WebBackend over the host and its services."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Keep them, then wake their conversations."""
        await self._host.accept(inbounds)

    async def list_waiting(self, sender: Sender) -> tuple[WaitingCard, ...]:
        """Return the questions of all of the person's accounts."""
        services = self._host.services
        person = await services.access.person(sender)
        return tuple(
            WaitingCard(
                text=one.describe(sender.language, services.find_redactions()),
                conversation=one.conversation,
                since=one.question.asked,
            )
            for one in await list_waiting(services, person)
        )

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        """Changed after rev `after`, by rev."""
        return await self._host.services.store.views(conversation, after, limit)

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        """The newest ones by position, oldest first."""
        return await self._host.services.store.latest(conversation, limit, before)

    async def read_standing(self, conversation: str) -> Standing:
        """Return its state, its waiting messages, and its model."""
        store = self._host.services.store
        waiting = still_waiting(await store.arrivals(conversation, 0))
        one = await store.summary(conversation)
        model = self._name_model(one.model if one is not None else "")
        if one is None:
            return Standing(title="", state="idle", waiting=waiting, model=model)
        return Standing(title=one.title, state=one.state, waiting=waiting, model=model)

    def _name_model(self, chosen: str) -> str:
        try:
            return self._host.services.agent.model_name(ConversationSettings(model=chosen))
        except SettingsError:
            return ""  # the next turn explains the problem

    async def remove(self, conversation: str) -> bool:
        """Take away all that it has, with its files and secrets, once nothing runs there."""
        services = self._host.services
        if (
            services.retention is None
            or (await self.read_standing(conversation)).state == "running"
        ):
            return False
        async with self._host.keep_closed(conversation):
            if not await services.retention.remove(conversation):
                return False
            if (vault := services.vault) is not None:
                for name in await asyncio.to_thread(vault.names, conversation):
                    await asyncio.to_thread(vault.drop, conversation, name)
        return True

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        """The conversations of a list, newest first."""
        return await self._host.services.store.recent(scope, limit, words)

    def watch(self, conversation: str) -> AbstractAsyncContextManager[AsyncIterator[Live]]:
        """Watch all changes in this process from now on, after what an answer has grown so far."""
        return self._host.services.feed.watch(conversation, self._find_grown(conversation))

    def _find_grown(self, conversation: str) -> Growing | None:
        session = self._host.sessions.get(conversation)
        active = session.state.active if session is not None else None
        if session is None or active is None or active.closed or not active.words:
            return None
        shown = session.state.adapter.abilities.reads_views
        return Growing(turn=active.id, text=active.words) if shown else None

    async def find_role(self, sender: Sender) -> Role | None:
        """Return the role by the access lists and the directory."""
        return await self._host.services.access.learn(sender)

    def commands(self, sender: Sender) -> tuple[Offered, ...]:
        """Return the commands of the menu that the sender's role may give, in their language."""
        role = self._host.services.access.role(sender)
        allowed = RANKS[: RANKS.index(role) + 1] if role else ()
        return tuple(
            Offered(
                name=command.name,
                help=drop_marks(command.help(sender.language)),
                values=WORDS.get(command.name, ()),
            )
            for command in self._host.features.commands.values()
            if command.least in allowed and command.name != "start"
        )


def still_waiting(rows: Iterable[InboxRow]) -> tuple[Waiting, ...]:
    """Return the messages among waiting `rows`, with later edits applied."""
    waiting: dict[str, Waiting] = {}
    for row in rows:
        match row.inbound:
            case MessageReceived() as said:
                waiting[said.message] = Waiting(
                    seq=row.seq,
                    name=said.sender.name,
                    text=said.text,
                    at=row.at,
                    message=said.message,
                    files=tuple(one.name for one in said.attachments),
                )
            case MessageEdited(message=message, text=text) if message in waiting:
                waiting[message] = replace(waiting[message], text=text)
            case MessageDeleted(message=message):
                waiting.pop(message, None)
            case _:
                pass
    return tuple(waiting.values())
