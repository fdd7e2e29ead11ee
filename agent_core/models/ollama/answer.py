"""Reads answers of Ollama's /api/chat, a line of JSON at a time."""

from collections.abc import Iterator

from msgspec import Struct, field

from agent_core.messages import Part, ToolCall
from agent_core.models.answers.broken import Broken, make_broken
from agent_core.models.answers.details import EventDecoder, clean_count
from agent_core.models.answers.spoken import SpokenAnswer, name_calls, write_arguments
from agent_core.models.port import Finish, ModelReply, ModelRequest, OnDelta, Usage
from agent_core.phrases import phrase

FINISH: dict[str, Finish] = {"stop": "stop", "length": "length"}


class _OllamaFunction(Struct):
    name: str = ""
    arguments: object = None


class _OllamaCall(Struct):
    function: _OllamaFunction = field(default_factory=_OllamaFunction)
    id: str | None = ""


class _OllamaMessage(Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_OllamaCall] | None = None


class _OllamaChunk(Struct):
    model: str | None = ""
    message: _OllamaMessage | None = None
    done: bool = False
    done_reason: str | None = ""
    prompt_eval_count: object = 0
    eval_count: object = 0
    error: object = None


_decode = EventDecoder(_OllamaChunk, "an answer of Ollama").decode


class OllamaReader:
    """Folds the lines of one answer."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.ended = False
        self._request = request
        self._said = SpokenAnswer(request, provider, show)
        self._calls: list[_OllamaCall] = []
        self._finish = ""

    def add(self, data: bytes) -> None:
        """Take in one line; raises Broken."""
        chunk = _decode(data)
        if chunk.error:
            raise make_broken(chunk.error, "overloaded")
        self._said.model = chunk.model or self._said.model
        if chunk.message:
            self._add_message(chunk.message)
        if chunk.done:
            self.ended = True
            self._finish = chunk.done_reason or "stop"
            self._said.usage = Usage(
                input_tokens=clean_count(chunk.prompt_eval_count),
                output_tokens=clean_count(chunk.eval_count),
            )

    def _add_message(self, message: _OllamaMessage) -> None:
        self._said.think(message.thinking)
        self._said.say(message.content)
        self._calls += message.tool_calls or ()

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if not self.ended:
            raise Broken(phrase("fault_cut"))
        finish = FINISH.get(self._finish, "stop")
        return self._said.make_reply(finish, tuple(self._list_calls()))

    def _list_calls(self) -> Iterator[Part]:
        names = name_calls((call.id or "" for call in self._calls), self._request)
        for name, call in zip(names, self._calls, strict=True):
            yield ToolCall(
                id=name, name=call.function.name or "unnamed", arguments=_write(call.function)
            )


def _write(function: _OllamaFunction) -> str:
    """The arguments as the other protocols have them: JSON text."""
    return write_arguments(function.arguments) or "{}"
