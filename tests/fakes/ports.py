"""Ports for servers that begin anew on the one that they had."""

import atexit
import contextlib
import socket

_reserved = contextlib.ExitStack()
atexit.register(_reserved.close)


def free_port() -> int:
    """A port that nobody else is given as long as this process lives: a server that ends and starts
    again finds it free. Bound, but not listened at, so that servers may (they reuse addresses)."""
    held = _reserved.enter_context(socket.socket())
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    return port
