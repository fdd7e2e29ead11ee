"""Feeds the reader of an answer with the events of its stream, server-sent ones or lines of JSON,
and passes its deltas on without holding the event loop: servers send thousands at once, or all
words in one, and each costs time to redact and to show."""

import asyncio
import contextlib
import math
from codecs import BOM_UTF8
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Protocol, TypeAlias, cast

import httpx2
import msgspec

from agent_core import ambient
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.halves import HALF, HalfJoiner
from agent_core.models.answers.limits import MAX_ANSWER, MAX_EVENT, MAX_TEXT, make_endless
from agent_core.models.port import Delta, ModelReply, OnDelta, Restarted, TextDelta, ThinkingDelta
from agent_core.models.streamed_http import StreamedResponse
from agent_core.phrases import phrase

Response: TypeAlias = httpx2.Response | StreamedResponse
"""A response whose body may be still to come."""
DONE = b"[DONE]"
"""Ends the streams of OpenAI's protocols."""
DRAIN = 0.1
"""Seconds for the rest of a finished answer; with more, its connection is not used again."""
MAX_PIECE = 1_000
"""Characters of a delta that are passed on at once."""


class StreamFold(Protocol):
    """Folds the events of an answer; `ended` when no more are to come."""

    ended: bool

    def add(self, data: bytes) -> None: ...

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken."""


class PacedDeltas:
    """The deltas of one answer on their way to `show`."""

    def __init__(self, show: OnDelta) -> None:
        self._show = show
        self._waiting: deque[Delta] = deque()
        self._share = ambient.LoopShare()
        self._size = 0

    def add(self, delta: Delta) -> None:
        """Add a delta as a reader finds it; raises Broken for an answer without an end."""
        if not isinstance(delta, Restarted):
            self._size += len(delta.text)
            if self._size > MAX_TEXT:
                raise make_endless()
        self._waiting.append(delta)

    async def flush(self) -> None:
        """Pass on what was added, and serve others meanwhile."""
        await self._share.offer()
        while self._waiting:
            for piece in _cut(self._waiting.popleft()):
                self._show(piece)
                await self._share.offer()


def _cut(delta: Delta) -> Iterator[Delta]:
    if isinstance(delta, Restarted) or len(delta.text) <= MAX_PIECE:
        yield delta
        return
    kind = TextDelta if isinstance(delta, TextDelta) else ThinkingDelta
    for at in range(0, len(delta.text), MAX_PIECE):
        yield kind(text=delta.text[at : at + MAX_PIECE])


async def feed(
    response: Response, fold: StreamFold, deltas: PacedDeltas, seconds: float = math.inf
) -> None:
    """Give `fold` all events, and pass on its `deltas`; a provider may answer in one piece although
    a stream was asked for. Raises Broken for what cannot be read, and after so many seconds."""
    form = str(response.headers.get("content-type", "")).lower()
    if form.startswith("text/html"):
        raise Broken(phrase("fault_page"), "missing")
    ndjson, halves = form.startswith("application/x-ndjson"), HalfJoiner()
    split = read_lines if ndjson else read_events
    async with contextlib.aclosing(split(response, BodyLimit(seconds))) as stream:
        async for data in stream:
            fold.add(halves.join(data) if HALF.search(data) else data)
            await deltas.flush()
            if fold.ended:
                await drain(stream)
                return


async def drain(stream: AsyncIterator[bytes]) -> None:
    """Read to the end of a finished answer, so that its connection can be used again."""
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, Broken):
        async with ambient.limit(DRAIN):
            async for _ in stream:
                pass


class BodyLimit:
    """The limits of a stream as a whole: MAX_ANSWER, and so many seconds of the event loop's clock,
    which stands still while the machine sleeps."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until = self._clock() + seconds
        self._left = MAX_ANSWER

    def count(self, piece: bytes) -> None:
        """Count a piece as it comes; raises Broken once it is too much."""
        self._left -= len(piece)
        if self._left < 0 or self._clock() > self._until:
            raise make_endless()


class BodyLines:
    """The lines of a body that comes in pieces."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._held = 0

    def add(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in `piece`, without their ends; raises Broken for one without
        an end."""
        self._held += len(piece)
        self._begun.append(piece)
        if self._held > MAX_EVENT:
            raise make_endless()
        if b"\n" not in piece:
            return []
        *lines, rest = b"".join(self._begun).split(b"\n")
        self._begun, self._held = [rest], len(rest)
        return lines

    def end(self) -> bytes:
        """Return what came after the last line's end."""
        return b"".join(self._begun)


class _EventLines:
    """The lines of a stream on their way to events: JSON objects, and DONE. Words in place of one
    are a sign of life, or what an event called `error` says."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._failed = False
        self.events = self.words = 0
        """Numbers of events, and of words in place of one."""

    def add(self, line: bytes) -> bytes:
        """Add a line without its end; return the event that is complete with it, b"" for none."""
        if line.startswith(b"data:"):
            piece, whole = line[5:].strip(), b""
            if self._data and piece.startswith((b"{", DONE)) and self._may_end():
                whole = self.take()  # of a server that leaves out the empty lines
            self._data.append(piece)
            return whole
        if line.startswith(b"event:"):
            self._failed = line[6:].strip() == b"error"
        return b"" if line else self.take()

    def _may_end(self) -> bool:
        return self._data[-1].endswith(b"}") or not self._data[0].startswith(b"{")

    def take(self) -> bytes:
        """Return the event so far, and begin the next one."""
        whole, failed = b"\n".join(self._data), self._failed
        if len(whole) > MAX_EVENT:
            raise make_endless()
        self._data.clear()
        self._failed = False
        if failed and whole:
            return _read_failure(whole)
        if whole.startswith((b"{", DONE)):
            self.events += 1
            return whole
        self.words += bool(whole)
        return b""


def _read_failure(data: bytes) -> bytes:
    """Return what an event called `error` says in the form that readers know."""
    try:
        told = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = data.decode(errors="replace")
    if isinstance(told, dict) and ("error" in told or told.get("type") == "error"):
        return data
    return msgspec.json.encode({"type": "error", "error": told})


async def read_events(response: Response, limit: BodyLimit) -> AsyncGenerator[bytes, None]:
    """Yield the data of each server-sent event. A body that is no stream, whatever its type says,
    is one event. Raises Broken for a web page."""
    event, body, begun = _EventLines(), BodyLines(), False
    async with contextlib.aclosing(_read_chunks(response, limit)) as chunks:
        async for chunk in chunks:
            if not begun and chunk.strip():
                begun = True
                if whole := await _read_whole(chunk, chunks):
                    yield whole
                    return
            for line in body.add(chunk):
                if whole := event.add(line):
                    yield whole
    for whole in (event.add(body.end()), event.take()):
        if whole:
            yield whole
    if event.words and not event.events:
        raise Broken(phrase("fault_senseless", detail="an answer"), "malformed")


async def _read_chunks(response: Response, limit: BodyLimit) -> AsyncGenerator[bytes, None]:
    """Yield the body with each line ended by LF, where the format lets CR do it, or both, and
    without a byte order mark."""
    held, begun, cut = b"", False, False
    raw = cast(AsyncGenerator[bytes, None], response.aiter_bytes())
    async with contextlib.aclosing(raw):
        async for chunk in raw:
            limit.count(chunk)
            if not begun:
                chunk, held = held + chunk, b""
                if BOM_UTF8.startswith(chunk):
                    held = chunk
                    continue
                chunk, begun = chunk.removeprefix(BOM_UTF8), True
            if cut and chunk.startswith(b"\n"):  # the second half of a line end
                chunk = chunk[1:]
            cut = chunk.endswith(b"\r")
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield chunk


async def _read_whole(begun: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    """Return the whole body if its beginning is JSON, "" if it is a stream; raises Broken if it is
    a web page."""
    first = begun.lstrip()[:1]
    if first == b"<":
        raise Broken(phrase("fault_page"), "missing")
    if first != b"{":
        return b""
    pieces, size = [begun], len(begun)
    async for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size > MAX_EVENT:
            raise make_endless()
    return b"".join(pieces)


async def read_lines(response: Response, limit: BodyLimit) -> AsyncGenerator[bytes, None]:
    """Yield each line that is not empty."""
    body = BodyLines()
    async for chunk in response.aiter_bytes():
        limit.count(chunk)
        for line in body.add(chunk):
            if line.strip():
                yield line
    if (rest := body.end()).strip():
        yield rest
