"""What Slack takes: the arguments of methods, blocks with their limits, and the official types."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

Json = dict[str, Any]

FILE = Path(__file__).parents[1] / "fixtures" / "schemas" / "slack.json"
MAX_CHARACTERS = 13_200
MESSAGE = {"channel": str, "text": str, "blocks": list, "metadata": dict, "link_names": bool}
POSTED = {"thread_ts": str, "unfurl_links": bool, "unfurl_media": bool}
READ = {"channel": str, "oldest": str, "limit": str, "include_all_metadata": str, "cursor": str}
METHODS: dict[str, tuple[dict[str, type], set[str]]] = {
    "auth.test": ({}, set()),
    "apps.connections.open": ({}, set()),
    "chat.postMessage": (MESSAGE | POSTED, {"channel"}),
    "chat.update": (MESSAGE | {"ts": str}, {"channel", "ts"}),
    "chat.delete": ({"channel": str, "ts": str}, {"channel", "ts"}),
    "chat.postEphemeral": (
        MESSAGE | {"user": str, "thread_ts": str},
        {"channel", "user", "text"},
    ),
    "reactions.add": (
        {"channel": str, "timestamp": str, "name": str},
        {"channel", "timestamp", "name"},
    ),
    "reactions.remove": (
        {"channel": str, "timestamp": str, "name": str},
        {"channel", "timestamp", "name"},
    ),
    "views.open": ({"trigger_id": str, "view": dict}, {"trigger_id", "view"}),
    "users.info": ({"user": str, "include_locale": str}, {"user"}),
    "usergroups.list": ({"include_users": str}, set()),
    "files.info": ({"file": str}, {"file"}),
    "files.getUploadURLExternal": (
        {"filename": str, "length": str, "alt_txt": str},
        {"filename", "length"},
    ),
    "files.completeUploadExternal": (
        {"files": list, "channel_id": str, "thread_ts": str, "initial_comment": str},
        {"files"},
    ),
    "views.publish": ({"user_id": str, "view": dict}, {"user_id", "view"}),
    "chat.startStream": (
        {"channel": str, "thread_ts": str, "chunks": list, "task_display_mode": str},
        {"channel", "thread_ts", "chunks"},
    ),
    "chat.appendStream": (
        {"channel": str, "ts": str, "chunks": list},
        {"channel", "ts", "chunks"},
    ),
    "chat.stopStream": (
        {"channel": str, "ts": str, "chunks": list, "blocks": list},
        {"channel", "ts"},
    ),
    "agents.sessions.setStatus": (
        {"channel_id": str, "thread_ts": str, "status": str},
        {"channel_id", "thread_ts", "status"},
    ),
    "conversations.replies": (READ | {"ts": str}, {"channel", "ts"}),
    "conversations.history": (READ, {"channel"}),
}
BLOCKS: dict[str, tuple[set[str], set[str], str]] = {
    "markdown": ({"text"}, {"text"}, "MarkdownBlock"),
    "section": ({"text"}, {"text"}, "SectionBlock"),
    "header": ({"text"}, {"text"}, "HeaderBlock"),
    "context": ({"elements"}, {"elements"}, "ContextBlock"),
    "rich_text": ({"elements"}, {"elements"}, "RichTextBlock"),
    "plan": ({"title", "tasks"}, {"title"}, "PlanBlock"),
    "task_card": (
        {"task_id", "title", "status", "details", "output", "sources"},
        {"task_id", "title", "status"},
        "TaskCardBlock",
    ),
    "actions": ({"elements"}, {"elements"}, "ActionsBlock"),
    "input": ({"label", "element", "optional", "hint"}, {"label", "element"}, "InputBlock"),
}
SESSION_STATUSES = {"active", "processing", "suspended", "closed"}
"""docs.slack.dev/reference/methods/agents.sessions.setStatus; newer than the official types here."""
STATUSES = {"pending", "in_progress", "complete", "error"}


ADDRESS = re.compile(r"://|[\w-]\.(?:example|com|net|org|xyz)\b")


def check_previews(method: str, arguments: Json) -> list[str]:
    """Links of which Slack would load a preview: those of a new message that does not forbid it,
    and of a comment, which cannot."""
    forbids = not (arguments.get("unfurl_links", True) or arguments.get("unfurl_media", True))
    if method == "chat.postMessage" and not forbids:
        return [f"{method}: loads previews of links"]
    linked = ADDRESS.search(str(arguments.get("initial_comment", "")))
    return [f"{method}: loads a preview of a link"] if linked else []


def check(method: str, arguments: Json) -> list[str]:
    """What Slack would refuse in a call, or silently drop."""
    if method not in METHODS:
        return [f"{method}: unknown method"]
    known, needed = METHODS[method]
    found = [f"{method}: no {name}" for name in needed - set(arguments)]
    for name, value in arguments.items():
        if name not in known:
            found.append(f"{method}: unknown {name}")
        elif type(value) is not known[name]:
            found.append(f"{method}: {name} is a {type(value).__name__}")
    if method == "chat.stopStream":
        found += [line for block in arguments.get("blocks", ()) for line in check_block(block)]
    elif "blocks" in arguments or method in ("chat.postMessage", "chat.update"):
        found += check_message(arguments)
    found += check_previews(method, arguments)
    for chunk in arguments.get("chunks", ()):
        found += check_chunk(chunk)
    if arguments.get("chunks", True) == []:
        found.append(f"{method}: no chunks")
    if method == "agents.sessions.setStatus" and arguments["status"] not in SESSION_STATUSES:
        found.append(f"{method}: {arguments['status']}")
    if method == "views.publish":
        found += check_home(arguments.get("view", {}))
    if method == "views.open":
        found += check_view(arguments.get("view", {}))
    definition = "".join(part[0].upper() + part[1:] for part in method.split(".")) + "Arguments"
    if method == "reactions.add" and (official := validator(definition)):
        found += [f"{method}: {error.message[:200]}" for error in official.iter_errors(arguments)]
    return found


def check_message(message: Json) -> list[str]:
    """The text and blocks of a message."""
    text, blocks = message.get("text", ""), message.get("blocks", [])
    found = [] if text and len(text) <= 4_000 else [f"text of {len(text)} characters"]
    found += [f"text pings: {text[:80]}"] if "<!" in text or "<@" in text else []
    if len(blocks) > 50:
        found.append(f"{len(blocks)} blocks")
    if (size := sum(map(_characters, blocks))) > MAX_CHARACTERS:
        found.append(f"msg_blocks_too_long: {size}")
    for block in blocks:
        found += check_block(block)
    return found


def check_chunk(chunk: Json) -> list[str]:
    """One piece of a chat stream."""
    match chunk.get("type"):
        case "markdown_text":
            found = [] if 1 <= len(chunk["text"]) <= 12_000 else ["markdown_text: length"]
            pings = any(mark in chunk["text"] for mark in ("<!", "<@", "<#"))
            found += ["markdown_text that pings"] if pings else []
            found += [f"markdown_text: unknown {x}" for x in set(chunk) - {"type", "text"}]
            definition = "MarkdownTextChunk"
        case "task_update":
            known = {"type", "id", "title", "status", "details", "output", "sources"}
            found = [f"task_update: unknown {name}" for name in set(chunk) - known]
            found += [] if 1 <= len(chunk["title"]) <= 256 else ["task_update: title"]
            found += [] if chunk["status"] in STATUSES else ["task_update: status"]
            definition = "TaskUpdateChunk"
        case "plan_update":
            found = [f"plan_update: unknown {name}" for name in set(chunk) - {"type", "title"}]
            found += [] if 1 <= len(chunk["title"]) <= 256 else ["plan_update: title"]
            definition = "PlanUpdateChunk"
        case "blocks":
            found = [f"blocks: unknown {name}" for name in set(chunk) - {"type", "blocks"}]
            found += [] if 1 <= len(chunk["blocks"]) <= 50 else ["blocks: number"]
            return found + [line for block in chunk["blocks"] for line in check_block(block)]
        case other:
            return [f"chunk: {other}"]
    if official := validator(definition):
        found += [f"{definition}: {error.message[:200]}" for error in official.iter_errors(chunk)]
    return found


def check_view(view: Json) -> list[str]:
    """A modal."""
    found = list(_plain("title", view.get("title"), 24))
    asks = any(block.get("type") == "input" for block in view.get("blocks", ()))
    for name in ("submit", "close") if asks else ("close",):
        found += _plain(name, view.get(name), 24)
    if len(view.get("private_metadata", "")) > 3_000:
        found.append("private_metadata is too long")
    if not 1 <= len(view.get("blocks", ())) <= 100:
        found.append("a view has 1 to 100 blocks")
    for block in view.get("blocks", ()):
        found += check_block(block)
    if official := validator("ModalView"):
        found += [f"view: {error.message[:200]}" for error in official.iter_errors(view)]
    return found


def check_home(view: Json) -> list[str]:
    """App Home."""
    blocks = view.get("blocks", [])
    found = [] if 1 <= len(blocks) <= 100 else [f"a home of {len(blocks)} blocks"]
    names = [block["block_id"] for block in blocks if "block_id" in block]
    found += ["a block_id twice"] if len(set(names)) != len(names) else []
    found += [line for block in blocks for line in check_block(block)]
    if official := validator("HomeView"):
        found += [f"home: {error.message[:200]}" for error in official.iter_errors(view)]
    return found


def check_block(block: Json) -> list[str]:
    """One block: its fields, its limits, and the official type of it."""
    kind = block.get("type", "")
    if kind not in BLOCKS:
        return [f"unknown block {kind!r}"]
    known, needed, definition = BLOCKS[kind]
    fields = set(block) - {"type", "block_id"}
    found = [f"{kind}: unknown {name}" for name in fields - known]
    found += [f"{kind}: no {name}" for name in needed - fields]
    found += _limits(kind, block)
    if official := validator(definition):
        found += [f"{kind}: {error.message[:200]}" for error in official.iter_errors(block)]
    return found


def _limits(kind: str, block: Json) -> Iterator[str]:
    match kind:
        case "markdown":
            if not 1 <= len(block["text"]) <= 12_000:
                yield f"markdown of {len(block['text'])} characters"
            if any(mark in block["text"] for mark in ("<!", "<@", "<#")):
                yield "markdown that pings"
        case "section":
            yield from _plain("section", block["text"], 3_000)
        case "header":
            yield from _plain("header", block["text"], 150)
        case "context":
            if not 1 <= len(block["elements"]) <= 10:
                yield "context: 1 to 10 elements"
            for element in block["elements"]:
                yield from _small(element)
        case "plan":
            names = [one["task_id"] for one in block.get("tasks", ())]
            if len(set(names)) != len(names):
                yield "plan: one task_id twice"
            for one in block.get("tasks", ()):
                yield from check_block(one)
        case "task_card":
            if block["status"] not in STATUSES or not block["title"]:
                yield f"task_card: {block['status']} {block['title']!r}"
            for name in ("details", "output"):
                if name in block:
                    yield from check_block(block[name])
        case "actions":
            yield from _actions(block["elements"])
        case "rich_text":
            yield from _rich(block["elements"])
        case "input":
            yield from _plain("label", block["label"], 2_000)
            if not 1 <= block["element"].get("max_length", 1) <= 3_000:
                yield "plain_text_input: max_length"


def _actions(elements: list[Json]) -> Iterator[str]:
    if not 1 <= len(elements) <= 25:
        yield f"actions: {len(elements)} elements"
    names = [one["action_id"] for one in elements]
    if len(set(names)) != len(names) or any(len(name) > 255 for name in names):
        yield "actions: an action_id twice, or too long"
    if sum(one.get("style") == "primary" for one in elements) > 1:
        yield "actions: two primary buttons"
    for one in elements:
        if one["type"] == "button":
            yield from _plain("button", one["text"], 75)
            if len(one.get("value", "")) > 2_000 or one.get("style", "danger") not in (
                "primary",
                "danger",
            ):
                yield "button: value or style"
            if not 1 <= len(one.get("url", "x")) <= 3_000 or ("url" in one) == ("value" in one):
                yield "button: url"
            if confirm := one.get("confirm"):
                for name, most in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
                    yield from _plain(f"confirm {name}", confirm.get(name), most)
        elif one["type"] == "static_select":
            if not 1 <= len(one["options"]) <= 100:
                yield "static_select: 1 to 100 options"
            for option in one["options"]:
                yield from _plain("option", option["text"], 75)
                if len(option["value"]) > 150:
                    yield "option: value"
        else:
            yield f"actions: {one['type']}"


def _rich(elements: list[Json]) -> Iterator[str]:
    if not elements:
        yield "rich_text: empty"
    for element in elements:
        if not element["elements"]:
            yield f"{element['type']}: empty"
        for one in element["elements"]:
            if one["type"] == "date":
                if set(one) != {"type", "timestamp", "format", "fallback"}:
                    yield f"rich_text: date of {sorted(one)}"
                if not isinstance(one.get("timestamp"), int) or not one.get("fallback"):
                    yield "rich_text: date without a time or words"
            elif one["type"] in ("user", "usergroup"):
                named = one.get(f"{one['type']}_id", "")
                if len(one) != 2 or not re.fullmatch("[UWS][A-Z0-9]+", named):
                    yield f"rich_text: {one}"
            elif one["type"] != "text" or not one["text"] or len(one["text"]) > 3_000:
                yield f"rich_text: {one['type']} of {len(one.get('text', ''))} characters"


DATES = re.compile(r"<!date\^\d+\^\{date_short_pretty\} \{time\}\|[^<>|]+>")


def _small(element: Json) -> Iterator[str]:
    """Plain words, or Slack's own markup of which dates alone are made."""
    if element.get("type") != "mrkdwn":
        yield from _plain("context", element, 3_000)
    elif not element.get("verbatim") or not 0 < len(element["text"]) <= 3_000:
        yield "context: mrkdwn that is not verbatim, or too long"
    elif re.search(r"[<>*_~`]", DATES.sub("", element["text"])):
        yield f"context: more markup than dates: {element['text'][:80]}"


def _plain(what: str, text: Any, most: int) -> Iterator[str]:
    if not isinstance(text, dict) or text.get("type") != "plain_text":
        yield f"{what}: no plain_text"
    elif set(text) - {"type", "text", "emoji"} or not 1 <= len(text.get("text", "")) <= most:
        yield f"{what}: {len(text.get('text', ''))} characters, or unknown fields"


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(one) for name, one in value.items() if name != "type")
    return sum(map(_characters, value)) if isinstance(value, list) else 0


@cache
def official() -> Json:
    """The official types' definitions."""
    return json.loads(FILE.read_text("utf-8"))["definitions"]


@cache
def validator(name: str) -> Draft7Validator | None:
    """A validator of the official type `name`, None where there is none."""
    if name not in official():
        return None
    return Draft7Validator({"$ref": f"#/definitions/{name}", "definitions": official()})
