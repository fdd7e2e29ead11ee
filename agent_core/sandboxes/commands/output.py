"""Bounded output of a command: its beginning, its end, and a count of the rest."""

import codecs
from collections.abc import Callable

HALF = 500_000
"""Bytes that are kept of the output's beginning, and of its end."""
HALF_BEHIND = 50_000
"""The same for a background command."""
LIVE = 200_000
"""Characters that people see while it runs."""
FLOOD = 64_000_000
"""Bytes of output after which the process is stopped."""
DRAIN = 1.0
"""Seconds for a killed command to be gone."""


class OutputBuffer:
    """The output of a process: a head, a tail, and a count of the rest. `half`: bytes of each."""

    def __init__(self, half: int, live: Callable[[str], None] | None = None) -> None:
        self.total = 0
        self._half = half
        self._head = bytearray()
        self._tail = bytearray()
        self._live = live
        self._left = LIVE
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Keep what fits, and show it."""
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
        """Show further output to `live` too."""
        self._live = live

    def end(self) -> None:
        """Do nothing: the end of the output does not matter here."""

    def text(self) -> str:
        """Return the output, or its beginning and end with the count of omitted bytes."""
        tail = bytes(self._tail[-self._half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head, end = (part.decode("utf-8", "replace") for part in (bytes(self._head), tail))
        why = "; stopped, it wrote too much" if self.total > FLOOD else ""
        return f"{head}\n[…]\n{end}\n[{missing:,} bytes in the middle were left out{why}]"
