"""Slack's messages as its client draws them: Block Kit with plans, tasks, buttons. Pure."""

import html
import re
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from tests.stories.drawing.markup import Json, box, marked, words

WIDTH = 600
CSS = """
body { --chat: #fff; --ink: #1d1c1d; --badge: #e8e8e8; --faint: #616061; --code: #f6f6f6; --edge: #ddd; --red: #c01343; --seen: #e8f5fa; }
body.dark { --chat: #1a1d21; --ink: #d1d2d3; --badge: #3a3d41; --faint: #ababad; --code: #222529; --edge: #444; --red: #e8912d; --seen: #123a4a; }
.screen { background: var(--chat); color: var(--ink); font-size: 14.5px; }
.said { padding: 6px 0 4px; }
.name { font-weight: 700; } .name b { background: var(--badge); border-radius: 2px; font-size: 10px; padding: 1px 4px; margin-left: 5px; color: var(--faint); }
.block { margin-top: 6px; overflow-x: auto; }
.screen h1, .screen h2, .screen h3 { font-size: 1.15em; padding: 0; }
.header { font-size: 18px; font-weight: 800; }
.context { color: var(--faint); font-size: 12.5px; }
a { color: #1264a3; } .dark a { color: #1d9bd1; }
.screen code { background: var(--code); border: 1px solid var(--edge); border-radius: 3px; color: var(--red); padding: 0 3px; }
.screen pre { background: var(--code); border: 1px solid var(--edge); border-radius: 4px; padding: 8px; } .screen pre code { border: 0; padding: 0; color: inherit; }
.screen blockquote { border-left: 4px solid var(--edge); padding-left: 12px; }
.run { white-space: pre-wrap; }
.plan { border: 1px solid var(--edge); border-radius: 10px; padding: 10px 12px; max-width: 520px; }
.plan > .title { font-weight: 700; margin-bottom: 6px; }
.task { display: grid; grid-template-columns: 22px minmax(0, 1fr); padding: 3px 0; }
.state { width: 15px; height: 15px; border: 1.5px solid #999; border-radius: 50%; margin-top: 3px; font: 11px/13px "DejaVu Sans"; text-align: center; color: #fff; }
.state.complete { background: #007a5a; border-color: #007a5a; } .state.error { background: #e01e5a; border-color: #e01e5a; }
.state.in_progress { border-color: #1264a3 #1264a3 var(--edge) var(--edge); border-width: 2.5px; }
.details { color: var(--faint); font-size: 13px; }
.output { font-size: 12.5px; }
.row { display: flex; flex-wrap: wrap; gap: 8px; }
.button { border: 1px solid #8888; border-radius: 6px; padding: 5px 12px; font-weight: 700; font-size: 13.5px; }
.primary { background: #007a5a; color: #fff; border-color: #007a5a; } .danger { background: #e01e5a; color: #fff; border-color: #e01e5a; }
.select { border: 1px solid #8888; border-radius: 6px; padding: 5px 12px; width: 280px; max-width: 100%; } .option { border-top: 1px solid var(--edge); padding: 3px 0; }
.confirm { border: 1px dashed #aaa; border-radius: 6px; padding: 5px 9px; font-size: 12px; color: var(--faint); width: 100%; }
.file { border: 1px solid var(--edge); border-radius: 8px; padding: 9px; width: 320px; max-width: 100%; margin-top: 4px; font-weight: 700; }
.alone { color: var(--faint); font-size: 12px; } .seen { background: var(--seen); border: 1px solid #1264a3; border-radius: 10px; padding: 0 7px; width: fit-content; font-size: 12px; }
.session { color: var(--faint); font-size: 12.5px; border-top: 1px solid var(--edge); margin-top: 10px; padding-top: 6px; }
"""
INNER = {
    "rich_text_section": "p",
    "rich_text_preformatted": "pre",
    "rich_text_quote": "blockquote",
}
STYLES = {"bold": "b", "italic": "i", "strike": "s", "code": "code"}
STATES = {"complete": "✓", "error": "✕"}
BADGE = "<b>APP</b>"


TASK = re.compile(r"^(\s*[-*+] )\[([ xX])\] ", re.MULTILINE)
"""Its markdown knows lists of tasks."""


MRKDWN = re.compile(r"<!date\^(\d+)\^[^|>]*\|[^>]*>")


def _when(at: int) -> str:
    """As `{date_short_pretty} {time}` is shown to people in Berlin."""
    return f"{datetime.fromtimestamp(at, ZoneInfo('Europe/Berlin')):%b %-d, %Y %-I:%M %p}"


def _plain(text: str) -> str:
    """Slack's own markup of moments and bold words, as it is shown; all else as itself."""
    shown = words(MRKDWN.sub(lambda found: _when(int(found[1])), html.unescape(text)))
    return re.sub(r"(?<!\w)\*(?=\S)([^*\n]+?)(?<=\S)\*(?!\w)", r"<b>\1</b>", shown)


def _ticked(found: re.Match[str]) -> str:
    return f"{found[1]}{'☐' if found[2] == ' ' else '☑'} "


def message(one: Json, names: Sequence[str] = ()) -> str:
    """A message of the app; `names` are its files'."""
    files = "".join(box("file", f"▤ {words(name)}") for name in names)
    shown = "".join(map(_block, one.get("blocks", ())))
    shown = shown or box("block", _plain(one.get("text", "")))
    return box("said", box("name", f"turnkeeper{BADGE}") + shown + files)


def said(name: str, text: str, more: str = "") -> str:
    """A person's message; `more` is HTML below it."""
    return box("said", box("name", words(name)) + box("run", words(text)) + more)


def whisper(text: str) -> str:
    """What the app told one person alone."""
    alone = box("alone", "Only visible to you")
    return box("said", alone + box("name", f"turnkeeper{BADGE}") + box("run", _plain(text)))


def session(status: str) -> str:
    """The line above the field in which one writes."""
    stop = " ■ stop" if status == "processing" else ""
    return box("session", words(f"the session is {status}{stop}"))


def _block(one: Json) -> str:
    match one["type"]:
        case "markdown":
            return box("block", marked(TASK.sub(_ticked, one["text"])))
        case "header":
            return box("block header", words(one["text"]["text"]))
        case "context":
            lines = "".join(f"<p>{_plain(part['text'])}</p>" for part in one["elements"])
            return box("block context", lines)
        case "rich_text":
            return box("block", _rich(one))
        case "plan":
            title = box("title", words(one["title"]))
            return box("block plan", title + "".join(map(_task, one["tasks"])))
        case "task_card":
            return box("block", _task(one))
        case "actions":
            return box("block row", "".join(map(_element, one["elements"])))
        case kind:
            raise AssertionError(f"a block that is not drawn: {kind}")


def _rich(one: Json) -> str:
    shown = ""
    for part in one["elements"]:
        tag = INNER[part["type"]]
        shown += f'<{tag} class="run">{"".join(map(_run, part["elements"]))}</{tag}>'
    return shown


def _run(one: Json) -> str:
    if one["type"] == "date":
        return box("moment", words(_when(int(one["timestamp"]))), tag="span")
    if one["type"] == "user":
        return box("moment", words(f"@{one['user_id']}"), tag="span")
    shown = words(one["text"])
    for style in one.get("style", ()):
        shown = f"<{STYLES[style]}>{shown}</{STYLES[style]}>"
    return shown


def _task(one: Json) -> str:
    mark = f'<span class="state {words(one["status"])}">{STATES.get(one["status"], "")}</span>'
    inside = words(one["title"])
    for name in ("details", "output"):
        inside += box(name, _rich(one[name])) if name in one else ""
    return box("task", f"{mark}<div>{inside}</div>")


def _element(one: Json) -> str:
    if one["type"] == "static_select":
        options = (box("option", words(option["text"]["text"])) for option in one["options"])
        return box("select", words(one["placeholder"]["text"]) + " ▾" + "".join(options))
    shown = box(f"button {one.get('style', '')}", words(one["text"]["text"]), tag="span")
    if sure := one.get("confirm"):
        asked = " · ".join(words(sure[name]["text"]) for name in ("text", "confirm", "deny"))
        shown += box("confirm", f"{words(sure['title']['text'])}? {asked}")
    return shown
