"""One call of OpenAI's image generations. Imports the SDK, so it is imported for the first
picture."""

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import httpx2
import msgspec
import openai

from agent_core.errors import ModelFailed
from agent_core.models.answers.limits import WHOLE, AnswerTooLong, limit_body
from agent_core.models.trust import load_trust
from agent_core.models.wire import Line
from agent_core.settings import Endpoint

MAX_BYTES = 68_000_000
"""Maximum bytes of an answer: the largest file that can be sent to people, in base64."""


class _Picture(msgspec.Struct, frozen=True):
    b64_json: str = ""


class _Answer(msgspec.Struct, frozen=True):
    data: tuple[_Picture, ...] = ()


async def generate(endpoint: Endpoint, body: dict[str, object]) -> bytes:
    """The picture; raises ModelFailed."""
    line = Line(endpoint)
    return _decode(await _post(endpoint, line, body))


async def _post(endpoint: Endpoint, line: Line, body: dict[str, object]) -> bytes:
    client = openai.AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        timeout=line.timeout,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(
            verify=load_trust(), event_hooks={"response": [limit_body]}
        ),
    )
    content = bytearray()
    try:
        async with line.limit_answer(WHOLE), client:
            made = client.images.with_streaming_response
            async with made.generate(prompt=str(body["prompt"]), extra_body=body) as response:
                pieces = cast(AsyncGenerator[bytes, None], response.iter_bytes())
                async with aclosing(pieces):
                    async for piece in pieces:
                        content += piece
                        if len(content) > MAX_BYTES:
                            raise AnswerTooLong("larger than any picture")
                return bytes(content)
    except openai.APIStatusError as error:
        raise line.read_refusal(error.response) from None
    except openai.APIConnectionError as error:
        raise line.translate_unreachable(error.__cause__) from None
    except (AnswerTooLong, TimeoutError):
        raise line.translate_endless() from None
    except httpx2.HTTPError as error:  # the rest of the body did not come
        raise line.translate_unreachable(error) from None
    except (openai.OpenAIError, ValueError, OSError) as error:
        raise ModelFailed(line.clean(str(error)), "malformed") from None


def _decode(content: bytes) -> bytes:
    try:
        answer = msgspec.json.decode(content, type=_Answer)
        return base64.b64decode(answer.data[0].b64_json, validate=True)
    except (msgspec.DecodeError, ValueError, RecursionError, IndexError):
        raise ModelFailed("The provider answered without a picture.", "malformed") from None
