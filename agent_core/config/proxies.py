"""The proxy through which platforms and models are reached, as the environment names it."""

import logging
import urllib.request
from urllib.parse import urlsplit

log = logging.getLogger("turnkeeper.proxies")

HTTP = ("http", "https")
"""Kinds of proxies that aiohttp speaks to."""


def find_proxy(url: str) -> str | None:
    """Return the URL of the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names for `url`; None
    if there is none, NO_PROXY leaves the host out, it is a SOCKS proxy, or `url` is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    known = urllib.request.getproxies()
    named = known.get(parts.scheme) or known.get("all") or ""
    proxy = named if "://" in named or not named else f"http://{named}"
    scheme = urlsplit(proxy).scheme
    if proxy and scheme not in HTTP:
        log.warning("proxy_not_used", extra={"kind": scheme, "host": parts.hostname})
    return proxy if scheme in HTTP else None
