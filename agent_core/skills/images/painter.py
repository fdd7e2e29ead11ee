"""Pictures from words, by any server that speaks OpenAI's image generations: OpenAI, and Google by
its endpoint that is compatible with it. The SDK is imported with the first picture."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from agent_core.errors import ModelFailed
from agent_core.settings import Endpoint, ModelSettings, SettingsError
from agent_core.skills.images.settings import MODELS, PROVIDERS, Provider

if TYPE_CHECKING:
    from agent_core.models.wire import Line

Shape = Literal["square", "wide", "tall"]
SIZES: dict[Shape, str] = {"square": "1024x1024", "wide": "1536x1024", "tall": "1024x1536"}
MOST_BYTES = 68_000_000
"""Of an answer: a file as large as can be given to people, in base64."""
UNSET = "Set OPENAI_API_KEY or GEMINI_API_KEY to make pictures."
LIMITED = (
    "Money is limited here (BUDGET_…), and what a picture costs is not known: an operator can lift "
    "the limits."
)


class _Picture(msgspec.Struct, frozen=True):
    b64_json: str = ""


class _Answer(msgspec.Struct, frozen=True):
    data: tuple[_Picture, ...] = ()


class Painter:
    """Makes pictures as the settings say."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings

    def missing(self) -> str:
        """Why no picture can be made and what to do, "" if one can. Imports nothing."""
        provider = self._provider()
        if provider is None:
            return UNSET
        if self._settings.agent.limits.any:
            return LIMITED
        if provider not in self._settings.keys:
            return f"IMAGE_PROVIDER is {provider}: set {provider.upper()}_API_KEY."
        return ""

    @property
    def name(self) -> str:
        """Provider and model, as people see them."""
        provider = self._provider()
        if provider is None:
            return ""
        return f"{provider}/{self._settings.images.model or MODELS[provider]}"

    async def paint(self, prompt: str, shape: Shape) -> bytes:
        """One picture; raises ModelFailed. It is asked for once: each costs money."""
        if why := self.missing():
            raise ModelFailed(why, "rejected")
        provider, _, model = self.name.partition("/")
        body: dict[str, object] = {"model": model, "n": 1}
        if provider == "gemini":  # it knows no sizes in pixels
            said = prompt if shape == "square" else f"{prompt}\n\nFormat: {shape}."
            body |= {"prompt": said, "response_format": "b64_json"}
        else:
            body |= {"prompt": prompt, "size": SIZES[shape]}
        endpoint = self._endpoint(provider)
        line = await asyncio.to_thread(_line, endpoint)
        return _decoded(await _posted(endpoint, line, body), line)

    def _provider(self) -> Provider | None:
        chosen = self._settings.images.provider
        return chosen or next((one for one in PROVIDERS if one in self._settings.keys), None)

    def _endpoint(self, provider: str) -> Endpoint:
        try:
            endpoint = self._settings.endpoint(provider, "IMAGE_PROVIDER")
        except SettingsError as error:
            raise ModelFailed(str(error), "rejected") from None
        return replace(endpoint, base_url=self._settings.base_urls[provider])


def _line(endpoint: Endpoint) -> "Line":
    """Blocks: it imports an SDK when it is the first."""
    import openai  # noqa: F401

    from agent_core.models.wire import Line

    return Line(endpoint)


async def _posted(endpoint: Endpoint, line: "Line", body: dict[str, object]) -> bytes:
    import openai

    client = openai.AsyncOpenAI(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        timeout=line.timeout,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(),
    )
    content = bytearray()
    try:
        async with client:
            made = client.images.with_streaming_response
            async with made.generate(prompt=str(body["prompt"]), extra_body=body) as response:
                pieces = cast(AsyncGenerator[bytes, None], response.iter_bytes())
                async with aclosing(pieces):
                    async for piece in pieces:
                        content += piece
                        if len(content) > MOST_BYTES:
                            raise ModelFailed("The provider sent far too much.", "malformed")
                return bytes(content)
    except openai.APIStatusError as error:
        raise line.refused(error.response) from None
    except openai.APIConnectionError as error:
        raise line.unreachable(error) from None
    except (openai.OpenAIError, ValueError, OSError) as error:
        raise ModelFailed(line.clean(str(error)), "malformed") from None


def _decoded(content: bytes, line: "Line") -> bytes:
    try:
        answer = msgspec.json.decode(content, type=_Answer)
        return base64.b64decode(answer.data[0].b64_json, validate=True)
    except (msgspec.DecodeError, ValueError, RecursionError, IndexError):
        raise ModelFailed("The provider answered without a picture.", "malformed") from None
