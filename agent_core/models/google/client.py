"""Google's models by their own protocol, generateContent.

Through the SDK's typed layer, which reads the whole conversation anew for each call: slower than
the endpoint that speaks chat completions, and the only way to some of Google's own abilities.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import httpx2
import pydantic
from google import genai
from google.genai import errors, types
from msgspec.structs import replace

from agent_core.errors import ModelFailed
from agent_core.models.answers.broken import PAUSE, Broken
from agent_core.models.answers.limits import AnswerTooLong, limit_body, make_endless
from agent_core.models.answers.streamed_answers import PacedDeltas
from agent_core.models.google.answer import GeminiReader
from agent_core.models.google.contents import config, contents
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, permit_request
from agent_core.models.providers import Effort
from agent_core.models.trust import load_trust
from agent_core.models.wire import Line
from agent_core.phrases import phrase
from agent_core.settings import Endpoint

if TYPE_CHECKING:
    Chunk = types.GenerateContentResponse
    Chunks = AsyncGenerator[Chunk, None]

SENSELESS = (
    errors.UnknownApiResponseError,
    pydantic.ValidationError,
    RecursionError,
    UnicodeDecodeError,
)
"""Errors of the SDK at an answer that it cannot read."""


class Gemini:
    """Google, or a server that speaks its protocol."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.provider = endpoint.provider
        self._thinking = endpoint.thinking
        self._line = Line(endpoint)
        self._refused: set[tuple[str, Effort | None]] = set()
        self._http = httpx2.AsyncClient(
            timeout=self._line.timeout,
            verify=load_trust(),
            event_hooks={"request": [permit_request], "response": [limit_body]},
        )
        options = types.HttpOptions(
            base_url=endpoint.base_url,
            api_version="v1beta",  # thoughts and their signatures are always present
            timeout=int(endpoint.timeout * 1000),
            httpx_async_client=self._http,
            client_args={"verify": load_trust()},
            async_client_args={"ssl": load_trust()},
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._client = genai.Client(api_key=endpoint.api_key, http_options=options)

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""

        async def attempt(left: int, show: OnDelta) -> ModelReply:
            try:
                async with self._line.limit_answer():
                    return await self._answer(request, show)
            except (TimeoutError, AnswerTooLong):
                raise make_endless() from None
            except ModelFailed as failed:
                if failed.fault not in ("overloaded", "rate_limited", "timeout", "unreachable"):
                    raise
                pause = failed.retry_after or PAUSE
                raise Broken(str(failed), failed.fault, pause, told=failed) from None

        return await self._line.try_again(request, attempt, on_delta)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _answer(self, request: ModelRequest, show: OnDelta) -> ModelReply:
        first, rest = await self._line.begin_with_pictures(request, self._begin)
        deltas = PacedDeltas(show)
        answer = GeminiReader(request, self.provider, deltas.add)
        if first is not None:
            answer.add(first)
        return await self._read(rest, answer, deltas)

    async def _begin(self, request: ModelRequest) -> "tuple[Chunk | None, Chunks]":
        """The first chunk, with which it is known that the request was taken, and the others."""
        if (request.model, request.effort) in self._refused:
            request = replace(request, effort=None)
        said, settings = self._convert(request)
        try:
            stream = await self._client.aio.models.generate_content_stream(
                model=request.model,
                contents=cast("types.ContentListUnion", said),
                config=settings,
            )
            chunks = cast("Chunks", stream)
            first = await anext(chunks, None)
        except errors.APIError as error:
            if request.effort and error.code == 400 and "thinking" in str(error.message).lower():
                self._refused.add((request.model, request.effort))
                return await self._begin(request)
            raise self._line.read_refusal(_response(error)) from None
        except AnswerTooLong:
            raise
        except httpx2.HTTPError as error:
            raise self._line.translate_unreachable(error) from None
        except SENSELESS:
            raise Broken(phrase("fault_senseless", detail="an answer"), "malformed") from None
        except (OSError, ValueError) as error:
            raise self._line.translate_uncallable(error) from None
        return first, chunks

    def _convert(
        self, request: ModelRequest
    ) -> tuple[list[types.Content], types.GenerateContentConfig]:
        """The request as the SDK takes it. Raises ModelFailed."""
        try:
            said = [types.Content.model_validate(one) for one in contents(request, self.provider)]
            asked = types.GenerateContentConfig.model_validate(config(request, self._thinking))
        except ValueError as error:
            raise self._line.translate_uncallable(error) from None
        return said, asked

    async def _read(
        self, chunks: "Chunks", answer: GeminiReader, deltas: PacedDeltas
    ) -> ModelReply:
        try:
            async with aclosing(chunks) as stream:
                await deltas.flush()
                async for chunk in stream:
                    answer.add(chunk)
                    await deltas.flush()
            return answer.reply()
        except errors.APIError as error:
            raise self._line.break_off(_response(error)) from None
        except SENSELESS:
            raise Broken(phrase("fault_senseless", detail="an answer"), "malformed") from None
        except AnswerTooLong:
            raise
        except httpx2.ReadTimeout:
            raise Broken(phrase("fault_stopped"), "timeout") from None
        except httpx2.HTTPError:
            raise Broken(phrase("fault_cut")) from None


def _response(error: errors.APIError) -> httpx2.Response:
    """The refusal as `Line` reads it: status, headers, and the error in JSON."""
    headers = getattr(error.response, "headers", None) or {}
    given = {name: headers.get(name, "") for name in ("retry-after", "location")}
    kept = {name: value for name, value in given.items() if value and value.isascii()}
    body = error.details if isinstance(error.details, dict) else {"error": error.message}
    return httpx2.Response(int(error.code or 500), headers=kept, json=body)
