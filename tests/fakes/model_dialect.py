"""What the model server's protocols have in common."""

import base64

from aiohttp import web

from tests.fakes.model_steps import (
    Json,
    Step,
)

KINDS = ("png", "jpeg", "gif", "webp")


class BadRequest(Exception):
    pass


class Dialect:
    """One protocol; `extra_fields` are further top-level fields that it takes."""

    fields: frozenset[str]
    turns = "messages"
    """The field that holds the conversation."""
    content_type = "text/event-stream"
    end = "\n\n"
    """Behind each line of a stream."""
    streams = False
    """Always, without being asked in the body."""

    def __init__(self, extra_fields: set[str]) -> None:
        self._extra_fields = extra_fields

    def check(self, body: Json) -> None:
        unknown = set(body) - self.fields - self._extra_fields
        if unknown:
            raise BadRequest(f"unknown fields {sorted(unknown)}")
        if not isinstance(body["model"], str) or not body[self.turns]:
            raise BadRequest(f"model and {self.turns} are required")

    def error(
        self, status: int, message: str, retry_after: float | None = None, param: str | None = None
    ) -> web.Response:
        headers = {}
        if retry_after is not None:
            headers = {
                "retry-after": f"{retry_after:g}",
                "retry-after-ms": f"{retry_after * 1000:g}",
            }
        return web.json_response(self.error_body(message, param), status=status, headers=headers)

    def error_body(self, message: str, param: str | None) -> Json:
        raise NotImplementedError

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        raise NotImplementedError

    def whole(self, body: Json, step: Step, number: int) -> Json:
        raise NotImplementedError

    def last_user(self, body: Json) -> str:
        for message in reversed(body[self.turns]):
            if message.get("role") == "user":
                content = message["content"]
                if isinstance(content, str):
                    return content
                texts = [block["text"] for block in content if "text" in block]
                if texts:
                    return str(texts[-1])
        return ""


def pieces(text: str, words: int) -> list[str]:
    parts = text.split(" ")
    groups = [" ".join(parts[i : i + words]) for i in range(0, len(parts), words)]
    return [piece + (" " if i < len(groups) - 1 else "") for i, piece in enumerate(groups)]


def picture(url: str) -> bytes:
    """What a data URL of a picture holds; it must be one that providers take."""
    head, _, data = url.partition(",")
    require(head in {f"data:image/{kind};base64" for kind in KINDS}, f"bad image {head[:40]}")
    return base64.b64decode(data, validate=True)


def require(condition: object, text: str) -> None:
    if not condition:
        raise BadRequest(text)
