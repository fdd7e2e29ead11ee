"""The port to models: requests and answers."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from agent_core.messages import Message, Part
from agent_core.models.providers import Effort

ToolChoice = Literal["auto", "none", "required"]
Finish = Literal["stop", "tool_calls", "length", "refused"]


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One model call. Each request of a conversation begins with the whole previous one."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    cache_key: str = ""
    """Same for all calls of a conversation: routes them to the provider's same prompt cache."""
    retries: int | None = None
    """Tries after the first one; None: as the provider is set up."""
    effort: Effort | None = None
    """The reasoning effort; None: the model's default."""
    pictures: Mapping[str, str] = {}
    """The pictures in `messages` that the model can be shown, by `ref`, in base64."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one call. `input_tokens` includes cached ones, and the `written_tokens` that the
    provider put into its cache, if it tells."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    """US dollars, None where the price is not known."""
    written_tokens: int = 0


class ModelReply(Struct, frozen=True, kw_only=True):
    """A complete answer: thinking, text and tool calls in the order they came."""

    parts: tuple[Part, ...]
    model: str
    provider: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    nth: int = 0
    """The number of its model call within the turn, once recorded."""
    instead_of: str = ""
    """The provider/model that was asked first, where another one answered."""
    prefix: str = ""
    """Identifies the start of the request: see `prefix_hash`."""
    cut_call: str = ""
    """The tool of a call that was cut off in its arguments, which is left out of `parts`."""
    flagged: str = ""
    """The guardrails' scanner that it set off; with the finish `refused` it was blocked."""


class TextDelta(Struct, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(Struct, frozen=True, kw_only=True, tag_field="kind", tag="thinking"):
    """A piece of the reasoning."""

    text: str


class Restarted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="restarted"):
    """The streamed text so far is void: the answer starts again."""


Delta: TypeAlias = TextDelta | ThinkingDelta | Restarted
OnDelta: TypeAlias = Callable[[Delta], None]

Permit: TypeAlias = Callable[[], Awaitable[None]]
"""Waits until a call may begin; raises why it may not."""

asker_permit: ContextVar[Permit | None] = ContextVar("asker_permit", default=None)
"""The permit of whoever asks a model, in its task."""


async def permit_request(request: object = None) -> None:
    """Wait for the asker's permit, before each attempt of a request: in the pause before a retry
    the process may have stood still, and another one may have taken the turn over."""
    if (permit := asker_permit.get()) is not None:
        await permit()


class Model(Protocol):
    """One provider. `complete` returns the whole answer and calls `on_delta` while it comes in. It
    raises ModelFailed and nothing else; it retries calls that gave nothing yet itself."""

    provider: str

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply: ...

    async def close(self) -> None: ...
