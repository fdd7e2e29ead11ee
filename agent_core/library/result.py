"""What a turn of the library gives back, and what an agent is at. Light: it is imported before the
first turn is wanted."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from agent_core.messages import Message
    from agent_core.models.port import Usage


class AgentState(StrEnum):
    """What an agent is at. After a turn that used up its rounds it is IDLE again, with a summary
    for an answer; after any other it is FINISHED, or ERROR where no answer came."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a conversation's turn ended. `cost` is in US dollars, None where it is not known."""

    final_response: str
    messages: "tuple[Message, ...]"
    usage: "Usage"
    task_id: str
    finish_reason: Literal["stop", "limit", "error"]
    cost: float | None = None

    def to_dict(self) -> dict[str, object]:
        """The same as plain values."""
        import msgspec

        return {
            **asdict(self),
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
