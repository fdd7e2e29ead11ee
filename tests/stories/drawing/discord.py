"""Discord's messages as its client draws them: containers with a coloured edge. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from tests.stories.drawing.markup import Json, box, marked, words

WIDTH = 600
CSS = """
body { --chat: #fff; --ink: #2e3338; --name: #060607; --box: #f2f3f5; --edge: #d4d7dc; --code: #e8eaed; --faint: #5c5e66;
  --grey: #e3e5e8; --label: #2e3338; --link: #006ce7; --seen: #e7e9fd; --pill: #5865f226; }
body.dark { --chat: #313338; --ink: #dbdee1; --name: #f2f3f5; --box: #2b2d31; --edge: #3f4147; --code: #1e1f22; --faint: #949ba4;
  --grey: #4e5058; --label: #fff; --link: #00a8fc; --seen: #3b405a; --pill: #ffffff14; }
.screen { background: var(--chat); color: var(--ink); font-size: 14.5px; }
.said { padding: 6px 0 2px; }
.name { font-weight: 600; color: var(--name); } .name b { background: #5865f2; color: #fff; border-radius: 3px; font-size: 10px; padding: 1px 4px; margin-left: 5px; }
.container { background: var(--box); border: 1px solid var(--edge); border-left: 4px solid #888; border-radius: 8px; padding: 12px; margin-top: 4px;
  display: grid; gap: 8px; max-width: 520px; grid-template-columns: minmax(0, 1fr); }
.screen h1 { font-size: 1.5em; } .screen h2 { font-size: 1.25em; padding: 0; color: inherit; } .screen h3 { font-size: 1.05em; }
.screen code { background: var(--code); border-radius: 3px; padding: 0 3px; }
.screen pre { background: var(--code); border: 1px solid var(--edge); border-radius: 4px; padding: 7px; } .screen pre code { padding: 0; }
.screen blockquote { border-left: 4px solid var(--edge); padding-left: 10px; }
.screen a { color: var(--link); }
.moment { background: var(--pill); border-radius: 3px; padding: 0 2px; }
.small { font-size: 12px; color: var(--faint); }
.row { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 4px; }
.button { background: var(--grey); color: var(--label); border-radius: 8px; padding: 6px 14px; font-size: 13.5px; }
.s1 { background: #5865f2; color: #fff; } .s3 { background: #248046; color: #fff; } .s4 { background: #da373c; color: #fff; }
.select { background: var(--code); border-radius: 6px; padding: 8px 12px; width: 380px; max-width: 100%; color: var(--faint); }
.option { padding: 6px 4px; color: var(--ink); border-top: 1px solid var(--edge); }
.file { background: var(--box); border: 1px solid var(--edge); border-radius: 6px; padding: 10px; width: 320px; max-width: 100%; margin-top: 4px; color: var(--link); }
.to { color: var(--faint); font-size: 12.5px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.alone { color: var(--faint); font-size: 12px; } .seen { background: var(--seen); border: 1px solid #5865f2; border-radius: 8px; padding: 1px 7px; width: fit-content; font-size: 12px; }
.thread { border-left: 2px solid var(--grey); margin: 8px 0 0 10px; padding-left: 12px; font-weight: 600; }
"""
COMMAND = re.compile(r"</(\w+):\d+>")
MOMENT = re.compile(r"&lt;t:(\d+):f&gt;")
MENTION = re.compile(r"&lt;@(\d+)&gt;")
SMALL = re.compile(r"^-# (.*)$")
BADGE = "<b>APP</b>"


def message(one: Json, files: Mapping[str, bytes]) -> str:
    """A message of the bot."""
    inside = "".join(_component(part, files) for part in one["components"])
    return box("said", box("name", f"test_bot{BADGE}") + inside)


def said(name: str, text: str, more: str = "") -> str:
    """A person's message; `more` is HTML below it."""
    return box("said", box("name", words(name)) + f"<p>{words(text)}</p>" + more)


def whisper(texts: Sequence[str], note: str = "Only you can see this") -> str:
    """What the bot told one person alone; nothing once that was taken back."""
    if not texts:
        return ""
    shown = "".join(map(_text, texts))
    return box("said", box("name", f"test_bot{BADGE}") + shown + box("alone", words(note)))


def _component(one: Json, files: Mapping[str, bytes]) -> str:
    inside = "".join(_component(part, files) for part in one.get("components", ()))
    match one["type"]:
        case 1:
            return box("row", inside)
        case 2:
            return box(f"button s{one['style']}", words(one["label"]), tag="span")
        case 3:
            options = (box("option", words(option["label"])) for option in one["options"])
            shown = words(one.get("placeholder", "Make a selection")) + " ▾"
            return box("select", shown + "".join(options))
        case 10:
            return _text(one["content"])
        case 12:
            return "".join(map(_file, one["items"], [files] * len(one["items"])))
        case 13:
            return _file({"media": one["file"]}, files)
        case 17:
            return box("container", inside, f"border-left-color:#{one['accent_color']:06x}")
        case kind:
            raise AssertionError(f"a component that is not drawn: {kind}")


def _file(item: Json, files: Mapping[str, bytes]) -> str:
    name = item["media"]["url"].removeprefix("attachment://")
    return box("file", f"▤ {words(name)} <small>{len(files.get(name, b''))} bytes</small>")


def _text(content: str) -> str:
    """Discord's markdown: what markdown is, commands to press, and lines of small print."""
    content = COMMAND.sub(r"`/\1`", content)
    shown, gathered, fenced = "", [], False
    for line in [*content.split("\n"), None]:
        found = None if line is None or fenced else SMALL.match(line)
        if line is not None and found is None:
            fenced = fenced != line.startswith("```")
            gathered.append(line)
            continue
        shown += marked("\n".join(gathered))
        gathered = []
        shown += box("small", marked(found[1])) if found else ""
    shown = MENTION.sub(r'<span class="moment">@\1</span>', shown)
    return f"<div>{MOMENT.sub(_when, shown)}</div>"


def _when(found: re.Match[str]) -> str:
    """As it is shown to people in Berlin."""
    at = datetime.fromtimestamp(int(found[1]), ZoneInfo("Europe/Berlin"))
    return f'<span class="moment">{at:%-d %B %Y at %H:%M}</span>'
