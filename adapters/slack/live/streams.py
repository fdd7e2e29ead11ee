"""Running chat streams: begun, appended to, and ended before Slack ends them.

A stream is for the private threads of an app that is an agent: there it brings Slack's own stop
button, and its one reader sees all of it. In a channel Slack streams to one person and shows others
only the beginning, so there, and wherever a stream is refused, a message is edited.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from adapters.slack.history import SlackHistory
from adapters.slack.live.chunks import Chunk, StreamChunks, difference, read_beginning
from adapters.slack.live.sessions import Sessions, Status
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import Ambiguous, DeliveryError, RateLimited, Rejected
from gateway.messages import Conversation

log = logging.getLogger("adapters.slack")

MAX_STREAM_SECONDS = 240.0
"""Seconds after which a stream is ended: Slack ends it after about five minutes, with an error that
people see. Its message is edited from then on."""
REFUSED_FOR, AGAIN = 3_600.0, 5.0
"""Seconds without another stream after a refusal; seconds until the next try where it may be over
sooner."""
LOOKED_BACK = 5.0
"""Seconds before a call whose answer was lost from which its stream is searched for: clocks
differ."""
MAX_STREAM_TEXT = 12_000
"""Most characters of the text of one call."""


class _Live(Struct, frozen=True, kw_only=True):
    """`shown`: all that was appended. `until`: `clock.monotonic()` at which it is ended."""

    where: Conversation
    shown: tuple[Chunk, ...]
    until: float


class SlackStreams:
    """The streams of one app, by the `ts` of their messages. A restart forgets them: the next edit
    of such a message ends its stream first (`end`)."""

    def __init__(self, wire: SlackWire, sessions: Sessions, history: SlackHistory) -> None:
        self._wire, self._sessions, self._history = wire, sessions, history
        self._born = clock.now()
        self._looked: set[str] = set()
        self._live: dict[str, _Live] = {}
        self._not_before = 0.0
        self._more = asyncio.Event()

    def can_begin(self, where: Conversation) -> bool:
        """A stream can be tried here, now."""
        here = where.private and bool(where.thread)
        return here and clock.monotonic() >= self._not_before

    async def begin(self, where: Conversation, wanted: StreamChunks) -> str:
        """Return the `ts` of a new stream, or of one that was found and has ended (`shows` is
        False: edit it); "" if Slack refuses one: post a message. Ambiguous if it may exist."""
        chunks = wanted.chunks
        given = {"channel": where.channel, "thread_ts": where.thread, "chunks": list(chunks)}
        given["task_display_mode"] = wanted.display
        if _longest(chunks) > MAX_STREAM_TEXT:
            return ""
        if stamp := await self.cut(where, chunks):
            return stamp
        since = clock.now() - LOOKED_BACK
        try:
            answer = await self._wire.call("chat.startStream", given)
        except (Rejected, RateLimited) as error:
            beside = any(live.where == where for live in self._live.values())
            refused = AGAIN if beside else REFUSED_FOR  # perhaps only a second one in the thread
            pause = error.retry_after if isinstance(error, RateLimited) else refused
            self._not_before = clock.monotonic() + pause
            log.info("slack_no_stream", extra={"why": str(error)})
            return ""
        except Ambiguous:
            if stamp := await self._history.find_streaming(where, since, self._live):
                await self.end(where, stamp)
                return stamp
            raise
        begun = answer.get("ts")
        if not isinstance(begun, str):
            raise Ambiguous("the answer to chat.startStream names no message")
        self._note_began(where, begun, chunks)
        return begun

    def _note_began(self, where: Conversation, stamp: str, chunks: Sequence[Chunk]) -> None:
        until = clock.monotonic() + MAX_STREAM_SECONDS
        self._live[stamp] = _Live(where=where, shown=tuple(chunks), until=until)
        self._more.set()
        self._sessions.forget_status(where, "processing")

    async def cut(self, where: Conversation, chunks: Sequence[Chunk]) -> str:
        """End the stream of this answer that was begun before a crash and not recorded; return its
        `ts`, "" if there is none. Slack ends streams by itself, so some time after the start there
        is none any more."""
        young = clock.now() - self._born < MAX_STREAM_SECONDS
        words = read_beginning(chunks)
        if not young or not words or where.id in self._looked:
            return ""
        self._looked.add(where.id)
        since = self._born - MAX_STREAM_SECONDS
        stamp = await self._history.find_streaming(where, since, self._live, words)
        if stamp:
            await self.end(where, stamp)
        return stamp

    def shows(self, stamp: str) -> bool:
        """Return True for a running stream."""
        return stamp in self._live

    async def show(self, stamp: str, wanted: StreamChunks | None) -> bool:
        """Make the stream show `wanted`, and end it if that is final. Return False if it is no
        stream any more, or cannot show this: edit the message."""
        live = self._live.get(stamp)
        if live is None:
            return False
        more = difference(live.shown, wanted.chunks) if wanted is not None else None
        if wanted is None or more is None or _longest(more) > MAX_STREAM_TEXT:
            await self.end(live.where, stamp)
            return False
        if not more and not wanted.last:
            return True
        given: dict[str, object] = {"channel": live.where.channel, "ts": stamp}
        given |= {"chunks": more} if more else {}
        given |= {"blocks": list(wanted.tail)} if wanted.last and wanted.tail else {}
        method = "chat.stopStream" if wanted.last else "chat.appendStream"
        try:
            await self._wire.call(method, given)
        except (Ambiguous, Rejected) as error:  # an edit shows all of it, whatever happened here
            log.info("slack_stream_over", extra={"why": str(error)})
            await self.end(live.where, stamp)
            return False
        if wanted.last:
            self._end_stream(live.where, stamp, "active")
        else:
            self._live[stamp] = replace(live, shown=wanted.chunks)
        return True

    async def end(self, where: Conversation, stamp: str) -> None:
        """End the stream as it stands. Does nothing if it has ended."""
        try:
            await self._wire.call("chat.stopStream", {"channel": where.channel, "ts": stamp})
        except (Rejected, Ambiguous) as error:
            log.info("slack_stream_not_stopped", extra={"why": str(error)})
            self._end_stream(where, stamp, None)  # Slack's own stop does not change the session
        else:
            self._end_stream(where, stamp, "active")

    def _end_stream(self, where: Conversation, stamp: str, status: Status | None) -> None:
        self._live.pop(stamp, None)
        self._sessions.forget_status(where, status)

    async def settle(self, where: Conversation) -> None:
        """End what still streams in a thread whose turn has answered; best effort."""
        for stamp in [one for one, live in self._live.items() if live.where == where]:
            await self._stop_quietly(stamp)

    async def _stop_quietly(self, stamp: str) -> None:
        if live := self._live.get(stamp):
            try:
                await self.end(live.where, stamp)
            except DeliveryError as error:
                log.info("slack_stream_not_stopped", extra={"why": str(error)})
                self._live[stamp] = replace(live, until=clock.monotonic() + AGAIN)
                self._more.set()

    async def watch(self) -> None:
        """End streams that are too old, or whose end was refused, until cancelled."""
        while True:
            self._more.clear()
            due = min((live.until for live in self._live.values()), default=0.0)
            if not due:
                await self._more.wait()
                continue
            with suppress(TimeoutError):  # an earlier one may arrive meanwhile
                async with clock.limit(max(0.0, due - clock.monotonic())):
                    await self._more.wait()
            now = clock.monotonic()
            for stamp, live in list(self._live.items()):
                if live.until <= now:
                    await self._stop_quietly(stamp)


def _longest(chunks: Sequence[Chunk]) -> int:
    return max((len(str(one.get("text", ""))) for one in chunks), default=0)
