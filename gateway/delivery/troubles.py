"""Failures of a conversation's views that may pass: how often, since when, when to try again."""

from agent_core import ambient
from gateway.delivery.holder import Key

FIRST_REST = 0.5
"""Seconds until a view is tried again after its first failure."""
MAX_UNSENT = 86_400.0
"""Seconds that an unreachable platform is tried for one view."""


class ViewTroubles:
    """Failures of each view since it was delivered last."""

    def __init__(self) -> None:
        self._failures: dict[Key, int] = {}
        self._since: dict[Key, float] = {}
        self._rests: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        """Forget all: it was delivered, or given up."""
        for known in (self._failures, self._since, self._rests):
            known.pop(key, None)

    def note(self, key: Key, most: int) -> bool:
        """Count a failure without a reason to hope; True at the last one."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return failures >= most

    def note_untaken(self, key: Key) -> bool:
        """Note that the platform does not take the view now. Return True once that has been so for
        MAX_UNSENT seconds since the first time."""
        now = ambient.monotonic()
        return now - self._since.setdefault(key, now) > MAX_UNSENT

    def rest(self, key: Key, longest: float) -> None:
        """Let this view alone wait, for at most `longest` seconds: its message has trouble, not the
        platform."""
        seconds = FIRST_REST * 2 ** (self._failures.get(key, 1) - 1)
        self._rests[key] = ambient.monotonic() + min(longest, seconds)

    def due(self, key: Key) -> float:
        """`ambient.monotonic()` from which the view may be tried."""
        return self._rests.get(key, 0.0)

    def is_resting(self, key: Key) -> bool:
        """Return True while this view alone waits."""
        return self.due(key) > ambient.monotonic()
