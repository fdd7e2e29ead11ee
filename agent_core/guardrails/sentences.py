"""Lets a stream of text pass by sentences: each is scanned before anybody sees a word of it that
could matter."""

import re
from collections.abc import Callable
from typing import TypeAlias

MOST = 400
"""Characters that wait for the end of their sentence; then they are scanned as they are."""
_END = re.compile(r"\n|[.!?…][\"'”’»)\]*_]{0,4}(?=\s)|[。！？]")
_SHORT = re.compile(
    r"(?:\b(?:tel|nr|no|st|dr|mr|mrs|ms|prof|ca|bzw|etc|vgl|inkl|str|sra|sr|vs|approx|fig|p|e\.g|"
    r"i\.e"
    r"|z\.\s?b|d\.\s?h|u\.\s?a|p\.\s?ej|env)|\b\w|\d)\.\Z",
    re.IGNORECASE,
)

ScanSentence: TypeAlias = Callable[[str], str | None]
"""A sentence as people may see it, None if neither it nor what follows may be seen."""
HoldsSentence: TypeAlias = Callable[[str], bool]
"""True of words that a scanner could take offence at: the sentence waits for its end with them."""
_LUMP = 12
"""Characters that are looked at and shown at once."""
_OVERLAP = 16
"""Characters before new ones with which those may make a word of several."""


class SentenceGate:
    """One text on its way to people; `show` gets what may be seen of it, word by word until `holds`
    says of one that its sentence has to be whole. `blocked`: the rest was kept back."""

    def __init__(
        self, scan: ScanSentence, holds: HoldsSentence, show: Callable[[str], None]
    ) -> None:
        self._scan, self._holds, self._show = scan, holds, show
        self._held = ""
        self._seen = 0  # of what is held: no sentence ends in it
        self._shown = 0  # of what is held: people see it
        self._waits = False
        self.blocked = False

    def add(self, text: str) -> None:
        """More of it. What comes in pieces passes as what comes at once does."""
        if self.blocked:
            return
        self._held += text
        while not self.blocked and (end := self._find_end()):
            self._pass(end)
        if not self.blocked and not self._waits:
            self._pass_words()

    def end(self) -> None:
        """Nothing more comes."""
        if self._held and not self.blocked:
            self._pass(len(self._held))

    def drop(self) -> None:
        """What came so far is void."""
        self._forget("")
        self.blocked = False

    def _forget(self, rest: str) -> None:
        self._held, self._seen, self._shown, self._waits = rest, 0, 0, False

    def _pass(self, end: int) -> None:
        sentence, shown = self._held[:end], self._shown
        self._forget(self._held[end:])
        text = self._scan(sentence)
        if text is None:
            self.blocked = True
        elif text[shown:]:
            self._show(text[shown:])

    def _pass_words(self) -> None:
        """The whole words of a sentence that goes on, unless they have to wait for its end."""
        held, shown = self._held, self._shown
        end = held.rfind(" ")
        if end - shown < _LUMP:
            return
        if self._holds(held[max(0, shown - _OVERLAP) :]):
            self._waits = True
            return
        self._shown = end
        self._show(held[shown:end])

    def _find_end(self) -> int:
        """Where the first sentence of what is held ends, 0 if it does not yet."""
        held = self._held
        for found in _END.finditer(held, self._seen, MOST):
            begins = max(0, found.end() - 12)
            if found[0] != "." or _SHORT.search(held, begins, found.end()) is None:
                return found.end()
        self._seen = max(0, min(len(held), MOST) - 6)
        return _find_gap(held) if len(held) > MOST else 0


def _find_gap(text: str) -> int:
    """A blank in a sentence that is too long, best one that stands not between digits."""
    for at in range(MOST, MOST // 2, -1):
        if text[at].isspace() and not (
            text[at - 1].isdecimal() or text[at + 1 : at + 2].isdecimal()
        ):
            return at
    return MOST
