"""Voice notes in words, by any server that speaks OpenAI's audio transcriptions."""

import asyncio
from typing import BinaryIO

import openai

from agent_core.errors import ModelFailed
from agent_core.models.answers.limits import WHOLE, limit_body
from agent_core.models.port import permit_request
from agent_core.models.trust import load_trust
from agent_core.models.wire import Line
from agent_core.settings import Endpoint

LIMIT = 25_000_000
"""Bytes that OpenAI takes at most."""


class Transcriber:
    """One model at one provider."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._line = Line(endpoint)
        self._model = model
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=endpoint.base_url,
            timeout=self._line.timeout,
            max_retries=endpoint.retries,
            http_client=openai.DefaultAioHttpClient(
                verify=load_trust(),
                event_hooks={"request": [permit_request], "response": [limit_body]},
            ),
        )

    async def words(self, audio: BinaryIO, name: str) -> str:
        """Transcribe the file `audio`, whose `name` tells its format; raises ModelFailed."""
        data = await asyncio.to_thread(audio.read, LIMIT + 1)
        if len(data) > LIMIT:
            raise ModelFailed(f"It is larger than {LIMIT // 1_000_000} MB.", "rejected")
        try:
            async with self._line.limit_answer(WHOLE):
                heard = await self._client.audio.transcriptions.create(
                    file=(name, data), model=self._model, response_format="json"
                )
        except TimeoutError:
            raise self._line.translate_endless() from None
        except openai.APIStatusError as error:
            raise self._line.read_refusal(error.response) from None
        except openai.APIConnectionError as error:
            raise self._line.translate_unreachable(error.__cause__) from None
        except (openai.OpenAIError, ValueError) as error:
            raise ModelFailed(self._line.clean(str(error)), "malformed") from None
        text = getattr(heard, "text", None)
        if not isinstance(text, str):
            raise ModelFailed("It answered with something else than a transcription.", "malformed")
        return text.strip() or "(nothing was said)"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
