"""Unexpected failures of a job or a run: how many, and for how long."""

MIN_FAILURES = 3
LONGEST = 3600.0
"""Seconds of failures alone after which it is given up."""


class Failures:
    """Failures of each job and run since it was handled last. Times are in seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, float]] = {}

    def forget(self, key: str) -> None:
        """Note that it was handled."""
        self._known.pop(key, None)

    def note(self, key: str, moment: float) -> bool:
        """Count a failure; return True if it is to be given up."""
        count, since = self._known.get(key, (0, moment))
        self._known[key] = count + 1, since
        if count + 1 < MIN_FAILURES or moment - since < LONGEST:
            return False
        self.forget(key)
        return True
