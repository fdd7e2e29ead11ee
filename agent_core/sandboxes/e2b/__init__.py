"""Sandboxes by E2B, on machines of its own: the extra `e2b`."""
