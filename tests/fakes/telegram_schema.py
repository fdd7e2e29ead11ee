"""Checks Bot API calls against the published schema and the written limits."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Json = Mapping[str, object]
FILE = Path(__file__).parents[1] / "fixtures" / "schemas" / "telegram.json"
TEXTS = {"sendMessage": 1, "editMessageText": 1, "sendMessageDraft": 0}
BUTTON_TYPES = {
    "url", "callback_data", "web_app", "login_url", "switch_inline_query", "copy_text",
    "switch_inline_query_current_chat", "switch_inline_query_chosen_chat", "callback_game", "pay",
    "disabled",
}  # fmt: skip
PLAIN: dict[str, tuple[type, ...]] = {
    "Integer": (int,),
    "String": (str,),
    "Boolean": (bool,),
    "Float": (int, float),
}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


UNIONS = ("InputRichBlock", "RichText", "BotCommandScope", "InputMedia")
"""Types that the schema only describes in words: their `type` says which one it is."""


@cache
def _reduced() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text("utf-8"))


@cache
def variants() -> dict[tuple[str, str], str]:
    """(union, its `type`) -> the type's name."""
    found = _reduced()["variants"]
    return {tuple(key.split("/")): name for key, name in found.items()}


@cache
def schema() -> dict[str, dict[str, tuple[str, bool]]]:
    """Name of a method or type -> field -> (type, required)."""
    return {
        name: {field: (kind, required) for field, (kind, required) in fields.items()}
        for name, fields in _reduced()["schema"].items()
    }


def check(method: str, params: Json) -> list[str]:
    """What is wrong with a call, in words."""
    return [f"{method}: {wrong}" for wrong in (*_shape(method, params), *_limits(method, params))]


def check_payload(payload: Json) -> list[str]:
    """As `check`, of what a renderer gives, as the call that it will be."""
    call = {name: value for name, value in payload.items() if name not in {"method", "files"}}
    attached = str(call.get("media", ""))
    files = payload.get("files")
    for name in files if isinstance(files, dict) else ():
        call |= {} if f"attach://{name}" in attached else {name: "uploaded"}
    return check(str(payload["method"]), {"chat_id": 1} | call)


def _shape(method: str, params: Json) -> Iterator[str]:
    known = schema()
    if method not in known:
        yield "unknown method"
        return
    yield from _fields(params, known[method], "")


def _fields(value: Json, fields: dict[str, tuple[str, bool]], path: str) -> Iterator[str]:
    for name, (kind, required) in fields.items():
        if name in value:
            yield from _typed(value[name], kind, f"{path}{name}")
        elif required:
            yield f"{path}{name} is missing"
    yield from (f"{path}{name} is unknown" for name in value if name not in fields)


def _typed(value: object, kind: str, path: str) -> Iterator[str]:
    if kind.startswith("InputMediaAudio, "):
        kind = "InputMedia"
    if kind == "RichText" and isinstance(value, str | list):
        for one in value if isinstance(value, list) else ():
            yield from _typed(one, kind, path)
    elif kind in UNIONS:
        shape = value.get("type") if isinstance(value, dict) else None
        name = variants().get((kind, str(shape)))
        yield from _typed(value, name, path) if name else [f"{path} is no {kind}: {shape!r}"]
    elif " or " in kind:
        wrong = [list(_typed(value, one, path)) for one in kind.split(" or ")]
        if all(wrong):
            yield from min(wrong, key=len)
    elif kind.startswith("Array of "):
        if not isinstance(value, list):
            yield f"{path} is not an array"
            return
        for index, one in enumerate(value):
            yield from _typed(one, kind.removeprefix("Array of "), f"{path}[{index}]")
    elif kind == "True":
        if value is not True:
            yield f"{path} is not true"
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind != "Boolean" and isinstance(value, bool)):
            yield f"{path} is not a {kind}"
    elif fields := schema().get(kind):
        if isinstance(value, dict):
            yield from _fields(value, fields, f"{path}.")
        else:
            yield f"{path} is not a {kind}"


def _limits(method: str, params: Json) -> Iterator[str]:
    if (least := TEXTS.get(method)) is not None and "rich_message" not in params:
        text = str(params.get("text", ""))
        if not least <= utf16(text) <= 4096:
            yield f"text of {utf16(text)} units"
        yield from _entities(params.get("entities"), utf16(text))
    captions = [params, *params["media"]] if isinstance(params.get("media"), list) else [params]
    for one in captions:
        if utf16(str(one.get("caption", ""))) > 1024:
            yield "a caption of more than 1024 units"
        yield from _entities(one.get("caption_entities"), utf16(str(one.get("caption", ""))))
    if method == "sendMediaGroup" and not 2 <= len(captions) - 1 <= 10:
        yield "an album of fewer than 2 or more than 10"
    if method == "editMessageText" and ("text" in params) == ("rich_message" in params):
        yield "an edit needs either text or rich_message"
    if isinstance(rich := params.get("rich_message"), dict):
        yield from _rich(rich)
    if method == "answerCallbackQuery" and len(str(params.get("text", ""))) > 200:
        yield "an answer of more than 200 characters"
    if method == "sendMessageDraft" and (
        not params.get("draft_id") or int(str(params["chat_id"])) < 0
    ):
        yield "a draft without an id, or not in a private chat"
    if method == "setWebhook":
        secret = str(params.get("secret_token", "x"))
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
            yield "secret_token"
    markup = params.get("reply_markup")
    if isinstance(markup, dict):
        yield from _markup(method, markup)


def _entities(entities: object, size: int) -> Iterator[str]:
    for entity in entities if isinstance(entities, list) else ():
        start, length = entity.get("offset", -1), entity.get("length", 0)
        if start < 0 or length < 1 or start + length > size:
            yield f"entity outside the text: {entity}"
        if (entity.get("type") == "text_link") != ("url" in entity):
            yield f"entity with a wrong url: {entity}"
    if isinstance(entities, list) and len(entities) > 100:
        yield "more than 100 entities"


def _rich(rich: Json) -> Iterator[str]:
    """The limits of rich messages, which the schema does not hold."""
    if len({"html", "markdown", "blocks"} & rich.keys()) != 1:
        yield "a rich message needs exactly one content"
    sizes: list[tuple[int, int]] = []
    yield from _tree(rich.get("blocks", []), 1, sizes)
    characters, blocks = sum(size for size, _ in sizes), sum(count for _, count in sizes)
    if not 0 < characters <= 32_768 or blocks > 500:
        yield f"a rich message of {characters} characters and {blocks} blocks"


def _tree(blocks: object, depth: int, sizes: list[tuple[int, int]]) -> Iterator[str]:
    for block in blocks if isinstance(blocks, list) else ():
        items, cells = block.get("items", []), block.get("cells", [])
        texts = [block.get(name) for name in ("text", "summary") if name in block]
        texts += [cell.get("text", "") for row in cells for cell in row]
        if not any(map(_length, texts)) and not items and block.get("type") not in (
            "divider", "blockquote",
        ):  # fmt: skip
            yield f"an empty block: {block}"
        if depth + max(map(_nested, texts), default=0) + bool(items) > 16:
            yield "nested too deeply"
        if any(len(row) > 20 for row in cells):
            yield "more than 20 columns"
        sizes.append((sum(map(_length, texts)), 1 + len(items) + len(cells)))
        yield from _tree(block.get("blocks"), depth + 1, sizes)
        for item in items:
            yield from _tree(item["blocks"], depth + 2, sizes)


def _length(text: object) -> int:
    if isinstance(text, list):
        return sum(map(_length, text))
    return _length(text["text"]) if isinstance(text, dict) else len(str(text))


def _nested(text: object) -> int:
    if isinstance(text, list):
        return max(map(_nested, text), default=0)
    return 1 + _nested(text["text"]) if isinstance(text, dict) else 0


def _markup(method: str, markup: Json) -> Iterator[str]:
    placeholder = markup.get("input_field_placeholder")
    if placeholder is not None and not 1 <= len(str(placeholder)) <= 64:
        yield "placeholder of a wrong length"
    rows = markup.get("inline_keyboard")
    if not isinstance(rows, list):
        if method == "editMessageText":
            yield "an edit takes inline keyboards only"
        return
    if sum(map(len, rows)) > 100 or any(not 1 <= len(row) <= 8 for row in rows):
        yield "too many buttons, or an empty row"
    for button in (button for row in rows for button in row):
        if len(BUTTON_TYPES & button.keys()) != 1:
            yield f"a button needs exactly one type: {button}"
        if not 1 <= len(str(button.get("callback_data", "x")).encode()) <= 64:
            yield f"callback_data of a wrong length: {button}"
        if button.get("style", "danger") not in {"danger", "success", "primary"}:
            yield f"unknown style: {button}"
        if not button.get("text"):
            yield "a button without a label"
