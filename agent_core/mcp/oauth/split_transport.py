"""A transport that reaches one origin directly, all others by a proxy. Imports httpx2."""

import httpx2

from agent_core.models.trust import load_trust


class SplitTransport(httpx2.AsyncBaseTransport):
    """Sends requests to `origin`, as `find_origin` returns it, past the proxy."""

    def __init__(self, origin: str, proxy: httpx2.Proxy) -> None:
        self._origin = origin
        trust = load_trust()
        self._direct = httpx2.AsyncHTTPTransport(verify=trust, trust_env=False)
        self._proxied = httpx2.AsyncHTTPTransport(verify=trust, proxy=proxy, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request directly or by the proxy."""
        own = find_origin(str(request.url)) == self._origin
        return await (self._direct if own else self._proxied).handle_async_request(request)

    async def aclose(self) -> None:
        """Close both routes."""
        await self._direct.aclose()
        await self._proxied.aclose()


def find_origin(url: str) -> str:
    """Scheme, host and port of a URL, the port in any case."""
    parts = httpx2.URL(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.host}:{port}"
