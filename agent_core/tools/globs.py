"""Matches glob patterns from others in linear time.

Part by part with two pointers, and within a part without backtracking: a pattern of stars against a
long name would otherwise take exponential time, and block all threads meanwhile.
"""

import fnmatch
import re

from agent_core.errors import ToolFailed

MAX_LENGTH = 400
"""Characters of a pattern."""
MAX_WILDCARDS = 24
MAX_DEPTH = 100
"""Folders below each other that are walked."""


class Glob:
    """A pattern over relative paths. `*` and `?` stay within a part, `**` is any number of parts;
    `[…]` counts only with `classes`. ToolFailed if it is too long or too wild."""

    def __init__(self, pattern: str, *, classes: bool = False) -> None:
        words = [part for part in pattern.split("/") if part not in ("", ".")]
        if len(pattern) > MAX_LENGTH or pattern.count("*") + pattern.count("?") > MAX_WILDCARDS:
            raise ToolFailed("The pattern is too long or has too many wildcards. Simplify it.")
        self._parts: list[re.Pattern[str] | None] = []
        for word in words:
            if set(word) == {"*"} and len(word) > 1:
                if not self._parts or self._parts[-1] is not None:
                    self._parts.append(None)
            else:
                self._parts.append(_compile(word, classes))
        if self._parts and self._parts[-1] is None:
            self._parts.append(_compile("*", classes))
        deep = any(part is None for part in self._parts)
        self.depth = MAX_DEPTH if deep else max(0, len(self._parts) - 1)
        """Maximum depth of a matching path below the start."""

    def fits(self, path: str) -> bool:
        """True if all of `path` fits."""
        names, parts = path.split("/"), self._parts
        at = part = 0
        star = -1
        kept = 0
        while at < len(names):
            more = part < len(parts)
            if more and (wanted := parts[part]) is None:
                star, kept = part, at
                part += 1
            elif more and wanted is not None and wanted.match(names[at]):
                at += 1
                part += 1
            elif star >= 0:
                kept += 1
                at, part = kept, star + 1
            else:
                return False
        return all(rest is None for rest in parts[part:])


def _compile(word: str, classes: bool) -> re.Pattern[str]:
    """Compile fnmatch's expression: its groups are atomic, so it scans the name once a star."""
    return re.compile(fnmatch.translate(word if classes else word.replace("[", "[[]")))
