"""Bounds for work that meets a shortage of the machine: it passes, but is not retried for ever."""

from agent_core import ambient
from agent_core.errors import is_shortage

LONGEST = 3_600.0
"""Seconds for which one piece of work may meet shortages before it is given up."""
APART = 300.0
"""Seconds after which a shortage is another one: tries follow each other faster."""
MAX_REMEMBERED = 1_000
"""Pieces of work whose shortages are known; the oldest is forgotten first."""


class Shortages:
    """First and last shortage, by the name of the work."""

    def __init__(self) -> None:
        self._met: dict[str, tuple[float, float]] = {}

    def should_retry(self, work: str, error: BaseException) -> bool:
        """Note that `work` met `error`. Return True if it is a shortage, and `work` is to be
        retried."""
        if not is_shortage(error):
            return False
        now = ambient.monotonic()
        since, last = self._met.pop(work, (now, now))
        since = now if now - last > APART else since
        if now - since >= LONGEST:
            return False
        if len(self._met) >= MAX_REMEMBERED:
            del self._met[next(iter(self._met))]
        self._met[work] = since, now
        return True
