"""A Desk over dicts: what a surface that reads views may ask, without a gateway behind it."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from textwrap import shorten
from typing import Literal

import msgspec

from gateway.errors import StoreFailed
from gateway.folded_text import fold_text
from gateway.messages import (
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    Sender,
    dedupe_keys,
)
from gateway.ports import (
    Changed,
    Growing,
    ListScope,
    Live,
    Offered,
    Printed,
    Shown,
    Standing,
    Summary,
    Waiting,
    WaitingCard,
    parse_words,
)
from gateway.store.search import visible_text
from gateway.views import SaidView, View

Role = Literal["admin", "user", "viewer"]
State = Literal["idle", "running", "waiting"]
VALUES = {"mode": ("ask", "auto", "queue", "steer")}


@dataclasses.dataclass(kw_only=True)
class Room:
    """One conversation."""

    views: dict[tuple[str, str], Shown] = dataclasses.field(default_factory=dict)
    waiting: list[Waiting] = dataclasses.field(default_factory=list)
    watchers: list[asyncio.Queue[Live | None]] = dataclasses.field(default_factory=list)
    state: State = "idle"
    rev: int = 0
    position: int = 0
    title: str = ""


def _holds(room: Room, words: frozenset[str]) -> bool:
    texts = (room.title, *(visible_text(one.view) for one in room.views.values()))
    return all(any(word in fold_text(text) for text in texts) for word in words)


class FakeBackend:
    """`on_accept` is called with what was newly accepted; `backlog` is how many live values a
    reader may be behind."""

    def __init__(self, backlog: int = 50) -> None:
        self.rooms: dict[str, Room] = {}
        self.accepted: list[Inbound] = []
        self.cards: list[WaitingCard] = []
        self.roles: dict[str, Role] = {"web:owner": "admin", "web:ann": "user", "web:vic": "viewer"}
        self.on_accept: Callable[[Inbound], None] = lambda inbound: None
        self.offered = tuple(
            Offered(name=name, help=text, values=VALUES.get(name, ()))
            for name, text in (
                ("help", "Show commands"),
                ("mode", "ask or auto; queue, steer or interrupt"),
                ("model", "Show or choose the model"),
                ("stop", "Stop the running turn"),
            )
        )
        self.failing = False
        self.slow = 0
        """How many turns of the loop reading views takes, before and after the look itself."""
        self._backlog = backlog
        self._keys: set[str] = set()

    async def remove(self, conversation: str) -> bool:
        if self.room(conversation).state != "idle":
            return False
        self.rooms.pop(conversation)
        return True

    def room(self, conversation: str) -> Room:
        return self.rooms.setdefault(conversation, Room())

    def show(self, conversation: str, view: View, name: str, turn: str = "t1") -> Shown:
        """Put `view` in the store under (turn, name), and tell who watches."""
        room = self.room(conversation)
        room.rev += 1
        old = room.views.get((turn, name))
        if old is None:
            room.position += 1
        shown = Shown(
            rev=room.rev,
            turn=turn,
            name=name,
            position=old.position if old else room.position,
            at=old.at if old else 1_790_000_000.0 + room.position,
            view=view,
        )
        room.views[turn, name] = shown
        if isinstance(view, SaidView):
            room.title = room.title or shorten(view.text, 60, placeholder="…")
            room.waiting = [one for one in room.waiting if one.text != view.text]
        self._publish(room, shown)
        self._publish(room, Changed())
        return shown

    def stand(self, conversation: str, state: State) -> None:
        """The conversation is `state` from now on."""
        self.room(conversation).state = state
        self._publish(self.room(conversation), Changed())

    def grow(self, conversation: str, text: str, turn: str = "t1") -> None:
        self._publish(self.room(conversation), Growing(turn=turn, text=text))

    def print(self, conversation: str, call: str, text: str) -> None:
        """The running call writes something."""
        printed = Printed(turn="t1", call_id=call, text=text)
        self._publish(self.room(conversation), printed)

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        if self.failing:
            raise StoreFailed("disk full")
        for inbound in inbounds:
            keys = {key for key in dedupe_keys(inbound) if key}
            if keys & self._keys:
                continue
            self._keys |= keys
            self.accepted.append(inbound)
            room = self.room(inbound.conversation.id)
            if isinstance(inbound, MessageReceived):
                seq = len(self.accepted)
                said = Waiting(
                    seq=seq,
                    name=inbound.sender.name,
                    text=inbound.text,
                    at=inbound.at,
                    message=inbound.message,
                    files=tuple(one.name for one in inbound.attachments),
                )
                room.waiting.append(said)
            elif isinstance(inbound, MessageEdited | MessageDeleted):
                self._change(room, inbound)
            self._publish(room, Changed())
            self.on_accept(inbound)

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        await self._idle()
        found = [one for one in self._shown(conversation) if one.rev > after]
        await self._idle()
        return tuple(sorted(found, key=lambda one: one.rev)[:limit])

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        await self._idle()
        every = sorted(self._shown(conversation), key=lambda one: one.position)
        found = [one for one in every if not before or one.position < before]
        return tuple(found[-limit:])

    def _change(self, room: Room, change: MessageEdited | MessageDeleted) -> None:
        if isinstance(change, MessageDeleted):
            room.waiting = [one for one in room.waiting if one.message != change.message]
            return
        room.waiting = [
            msgspec.structs.replace(one, text=change.text) if one.message == change.message else one
            for one in room.waiting
        ]

    async def read_standing(self, conversation: str) -> Standing:
        room = self.rooms.get(conversation, Room())
        waiting = tuple(room.waiting)
        return Standing(title=room.title, state=room.state, waiting=waiting, model="demo")

    async def list_waiting(self, sender: Sender) -> tuple[WaitingCard, ...]:
        return tuple(self.cards)

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        found = [
            (key, room)
            for key, room in self.rooms.items()
            if f":{scope.name.partition(':')[2]}~" in key and _holds(room, parse_words(words))
        ]
        return tuple(
            Summary(conversation=key, title=room.title, at=1_790_000_000.0, state=room.state)
            for key, room in reversed(found)
        )[:limit]

    def watch(self, conversation: str) -> AbstractAsyncContextManager[AsyncIterator[Live]]:
        return self._watch(conversation)

    async def find_role(self, sender: Sender) -> Role | None:
        return self.roles.get(sender.key)

    def commands(self, sender: Sender) -> tuple[Offered, ...]:
        return self.offered

    @contextlib.asynccontextmanager
    async def _watch(self, conversation: str) -> AsyncIterator[AsyncIterator[Live]]:
        queue: asyncio.Queue[Live | None] = asyncio.Queue()
        room = self.room(conversation)
        room.watchers.append(queue)
        try:
            yield _until_end(queue)
        finally:
            if queue in room.watchers:
                room.watchers.remove(queue)

    async def _idle(self) -> None:
        for _ in range(self.slow):
            await asyncio.sleep(0)

    def _publish(self, room: Room, live: Live) -> None:
        for queue in list(room.watchers):
            if queue.qsize() < self._backlog:
                queue.put_nowait(live)
            elif isinstance(live, Shown):
                queue.put_nowait(None)
                room.watchers.remove(queue)

    def _shown(self, conversation: str) -> Iterator[Shown]:
        if conversation in self.rooms:
            yield from self.rooms[conversation].views.values()


async def _until_end(queue: asyncio.Queue[Live | None]) -> AsyncIterator[Live]:
    while (live := await queue.get()) is not None:
        yield live
