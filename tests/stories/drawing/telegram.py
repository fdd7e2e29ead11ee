"""Telegram's messages as its client draws them: bubbles, rich blocks, coloured keys. Pure."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from tests.stories.drawing.markup import Json, box, words

WIDTH = 480
CSS = """
body { --chat: #c9dbc0; --bubble: #fff; --mine: #e3fcc9; --ink: #111; --faint: #708090; --link: #2b7bb9;
  --code: #a3341f; --block: #eef3f7; --quote: #eef6ee; --seen: #d4f0b8; --key: #6c8a5fcc; }
body.dark { --chat: #0e1621; --bubble: #182533; --mine: #2b5278; --ink: #f5f5f5; --faint: #8296ab; --link: #6ab3f3;
  --code: #8fc7ff; --block: #101b27; --quote: #16293a; --seen: #3a6a99; --key: #2a3b4dcc; }
.screen { background: var(--chat); color: var(--ink); }
.bubble { background: var(--bubble); border-radius: 12px; padding: 7px 10px; margin-top: 6px; width: fit-content;
  max-width: 92%; white-space: pre-wrap; }
.bubble.mine { background: var(--mine); margin-left: auto; }
.bubble.draft { outline: 1px dashed #7a9; }
.bubble p, .bubble li, .bubble summary { white-space: pre-wrap; }
.from { color: var(--link); font-weight: 600; font-size: 13px; }
.bubble pre { background: var(--block); border-left: 3px solid #5a9bd0; border-radius: 4px; padding: 5px 8px; }
.bubble code { color: var(--code); }
.bubble blockquote { background: var(--quote); border-left: 3px solid #57a957; border-radius: 4px; padding: 3px 8px; }
.bubble .to { border-left: 3px solid var(--link); color: var(--faint); padding: 1px 8px; font-size: 12.5px; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; max-width: 280px; }
.bubble ul.checks { list-style: none; padding-left: 0; }
.bubble .wide { overflow-x: auto; }
.tick { display: inline-block; width: 15px; height: 15px; border: 1.5px solid #8a97a3; border-radius: 4px;
  vertical-align: -2px; margin-right: 7px; font: 12px/12px "DejaVu Sans"; text-align: center; color: #fff; }
.tick.on { background: #3390ec; border-color: #3390ec; }
.keys { display: flex; gap: 4px; width: 92%; margin-top: 4px; }
.key { flex: 1 1 0; min-width: 0; text-align: center; background: var(--key); color: #fff; border-radius: 8px; padding: 7px 4px; font-size: 13px;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.key.success { background: #31a24c; } .key.danger { background: #d8413c; } .key.primary { background: #3390ec; }
.bubble small { display: block; color: var(--faint); }
.file { color: var(--link); font-weight: 600; }
.seen { font-size: 12px; background: var(--seen); border-radius: 9px; padding: 1px 7px; width: fit-content; }
.toast { margin: 8px auto 0; background: #333c; color: #fff; border-radius: 8px; padding: 6px 10px; width: fit-content; font-size: 13px; }
.reply { background: var(--bubble); margin: 12px -12px -12px; padding: 9px 14px; color: #99a; border-left: 4px solid #3390ec; }
"""
TAGS = {
    "bold": "b", "italic": "i", "underline": "u", "strikethrough": "s", "code": "code",
    "pre": "pre", "blockquote": "blockquote", "expandable_blockquote": "blockquote",
    "text_link": "u", "url": "u", "mention": "u", "bot_command": "u",
}  # fmt: skip
BOXES = {"pre", "blockquote"}
LINE_END = "\n".encode("utf-16-le")
BLOCKS = {"paragraph": "p", "pre": "pre", "blockquote": "blockquote", "details": "details"}


def message(one: Json, names: Sequence[str] = (), more: str = "") -> str:
    """A message of anybody with its keyboard; `names` are its files', `more` HTML within it."""
    bot, kind = one.get("from", {}).get("is_bot", True), "draft" if "draft_id" in one else ""
    files = "".join(box("file", f"▤ {words(name)}") for name in names)
    text = one.get("text") or one.get("caption", "")
    rich = one.get("rich_message")
    shown = blocks(rich["blocks"]) if rich else styled(text, one.get("entities", ()))
    sender = "" if bot else box("from", words(one["from"]["first_name"]))
    bubble = box(f"bubble {kind}{'' if bot else 'mine'}", sender + files + shown + more)
    return bubble + "".join(map(_keys, one.get("reply_markup", {}).get("inline_keyboard", ())))


def _when(at: int) -> str:
    """As the format `Dt` is shown to people in Berlin."""
    return f"{datetime.fromtimestamp(at, ZoneInfo('Europe/Berlin')):%B %-d, %Y at %H:%M}"


def _keys(row: Sequence[Json]) -> str:
    found = (box(f"key {key.get('style', '')}", words(key["text"])) for key in row)
    return box("keys", "".join(found))


def asked(one: Json) -> str:
    """The field that a message opens."""
    markup = one.get("reply_markup", {})
    return box("reply", words(markup.get("input_field_placeholder", "")))


def toast(text: str) -> str:
    """The word that answers a press."""
    return box("toast", words(text))


def styled(text: str, entities: Sequence[Json]) -> str:
    """`text` with its entities, which are counted in UTF-16 units and lie within each other."""
    known = sorted(entities, key=lambda one: (one["offset"], -one["length"]))
    units = text.encode("utf-16-le")
    return _nested(units, 0, len(units) // 2, known)


def _nested(units: bytes, at: int, end: int, entities: Sequence[Json]) -> str:
    shown, left = "", list(entities)
    while left:
        one = left.pop(0)
        last = one["offset"] + one["length"]
        inside = [other for other in left if other["offset"] < last]
        left = left[len(inside) :]
        shown += _plain(units, at, one["offset"])
        within = _nested(units, one["offset"], last, inside)
        if one["type"] == "date_time":
            within = words(_when(one["unix_time"]))
        tag = TAGS.get(one["type"], "span")
        shown += f"<{tag}>{within}</{tag}>"
        breaks = tag in BOXES and units[2 * last : 2 * last + 2] == LINE_END
        at = last + breaks  # a box ends its line by itself
    return shown + _plain(units, at, end)


def _plain(units: bytes, at: int, end: int) -> str:
    return words(units[2 * at : 2 * end].decode("utf-16-le"))


def blocks(given: Sequence[Json]) -> str:
    """Rich blocks."""
    return "".join(map(_block, given))


def _block(one: Json) -> str:
    match one["type"]:
        case "list":
            return _list(one["items"])
        case "table":
            rows = (f"<tr>{''.join(map(_cell, row))}</tr>" for row in one["cells"])
            return box("wide", f"<table>{''.join(rows)}</table>")
        case "heading":
            return f"<h{one['size']}>{_rich(one['text'])}</h{one['size']}>"
        case "divider":
            return "<hr>"
        case kind:
            tag = BLOCKS.get(kind, "small" if kind == "footer" else "div")
            summary = f"<summary>{_rich(one['summary'])}</summary>" if "summary" in one else ""
            inside = _rich(one.get("text", "")) + blocks(one.get("blocks", ()))
            return f"<{tag}>{summary}{inside}</{tag}>"


def _list(items: Sequence[Json]) -> str:
    shown = ""
    for item in items:
        tick = '<span class="tick on">✓</span>' if item.get("is_checked") else ""
        tick = tick or ('<span class="tick"></span>' if item.get("has_checkbox") else "")
        inside = blocks(item["blocks"])
        if tick:  # the box stands in the line of the words
            inside = inside.replace("<p>", f"<p>{tick}", 1)
        value = f' value="{int(item["value"])}"' if "value" in item else ""
        shown += f"<li{value}>{inside}</li>"
    first = items[0] if items else {}
    tag = "ol" if "value" in first else "ul"
    return f'<{tag} class="{"checks" if first.get("has_checkbox") else ""}">{shown}</{tag}>'


def _cell(cell: Json) -> str:
    tag = "th" if cell.get("is_header") else "td"
    align = "right" if cell["align"] == "right" else "left"
    return f'<{tag} style="text-align:{align}">{_rich(cell.get("text", ""))}</{tag}>'


def _rich(text: object) -> str:
    if isinstance(text, list):
        return "".join(map(_rich, text))
    if isinstance(text, dict):
        if text["type"] == "date_time":
            return words(_when(text["unix_time"]))
        tag = TAGS.get(text["type"], "span")
        return f"<{tag}>{_rich(text['text'])}</{tag}>"
    return words(text)
