"""The live side of the API: one conversation's changes as server-sent events.

Views have their `rev` as the event's id: none is lost or sent twice, whatever the reader's last one
was. Growing text, live output, the standing (state and waiting messages) and private replies have
no id.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from adapters.web.blocks import FinishedBlocks, count_units
from adapters.web.render import draw, draw_answer
from gateway import clock
from gateway.live_queue import LiveQueue
from gateway.ports import Changed, Growing, Live, Printed, Shown, Standing, WebBackend
from gateway.views import ReplyView

PAGE = 100
HEARTBEAT = 15.0
"""Seconds without news after which the store is asked: another replica may run the conversation."""

MAX_STREAMS = 100
"""Streams of one person in this process; a further one ends the oldest. They hold connections of
the server, which would be left for nobody else."""

Write: TypeAlias = Callable[[bytes], Awaitable[None]]


class PrivateWord(Struct, frozen=True, kw_only=True):
    """A private word about the press `press`."""

    press: str
    text: str


Sign: TypeAlias = Literal["look", "behind", "removed", "closed"]
Item: TypeAlias = Live | PrivateWord | Sign
Inbox: TypeAlias = asyncio.Queue[Item]


def end_nothing() -> None:
    """End nothing: the default of a stream without a connection."""


class EventStreams:
    """The open streams of this process, by conversation, each with its reader's session."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Inbox, str]] = {}
        self._people: dict[str, dict[Inbox, Callable[[], None]]] = {}

    @contextlib.contextmanager
    def join(
        self,
        conversation: str,
        session: str = "",
        person: str = "",
        end: Callable[[], None] = end_nothing,
    ) -> Iterator[Inbox]:
        """An inbox that hears of `conversation` while the body runs. `end` closes the connection of
        a reader who may not be reading."""
        inbox: Inbox = LiveQueue(PAGE)
        self._open.setdefault(conversation, {})[inbox] = session
        own = self._people.setdefault(person, {})
        if len(own) >= MAX_STREAMS:
            oldest = next(iter(own))
            own.pop(oldest)()
            close_inbox(oldest)
        own[inbox] = end
        try:
            yield inbox
        finally:
            own.pop(inbox, None)
            if not own and self._people.get(person) is own:
                del self._people[person]
            self._open[conversation].pop(inbox, None)
            if not self._open[conversation]:
                del self._open[conversation]

    def put(self, conversation: str, item: PrivateWord | Sign) -> None:
        """Best effort: a full inbox looks by itself soon enough."""
        for inbox in self._open.get(conversation, ()):
            with contextlib.suppress(asyncio.QueueFull):
                inbox.put_nowait(item)

    def close(self) -> None:
        """End every stream; its readers reconnect to the next process."""
        for inboxes in self._open.values():
            for inbox in inboxes:
                close_inbox(inbox)

    def close_session(self, session: str) -> None:
        """End the streams of a session that was ended."""
        for inboxes in self._open.values():
            for inbox, reader in inboxes.items():
                if session and reader == session:
                    close_inbox(inbox)


def close_inbox(inbox: Inbox) -> None:
    """End the stream that reads it."""
    while inbox.full():
        inbox.get_nowait()
    inbox.put_nowait("closed")


class EventStream:
    """One reader of one conversation that has seen every view up to rev `after`."""

    def __init__(self, backend: WebBackend, conversation: str, after: int, write: Write) -> None:
        self._backend = backend
        self._conversation = conversation
        self._last = after
        self._write = write
        self._wrote = clock.monotonic()
        self._standing: Standing | None = None
        self._grown = Growing(turn="", text="")
        self._answered = ""
        """The turn whose answer its reader has: its growing text comes too late."""
        self._finished = FinishedBlocks()
        """The part of the growing text that its reader has as HTML."""

    async def run(self, inbox: Inbox) -> None:
        """Write events until closed. Also ends when there is nothing to watch: the reader
        reconnects with the id of its last event."""
        await self._send(b"retry: 1000\n\n")
        ended = 0
        while ended < 2:
            before = self._last
            async with (
                self._backend.watch(self._conversation) as live,
                asyncio.TaskGroup() as group,
            ):
                pump = group.create_task(_pump(live, inbox))
                await self._catch_up()
                behind = await self._deliver(inbox)
                pump.cancel()
            if not behind:
                return
            ended = 0 if self._last > before else ended + 1

    async def _catch_up(self) -> None:
        """Send what the reader has not received; a reader with views that no longer exist is told
        that they were removed."""
        if self._last and not await self._is_known():
            await self._tell_removed()
        while views := await self._backend.views(self._conversation, self._last, PAGE):
            for shown in views:
                await self._show(shown)

    async def _is_known(self) -> bool:
        """Return False if what the reader has seen was removed: nothing is as new as their last
        view, or all that is there began after it."""
        newer = await self._backend.views(self._conversation, self._last - 1, 1)
        return bool(newer and await self._backend.latest(self._conversation, 1, self._last + 1))

    async def _deliver(self, inbox: Inbox) -> bool:
        """Forward the news; return True if the reader fell behind, False at the end."""
        await self._look()
        changed = False
        while True:
            try:
                async with clock.limit(HEARTBEAT):
                    item = await inbox.get()
            except TimeoutError:
                await self._catch_up()
                item = "look"
            match item:
                case Shown() if item.rev > self._last:
                    await self._show(item)
                case Growing() if item.turn != self._answered:
                    await self._grow(item)
                case Printed():
                    await self._event("terminal_output", item)
                case PrivateWord():
                    await self._event("told", item)
                case "behind":
                    return True
                case "removed":
                    await self._tell_removed()
                case "closed":
                    return False
                case Changed() | "look":
                    changed = True
                case _:
                    pass
            if changed and inbox.empty():  # coalesce many changes into one read
                changed = False
                await self._look()

    async def _tell_removed(self) -> None:
        """Handle a new conversation under the same id: it has its own revisions."""
        self._last, self._answered, self._grown = 0, "", Growing(turn="", text="")
        await self._event("removed", {})

    async def _look(self) -> None:
        """Send the standing if it changed, otherwise a keep-alive if none was sent for long."""
        found = await self._backend.read_standing(self._conversation)
        if found != self._standing:
            self._standing = found
            if found.state == "idle":  # readers drop partial text: the next one is complete
                self._grown = Growing(turn="", text="")
            await self._event("standing", found)
        elif clock.monotonic() - self._wrote >= HEARTBEAT - 1:
            await self._event("alive", {})  # not a comment: scripts of a page cannot see those

    async def _show(self, shown: Shown) -> None:
        await self._event("view", await asyncio.to_thread(draw, shown), shown.rev)
        self._last = shown.rev
        if isinstance(shown.view, ReplyView) and shown.view.state != "streaming":
            self._answered = shown.turn

    async def _grow(self, growing: Growing) -> None:
        """Send only the new part, if the text continues this reader's."""
        known = self._grown.text if growing.turn == self._grown.turn else ""
        more = bool(known) and growing.text.startswith(known)
        text = growing.text[len(known) :] if more else growing.text
        self._grown = growing
        if not more:
            self._finished = FinishedBlocks()
        event: dict[str, object] = {"turn": growing.turn, "text": text, "more": more}
        drawn = self._finished.end
        if (cut := self._finished.follow(growing.text)) > drawn:
            event["html"] = await asyncio.to_thread(draw_answer, growing.text[drawn:cut])
            event["cut"] = count_units(growing.text[:cut])
        await self._event("growing", event)

    async def _event(self, name: str, data: object, rev: int | None = None) -> None:
        mark = b"" if rev is None else b"id: %d\n" % rev
        body = msgspec.json.encode(data)
        await self._send(b"%sevent: %s\ndata: %s\n\n" % (mark, name.encode(), body))

    async def _send(self, data: bytes) -> None:
        await self._write(data)
        self._wrote = clock.monotonic()


async def _pump(live: AsyncIterator[Live], inbox: Inbox) -> None:
    async for item in live:
        await inbox.put(item)
    await inbox.put("behind")
