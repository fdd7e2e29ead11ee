"""Separates reasoning that a model wrote into its answer, between tags.

Such answers come from servers that do not separate it (LM Studio, vLLM without a parser of
reasoning, older ones of Ollama and llama.cpp). An answer that begins with an opening tag holds
reasoning up to the closing one. Templates that write the opening tag into the prompt (DeepSeek's
R1) leave only the closing one, on a line of its own; the text before it has been shown as words by
then.
"""

import re
from typing import Literal, NamedTuple

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
