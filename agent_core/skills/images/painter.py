"""Generates pictures by any server with OpenAI's image generations: OpenAI, and Google by its
compatible endpoint. The SDK is imported with the first picture."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from agent_core.config.declaration import SettingsError
from agent_core.errors import ModelFailed
from agent_core.settings import Endpoint, ModelSettings
from agent_core.skills.images.settings import MODELS, PROVIDER, PROVIDERS, Provider

Generate: TypeAlias = Callable[[Endpoint, dict[str, object]], Awaitable[bytes]]
Shape = Literal["square", "wide", "tall"]
SIZES: dict[Shape, str] = {"square": "1024x1024", "wide": "1536x1024", "tall": "1024x1536"}
UNSET = "Set OPENAI_API_KEY or GEMINI_API_KEY to make pictures."
LIMITED = (
    "Money is limited here (BUDGET_…), and what a picture costs is not known: an operator can lift "
    "the limits."
)


class Painter:
    """Makes pictures as the settings say."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings

    def why_unusable(self) -> str:
        """Return the reason why no picture can be made and what to do, "" if one can. Imports
        nothing."""
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
        """Return one picture; raises ModelFailed. Without retries, as each costs money."""
        if why := self.why_unusable():
            raise ModelFailed(why, "rejected")
        provider, _, model = self.name.partition("/")
        body: dict[str, object] = {"model": model, "n": 1}
        if provider == "gemini":  # it does not support sizes in pixels
            said = prompt if shape == "square" else f"{prompt}\n\nFormat: {shape}."
            body |= {"prompt": said, "response_format": "b64_json"}
        else:
            body |= {"prompt": prompt, "size": SIZES[shape]}
        endpoint = self._endpoint(provider)
        generate = await asyncio.to_thread(_load_generate)
        return await generate(endpoint, body)

    def _provider(self) -> Provider | None:
        chosen = self._settings.images.provider
        return chosen or next((one for one in PROVIDERS if one in self._settings.keys), None)

    def _endpoint(self, provider: str) -> Endpoint:
        try:
            endpoint = self._settings.endpoint(provider, PROVIDER.name)
        except SettingsError as error:
            raise ModelFailed(str(error), "rejected") from None
        return replace(endpoint, base_url=self._settings.base_urls[provider])


def _load_generate() -> Generate:
    """Blocks: it imports an SDK when it is the first."""
    from agent_core.skills.images.generations import generate

    return generate
