"""Detects a model that goes in circles: the same calls, one error after another.

Uses nothing but the turn's own messages, so that a replay sees the same.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from agent_core.messages import ToolCall, ToolResult

SAME_CALLS = 3
"""Identical batches in a row after which another approach is asked for; again after 6, 12, 24."""
SAME_RESULTS = 12
"""Identical batches in a row with the same results after which the plan has to change."""
ERRORS = 5
"""Rounds in a row in which every call failed, after which the plan has to change."""

VARY = (
    "[Going in circles]\nThat was done before and gave nothing new. Try another way, or answer "
    "with what is known and say what is missing."
)

_TESTS = re.compile(
    r"\b(?:[efz]?grep|rg|ag|ack|diff|cmp|comm|test|which|type|command -[vV]|pgrep|pidof|kill|expr"
    r"|jq|systemctl|dpkg|rpm|find)\b|\[ "
)
"""Programs that say 'no' by ending with 1."""


class Watch:
    """The state of one loop."""

    def __init__(self) -> None:
        self._batch = ""
        self._same = 0
        self._gave: tuple[str, ...] = ()
        self._unchanged = 0
        self._errors: list[str] = []

    def note(
        self, calls: Iterable[ToolCall], results: Iterable[ToolResult]
    ) -> Literal["", "vary", "stuck"]:
        """Note one round. Return whether to ask for another approach, or that the loop is stuck.
        `calls` without those that are repeated by nature."""
        known = tuple(calls)
        batch = _digest(known)
        self._same = self._same + 1 if known and batch == self._batch else 1
        self._batch = batch
        gave = tuple(results)
        contents = tuple(one.content for one in gave)
        unchanged = self._same > 1 and contents == self._gave
        self._unchanged = self._unchanged + 1 if unchanged else 1
        self._gave = contents
        asked = {call.id: call.arguments for call in known}
        failed = [one for one in gave if _has_failed(one, asked.get(one.call_id, ""))]
        if failed and len(failed) == len(gave) and not failed[-1].denied:  # a denial is no failure
            self._errors.append(failed[-1].content)
        else:
            self._errors.clear()
        if len(self._errors) >= ERRORS or self._unchanged >= SAME_RESULTS:
            return "stuck"
        times, rest = divmod(self._same, SAME_CALLS)
        circles = not rest and times and not times & (times - 1)
        return "vary" if circles else ""

    @property
    def why(self) -> str:
        """The problem in one line."""
        if len(self._errors) < ERRORS:
            return f"the same call {self._unchanged} times, with the same result"
        return f"{len(self._errors)} errors in a row, the last: {self._errors[-1][:200]}"


def _has_failed(result: ToolResult, arguments: str) -> bool:
    """Return True for a failed call or command; a search or test without a match ends with 1,
    silently."""
    command = result.command
    if result.error or command is None:
        return result.error
    unmet = command.exit_code == 1 and not command.written and _TESTS.search(arguments)
    return command.failed and not unmet


def _digest(calls: Iterable[ToolCall]) -> str:
    """Return a digest of the batch, independent of the order of arguments."""
    rows = sorted(f"{call.name}\0{_sort_arguments(call.arguments)}" for call in calls)
    return hashlib.sha256("\1".join(rows).encode()).hexdigest()


def _sort_arguments(arguments: str) -> str:
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments
    return msgspec.json.encode(value, order="sorted").decode()
