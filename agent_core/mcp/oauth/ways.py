"""Two routes for one HTTP client: directly to one origin, by a proxy to others. Imports httpx2."""

import httpx2

from agent_core.models.trust import load_trust


class TwoWays(httpx2.AsyncBaseTransport):
    """`origin` as `find_origin` returns it."""

    def __init__(self, origin: str, proxy: httpx2.Proxy) -> None:
        self._origin = origin
        trust = load_trust()
        self._straight = httpx2.AsyncHTTPTransport(verify=trust, trust_env=False)
        self._guarded = httpx2.AsyncHTTPTransport(verify=trust, proxy=proxy, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it its way."""
        own = find_origin(str(request.url)) == self._origin
        return await (self._straight if own else self._guarded).handle_async_request(request)

    async def aclose(self) -> None:
        """Close both."""
        await self._straight.aclose()
        await self._guarded.aclose()


def find_origin(url: str) -> str:
    """Scheme, host and port of a URL, the port in any case."""
    parts = httpx2.URL(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.host}:{port}"
