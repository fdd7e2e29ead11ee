"""Checks Bot API calls against the published schema (when it is at hand) and the written limits."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

Json = Mapping[str, object]
FILE = "telegram-aiogram-schema-10.3.json"
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


@cache
def schema() -> dict[str, dict[str, tuple[str, bool]]] | None:
    """name of a method or type -> field -> (type, required); None without the file."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "specs"
    path = Path(os.environ.get("TURNKEEPER_SPECS", beside)) / FILE
    if not path.is_file():
        return None
    items = json.loads(path.read_text("utf-8"))["items"]
    return {
        child["name"]: {a["name"]: (a["type"], a["required"]) for a in child["annotations"]}
        for section in items
        for child in section["children"]
    }


def check(method: str, params: Json) -> list[str]:
    """What is wrong with a call, in words."""
    return [f"{method}: {wrong}" for wrong in (*_shape(method, params), *_limits(method, params))]


def _shape(method: str, params: Json) -> Iterator[str]:
    known = schema()
    if known is None:
        return
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
    if " or " in kind:
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
    elif fields := (schema() or {}).get(kind):
        if isinstance(value, dict):
            yield from _fields(value, fields, f"{path}.")
        else:
            yield f"{path} is not a {kind}"


def _limits(method: str, params: Json) -> Iterator[str]:
    if (least := TEXTS.get(method)) is not None:
        text = str(params.get("text", ""))
        if not least <= utf16(text) <= 4096:
            yield f"text of {utf16(text)} units"
        yield from _entities(params.get("entities"), utf16(text))
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
