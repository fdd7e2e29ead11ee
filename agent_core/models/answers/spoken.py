"""The words and reasoning of an answer, told apart and shown as they come, and the ids of its
calls."""

from collections.abc import Iterable, Iterator

import msgspec

from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.inline_thoughts import Said, ThoughtSplitter
from agent_core.models.port import (
    Finish,
    ModelReply,
    ModelRequest,
    OnDelta,
    Restarted,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agent_core.phrases import phrase

INLINE = "inline"
"""Signs reasoning that stood in the answer: it does not go back, as templates drop it."""


class SpokenText:
    """One text of an answer, without the reasoning that stands in it. `all_texts`: those of the
    answer, which are shown anew where the words of one turn out to be reasoning; `has_any`: a piece
    has come."""

    def __init__(self, show: OnDelta, all_texts: "list[SpokenText]") -> None:
        self._show, self._all = show, all_texts
        self._all.append(self)
        self._splitter = ThoughtSplitter()
        self.has_any = False
        self._words: list[str] = []
        self._thoughts: list[str] = []

    @property
    def words(self) -> str:
        """The words so far."""
        return "".join(self._words)

    @property
    def thought(self) -> str:
        """The reasoning among them so far."""
        return "".join(self._thoughts)

    def say(self, text: str | None) -> None:
        """Add a piece of the text."""
        if text:
            self.has_any = True
            self._take(self._splitter.add(text, self._words))

    def think(self, text: str) -> None:
        """Add a piece of reasoning."""
        if text:
            self._thoughts.append(text)
            self._show(ThinkingDelta(text=text))

    def end(self) -> None:
        """Take the text as whole."""
        self._take(self._splitter.end(self._words))

    def list_parts(self, provider: str) -> Iterator[Part]:
        """Yield the reasoning and the words, as far as there are any."""
        if self._thoughts:
            yield Thinking(text=self.thought, provider=provider, signature=INLINE)
        if words := self.words:
            yield Text(text=words)

    def _take(self, said: Said) -> None:
        if said.restart:
            self._words.clear()
            self._show(Restarted())
        self.think(said.thought)
        if said.words:
            self._words.append(said.words)
        for text in self._all if said.restart else ():
            if text.words:
                self._show(TextDelta(text=text.words))
        if said.words and not said.restart:
            self._show(TextDelta(text=said.words))


def split_text(text: str, provider: str) -> Iterator[Part]:
    """Yield the parts of a text that came as a whole."""
    spoken = SpokenText(lambda delta: None, [])
    spoken.say(text)
    spoken.end()
    yield from spoken.list_parts(provider)


class SpokenAnswer:
    """The words and reasoning of a streamed answer with one text, shown as they come; `model` and
    `usage` as far as known."""

    def __init__(self, request: ModelRequest, provider: str, show: OnDelta) -> None:
        self.model, self.usage = request.model, Usage()
        self._provider, self._show = provider, show
        self._text = SpokenText(show, [])
        self._thinking: list[str] = []

    def say(self, text: str | None) -> None:
        """Add words of the answer, and reasoning among them."""
        self._text.say(text)

    def think(self, text: str | None) -> None:
        """Words of its reasoning."""
        if text:
            self._thinking.append(text)
            self._show(ThinkingDelta(text=text))

    def think_inline(self, text: str) -> None:
        """Words of reasoning that stood in the answer's content."""
        self._text.think(text)

    def make_reply(
        self, finish: Finish, calls: tuple[Part, ...], signature: str | None = None
    ) -> ModelReply:
        """The whole answer, ended as the provider says; `signature`: of its reasoning. Raises
        Broken if it says nothing."""
        self._text.end()
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "stop"
        text, inline = self._text.words, self._text.thought
        if not text.strip() and finish == "stop":
            raise Broken(phrase("fault_empty"), "malformed")
        parts: list[Part] = []
        if thought := "".join(self._thinking) + inline:
            signature = INLINE if inline else signature
            parts.append(Thinking(text=thought, provider=self._provider, signature=signature))
        if text:
            parts.append(Text(text=text))
        return ModelReply(
            parts=(*parts, *calls),
            model=self.model,
            provider=self._provider,
            finish=finish,
            usage=self.usage,
        )


def says_something(parts: Iterable[Part]) -> bool:
    """Return True if the `parts` of an answer contain a word or a call."""
    return any(
        isinstance(part, ToolCall) or (isinstance(part, Text) and bool(part.text.strip()))
        for part in parts
    )


def write_arguments(given: object) -> str:
    """Return a call's arguments, or a piece of them, as JSON text, "" for none: some servers give
    the object itself."""
    if isinstance(given, str):
        return given
    return "" if given is None else msgspec.json.encode(given).decode()


def name_calls(given: Iterable[str], request: ModelRequest) -> Iterator[str]:
    """Yield ids for an answer's calls: the `given` ones, and for a missing or repeated one an id
    that is the same whenever the call is made again."""
    seen: set[str] = set()
    for index, one in enumerate(given):
        name = one if one and one not in seen else f"call_{len(request.messages)}_{index}"
        seen.add(name)
        yield name
