"""What a turn of the library gives back."""

from dataclasses import asdict, dataclass
from typing import Literal

import msgspec

from agent_core.errors import AgentError
from agent_core.library.state import AgentState
from agent_core.messages import Message
from agent_core.models.port import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """How a conversation's turn ended. `cost` is in US dollars, None where it is not known.
    `error`: why no answer came, where none did."""

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
        """What the agent is at after it."""
        match self.finish_reason:
            case "stop":
                return AgentState.FINISHED
            case "limit":
                return AgentState.IDLE
            case "error":
                return AgentState.ERROR
