"""The environment's proxy for adapters, which know the gateway's vocabulary only."""

from agent_core.config.proxies import find_proxy

__all__ = ["find_proxy"]
