"""The words and reasoning of an answer, told apart and shown as they come, and the ids of its
calls.

Reasoning may stand between tags in the answer: of servers that do not separate it (LM Studio, vLLM
without a parser of reasoning, older ones of Ollama and llama.cpp, proxies of each protocol). An
answer that begins with an opening tag holds reasoning up to the closing one. Templates that write
the opening tag into the prompt (DeepSeek's R1) leave only the closing one, on a line of its own;
the text before it has been shown as words by then.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.answers.broken import Broken
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
OPENING = ("<think>", "<thinking>", "<thought>", "[THINK]")
_CLOSING = {tag: f"{tag[0]}/{tag[1:]}" for tag in OPENING}
_LONE = "</think>"
_SPACE = re.compile(r"\s*")
_LATE = re.compile(rf"(?:^|\n)[ \t]*{_LONE}[ \t]*(?=\n|$)")


class Said(NamedTuple):
    """A piece of an answer. `restart`: the words so far were reasoning."""

    thought: str = ""
    words: str = ""
    restart: bool = False


class ThoughtSplitter:
    """Splits the pieces of one answer into words and reasoning, as they come."""

    def __init__(self) -> None:
        self._state: Literal["begins", "thinks", "ended", "speaks"] = "begins"
        self._held = ""
        self._opening = ""
        """The tag with which the answer began."""
        self._closing = ""
        """The tag that ended the reasoning, or will; "" if none was seen."""

    def add(self, text: str, before: list[str]) -> Said:
        """Classify `text`; `before` holds the words so far."""
        if self._state == "speaks":
            return self._find_late(text, before) if ">" in text else Said(words=text)
        return self._take(self._held + text)

    def end(self, before: list[str]) -> Said:
        """Return what was held back; `before` holds the words so far. An answer that began with
        reasoning may have more of it, from the beginning of a line on."""
        held, self._held = self._held, ""
        if self._state == "thinks":
            return Said(thought=held)
        if not self._opening:
            return Said(words=held)
        whole = "".join((*before, held))
        words, thought = _split_later(whole, self._opening, self._closing)
        if not thought:
            return Said(words=held)
        return Said(thought=thought, words=words.lstrip(), restart=True)

    def _take(self, text: str) -> Said:
        self._held = ""
        if self._state == "begins":
            begun = text.lstrip()
            tag = next((one for one in OPENING if begun.startswith(one)), "")
            if not tag:
                if any(one.startswith(begun) for one in OPENING):  # only whitespace counts too
                    self._held = text
                    return Said()
                self._state = "speaks"
                return self._find_late(text, [])
            self._state, self._opening, self._closing = "thinks", tag, _CLOSING[tag]
            text = begun.removeprefix(tag)
        thought = ""
        if self._state == "thinks":
            thought, closed, text = text.partition(self._closing)
            if not closed:
                kept = _count_begun(thought, self._closing)
                self._held = thought[len(thought) - kept :]
                return Said(thought=thought[: len(thought) - kept])
            self._state = "ended"
        words = text.lstrip()
        if words:
            self._state = "speaks"
        return Said(thought=thought, words=words)

    def _find_late(self, text: str, before: list[str]) -> Said:
        if self._closing or _LONE not in "".join((*before[-len(_LONE) :], text)):
            return Said(words=text)
        whole = "".join((*before, text))
        found = None if OPENING[0] in whole else _LATE.search(whole)
        if found is None:
            return Said(words=text)
        self._closing = _LONE
        words = whole[found.end() :].lstrip()
        self._state = "speaks" if words else "ended"
        return Said(thought=whole[: found.start()], words=words, restart=True)


def _split_later(whole: str, opening: str, closing: str) -> tuple[str, str]:
    """Return the words, and the reasoning between tags that begin a line outside fences."""
    words, thoughts = [], []
    at = seen = fences = 0
    for one in re.finditer(rf"(?:^|(?<=\n))[ \t]*{re.escape(opening)}", whole):
        if one.end() <= at:
            continue  # within the one before
        fences += whole.count("```", seen, one.start())
        seen = one.start()
        if fences % 2:
            continue
        if (stop := whole.find(closing, one.end())) < 0:
            break
        words.append(whole[at : one.start()])
        thoughts.append(f"\n{whole[one.end() : stop]}")
        behind = _SPACE.match(whole, stop + len(closing))
        at = behind.end() if behind else stop
    return "".join((*words, whole[at:])), "".join(thoughts)


def _count_begun(text: str, tag: str) -> int:
    """Characters at the end of `text` with which `tag` may begin."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)


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
