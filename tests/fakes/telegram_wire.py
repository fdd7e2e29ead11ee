"""Values of the Bot API fake: a call, a fault to come, a refusal; and how parameters are read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    files: dict[str, "File"] = field(default_factory=dict)

    @property
    def whole(self) -> Json:
        """The parameters as the schema knows them: an upload stands in its field."""
        named = {name: file.name for name, file in self.files.items()}
        attached = str(self.params.get("media", ""))
        return self.params | {k: v for k, v in named.items() if f"attach://{k}" not in attached}


@dataclass
class File:
    """One uploaded file."""

    name: str
    mime: str
    data: bytes


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
    """What a message shows by these parameters; of a rich one `text` is what one reads."""
    if rich := p.get("rich_message"):
        text = bare(rich["blocks"])
        if not text.strip():
            raise Refusal(400, "Bad Request: message text is empty")
        shown = {"text": text, "rich_message": rich}
        return shown | {k: p[k] for k in ("reply_markup",) if p.get(k)}
    text = p.get("text", "")
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le")) // 2 > 4096:
        raise Refusal(400, "Bad Request: message is too long")
    return {"text": text} | {k: p[k] for k in ("entities", "reply_markup") if p.get(k)}


def bare(blocks: Sequence[Json]) -> str:
    """The text of rich blocks as one reads it."""
    return "\n".join(line for block in blocks for line in _lines(block))


def _lines(block: Json) -> Iterator[str]:
    for name in ("summary", "text"):
        if name in block:
            yield span(block[name])
    if inside := bare(block.get("blocks", ())):
        yield inside
    for item in block.get("items", ()):
        mark = "☑ " if item.get("is_checked") else "☐ " if item.get("has_checkbox") else ""
        number = f"{item['value']}. " if "value" in item else ""
        yield f"{number or mark or '• '}{bare(item['blocks'])}"
    for row in block.get("cells", ()):
        yield " | ".join(span(cell.get("text", "")) for cell in row)


def span(text: object) -> str:
    """A RichText without its styles."""
    if isinstance(text, list):
        return "".join(map(span, text))
    return span(text["text"]) if isinstance(text, dict) else str(text)


async def read_call(request: web.Request, at: float) -> Call:
    """The call with its parameters as JSON values, however they were sent."""
    call = Call(request.match_info["method"], dict(request.query), at)
    if request.content_type == "application/json":
        call.params |= await request.json()
        return call
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            with value.file:
                data = value.file.read()
            call.files[name] = File(value.filename, value.content_type, data)
        elif isinstance(value, str):
            call.params[name] = _read(name, value)
    return call


def _read(name: str, value: str) -> object:
    try:
        return value if name in {"text", "caption"} else json.loads(value)
    except ValueError:
        return value
