"""What a command writes, bounded: its beginning, its end, and a count of the rest."""

import codecs
from collections.abc import Callable

HALF = 500_000
"""Bytes that are kept of the output's beginning, and of its end."""
HALF_BEHIND = 50_000
"""The same of a command that nobody waits for."""
LIVE = 200_000
"""Characters that people see while it runs."""
FLOOD = 64_000_000
"""Bytes of output after which the process is stopped."""
DRAIN = 1.0
"""Seconds that a killed command gets to be gone."""


class OutputBuffer:
    """What a process writes: a head, a tail, and a count of the rest. `half`: bytes of each."""

    def __init__(self, half: int, live: Callable[[str], None] | None = None) -> None:
        self.total = 0
        self._half = half
        self._head = bytearray()
        self._tail = bytearray()
        self._live = live
        self._left = LIVE
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Keep what fits, show what fits."""
        self.total += len(data)
        space = self._half - len(self._head)
        self._head += data[:space]
        self._tail += data[max(0, space) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._live and self._left > 0:
            text = self._decoder.decode(data)[: self._left]
            self._left -= len(text)
            self._live(text if self._left else f"{text}\n[more is not shown while it runs]\n")

    def show(self, live: Callable[[str], None]) -> None:
        """What comes from now on is shown to `live` too."""
        self._live = live

    def end(self) -> None:
        """Nothing depends on it."""

    def text(self) -> str:
        """All, or its beginning and end with the count of what is missing."""
        tail = bytes(self._tail[-self._half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head, end = (part.decode("utf-8", "replace") for part in (bytes(self._head), tail))
        why = "; stopped, it wrote too much" if self.total > FLOOD else ""
        return f"{head}\n[…]\n{end}\n[{missing:,} bytes in the middle were left out{why}]"
