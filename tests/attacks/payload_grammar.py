"""What the platforms send, drawn from their own descriptions, and the same spoilt.

Telegram's and Discord's are the schemas in `tests/fixtures`. Of what Slack sends there is no schema:
its shapes are written here, as its documents show them.
"""

import copy
import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SCHEMAS = Path(__file__).parents[1] / "fixtures" / "schemas"
BOT, PERSON = 4001, 7
DEEPEST = 7
"""Levels of a value that is drawn; below only what has to be there."""
STRINGS = (
    *("", " ", "x", "private", "group", "supergroup", "channel", "mention", "text", "7", "4001"),
    *("/new@helper now", "/stop", "@helper hi", "<@4001> hi", "<@!7>", "<@&5>", "<@U0BOT> go", "é"),
    *("<https://a.example|b>", "&lt;x&gt;", "q:1:once", "w:q:1:text", "q:1:text", "stop", "1.000001"),
    *("U0ANN", "C0DEV", "D0ANN", "F0FILE", "T0TEAM", "2026-01-01T00:00:00+00:00", "😀\u200d", "\u202ea"),
    *("slack:U0BOT:T0TEAM:D0ANN::p stop", "a\0b", "\ufffe", "line\nline", "image/png", "a.png"),
    *("x\ud83d", "\udfff\ud800"),
)  # fmt: skip
LONG = (
    *("a", "<", "<a|", "<@", "</", "&amp;", "/", "@", "\n", " ", "*", "[", "](", "😀", "\u0301", "{", ":"),
    *("<@4001>", "<@&5>", "<!", "_a", "%41", "\\", '"'),
)  # fmt: skip
MAX_LONG = 100_000
NUMBERS = (0, 1, -1, PERSON, BOT, -1007, 2, 3, 5, 10, 11, 19, 1 << 13, (1 << 53) + 1, 1_700_000_000)
ODD = (
    *(None, True, False, 0, -1, 0.5, float("nan"), float("inf"), 2**63, 10**400, -(10**30)),
    *("", "\ud800", "\udfff\ud800", "x\ud83d", "\0", [], {}, [None], [[]], {"": None}),
    *({"\ud800": "\ud800"}, "１２", "²", "1" * 25, "-1", "1e5", "NaN", "٣", "__proto__"),
)
USUAL = ("from", "text", "data", "message", "caption", "entities", "photo", "reply_to_message")
"""Fields of Telegram's that need not be there, and mostly are."""
UNIONS = {"MaybeInaccessibleMessage": ("Message", "InaccessibleMessage")}


def draw_string(chance: random.Random) -> str:
    return chance.choice(STRINGS)


# ---- Telegram ------------------------------------------------------------------------------


@cache
def read_telegram() -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, str]]]:
    """Types with their fields; unions with their variants by tag."""
    found = json.loads((SCHEMAS / "telegram_updates.json").read_text("utf-8"))
    unions: dict[str, dict[str, str]] = {}
    for key, name in found["variants"].items():
        union, _, tag = key.partition("/")
        unions.setdefault(union, {})[tag] = name
    return found["schema"], unions


def draw_update(chance: random.Random) -> Json:
    """An update of the Bot API; mostly one that is listened to."""
    kinds = ("message", "edited_message", "callback_query", "my_chat_member",
             "stopped_message_generation")  # fmt: skip
    schema, _ = read_telegram()
    kind = chance.choice(kinds if chance.random() < 0.9 else list(schema["Update"])[1:])
    body = draw_type(schema["Update"][kind][0], chance, 0)
    return {"update_id": chance.randrange(1, 10**9), kind: body}


def draw_type(kind: str, chance: random.Random, depth: int, tag: str = "") -> Any:
    """A value of one of Telegram's types."""
    schema, unions = read_telegram()
    kind = chance.choice(kind.replace(", ", " or ").replace(" and ", " or ").split(" or "))
    if kind.startswith("Array of "):
        inside = kind.removeprefix("Array of ")
        return [draw_type(inside, chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == "RichText" and chance.random() < 0.6:
        return draw_string(chance)
    if kind in unions and depth <= 2 * DEEPEST:
        tag, name = chance.choice(list(unions[kind].items()))
        return draw_type(name, chance, depth, tag)
    if kind in UNIONS:
        return draw_type(chance.choice(UNIONS[kind]), chance, depth)
    if kind in schema:
        return draw_fields(schema[kind], chance, depth, tag)
    if kind in ("True", "Boolean"):
        return chance.random() < 0.1
    plain = {"Integer": chance.choice(NUMBERS), "Float": chance.random()}
    return plain.get(kind, draw_string(chance))


def draw_fields(fields: Mapping[str, Any], chance: random.Random, depth: int, tag: str) -> Json:
    """All that must be there, and some of the rest."""
    rest = 0.0 if depth > DEEPEST else min(0.5, 6 / ((len(fields) + 1) * (depth + 1)))
    usual = 0.0 if depth > DEEPEST else 1.6 / (depth + 1)
    return {
        name: tag if tag and name in ("type", "status") else draw_type(kind, chance, depth + 1)
        for name, (kind, required) in fields.items()
        if (required and depth <= 2 * DEEPEST)
        or chance.random() < (usual if name in USUAL else rest)
    }


# ---- Discord -------------------------------------------------------------------------------


@cache
def read_discord() -> Mapping[str, Any]:
    return json.loads((SCHEMAS / "discord_events.json").read_text("utf-8"))["components"]["schemas"]


def draw_event(chance: random.Random) -> tuple[str, Json]:
    """(kind, event) of Discord's gateway."""
    message = {"$ref": "/MessageResponse"}
    place = {"channel_id": chance.choice(("71", "90"))}
    place |= {"guild_id": "70"} if chance.random() < 0.6 else {}
    if chance.random() < 0.5:
        kind = chance.choice(("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"))
        found = draw_schema(message, chance, 0) | place
        member = draw_schema({"$ref": "/GuildMemberResponse"}, chance, 2)
        return kind, found | ({"member": member} if chance.random() < 0.5 else {})
    component = {"type": 18, "component": {"type": 4, "value": draw_string(chance)}}
    data = {
        "custom_id": draw_string(chance),
        "component_type": chance.choice((2, 3)),
        "name": chance.choice(("plan", "stop", "")),
        "type": chance.choice((1, 2, 3)),
        "options": [{"name": "text", "type": 3, "value": draw_string(chance)}],
        "values": [draw_string(chance)],
        "components": [component] * chance.randrange(3),
    }
    event = {
        "id": str(chance.randrange(1, 10**19)),
        "type": chance.choice((1, 2, 3, 4, 5)),
        "application_id": "4002",
        "token": "a-token",
        "locale": chance.choice(("de", "en-US", "")),
        "data": data,
        "message": draw_schema(message, chance, 2),
        "member": draw_schema({"$ref": "/GuildMemberResponse"}, chance, 2),
        "user": draw_schema({"$ref": "/UserResponse"}, chance, 2),
        "channel": {"id": "71", "type": chance.choice((0, 1, 11))},
        "context": chance.choice((0, 1, 2)),
    }
    return "INTERACTION_CREATE", event | place


def draw_schema(schema: Any, chance: random.Random, depth: int) -> Any:
    """A value of a JSON schema, as OpenAPI has it."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return str(chance.choice(NUMBERS)) if name == "SnowflakeType" else draw_schema(
            read_discord()[name], chance, depth
        )  # fmt: skip
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return draw_schema(chance.choice(schema[several]), chance, depth)
    if "const" in schema or "enum" in schema:
        return chance.choice(schema.get("enum") or [schema["const"]])
    kinds = schema.get("type", "object")
    match chance.choice(kinds) if isinstance(kinds, list) else kinds:
        case "object":
            fields, needed = schema.get("properties", {}), schema.get("required", ())
            rest = 0.0 if depth > DEEPEST else min(0.6, 8 / (len(fields) + 1))
            return {
                name: draw_schema(one, chance, depth + 1)
                for name, one in fields.items()
                if (name in needed and depth <= 2 * DEEPEST) or chance.random() < rest
            }
        case "array":
            inside = schema.get("items", {"type": "string"})
            most = 3 if depth <= DEEPEST else 1
            return [draw_schema(inside, chance, depth + 1) for _ in range(chance.randrange(most))]
        case "integer":
            return chance.choice(NUMBERS)
        case "number":
            return chance.random()
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
    return draw_string(chance)


# ---- Slack ---------------------------------------------------------------------------------

SUBTYPES = ("", "", "file_share", "thread_broadcast", "message_changed", "message_deleted",
            "channel_join", "bot_message")  # fmt: skip


def draw_said(chance: random.Random, depth: int = 0) -> Json:
    """A message, as events have it."""
    found: Json = {"type": "message", "text": draw_string(chance), "user": "U0ANN"}
    found |= {"ts": f"{chance.randrange(1, 99)}.{chance.randrange(10**6):06d}"}
    found |= {"thread_ts": "1.000001"} if chance.random() < 0.4 else {}
    found |= {"blocks": [{"type": "rich_text", "elements": []}]} if chance.random() < 0.3 else {}
    if chance.random() < 0.4:
        file = {"id": "F0FILE", "name": "a.png", "mimetype": "image/png", "size": 5}
        found["files"] = [file | {"mode": chance.choice(("hosted", "tombstone"))}]
    if chance.random() < 0.3 and depth < 2:
        shared = {"is_share": True, "author_name": "Bob", "text": draw_string(chance)}
        found["attachments"] = [shared | {"files": [{"id": "F1FILE"}]}]
    return found


def draw_slack(chance: random.Random) -> tuple[str, Json]:
    """(kind as Socket Mode calls it, payload)."""
    where, stamp = chance.choice(("C0DEV", "D0ANN", "G0MPIM")), "10.000001"
    person = {"id": "U0ANN", "team_id": "T0TEAM"}
    match chance.randrange(6):
        case 0 | 1:
            subtype = chance.choice(SUBTYPES)
            event = draw_said(chance) | {"channel": where, "channel_type": "im"}
            event |= {"type": chance.choice(("message", "message", "app_mention"))}
            event |= {"subtype": subtype, "message": draw_said(chance)} if subtype else {}
            event |= {"previous_message": draw_said(chance)} if subtype else {}
        case 2:
            kinds = ("app_home_opened", "member_left_channel", "agent_session_stopped")
            event = {"type": chance.choice((*kinds, "channel_archive")), "channel": where}
            event |= {"user": "U0ANN", "tab": "home", "thread_ts": stamp}
        case 3:
            command = {"command": "/turnkeeper", "text": draw_string(chance), "user_id": "U0ANN"}
            command |= {
                "channel_id": where,
                "trigger_id": "1.2",
                "response_url": "https://a.example",
            }
            return "slash_commands", command
        case 4:
            action = {"action_id": draw_string(chance), "value": draw_string(chance)}
            action |= {"action_ts": stamp, "selected_option": {"value": draw_string(chance)}}
            pressed = {"type": "block_actions", "user": person, "actions": [action]}
            pressed |= {"channel": {"id": where}, "message": draw_said(chance), "trigger_id": "1"}
            pressed |= {"view": {"type": "home"}} if chance.random() < 0.3 else {}
            return "interactive", pressed | {
                "container": {"message_ts": stamp, "channel_id": where}
            }
        case _:
            kept = json.dumps({"token": "q:1:text", "channel": where, "message": stamp})
            about = {"channel": where, "thread": stamp, "message": stamp, "author": "", "text": ""}
            name = chance.choice(("words", "about"))
            view = {"id": "V1", "callback_id": name, "private_metadata": kept}
            view |= {"private_metadata": json.dumps(about)} if name == "about" else {}
            values = {
                "words": {"words": {"type": "plain_text_input", "value": draw_string(chance)}}
            }
            sent = {"type": chance.choice(("view_submission", "message_action")), "user": person}
            sent |= {"callback_id": "ask_about", "trigger_id": "1", "channel": {"id": where}}
            sent |= {"message": draw_said(chance), "view": view | {"state": {"values": values}}}
            return "interactive", sent
    payload = {"type": "event_callback", "event_id": "Ev1", "team_id": "T0TEAM", "event": event}
    return "events_api", payload


# ---- spoilt --------------------------------------------------------------------------------


def spoil(payload: Json, chance: random.Random) -> Json:
    """`payload`, changed in place: a few of its values replaced, left out, nested or repeated."""
    repeated = chance.randrange(8)  # at most once, for what is repeated in what is repeated is huge
    for n in range(chance.randint(1, 4)):
        places = list(walk(payload))
        if not places:
            return payload
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case _ if n == repeated:
                holder[key] = [holder[key]] * chance.choice((2, 300))
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1:
                holder[key] = nest(holder[key], chance)
            case 2:
                unit = chance.choice(LONG)
                holder[key] = unit * (chance.choice((1_000, MAX_LONG)) // len(unit))
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD))
    return payload


def nest(value: Any, chance: random.Random) -> Any:
    """`value`, far down; the deepest as far as JSON is read at all."""
    key = chance.choice(("", "text", "blocks", "message", "components", "reply_to_message"))
    for _ in range(chance.choice((3, 30, 900))):
        value = {key: value} if key else [value]
    return value


def walk(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a value: what holds it, and its key there."""
    waiting, seen = [value], set[int]()
    while waiting:
        holder = waiting.pop()
        if id(holder) in seen:  # what is repeated is one value
            continue
        seen.add(id(holder))
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
