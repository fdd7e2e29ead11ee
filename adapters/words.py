"""Keys of the fixed texts for states and risks, on platforms that draw cards themselves."""

from typing import Literal

from gateway.texts import Key
from gateway.views import LineState

LINE_WORDS: dict[LineState, Key] = {
    "failed": "line_failed",
    "denied": "line_denied",
    "stopped": "line_stopped",
    "unknown": "line_unknown",
}
"""States of a tool line that are said besides their mark."""
RISKS: dict[Literal["low", "medium", "high"], Key] = {
    "low": "risk_low",
    "medium": "risk_medium",
    "high": "risk_high",
}
