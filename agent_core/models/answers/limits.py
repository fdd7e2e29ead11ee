"""Limits of one answer. No model comes near them; a server that does not end would take the memory
and the time of all others."""

import asyncio
from collections.abc import AsyncIterator

import httpx2

from agent_core.messages import ToolCall
from agent_core.models.answers.broken import Broken
from agent_core.models.port import ModelReply
from agent_core.phrases import phrase

MAX_ANSWER = 128 << 20
"""Bytes of a whole stream: the longest answers have 128,000 tokens, and an event for each of some
300 bytes."""
MAX_EVENT = 16 << 20
"""Bytes of one event, or of an answer in one piece: pictures come in one."""
MAX_TEXT = 2_000_000
"""Characters of words and reasoning together, and of the arguments of all calls."""
MAX_CALLS = 100
MAX_REFUSAL = 1 << 20
"""Bytes of an error; what comes after them is not read."""
MAX_PACKED = 16 << 10
"""Bytes of an error that is compressed: it may unpack to a thousand times as much."""
LONGEST = 12.0
"""Times the silence after which a provider has failed (MODEL_TIMEOUT): an answer may last so
long, whatever signs of life come in it."""

WHOLE = 3.0
"""The same for one that is read whole, such as a transcription."""


def make_endless() -> Broken:
    """Make the failure of an answer over a limit; the same provider is not asked for it again."""
    return Broken(phrase("fault_endless"), "endless")


def check_calls(reply: ModelReply) -> ModelReply:
    """Return `reply`; raises Broken if its calls are more than anybody means."""
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    if len(calls) > MAX_CALLS or sum(len(one.arguments) for one in calls) > MAX_TEXT:
        raise make_endless()
    return reply


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


class AnswerTooLong(httpx2.ReadError):
    """An SDK's answer has no end."""


class _LimitedBody(httpx2.AsyncByteStream):
    """A body up to `most` bytes; there it ends if it is `cut`, or raises AnswerTooLong."""

    def __init__(self, whole: httpx2.AsyncByteStream, most: int, cut: bool) -> None:
        self._whole, self._most, self._cut = whole, most, cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._whole:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                break
        if left < 0 and not self._cut:
            raise AnswerTooLong(f"more than {self._most:,} bytes")

    async def aclose(self) -> None:
        await self._whole.aclose()


async def limit_body(response: httpx2.Response) -> None:
    """Limit the body of an answer: a hook for the clients of SDKs, which read errors whole."""
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    refused = response.status_code >= 300
    packed = response.headers.get("content-encoding", "identity") != "identity"
    shortest = MAX_PACKED if packed else MAX_REFUSAL
    most = shortest if refused else MAX_ANSWER
    response.stream = _LimitedBody(response.stream, most, refused)
