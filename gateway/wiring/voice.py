"""Transcription of voice notes: none, or a model whose SDK is imported with the first note."""

import asyncio
import importlib
from typing import TYPE_CHECKING, BinaryIO

from agent_core.settings import Endpoint

if TYPE_CHECKING:
    from agent_core.models.transcription import Transcriber


class LazyTranscriber:
    """services.Hearing over one model at one provider, whose SDK is imported when first needed."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model
        self._transcriber: Transcriber | None = None

    async def words(self, audio: BinaryIO, name: str) -> str:
        """Transcribe the file `audio`; raises ModelFailed."""
        if self._transcriber is None:
            path = "agent_core.models.transcription"
            module = await asyncio.to_thread(importlib.import_module, path)
            self._transcriber = module.Transcriber(self._endpoint, self._model)
        return await self._transcriber.words(audio, name)

    async def close(self) -> None:
        """Close the connections."""
        if self._transcriber is not None:
            await self._transcriber.close()
