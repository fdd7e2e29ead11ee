"""Reads answers of OpenAI's chat completions, event by event or in one piece."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from agent_core.messages import Part, Thinking, ToolCall
from agent_core.models.port import Finish, ModelReply, ModelRequest, OnDelta, Usage
from agent_core.models.wire import Broken, SpokenAnswer, make_broken, name_calls
from agent_core.phrases import phrase

FINISH: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refused",
}


FIELDS = ("reasoning_content", "reasoning")
"""Fields in which providers return reasoning; a part's signature names the second one."""


class _Function(Struct):
    name: str | None = None
    arguments: object = None


class _Google(Struct):
    thought_signature: str = ""


class _Extra(Struct):
    google: _Google | None = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: _Extra | None = None


class _Delta(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Chunk(Struct):
    """One event; a whole answer in one piece has the same form with `message` for `delta`."""

    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Chunk, strict=False).decode


class _Open(Struct):
    """An unfinished call."""

    id: str
    name: str
    pieces: list[str]
    signature: str = ""


class ChatCompletionsReader:
    """Folds the events of one answer."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.ended = False
        self._request = request
        self._provider = provider
        self._said = SpokenAnswer(request, provider, show)
        self._thinking_field: str | None = None
        self._calls: list[_Open] = []
        self._by_index: dict[int, _Open] = {}
        self._finish = ""

    def add(self, data: bytes) -> None:
        """Take in one event; raises Broken."""
        if data.startswith(b"[DONE]"):
            self.ended = True
            return
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Broken(
                phrase("fault_senseless", detail="a chat completion"), "malformed"
            ) from None
        if chunk.error:
            raise make_broken(chunk.error, "overloaded")
        self._said.model = chunk.model or self._said.model
        if chunk.usage:
            self._said.usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            delta = choice.delta or choice.message
            if delta:
                self._add_delta(delta)
            self._finish = choice.finish_reason or self._finish

    def _add_delta(self, delta: _Delta) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            self._thinking_field = None if delta.reasoning_content else "reasoning"
            self._said.think(thought)
        self._said.say(delta.content or delta.refusal)
        for piece in delta.tool_calls or ():
            self._add_call(piece)

    def _add_call(self, piece: _Call) -> None:
        function = piece.function or _Function()
        call = self._open(piece, function)
        call.name = call.name or function.name or ""
        if isinstance(function.arguments, str):
            call.pieces.append(function.arguments)
        elif function.arguments is not None:
            call.pieces.append(msgspec.json.encode(function.arguments).decode())
        if piece.extra_content and piece.extra_content.google:
            call.signature = piece.extra_content.google.thought_signature

    def _open(self, piece: _Call, function: _Function) -> _Open:
        """Return the call that `piece` belongs to, by index; some providers give none, or always
        0."""
        known = self._by_index.get(piece.index) if piece.index is not None else None
        if piece.index is None and self._calls and not (piece.id or function.name):
            known = self._calls[-1]
        if known and not (piece.id and function.name and known.id != piece.id):
            known.id = known.id or piece.id or ""
            return known
        call = _Open(id=piece.id or "", name="", pieces=[])
        self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        return call

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if not self._finish and not self.ended:
            raise Broken(phrase("fault_cut"))
        finish = FINISH.get(self._finish, "stop")
        return self._said.make_reply(finish, tuple(self._list_calls()), self._thinking_field)

    def _list_calls(self) -> Iterator[Part]:
        names = name_calls((call.id for call in self._calls), self._request)
        for name, call in zip(names, self._calls, strict=True):
            if call.signature:
                yield Thinking(text="", provider=self._provider, signature=call.signature)
            arguments = "".join(call.pieces) or "{}"
            yield ToolCall(id=name, name=call.name or "unnamed", arguments=arguments)


def _usage(usage: _Usage) -> Usage:
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=(read.cached_tokens or 0) if read else 0,
        reasoning_tokens=(written.reasoning_tokens or 0) if written else 0,
        written_tokens=(read.cache_write_tokens or 0) if read else 0,
    )
