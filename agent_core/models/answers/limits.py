"""Limits of one answer. No model comes near them; a server that does not end would take the memory
and the time of all others."""

from collections.abc import AsyncIterator

import httpx2

from agent_core.models.answers.broken import Broken
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
