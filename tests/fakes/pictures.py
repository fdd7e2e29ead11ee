"""Small pictures, real and damaged."""

import base64

from agent_core.messages import Picture
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


MAKERS = {
    "chat": ("/v1", OpenAIChat),
    "responses": ("/v1", OpenAIResponses),
    "anthropic": ("", AnthropicMessages),
}


def one(ref: str, size: int = len(PNG)) -> Picture:
    return Picture(ref=ref, path=f"incoming/{ref}.png", mime="image/png", size=size)
