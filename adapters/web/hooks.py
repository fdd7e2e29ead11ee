"""`POST /hooks/<name>`: calls from outside. Nobody signs in here; each call is signed by itself, so
neither cookie nor host is looked at."""

from aiohttp import web

from adapters.web.wire import answer, chunks, error
from gateway.errors import StoreFailed
from gateway.ports import WebhookReceiver

MAX_BODY = 1 << 20
"""Bytes of a call."""


def hook_routes(hooks: WebhookReceiver) -> list[web.AbstractRouteDef]:
    """The route; any other method is refused without a look at the call."""

    async def call_hook(request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        if body is None:
            return error(413, "This is more than 1 MB. Send less.")
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            done = await hooks.call(request.match_info["name"], headers, body)
        except StoreFailed:
            return error(503, "The gateway could not keep this. Nothing was begun; call it again.")
        return error(done.status, done.text) if done.text else answer(done, done.status)

    return [web.post("/hooks/{name:[a-z0-9-]{1,31}}", call_hook)]


async def _body(request: web.Request) -> bytes | None:
    """Return the whole body, None if it is too long, without reading more."""
    if (request.content_length or 0) > MAX_BODY:
        return None
    data = bytearray()
    async for chunk in chunks(request):
        data += chunk
        if len(data) > MAX_BODY:
            return None
    return bytes(data)
