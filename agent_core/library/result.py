"""The result of a library turn."""

from dataclasses import asdict, dataclass
from typing import Literal

import msgspec

from agent_core.errors import AgentError
from agent_core.library.state import AgentState
from agent_core.messages import Message
from agent_core.models.port import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """The result of a conversation's turn. `cost` in US dollars, None if unknown. `error`: why
    there is no answer."""

    final_response: str
    messages: tuple[Message, ...]
    usage: Usage
    task_id: str
    finish_reason: Literal["stop", "limit", "error"]
    cost: float | None = None
    error: AgentError | None = None

    def to_dict(self) -> dict[str, object]:
        """The same as plain values."""
        return {
            **asdict(self),
            "error": None if self.error is None else str(self.error),
            "messages": msgspec.to_builtins(self.messages),
            "usage": msgspec.to_builtins(self.usage),
        }

    @property
    def state(self) -> AgentState:
        """The agent's state after it."""
        match self.finish_reason:
            case "stop":
                return AgentState.FINISHED
            case "limit":
                return AgentState.IDLE
            case "error":
                return AgentState.ERROR
