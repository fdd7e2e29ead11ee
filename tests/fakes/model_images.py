"""Image generations as OpenAI answers them: a picture in base64, and no field that it does not know."""

import base64

from aiohttp import web

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One point, as PNG."""
_FIELDS = {
    *("model", "prompt", "n", "size", "quality", "output_format", "output_compression"),
    *("background", "moderation", "user"),
}
_SIZES = {"1024x1024", "1536x1024", "1024x1536", "auto"}


class Images:
    """The endpoint `/images/generations`; takes a `response_format` only where `google`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, object]] = []
        self.google = False
        self.refuses = ""
        """Says why no picture is made."""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        known = {"model", "prompt", "n", "response_format"} if self.google else _FIELDS
        if wrong := set(body) - known:
            return _refused(f"Unknown parameter: {sorted(wrong)[0]!r}.")
        if self.google and body.get("response_format") != "b64_json":
            return _refused("response_format has to be b64_json")
        if (
            body.get("size", "auto") not in _SIZES
            or not body.get("prompt")
            or not body.get("model")
        ):
            return _refused("Invalid value.")
        self.asked.append(body)
        if self.refuses:
            return _refused(self.refuses)
        data = [{"b64_json": base64.b64encode(PICTURE).decode()}]
        return web.json_response({"created": 1, "data": data})


def _refused(why: str) -> web.Response:
    error = {"message": why, "type": "invalid_request_error", "code": None, "param": None}
    return web.json_response({"error": error}, status=400)
