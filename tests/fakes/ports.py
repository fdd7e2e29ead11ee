"""Ports for servers that begin anew on the one that they had."""

import socket

_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody else is given as long as this process lives: a server that ends and starts
    again finds it free. Bound, but not listened at, so that servers may (they reuse addresses)."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _reserved.append(held)
    port: int = held.getsockname()[1]
    return port
