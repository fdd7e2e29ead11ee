"""An agent as a library: it plans, acts, asks and remembers, and it knows no chat."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_core.agent import Agent, Result
    from agent_core.tools.decorator import tool

__all__ = ["Agent", "Result", "tool"]


def __getattr__(name: str) -> object:
    """Import on first use: a gateway that needs one module of ours does not pay for all."""
    if name in ("Agent", "Result"):
        from agent_core import agent

        return getattr(agent, name)
    if name == "tool":
        from agent_core.tools.decorator import tool

        return tool
    raise AttributeError(name)
