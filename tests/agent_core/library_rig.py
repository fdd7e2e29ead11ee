"""A provider for the agent as a library."""

from agent_core.models.openai_chat import OpenAIChat
from agent_core.settings import Endpoint
from tests.fakes.model_server import ModelServer


class Named(OpenAIChat):
    """A provider with a fixed model."""

    async def complete(self, request, on_delta):
        from msgspec.structs import replace

        return await super().complete(replace(request, model="m"), on_delta)


def provider(server: ModelServer) -> OpenAIChat:
    return Named(
        Endpoint(provider="openai", base_url=server.url + "/v1", api_key="k", key_setting="K")
    )
