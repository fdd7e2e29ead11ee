"""How fast Telegram lets a bot write: buckets that refill, and what is said when one is empty."""

import math
import time
from dataclasses import dataclass, field

OVERALL, OVERALL_BURST = 30.0, 30
CHAT, CHAT_BURST = 1.0, 3
GROUP, GROUP_BURST = 20 / 60, 20


class Bucket:
    """`burst` calls at once, then `rate` a second."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = float(burst), time.monotonic()

    def wait(self, now: float) -> float:
        """Seconds until one more is allowed, 0 if it is."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._left >= 1 else (1 - self._left) / self._rate

    def take(self) -> None:
        self._left -= 1


@dataclass
class Limits:
    """One bot's budgets. A refused call costs nothing, one during `retry_after` is noted."""

    refused: int = 0
    early: list[tuple[int, float]] = field(default_factory=list)
    """Calls to a chat that had been told to wait, and how many seconds too early."""
    edits: dict[int, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._all = Bucket(OVERALL, OVERALL_BURST)
        self._chats: dict[int, list[Bucket]] = {}
        self._until: dict[int, float] = {}

    def ask(self, chat: int, *, edit: bool) -> int:
        """Whole seconds to wait before this call may be made; 0 lets it through."""
        now = time.monotonic()
        if now < self._until.get(chat, 0.0):
            self.early.append((chat, self._until[chat] - now))
        if edit:
            self.edits.setdefault(chat, []).append(now)
        buckets = self._chats.setdefault(
            chat,
            [Bucket(CHAT, CHAT_BURST), *([Bucket(GROUP, GROUP_BURST)] if chat < 0 else [])],
        )
        wait = max(bucket.wait(now) for bucket in (self._all, *buckets))
        if wait <= 0:
            for bucket in (self._all, *buckets):
                bucket.take()
            return 0
        self.refused += 1
        self._until[chat] = now + math.ceil(wait)
        return math.ceil(wait)

    def most_edits(self, seconds: float) -> int:
        """The most edits and drafts that one chat got within so many seconds."""
        return max(
            (
                sum(start <= at < start + seconds for at in times)
                for times in self.edits.values()
                for start in times
            ),
            default=0,
        )
