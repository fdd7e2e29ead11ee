"""Slows down wrong tokens and links, by address.

Each wrong attempt costs PAUSE seconds, and BURST of them are free. An address in debt is ignored
until the time has passed. This machine, and an address that has given a right token before, may be
a proxy of many people: right tokens are accepted from there even then.
"""

import ipaddress
from collections import OrderedDict
from functools import lru_cache
from math import ceil

from gateway import clock

BURST = 10
PAUSE = 6.0
"""Seconds that a wrong try costs."""
MAX_ADDRESSES = 10_000
"""Addresses that are remembered; the ones that tried longest ago are forgotten."""
TRUST_SECONDS = 86_400.0


class FailedAttempts:
    """The wrong tries of each address in this process."""

    def __init__(self) -> None:
        self._free_at: OrderedDict[str, float] = OrderedDict()
        self._trusted: OrderedDict[str, float] = OrderedDict()

    def find_wait(self, address: str) -> int:
        """Seconds until the next try of `address` is taken; 0: now."""
        owed = self._free_at.get(_group(address), 0.0) - clock.monotonic()
        return max(0, ceil(owed - BURST * PAUSE))

    def fail(self, address: str) -> None:
        """A try was wrong."""
        now, key = clock.monotonic(), _group(address)
        longest = now + (BURST + 1) * PAUSE
        free_at = min(max(self._free_at.get(key, now), now) + PAUSE, longest)
        _remember(self._free_at, key, free_at)

    def trust(self, address: str) -> None:
        """A try was right."""
        _remember(self._trusted, _group(address), clock.monotonic() + TRUST_SECONDS)

    def is_trusted(self, address: str) -> bool:
        """Return True if right tokens are accepted from `address` even while it is in debt."""
        return is_loopback(address) or self._trusted.get(_group(address), 0) > clock.monotonic()


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """The address or name is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _group(address: str) -> str:
    """Return the addresses of one subscriber: an IPv4 address, or 64 bits of an IPv6 one."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, 64), strict=False))


def _remember(known: OrderedDict[str, float], key: str, value: float) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > MAX_ADDRESSES:
        known.popitem(last=False)
