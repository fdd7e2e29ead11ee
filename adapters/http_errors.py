"""Translates aiohttp's errors by whether the platform may have acted on the call, and takes a
refusal out of a group of tasks."""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from gateway.errors import Rejected

MAX_ANSWER = 16 << 20
"""Bytes that an answer of a platform's API can have; all together are held in memory."""


@contextmanager
def translate_http_errors(not_sent: type[Exception], unanswered: type[Exception]) -> Iterator[None]:
    """Raise `not_sent` if no connection was made and `unanswered` if the platform may have got the
    call, without the text of aiohttp's error: it may contain a URL with a token."""
    try:
        yield
    except (
        aiohttp.ClientConnectorError,
        aiohttp.ClientHttpProxyError,
        aiohttp.ConnectionTimeoutError,
    ) as error:
        raise not_sent(f"cannot connect: {type(error).__name__}") from None
    except aiohttp.InvalidURL:
        raise not_sent("cannot connect: the URL is invalid") from None
    except aiohttp.WSServerHandshakeError as error:
        raise not_sent(f"the socket was refused: {error.status}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unanswered(f"no answer: {type(error).__name__}") from None


async def read_answer(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an API's answer; aiohttp.ClientPayloadError if it is larger than any."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER:
            raise aiohttp.ClientPayloadError("the answer is too large")
    return bytes(body)


@contextmanager
def unwrap_refusal() -> Iterator[None]:
    """Raise the first Rejected of a task group as it is, not in its group."""
    try:
        yield
    except BaseExceptionGroup as errors:
        refused = errors.subgroup(Rejected)
        if refused is None:
            raise
        raise _find_first(refused) from None


def _find_first(refused: BaseExceptionGroup[Rejected]) -> Rejected:
    found = refused.exceptions[0]
    return found if isinstance(found, Rejected) else _find_first(found)
