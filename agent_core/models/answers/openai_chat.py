"""Reads answers of OpenAI's chat completions, event by event or in one piece."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from agent_core.messages import Part, Thinking, ToolCall
from agent_core.models.answers.broken import Broken, make_broken
from agent_core.models.answers.details import (
    GARBLED,
    GIVEN_UP,
    EventDecoder,
    find_finish,
    read_count,
    read_ending,
)
from agent_core.models.answers.spoken import SpokenAnswer, name_calls, write_arguments
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, Usage
from agent_core.phrases import phrase

FIELDS = ("reasoning_content", "reasoning")
"""Fields in which providers return reasoning; a part's signature names the second one."""

LEGACY = -1
"""The index of a call in the form from before there could be several."""


class _Function(Struct):
    name: str | None = None
    arguments: object = None


class _Google(Struct):
    thought_signature: str = ""


class _Extra(Struct):
    google: _Google | None = None


class _Call(Struct):
    index: int | None = None
    id: str | int | None = None
    function: _Function | None = None
    extra_content: _Extra | None = None


class _Delta(Struct):
    """`function_call`: the only call, in the form from before there could be several."""

    content: object = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None

    def has_any(self) -> bool:
        """Return True if it says anything."""
        return any((self.content, self.refusal, self.tool_calls, self.function_call))


class _Choice(Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(Struct):
    """One event; a whole answer in one piece has the same form with `message` for `delta`."""

    model: str | None = None
    choices: list[_Choice] | None = None
    usage: object = None
    error: object = None
    message: object = None
    """Of a server that reports an error beside the form."""
    detail: object = None
    error_message: object = None
    base_resp: object = None
    """MiniMax's state."""


_decode = EventDecoder(_Chunk, "a chat completion").decode


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
        self._streamed = False
        """A part has come: a message after it repeats the whole, as MiniMax sends it."""
        self._chosen: int | None = None
        """The number of the answer, of several."""

    def add(self, data: bytes) -> None:
        """Take in one event; raises Broken."""
        if data.startswith(b"[DONE]"):
            self.ended = True
            return
        chunk = _decode(data)
        if error := chunk.error or (chunk.choices is None and _find_error(chunk)):
            raise make_broken(error, "overloaded")
        self._said.model = chunk.model or self._said.model
        if chunk.usage:
            self._said.usage = _usage(chunk.usage)
        for choice in chunk.choices or ():
            if self._chosen is None:
                self._chosen = choice.index
            elif choice.index not in (None, self._chosen):
                continue  # another answer to the same request
            if choice.delta:
                self._streamed = self._streamed or choice.delta.has_any()
                self._add_delta(choice.delta)
            if choice.message and not self._streamed:
                self._add_delta(choice.message)
            self._finish = choice.finish_reason or self._finish

    def _add_delta(self, delta: _Delta) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought and isinstance(thought, str):
            self._thinking_field = None if delta.reasoning_content else "reasoning"
            self._said.think(thought)
        content = delta.content or delta.refusal
        if isinstance(content, list | dict):
            self._add_parts(content if isinstance(content, list) else [content])
        elif content is None or isinstance(content, str):
            self._said.say(content)
        else:
            raise Broken(phrase("fault_senseless", detail="a chat completion"), "malformed")
        for piece in delta.tool_calls or ():
            self._add_call(piece)
        if delta.function_call and not delta.tool_calls:
            self._add_call(_Call(index=LEGACY, function=delta.function_call))

    def _add_parts(self, parts: list[object]) -> None:
        """Add content that comes as a list: Mistral's reasoning does."""
        for part in parts:
            if isinstance(part, str):
                self._said.say(part)
            elif not isinstance(part, dict):
                continue
            elif thought := part.get("thinking"):
                self._said.think_inline(_join_texts(thought))
            elif isinstance(text := part.get("text"), str):
                self._said.say(text)

    def _add_call(self, piece: _Call) -> None:
        function = piece.function or _Function()
        text = write_arguments(function.arguments)
        call = self._open(piece, function.name or "", text)
        call.name = call.name or function.name or ""
        if not (function.name and text == "".join(call.pieces)):  # repeated at its end
            call.pieces.append(text)
        if piece.extra_content and piece.extra_content.google:
            call.signature = piece.extra_content.google.thought_signature

    def _open(self, piece: _Call, name: str, text: str) -> _Open:
        """Return the call that `piece` belongs to, by index; some providers give none, or always
        0."""
        given = str(piece.id or "")
        known = self._by_index.get(piece.index) if piece.index is not None else None
        if piece.index is None:
            known = self._find_call(given, name)
        if known and not (name and _is_other(known, given, name, text)):
            known.id = known.id or given
            return known
        call = _Open(id=given, name="", pieces=[])
        self._calls.append(call)
        if piece.index is not None:
            self._by_index[piece.index] = call
        return call

    def _find_call(self, given: str, name: str) -> _Open | None:
        """Return the call that a piece without an index may continue. Only the first one of a call
        must have a name; some have an id of their own each."""
        same = (call for call in reversed(self._calls) if given and call.id == given)
        if (known := next(same, None)) is not None or not self._calls:
            return known
        last = self._calls[-1]
        return last if not name or (name == last.name and any(last.pieces)) else None

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if not self._finish and not self.ended:
            raise Broken(phrase("fault_cut"))
        ending = read_ending(self._finish)
        if ending in GARBLED:
            raise Broken(phrase("fault_error", detail=self._finish), "malformed")
        if ending in GIVEN_UP:
            raise Broken(phrase("fault_error", detail=self._finish), "overloaded", 0.5)
        return self._said.make_reply(
            find_finish(ending), tuple(self._list_calls()), self._thinking_field
        )

    def _list_calls(self) -> Iterator[Part]:
        calls = [call for call in self._calls if call.name or any(call.pieces)]
        for name, call in zip(name_calls((c.id for c in calls), self._request), calls, strict=True):
            if call.signature:
                yield Thinking(text="", provider=self._provider, signature=call.signature)
            arguments = "".join(call.pieces) or "{}"
            yield ToolCall(id=name, name=call.name or "unnamed", arguments=arguments)


def _is_other(known: _Open, given: str, name: str, text: str) -> bool:
    """Return True if a piece with a `name` and the arguments `text` begins another call than the
    `known` one of its index, or of its id."""
    before = "".join(known.pieces)
    if given and known.id and known.id != given:
        if name != known.name or not (before or text):
            return True
        given = ""  # one of its own for each piece
    if name == known.name and (not text or (given and before in ("{}", text))):
        return False
    try:
        msgspec.json.decode(before)
    except msgspec.DecodeError:
        return False
    return True


def _find_error(chunk: _Chunk) -> object:
    state = chunk.base_resp
    failed = state if isinstance(state, dict) and state.get("status_code") else None
    return chunk.message or chunk.detail or chunk.error_message or failed


def _join_texts(given: object) -> str:
    parts = given if isinstance(given, list) else [{"text": given}]
    texts = (one.get("text") for one in parts if isinstance(one, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _usage(usage: object) -> Usage:
    return Usage(
        input_tokens=read_count(usage, "prompt_tokens"),
        output_tokens=read_count(usage, "completion_tokens"),
        cached_tokens=read_count(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=read_count(usage, "completion_tokens_details", "reasoning_tokens"),
        written_tokens=read_count(usage, "prompt_tokens_details", "cache_write_tokens"),
    )
