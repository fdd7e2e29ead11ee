"""How often Slack takes a call: tiers by method in the workspace, new messages by channel."""

import time
from dataclasses import dataclass, field

TIERS = {
    "chat.startStream": 20, "chat.stopStream": 20, "chat.update": 50, "chat.appendStream": 100,
    "agents.sessions.setStatus": 50, "reactions.add": 50, "reactions.remove": 20, "conversations.history": 50,
    "conversations.replies": 50, "users.info": 100, "views.publish": 100,
}  # fmt: skip
"""Calls a minute."""
POSTS = 60
"""New messages a minute and channel."""
UNDER_WAY = 0.05
"""Seconds in which a call may arrive that was made before its caller was told to wait."""


@dataclass
class Limits:
    """`scale`: how many times as fast as in life. A call during `Retry-After` is noted."""

    scale: float = 1.0
    refused: int = 0
    early: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left: dict[tuple[str, str], tuple[float, float]] = {}
        self._told: dict[tuple[str, str], tuple[float, float]] = {}

    def ask(self, method: str, channel: str) -> float:
        """Seconds to wait before this call may be made; 0 lets it through."""
        posts = method == "chat.postMessage"
        most = POSTS if posts else TIERS.get(method, 0)
        if not most:
            return 0.0
        key, now = (method, channel if posts else ""), time.monotonic()
        told, until = self._told.get(key, (0.0, 0.0))
        if told + UNDER_WAY < now < until:
            self.early.append(method)
        rate, burst = most / 60 * self.scale, max(3.0, most / 6)
        left, at = self._left.get(key, (burst, now))
        left = min(burst, left + (now - at) * rate)
        wait = 0.0 if left >= 1 else (1 - left) / rate
        self._left[key] = (left if wait else left - 1, now)
        if wait:
            self.refused += 1
            self._told[key] = (now, now + wait)
        return wait
