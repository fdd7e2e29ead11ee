"""The clock and new ids for adapters, which know the gateway's vocabulary only."""

from agent_core.ambient import limit, monotonic, new_id, now, secret_id, utc, wait

__all__ = ["limit", "monotonic", "new_id", "now", "secret_id", "utc", "wait"]
