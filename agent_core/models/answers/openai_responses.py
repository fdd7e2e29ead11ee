"""Reads answers of OpenAI's Responses API, event by event or in one piece.

The text of the deltas is shown; the answer is made of the finished items, and of the response at
the end.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from agent_core.errors import ModelFault
from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.answers.refusals import read_error_message
from agent_core.models.overflow import read_overflow
from agent_core.models.port import (
    Finish,
    ModelReply,
    ModelRequest,
    OnDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agent_core.models.wire import Broken, make_broken, says_something
from agent_core.phrases import phrase

MARK = "responses:"
"""Begins the signature of an item of reasoning; its id and its encrypted content follow."""

FAULTS: dict[object, ModelFault] = {
    "rate_limit_exceeded": "rate_limited",
    "server_error": "overloaded",
    "vector_store_timeout": "overloaded",
}
"""Faults by the code of a failed response; any other code is about the request."""
SHOWN = ("response.output_text.delta", "response.refusal.delta")
THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class _Content(Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(Struct):
    """One item of the output."""

    type: str = ""
    id: str = ""
    call_id: str = ""
    name: str = ""
    arguments: object = ""
    content: list[_Content] | None = None
    summary: list[_Content] | None = None
    encrypted_content: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    model: str = ""
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: object = None
    incomplete_details: _Incomplete | None = None


class _Event(_Response):
    """One event; an answer in one piece is a response itself, without a type."""

    type: str = ""
    output_index: int = 0
    delta: object = None
    item: _Item | None = None
    response: _Response | None = None
    code: str | None = None
    message: str = ""


_decode = msgspec.json.Decoder(_Event, strict=False).decode


class ResponsesReader:
    """Folds the events of one answer."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.ended = False
        self._provider = provider
        self._show = show
        self._made_id = f"call_{len(request.messages)}"
        self._model = request.model
        self._items: dict[int, _Item] = {}
        self._end: _Response | None = None

    def add(self, data: bytes) -> None:
        """Take in one event; raises Broken."""
        if data.startswith(b"[DONE]"):
            return
        try:
            event = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Broken(
                phrase("fault_senseless", detail="a response event"), "malformed"
            ) from None
        kind = event.type
        if kind in SHOWN and isinstance(event.delta, str):
            self._show(TextDelta(text=event.delta))
        elif kind in THOUGHT and isinstance(event.delta, str):
            self._show(ThinkingDelta(text=event.delta))
        elif kind == "response.output_item.done" and event.item:
            self._items[event.output_index] = event.item
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._finish(event.response or event)
        elif kind == "error":
            told = event.error if isinstance(event.error, dict) else {}
            error = {"code": event.code, "message": event.message} | told
            raise make_broken(error, FAULTS.get(error["code"], "overloaded"))
        elif not kind:
            self._add_whole(event)

    def _add_whole(self, event: _Event) -> None:
        if event.output is None and not event.error:
            raise Broken(phrase("fault_senseless", detail="a response"), "malformed")
        self._finish(event)
        for part in self._parts():
            if isinstance(part, Text):
                self._show(TextDelta(text=part.text))
            elif isinstance(part, Thinking) and part.text:
                self._show(ThinkingDelta(text=part.text))

    def _finish(self, response: _Response) -> None:
        if read_overflow(response.error) is not None:
            raise make_broken(response.error, "rejected")
        if response.status == "failed" or response.error:
            code = response.error.get("code") if isinstance(response.error, dict) else ""
            text = read_error_message(response.error)
            raise Broken(phrase("fault_error", detail=text), FAULTS.get(code, "rejected"), 0.5)
        self.ended = True
        self._end = response
        self._model = response.model or self._model
        for index, item in enumerate(response.output or ()):
            self._items.setdefault(index, item)  # a truncated item is only reported at the end

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if self._end is None:
            raise Broken(phrase("fault_cut"))
        parts = tuple(self._parts())
        finish = self._find_finish(parts)
        if finish in ("stop", "tool_calls") and not says_something(parts):
            raise Broken(phrase("fault_empty"), "malformed")
        return ModelReply(
            parts=parts,
            model=self._model,
            provider=self._provider,
            finish=finish,
            usage=_usage(self._end.usage or _Usage()),
        )

    def _find_finish(self, parts: tuple[Part, ...]) -> Finish:
        assert self._end is not None
        if self._end.status == "incomplete":
            why = self._end.incomplete_details
            return "refused" if why and why.reason == "content_filter" else "length"
        return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"

    def _parts(self) -> Iterator[Part]:
        for index, item in sorted(self._items.items()):
            match item.type:
                case "reasoning":
                    yield self._read_thinking(item)
                case "message":
                    text = "".join(piece.text or piece.refusal for piece in item.content or ())
                    if text:
                        yield Text(text=text)
                case "function_call":
                    arguments = item.arguments
                    if not isinstance(arguments, str):
                        arguments = msgspec.json.encode(arguments).decode()
                    yield ToolCall(
                        id=item.call_id or f"{self._made_id}_{index}",
                        name=item.name or "unnamed",
                        arguments=arguments or "{}",
                    )
                case _:
                    pass

    def _read_thinking(self, item: _Item) -> Thinking:
        pieces = item.summary or item.content or ()
        text = "\n\n".join(piece.text for piece in pieces)
        encrypted = item.encrypted_content
        signature = f"{MARK}{item.id}:{encrypted}" if encrypted else None
        return Thinking(text=text, provider=self._provider, signature=signature)


def _usage(usage: _Usage) -> Usage:
    read, written = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=(read.cached_tokens or 0) if read else 0,
        reasoning_tokens=(written.reasoning_tokens or 0) if written else 0,
        written_tokens=(read.cache_write_tokens or 0) if read else 0,
    )
