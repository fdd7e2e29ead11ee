"""Whom connections to providers trust."""

import ssl
from functools import cache

import httpx2


@cache
def load_trust() -> ssl.SSLContext:
    """The authorities of this machine (SSL_CERT_FILE), read once: a client that reads them for
    itself holds everything up for tens of milliseconds."""
    return httpx2.create_ssl_context()
