"""Reads answers of Anthropic's messages, event by event or in one piece."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from agent_core.messages import Part, Thinking, ToolCall
from agent_core.models.answers.broken import Broken, make_broken
from agent_core.models.answers.details import EventDecoder, find_finish, read_count, read_ending
from agent_core.models.answers.spoken import SpokenText, name_calls, says_something, write_arguments
from agent_core.models.port import (
    ModelReply,
    ModelRequest,
    OnDelta,
    ThinkingDelta,
    Usage,
)
from agent_core.phrases import phrase

REDACTED = "redacted:"
"""Begins the signature of thinking that came encrypted."""

OVERFLOW = "model_context_window_exceeded"


class _Block(Struct):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    data: str | None = ""
    id: str | None = ""
    name: str | None = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class _Delta(Struct):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    partial_json: object = None
    stop_reason: str | None = None


class _Message(Struct):
    model: str | None = ""
    usage: object = None


class _Event(Struct):
    """One event; a whole answer in one piece is one of type `message`."""

    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: object = None
    error: object = None
    model: str | None = ""
    content: list[_Block] | None = None
    stop_reason: str | None = None


_decode = EventDecoder(_Event, "a message event").decode


class _Open(Struct):
    """An unfinished block. Proxies put into it what belongs into one of another type."""

    start: _Block
    spoken: SpokenText
    thought: list[str] = []
    arguments: list[str] = []
    signature: str = ""

    def has_any(self) -> bool:
        """Return True if anything was added to it."""
        return any((self.spoken.has_any, self.thought, self.arguments, self.signature))


class AnthropicReader:
    """Folds the events of one answer."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.ended = False
        self._provider = provider
        self._show = show
        self._request = request
        self._model = request.model
        self._blocks: list[_Open] = []
        self._texts: list[SpokenText] = []
        self._by_index: dict[int, _Open] = {}
        self._stop = ""
        self._usage: dict[str, object] = {}

    def add(self, data: bytes) -> None:
        """Take in one event; raises Broken."""
        if data.startswith(b"[DONE]"):  # of a proxy that speaks OpenAI's protocol too
            return
        event = _decode(data)
        match event.type:
            case "message_start" if event.message:
                self._model = event.message.model or self._model
                self._count(event.message.usage)
            case "content_block_start" if event.content_block:
                self._start(event.index, event.content_block)
            case "content_block_delta" if event.delta:
                self._add_delta(event.index, event.delta)
            case "message_delta":
                self._count(event.usage)
                self._stop = (event.delta and event.delta.stop_reason) or self._stop
            case "message_stop":
                self.ended = True
            case "message":
                self._add_whole(event)
            case "error":
                raise make_broken(event.error, "overloaded")
            case _ if event.error:
                raise make_broken(event.error, "overloaded")
            case _ if event.content is not None:
                self._add_whole(event)
            case _:
                pass

    def _add_whole(self, event: _Event) -> None:
        self._model = event.model or self._model
        self._count(event.usage)
        self._stop = event.stop_reason or "end_turn"
        for index, block in enumerate(event.content or ()):
            self._start(index, block)

    def _start(self, index: int, block: _Block) -> None:
        """Open a block. Proxies number all of them alike, or begin one twice."""
        known = self._by_index.get(index)
        if known is not None and known.start == block and not known.has_any():
            return
        spoken = SpokenText(self._show, self._texts)
        opened = _Open(start=block, spoken=spoken, signature=block.signature or "")
        self._blocks.append(opened)
        self._by_index[index] = opened
        self._grow(opened, block.text, block.thinking)

    def _add_delta(self, index: int, delta: _Delta) -> None:
        if index not in self._by_index and not delta.partial_json:
            self._start(index, _Block())
        opened = self._by_index.get(index)
        if not opened:  # a call without a name
            raise Broken(phrase("fault_senseless", detail="an answer in order"), "malformed")
        opened.signature += delta.signature or ""
        if delta.partial_json:
            opened.arguments.append(write_arguments(delta.partial_json))
        self._grow(opened, delta.text, delta.thinking)

    def _grow(self, opened: _Open, text: str | None, thought: str | None) -> None:
        opened.spoken.say(text)
        if thought:
            opened.thought.append(thought)
            self._show(ThinkingDelta(text=thought))

    def _count(self, usage: object) -> None:
        """Take over counts: later ones stand for the whole answer and replace earlier ones."""
        if isinstance(usage, dict):
            self._usage |= {name: one for name, one in usage.items() if one is not None}

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if not self._stop and not self.ended:
            raise Broken(phrase("fault_cut"))
        for text in self._texts:
            text.end()
        parts = tuple(self._parts())
        finish = find_finish(read_ending(self._stop))
        says = says_something(parts)
        if not says and self._stop == OVERFLOW:
            raise Broken(phrase("fault_overflow"), "overflow")
        if not says and finish in ("stop", "tool_calls"):
            raise Broken(phrase("fault_empty"), "malformed")
        return ModelReply(
            parts=parts,
            model=self._model,
            provider=self._provider,
            finish=finish,
            usage=self._read_usage(),
        )

    def _read_usage(self) -> Usage:
        counts = self._usage
        read = read_count(counts, "cache_read_input_tokens")
        written = read_count(counts, "cache_creation_input_tokens")
        return Usage(
            input_tokens=read_count(counts, "input_tokens") + read + written,
            output_tokens=read_count(counts, "output_tokens"),
            cached_tokens=read,
            reasoning_tokens=read_count(counts, "output_tokens_details", "thinking_tokens"),
            written_tokens=written,
        )

    def _parts(self) -> Iterator[Part]:
        calls = (one.start.id or "" for one in self._blocks if one.start.type == "tool_use")
        names = name_calls(calls, self._request)
        for opened in self._blocks:
            start = opened.start
            signature = opened.signature or None
            if start.type == "redacted_thinking":
                signature = REDACTED + (start.data or "")
            if opened.thought or start.type in ("thinking", "redacted_thinking"):
                thought = "".join(opened.thought)
                yield Thinking(text=thought, provider=self._provider, signature=signature)
            yield from opened.spoken.list_parts(self._provider)
            if start.type == "tool_use":
                given = "".join(opened.arguments) or bytes(start.input).decode()
                name = start.name or "unnamed"
                yield ToolCall(id=next(names), name=name, arguments=given or "{}")
