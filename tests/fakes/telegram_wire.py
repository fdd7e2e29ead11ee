"""Values of the Bot API fake: a call, a fault to come, a refusal; and how parameters are read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass
class Call:
    """One call as it came, `at` by the monotonic clock."""

    method: str
    params: Json
    at: float
    status: int = 0


@dataclass
class Fault:
    """How the next calls of a method go wrong. Status 0 closes the connection."""

    status: int
    times: int
    body: Json
    after_effect: bool


class Refusal(Exception):
    """An answer that is not ok."""

    def __init__(self, status: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"ok": False, "error_code": status, "description": description}
        if parameters:
            self.body["parameters"] = parameters


def content(p: Mapping[str, Any]) -> Json:
    text = p.get("text", "")
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le")) // 2 > 4096:
        raise Refusal(400, "Bad Request: message is too long")
    return {"text": text} | {k: p[k] for k in ("entities", "reply_markup") if p.get(k)}


async def read_params(request: web.Request) -> Json:
    """The call's parameters as JSON values, however they were sent."""
    if request.content_type == "application/json":
        return dict(await request.json())
    params: Json = dict(request.query)
    for name, value in (await request.post()).items():
        if isinstance(value, str):
            try:
                params[name] = json.loads(value) if name != "text" else value
            except ValueError:
                params[name] = value
        else:
            params[name] = value.file.read() if isinstance(value, web.FileField) else value
    return params
