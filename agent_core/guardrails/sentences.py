"""Releases a stream of text by sentences: each is scanned before any word of it that matters is
shown."""

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
"""Returns a sentence as people may see it, None if neither it nor what follows may be seen."""
HoldsSentence: TypeAlias = Callable[[str], bool]
"""True of words that a scanner could take offence at: the sentence waits for its end with them."""
_LUMP = 12
"""Characters that are looked at and shown at once."""
_OVERLAP = 16
"""Characters before new ones with which they may form a word."""


class SentenceGate:
    """One text on its way to people; `show` receives it word by word, until `holds` says of a word
    that its sentence must be complete first. `blocked`: the rest was withheld."""

    def __init__(
        self, scan: ScanSentence, holds: HoldsSentence, show: Callable[[str], None]
    ) -> None:
        self._scan, self._holds, self._show = scan, holds, show
        self._held = ""
        self._seen = 0  # the sentence is not complete
        self._shown = 0  # it is already visible
        self._waits = False
        self.blocked = False

    def add(self, text: str) -> None:
        """Add text. The result is the same for any division into pieces."""
        for at in range(0, len(text), MOST):  # each sentence copies what is held behind it
            if self.blocked:
                return
            self._held += text[at : at + MOST]
            while not self.blocked and (end := self._find_end()):
                self._pass(end)
        if not self.blocked and not self._waits:
            self._pass_words()

    def end(self) -> None:
        """End the text."""
        if self._held and not self.blocked:
            self._pass(len(self._held))

    def drop(self) -> None:
        """Discard the text so far."""
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
        """Release the whole words of an unfinished sentence, unless they must wait for its end."""
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
        """Return the end of the first held sentence, 0 if it is unfinished."""
        held = self._held
        for found in _END.finditer(held, self._seen, MOST):
            begins = max(0, found.end() - 12)
            if found[0] != "." or _SHORT.search(held, begins, found.end()) is None:
                return found.end()
        self._seen = max(0, min(len(held), MOST) - 6)
        return _find_gap(held) if len(held) > MOST else 0


def _find_gap(text: str) -> int:
    """Return a blank in a sentence that is too long, preferably not between digits."""
    for at in range(MOST, MOST // 2, -1):
        if text[at].isspace() and not (
            text[at - 1].isdecimal() or text[at + 1 : at + 2].isdecimal()
        ):
            return at
    return MOST
