"""What Discord takes, as far as it is used: fields, types, limits. Anything else is a violation."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Json = dict[str, Any]
Check = Callable[[Any], bool]

SUPPRESS_EMBEDS, EPHEMERAL, QUIET, V2 = 1 << 2, 1 << 6, 1 << 12, 1 << 15
MAX_COMPONENTS, MAX_TEXT = 40, 4_000


def _text(least: int, most: int) -> Check:
    return lambda value: isinstance(value, str) and least <= len(value) <= most


def _number(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def _items(least: int, most: int) -> Check:
    return lambda value: isinstance(value, list) and least <= len(value) <= most


def _bool(value: Any) -> bool:
    return isinstance(value, bool)


def _dict(value: Any) -> bool:
    return isinstance(value, dict)


ID = _text(1, 100)
COMPONENTS: dict[int, dict[str, Check]] = {
    1: {"components!": _items(1, 5)},
    2: {"style!": _number(1, 4), "label!": _text(1, 80), "custom_id!": ID},
    3: {"custom_id!": ID, "options!": _items(1, 25), "placeholder": _text(1, 150)},
    4: {
        "custom_id!": ID,
        "style!": _number(1, 2),
        "required": _bool,
        "max_length": _number(1, 4000),
    },
    10: {"content!": _text(1, MAX_TEXT)},
    12: {"items!": _items(1, 10)},
    13: {"file!": _dict},
    17: {"accent_color": _number(0, 0xFFFFFF), "components!": _items(1, 40)},
    18: {"label!": _text(1, 45), "component!": _dict},
}
LINK: dict[str, Check] = {
    "style!": _number(5, 5),
    "label!": _text(1, 80),
    "url!": lambda value: str(value).startswith(("http://", "https://")) and len(value) <= 512,
}
"""A button that opens an address."""
INSIDE = {0: {1, 10, 12, 13, 17}, 17: {1, 10, 12, 13}, 1: {2, 3}, 18: {4}, -1: {18, 10}}
"""What may stand in what; 0 is a message, -1 a modal."""


def _named_pings(value: Any) -> bool:
    """Nobody is pinged but those who are named by their ids."""
    named = [value.get(name, []) for name in ("users", "roles")]
    return (
        value["parse"] == []
        and value.keys() <= {"parse", "users", "roles", "replied_user"}
        and value.get("replied_user") in (None, True)
        and all(len(ids) <= 100 and all(one.isdecimal() for one in ids) for ids in named)
    )


MESSAGE: dict[str, Check] = {
    "flags": _number(0, 1 << 16),
    "allowed_mentions!": _named_pings,
    "components!": _items(1, MAX_COMPONENTS),
    "attachments": _items(0, 10),
}
NEW: dict[str, Check] = MESSAGE | {
    "nonce!": _text(1, 25),
    "enforce_nonce!": _bool,
    "message_reference": lambda value: set(value) == {"message_id", "fail_if_not_exists"},
}
THREAD: dict[str, Check] = {"name!": _text(1, 100)}
WHISPER: dict[str, Check] = {
    "content!": _text(1, 2_000),
    "flags!": lambda value: value == EPHEMERAL | SUPPRESS_EMBEDS,
    "allowed_mentions!": lambda value: value == {"parse": []},
}
LOCALES = frozenset(
    [
        "id",
        "da",
        "de",
        "en-GB",
        "en-US",
        "es-ES",
        "es-419",
        "fr",
        "hr",
        "it",
        "lt",
        "hu",
        "nl",
        "no",
        "pl",
        "pt-BR",
        "ro",
        "fi",
        "sv-SE",
        "vi",
        "tr",
        "cs",
        "el",
        "bg",
        "ru",
        "uk",
        "hi",
        "th",
        "zh-CN",
        "ja",
        "zh-TW",
        "ko",
    ]
)
"""What Discord calls the languages that it knows."""


def _localized(value: Any) -> bool:
    known = isinstance(value, dict) and value.keys() <= LOCALES
    return known and all(_text(1, 100)(text) for text in value.values())


COMMAND: dict[str, Check] = {
    "type!": _number(1, 1),
    "name!": lambda v: isinstance(v, str) and v.islower() and v.isidentifier() and len(v) <= 32,
    "description!": _text(1, 100),
    "description_localizations": _localized,
    "options": _items(0, 25),
    "default_member_permissions": lambda value: value == "0",
    "integration_types": _items(1, 2),
    "contexts": _items(1, 3),
}
OPTION: dict[str, Check] = {
    "type!": _number(3, 3),
    "name!": _text(1, 32),
    "description!": _text(1, 100),
    "description_localizations": _localized,
    "required": _bool,
    "autocomplete": _bool,
}
CHOICE: dict[str, Check] = {"name!": _text(1, 100), "value!": _text(1, 100)}


def fields(value: Any, known: dict[str, Check], where: str) -> Iterator[str]:
    """Violations of `value`'s own fields; names that end in ! are required."""
    if not isinstance(value, dict):
        yield f"{where}: no object"
        return
    checks = {name.rstrip("!"): check for name, check in known.items()}
    for name, given in value.items():
        if name not in checks:
            yield f"{where}.{name}: unknown"
        elif not checks[name](given):
            yield f"{where}.{name}: {str(given)[:80]!r}"
    for name in known:
        if name.endswith("!") and name.rstrip("!") not in value:
            yield f"{where}.{name}: missing"


def check_message(payload: Any, files: Sequence[str] = (), *, new: bool) -> list[str]:
    """Violations of a message to be sent or edited; `files`: names of what comes with it."""
    found = list(fields(payload, NEW if new else MESSAGE, "message"))
    if not isinstance(payload, dict):
        return found
    flags = payload.get("flags", 0)
    if not flags & V2:
        found.append("message.flags: not Components V2")
    if flags & ~(V2 | SUPPRESS_EMBEDS | (QUIET if new else 0)):
        found.append(f"message.flags: {flags}")
    found += check_components(payload.get("components", []), 0)
    named = [one.get("filename") for one in payload.get("attachments", [])]
    if named != list(files):
        found.append(f"attachments {named} are not the files {files}")
    referred = list(_referred(payload.get("components", [])))
    if sorted(referred) != sorted(f"attachment://{name}" for name in files):
        found.append(f"components show {referred}, files are {files}")
    return found


def check_components(components: Any, within: int) -> list[str]:
    """Violations of the components of a message (0) or a modal (-1)."""
    found = list(_each(components, within))
    whole = list(walk(components))
    if len(whole) > MAX_COMPONENTS:
        found.append(f"{len(whole)} components")
    size = sum(len(one.get("content", "").encode("utf-16-le")) // 2 for one in whole)
    if size > MAX_TEXT:
        found.append(f"{size} characters of text")
    ids = [one["custom_id"] for one in whole if "custom_id" in one]
    if len(ids) != len(set(ids)):
        found.append(f"custom_id twice: {ids}")
    return found


def _each(components: Any, within: int) -> Iterator[str]:
    for one in components if isinstance(components, list) else [components]:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind not in INSIDE.get(within, set()):
            yield f"{kind} inside {within}"
            continue
        taken = LINK if kind == 2 and "url" in one else COMPONENTS[kind]
        yield from fields(one, taken | {"type!": _number(kind, kind)}, str(kind))
        if kind == 10 and not any(c.isprintable() and not c.isspace() for c in one["content"]):
            yield f"nothing is seen of {one['content']!r}"
        if kind in (1, 17):
            yield from _each(one["components"], kind)
        lists = [inside for inside in one.get("components", []) if inside.get("type") == 3]
        if kind == 1 and lists and len(one["components"]) > 1:
            yield "a list to choose from is alone in its row"
        if kind == 18:
            yield from _each(one["component"], kind)
        for option in one.get("options", []):
            known = {"label!": _text(1, 100), "value!": _text(1, 100)}
            yield from fields(option, known, "option")
        for item in one.get("items", []):
            yield from fields(item, {"media!": _dict}, "item")


def walk(components: Any) -> Iterator[Json]:
    """Every component, the ones inside others too."""
    for one in components:
        yield one
        yield from walk(one.get("components", []))
        if "component" in one:
            yield from walk([one["component"]])


def _referred(components: Any) -> Iterator[str]:
    for one in walk(components):
        if one["type"] == 13:
            yield one["file"]["url"]
        if one["type"] == 12:
            yield from (item["media"]["url"] for item in one["items"])


def check_answer(answer: Any) -> list[str]:
    """Violations of the first answer to an interaction."""
    kind = answer.get("type") if isinstance(answer, dict) else None
    match kind:
        case 4:
            return list(fields(answer.get("data"), WHISPER, "answer"))
        case 6:
            return list(fields(answer, {"type!": _number(6, 6)}, "answer"))
        case 8:
            choices = answer["data"]["choices"]
            found = [one for choice in choices for one in fields(choice, CHOICE, "choice")]
            return found + (["more than 25 choices"] if len(choices) > 25 else [])
        case 9:
            known = {"custom_id!": ID, "title!": _text(1, 45), "components!": _items(1, 5)}
            data = answer.get("data", {})
            return [
                *fields(data, known, "modal"),
                *check_components(data.get("components", []), -1),
            ]
    return [f"answer of type {kind}"]


def check_commands(commands: Any) -> list[str]:
    """Violations of the menu."""
    found = [] if isinstance(commands, list) and len(commands) <= 100 else ["no list of commands"]
    for one in commands:
        found += fields(one, COMMAND, "command")
        for option in one.get("options", []):
            found += fields(option, OPTION, "option")
    names = [one.get("name") for one in commands]
    return found if len(names) == len(set(names)) else [*found, "a command twice"]
