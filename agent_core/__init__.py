"""An agent as a library: it plans, acts, asks and remembers, and it knows no chat."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_core.agent import Agent
    from agent_core.library.agentic import AgenticLoop
    from agent_core.library.result import AgentResult
    from agent_core.library.state import AgentState
    from agent_core.tools.decorator import tool

__all__ = ["Agent", "AgentState", "AgenticLoop", "AgentResult", "tool"]


def __getattr__(name: str) -> object:
    """Import on first use: a gateway that needs one module of ours does not pay for all."""
    if name == "Agent":
        from agent_core.agent import Agent

        return Agent
    if name == "AgentState":
        from agent_core.library.state import AgentState

        return AgentState
    if name == "AgentResult":
        from agent_core.library.result import AgentResult

        return AgentResult
    if name == "AgenticLoop":
        from agent_core.library.agentic import AgenticLoop

        return AgenticLoop
    if name == "tool":
        from agent_core.tools.decorator import tool

        return tool
    raise AttributeError(name)
