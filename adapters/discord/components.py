"""Payloads of messages in Components V2, apart from their channel. Pure.

Every message is one: `flags` has the bit, so there is no `content` and nothing is unfurled. Only
the people mentioned by a question or a reminder are pinged.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from adapters.discord.markdown import is_visible
from adapters.discord.parse import ID, STOP
from gateway.texts import say
from gateway.views import Button, MentionedPerson

SUPPRESS_EMBEDS, EPHEMERAL, QUIET, V2 = 1 << 2, 1 << 6, 1 << 12, 1 << 15
ROW, ROWS = 5, 5
LABEL, OPTION, OPTIONS = 80, 100, 25
TITLE, ANSWER = 45, 4_000
STYLES = {"plain": 2, "good": 3, "bad": 4}
OPENS = 5
WRITES = "w:"
"""Prefix of a button's custom_id that opens a modal; its token follows."""
NO_PINGS: Mapping[str, object] = {"parse": ()}

Component = dict[str, object]

# ---- payloads ------------------------------------------------------------------------------


class DiscordUpload(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file to be uploaded: a kept copy's `ref`, or its `text`."""

    name: str
    mime: str = ""
    ref: str = ""
    text: str = ""


def name_mentions(people: Sequence[MentionedPerson]) -> str:
    """Mentions of people and roles, which ping them where `allow_pings` names them too."""
    return " ".join(f"<@{'&' if role else ''}{number}>" for role, number in _read_ids(people))


def allow_pings(people: Sequence[MentionedPerson]) -> Mapping[str, object]:
    """Return the allowed mentions of a message that pings these people and nobody else."""
    found = _read_ids(people)
    users, roles = ([number for role, number in found if role is one] for one in (False, True))
    return {"parse": (), "users": users, "roles": roles} if found else NO_PINGS


def _read_ids(people: Sequence[MentionedPerson]) -> list[tuple[bool, str]]:
    """Ids, and whether each is a role's."""
    found = ((one.id.startswith("@"), one.id.removeprefix("@")) for one in people)
    return list(dict.fromkeys(one for one in found if one[1].isascii() and ID.fullmatch(one[1])))


def message(
    components: Sequence[Component],
    files: Sequence[DiscordUpload] = (),
    *,
    quiet: bool = False,
    pings: Mapping[str, object] = NO_PINGS,
) -> bytes:
    """Make one message. The adapter takes `files` out and uploads them."""
    payload: dict[str, object] = {
        "flags": V2 | SUPPRESS_EMBEDS | (QUIET if quiet else 0),
        "allowed_mentions": pings,
        "components": components,
    }
    if files:
        payload["files"] = files
    return msgspec.json.encode(payload)


def messages(
    texts: Sequence[str],
    last: Sequence[Component] = (),
    *,
    accent: int = -1,
    quiet: bool = False,
    pings: Mapping[str, object] = NO_PINGS,
) -> tuple[bytes, ...]:
    """Make a message for each of `texts`, the last one with `last`; `accent`: as cards of that
    colour. `pings`: the people they may ping."""
    shown = [text for text in texts if is_visible(text)]
    found = []
    for n, one in enumerate(shown or ([""] if last else [])):
        within = [*text(one), *(last if n + 1 >= len(shown) else ())]
        within = list(card(within, accent)) if accent >= 0 else within
        found.append(message(within, quiet=quiet, pings=pings))
    return tuple(found)


def text(content: str) -> tuple[Component, ...]:
    """Make a text; () if nothing of it is visible."""
    return ({"type": 10, "content": content},) if is_visible(content) else ()


def card(within: Sequence[Component], accent: int) -> tuple[Component, ...]:
    """Make a container with a coloured edge; () if it is empty."""
    return ({"type": 17, "accent_color": accent, "components": within},) if within else ()


def gallery(names: Sequence[str]) -> Component:
    """Pictures that are uploaded with the message."""
    return {"type": 12, "items": [{"media": {"url": f"attachment://{name}"}} for name in names]}


def file(name: str) -> Component:
    """Make a file that is uploaded with the message."""
    return {"type": 13, "file": {"url": f"attachment://{name}"}}


def buttons(given: Sequence[Button], writing: Sequence[str] = ()) -> tuple[Component, ...]:
    """Make rows of buttons, each token once. Those whose token is in `writing` open a modal."""
    known = list({one.token or one.url: one for one in reversed(given)}.values())[::-1]
    made = [_button(one, WRITES if one.token in writing else "") for one in known[: ROW * ROWS]]
    return tuple({"type": 1, "components": made[at : at + ROW]} for at in range(0, len(made), ROW))


def _button(one: Button, kind: str) -> Component:
    label = _label(one.label, LABEL)
    if one.url:
        return {"type": 2, "style": OPENS, "label": label, "url": one.url}
    custom_id = f"{kind}{one.token}"
    return {"type": 2, "style": STYLES[one.style], "label": label, "custom_id": custom_id}


def choices(given: Sequence[Button]) -> tuple[Component, ...]:
    """Buttons while they fit into a row, else lists to choose from."""
    known = list({one.token: one for one in reversed(given)}.values())[::-1][: OPTIONS * ROWS]
    if len(known) <= ROW:
        return buttons(known)
    options = [{"label": _label(one.label, OPTION), "value": one.token} for one in known]
    lists = (options[at : at + OPTIONS] for at in range(0, len(options), OPTIONS))
    return tuple(
        {"type": 1, "components": [{"type": 3, "custom_id": f"choice:{n}", "options": some}]}
        for n, some in enumerate(lists)
    )


def writer(label: str, token: str, *, plain: bool = False) -> tuple[Component, ...]:
    """Make a button that opens a modal, whose words come back with `token`. A `plain` one is
    secondary."""
    style = STYLES["plain"] if plain else 1
    name = f"{WRITES}{token}"
    made = {"type": 2, "style": style, "label": _label(label, LABEL), "custom_id": name}
    return ({"type": 1, "components": [made]},)


def stopper(language: str) -> tuple[Component, ...]:
    """Make a button that stops the turn: Discord has none of its own."""
    return buttons([Button(label=say("plan_stop", language), token=STOP, style="bad")])


def modal(token: str, title: str, *, needed: bool) -> dict[str, object]:
    """Make the answer to a press that asks for words: one field, which comes back with `token`."""
    field = {
        "type": 4,
        "custom_id": "text",
        "style": 2,
        "required": needed,
        "max_length": ANSWER,
    }
    label = {"type": 18, "label": _label(title, TITLE), "component": field}
    data = {"custom_id": token, "title": _label(title, TITLE), "components": [label]}
    return {"type": 9, "data": data}


def _label(label: str, most: int) -> str:
    line = " ".join(label.split())
    line = line if is_visible(line) else "…"
    return line if len(line) <= most else f"{line[: most - 1]}…"
