"""Ollama by its own protocol.

Chat completions cannot request a window, so the model gets what the server's memory suggests, often
4,096 tokens, and longer conversations silently lose their beginning. Here each request names the
window, and a longer conversation is refused (`truncate`).
"""

from dataclasses import replace

import aiohttp
import msgspec

from agent_core.errors import ModelFailed
from agent_core.models.catalog import Catalog
from agent_core.models.endpoint import Endpoint
from agent_core.models.ollama.answer import OllamaReader
from agent_core.models.ollama.messages import LEVELS, build_body
from agent_core.models.openai_chat import CallRefused, ChatClient, OpenAIChat, render_tool
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
from agent_core.models.streamed_http import StreamedResponse
from agent_core.models.windows import ask_window, find_root, speaks_ollama
from agent_core.models.wire import Line, ToolSheet
from agent_core.phrases import phrase


class OllamaChat:
    """An Ollama server. `catalog` holds, and is told, the windows of its models."""

    def __init__(self, endpoint: Endpoint, catalog: Catalog) -> None:
        self.provider = endpoint.provider
        self._endpoint = replace(endpoint, base_url=find_root(endpoint), api_mode="ollama_chat")
        self._catalog = catalog
        self._line = Line(endpoint)
        self._tools = ToolSheet(render_tool)
        self._calls = ChatClient(self._endpoint, self._line, "api/chat")
        self._contexts: dict[str, int] = {}
        """The window requested of each model: another number would load it again."""
        self._thoughtless: set[str] = set()

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        if request.model not in self._contexts:
            self._contexts[request.model] = await self._find_context(request.model)
        return await self._line.ask(request, self._send, OllamaReader, on_delta)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def _find_context(self, model: str) -> int:
        """Return the window to request for `model`; 0 for the server's default."""
        wanted = self._endpoint.num_ctx
        known = self._catalog.has_window(self.provider, model)
        if wanted and not known:
            async with aiohttp.ClientSession(trust_env=True) as session:
                held = await ask_window(session, self._endpoint, model)
            tokens, trained = (held.tokens, held.trained) if held else (wanted, 0)
            self._catalog.note_window(self.provider, model, tokens, trained)
        return self._catalog.window(self.provider, model) if wanted else 0

    async def _send(self, request: ModelRequest, retries: int) -> StreamedResponse:
        try:
            return await self._calls.post(self._body(request), retries)
        except CallRefused as error:
            if self._learn(request, error):
                return await self._send(request, retries)
            raise self._line.read_refusal(error.response) from None

    def _learn(self, request: ModelRequest, error: CallRefused) -> bool:
        """Learn from an error that the model does not think, or not with that effort. Return True
        if the request can be retried."""
        if request.model in self._thoughtless or "think" not in str(error):
            return False
        self._thoughtless.add(request.model)
        return True

    def _body(self, request: ModelRequest) -> bytes:
        tools = self._tools.render(request.tools)
        context = self._contexts[request.model]
        body = build_body(request, self.provider, tools, context)
        think = LEVELS[request.effort] if request.effort else self._endpoint.thinking
        if think is not None and request.model not in self._thoughtless:
            body["think"] = think
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            raise ModelFailed(phrase("fault_characters"), "rejected") from None


class OwnServerChat:
    """A server at an address of the operator's own without a set API: spoken to as Ollama if it is
    that, otherwise by chat completions."""

    def __init__(self, endpoint: Endpoint, catalog: Catalog) -> None:
        self.provider = endpoint.provider
        self._endpoint = endpoint
        self._catalog = catalog
        self._plain = OpenAIChat(endpoint)
        self._chosen: Model | None = None

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        if self._chosen is None and await speaks_ollama(self._endpoint):
            # another request may have chosen meanwhile, and its connections are in use
            self._chosen = self._chosen or OllamaChat(self._endpoint, self._catalog)
        if self._chosen is not None:
            return await self._chosen.complete(request, on_delta)
        reply = await self._plain.complete(request, on_delta)
        # only now: a server that is still starting does not answer, and may be Ollama
        self._chosen = self._chosen or self._plain
        return reply

    async def close(self) -> None:
        """Close the connections."""
        await self._plain.close()
        if self._chosen not in (None, self._plain):
            await self._chosen.close()
