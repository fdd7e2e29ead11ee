"""Reads answers of OpenAI's Responses API, event by event or in one piece.

The text of the deltas is shown; the answer is made of the finished items, and of the response at
the end; of the deltas only where these hold nothing.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.answers.broken import Broken, make_broken
from agent_core.models.answers.details import EventDecoder, find_finish, read_count, read_ending
from agent_core.models.answers.spoken import (
    SpokenText,
    name_calls,
    says_something,
    split_text,
    write_arguments,
)
from agent_core.models.port import (
    Finish,
    ModelReply,
    ModelRequest,
    OnDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agent_core.phrases import phrase

MARK = "responses:"
"""Begins the signature of an item of reasoning; its id and its encrypted content follow."""

STATUSES = {f"response.{one}": one for one in ("completed", "incomplete", "failed")}
SHOWN = ("response.output_text.delta", "response.refusal.delta")
ARGUMENTS = "response.function_call_arguments.delta"
WHOLE = ("response.output_text.done", "response.function_call_arguments.done")
"""Repeat what the deltas said; some servers send them alone."""
THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class _Content(Struct):
    type: str = ""
    text: str | None = ""
    refusal: str | None = ""


class _Item(Struct):
    """One item of the output."""

    type: str = ""
    id: str | None = ""
    call_id: str | None = ""
    name: str | None = ""
    arguments: object = ""
    content: list[_Content] | None = None
    summary: list[_Content] | None = None
    encrypted_content: str | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    model: str | None = ""
    status: str | None = None
    output: list[_Item] | None = None
    usage: object = None
    error: object = None
    incomplete_details: _Incomplete | None = None


class _Event(_Response):
    """One event; an answer in one piece is a response itself, without a type."""

    type: str = ""
    output_index: int = 0
    delta: object = None
    text: str | None = ""
    arguments: object = None
    item: _Item | None = None
    response: _Response | None = None
    code: str | None = None
    message: str | None = ""


_decode = EventDecoder(_Event, "a response event").decode


class ResponsesReader:
    """Folds the events of one answer."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.ended = False
        self._provider = provider
        self._show = show
        self._request = request
        self._model = request.model
        self._items: dict[int, _Item] = {}
        self._begun: dict[int, _Item] = {}
        self._pieces: dict[int, list[str]] = {}
        self._spoken: dict[int, SpokenText] = {}
        self._texts: list[SpokenText] = []
        self._end: _Response | None = None

    def add(self, data: bytes) -> None:
        """Take in one event; raises Broken."""
        if data.startswith(b"[DONE]"):
            return
        event = _decode(data)
        kind = event.type
        if kind in (*SHOWN, ARGUMENTS) and isinstance(event.delta, str):
            self._add_piece(event.output_index, event.delta, shown=kind in SHOWN)
        elif kind in WHOLE:
            if event.output_index not in self._pieces:
                said = event.text or write_arguments(event.arguments)
                self._add_piece(event.output_index, said, shown=bool(event.text))
        elif kind in THOUGHT and isinstance(event.delta, str):
            self._show(ThinkingDelta(text=event.delta))
        elif kind in ("response.output_item.added", "response.output_item.done") and event.item:
            ended = kind == "response.output_item.done"
            (self._items if ended else self._begun)[event.output_index] = event.item
        elif kind in STATUSES:
            last = event.response or event
            status = "failed" if kind == "response.failed" else last.status or STATUSES[kind]
            self._finish(replace(last, status=status))
        elif kind == "error":
            error = {"code": event.code, "message": event.message or ""}
            told = event.error if isinstance(event.error, dict) else {"message": event.error}
            raise make_broken(error | told if event.error else error, "overloaded")
        elif not kind:
            self._add_whole(event)

    def _add_piece(self, index: int, text: str, *, shown: bool) -> None:
        self._pieces.setdefault(index, []).append(text)
        if not shown:
            return
        if index not in self._spoken:
            self._spoken[index] = SpokenText(self._show, self._texts)
        self._spoken[index].say(text)

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
        if response.status == "failed" or response.error:
            raise make_broken(response.error, "rejected")
        self.ended = True
        self._end = response
        self._model = response.model or self._model
        for index, item in enumerate(response.output or ()):
            self._items.setdefault(index, item)  # a truncated item is only reported at the end
        for index, item in self._items.items():
            if item.type == "function_call" and not item.arguments:
                self._items[index] = self._join_pieces(index, item)
        if not any(item.type in ("message", "function_call") for item in self._items.values()):
            said = {*self._pieces, *(n for n, item in self._begun.items() if item.arguments)}
            self._items |= {n: self._join_pieces(n, self._begun.get(n)) for n in said}

    def _join_pieces(self, index: int, item: _Item | None) -> _Item:
        """The item of which only the deltas came: no server has to repeat them."""
        said = "".join(self._pieces.get(index, ()))
        if item is not None and item.type == "function_call":
            return replace(item, arguments=said or item.arguments)
        return _Item(type="message", content=[_Content(text=said)])

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken if it was cut or says nothing."""
        if self._end is None:
            raise Broken(phrase("fault_cut"))
        for spoken in self._texts:
            spoken.end()
        parts = tuple(self._parts())
        finish = self._find_finish(parts)
        if finish in ("stop", "tool_calls") and not says_something(parts):
            raise Broken(phrase("fault_empty"), "malformed")
        return ModelReply(
            parts=parts,
            model=self._model,
            provider=self._provider,
            finish=finish,
            usage=_usage(self._end.usage),
        )

    def _find_finish(self, parts: tuple[Part, ...]) -> Finish:
        assert self._end is not None
        if self._end.status == "incomplete":
            why = self._end.incomplete_details
            ending = read_ending(why.reason if why else None)
            return "refused" if find_finish(ending) == "refused" else "length"
        return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"

    def _parts(self) -> Iterator[Part]:
        items = [item for _, item in sorted(self._items.items())]
        calls = (item.call_id or "" for item in items if item.type == "function_call")
        names = name_calls(calls, self._request)
        for item in items:
            match item.type:
                case "reasoning":
                    yield self._read_thinking(item)
                case "message":
                    text = "".join(
                        piece.text or piece.refusal or "" for piece in item.content or ()
                    )
                    yield from split_text(text, self._provider)
                case "function_call":
                    arguments = write_arguments(item.arguments) or "{}"
                    name = item.name or "unnamed"
                    yield ToolCall(id=next(names), name=name, arguments=arguments)
                case _:
                    pass

    def _read_thinking(self, item: _Item) -> Thinking:
        pieces = item.summary or item.content or ()
        text = "\n\n".join(piece.text or "" for piece in pieces)
        encrypted = item.encrypted_content
        signature = f"{MARK}{item.id or ''}:{encrypted}" if encrypted else None
        return Thinking(text=text, provider=self._provider, signature=signature)


def _usage(usage: object) -> Usage:
    return Usage(
        input_tokens=read_count(usage, "input_tokens"),
        output_tokens=read_count(usage, "output_tokens"),
        cached_tokens=read_count(usage, "input_tokens_details", "cached_tokens"),
        reasoning_tokens=read_count(usage, "output_tokens_details", "reasoning_tokens"),
        written_tokens=read_count(usage, "input_tokens_details", "cache_write_tokens"),
    )
