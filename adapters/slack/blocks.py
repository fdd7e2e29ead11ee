"""Block Kit: the parts of a message, within Slack's limits. Pure."""

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from adapters.slack.live.chunks import StreamChunks
from adapters.slack.markup import (
    clip,
    disarm,
    escape_markup,
    mark_hidden,
    strip_markup,
    write_mrkdwn,
)
from adapters.slack.parse import MODAL, STOP, WRITES, ModalOrigin
from adapters.slack.pictures import hush_pictures
from adapters.text import split
from gateway.messages import QuestionPress, read_press
from gateway.moment_texts import map_words
from gateway.texts import say
from gateway.views import Button, MentionedPerson

Block = dict[str, object]

ROOM = 11_000
"""Most characters of a message's blocks together: Slack refuses at about 13,200 (not documented),
and a `markdown` block at 12,000."""
BLOCKS = 40
TEXT = 2_900
LABEL, OPTION, HEADER, FALLBACK = 75, 75, 150, 1_000
ROW, OPTIONS = 25, 100
CONFIRM_TITLE, CONFIRM_TEXT, CONFIRM_BUTTON = 100, 300, 30
MODAL_TITLE, ANSWER = 24, 3_000
USER, GROUP = re.compile(r"[UW][A-Z0-9]{1,30}"), re.compile(r"@S[A-Z0-9]{1,30}")
STYLES = {"good": "primary", "bad": "danger"}


class SlackUpload(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file to be uploaded: a kept copy's `ref`, or its `text`. `alt` describes a picture."""

    name: str
    mime: str = ""
    ref: str = ""
    text: str = ""
    alt: str = ""


# ---- messages ------------------------------------------------------------------------------


def message(blocks: Sequence[Block], summary: str, stream: StreamChunks | None = None) -> bytes:
    """Make one message; `summary` is its text for notifications and screen readers, `stream` its
    form in a chat stream."""
    words = " ".join(summary.replace("&lt;", "<").split())  # the text before sanitising
    said = escape_markup(clip(words, FALLBACK)) or "…"
    made: dict[str, object] = {"text": said, "blocks": list(blocks)}
    return msgspec.json.encode(made | ({"stream": stream} if stream is not None else {}))


def upload(files: Sequence[SlackUpload], caption: str = "") -> bytes:
    """Make one message with files."""
    return msgspec.json.encode({"text": write_mrkdwn(caption), "files": list(files)})


def pack_blocks(blocks: Iterable[Block], last: Sequence[Block], summary: str) -> tuple[bytes, ...]:
    """Make as few messages as can hold all `blocks`; `last` ends the last of them."""
    groups: list[list[Block]] = [[]]
    used = 0
    for block in blocks:
        size = characters(block)
        if groups[-1] and (used + size > ROOM or len(groups[-1]) >= BLOCKS):
            groups.append([])
            used = 0
        groups[-1].append(block)
        used += size
    if used + sum(map(characters, last)) > ROOM and groups[-1]:
        groups.append([])
    groups[-1] += last
    return tuple(message(group, summary) for group in groups if group)


def characters(block: object) -> int:
    """Count the characters of `block` that count towards the limit."""
    if isinstance(block, str):
        return len(block)
    if isinstance(block, dict):
        return sum(characters(value) for name, value in block.items() if name != "type")
    return sum(map(characters, block)) if isinstance(block, list | tuple) else 0


# ---- blocks --------------------------------------------------------------------------------


def markdown(text: str) -> Block:
    return {"type": "markdown", "text": text}


def header(text: str) -> Block:
    return {"type": "header", "text": _plain_text(text, HEADER)}


def footnote(text: str) -> Block:
    """Small words below."""
    words = map_words(" ".join(text.split()), mark_hidden)
    element = {"type": "plain_text", "text": clip(words, TEXT), "emoji": False}
    return {"type": "context", "elements": [element]}


def rich(elements: Sequence[Block]) -> Block:
    return {"type": "rich_text", "elements": list(elements)}


def section(runs: Sequence[Block]) -> Block:
    return {"type": "rich_text_section", "elements": list(runs)}


def make_preformatted(text: str) -> Block:
    return {"type": "rich_text_preformatted", "elements": [run(text)]}


def make_quote(text: str) -> Block:
    return {"type": "rich_text_quote", "elements": [run(text)]}


def run(text: str, style: str = "") -> Block:
    """Words of a rich text: no markup is read in them. `style`: bold, italic, code, strike."""
    made: Block = {"type": "text", "text": text}
    return made | {"style": {style: True}} if style else made


def mentions(people: Sequence[MentionedPerson]) -> list[Block]:
    """People and user groups in a rich text, pinged by it."""
    found: list[Block] = []
    for one in people:
        if GROUP.fullmatch(one.id):
            found.append({"type": "usergroup", "usergroup_id": one.id[1:]})
        elif USER.fullmatch(one.id):
            found.append({"type": "user", "user_id": one.id})
    return [part for one in found for part in (run(" "), one)][1:]


def task(name: str, title: str, status: str, note: str = "", output: str = "") -> Block:
    """`output` can be unfolded."""
    made: Block = {"type": "task_card", "task_id": name, "title": title, "status": status}
    made |= {"details": rich([section([run(note)])])} if note else {}
    return made | ({"output": rich([make_preformatted(output)])} if output else {})


def plan(title: str, tasks: Sequence[Block]) -> Block:
    return {"type": "plan", "title": title, "tasks": list(tasks)}


# ---- buttons and modals --------------------------------------------------------------------


def buttons(
    given: Sequence[Button], writing: Sequence[Button] = (), sure: str = "", language: str = ""
) -> tuple[Block, ...]:
    """Make rows of buttons. Those in `writing` open a modal; `sure` is the confirmation of a
    lasting approval."""
    made, primary = [], False
    for n, one in enumerate(given):
        kind = WRITES if one in writing else "b"
        made.append(_button(f"{kind}{n}", one.label, one.token, one.url))
        style = STYLES.get(one.style, "")
        if style and not (style == "primary" and primary):  # Slack allows one primary per set
            made[-1]["style"] = style
            primary = primary or style == "primary"
        if sure and option(one) == "always":
            made[-1]["confirm"] = {
                "title": _plain_text(one.label, CONFIRM_TITLE),
                "text": _plain_text(sure, CONFIRM_TEXT),
                "confirm": _plain_text(one.label, CONFIRM_BUTTON),
                "deny": _plain_text(say("back", language), CONFIRM_BUTTON),
            }
    return _rows(made)


def choices(given: Sequence[Button], language: str) -> tuple[Block, ...]:
    """Buttons while they are few, else lists to choose from."""
    return buttons(given) if len(given) <= 5 else chooser(say("your_answer", language), given)


def chooser(title: str, given: Sequence[Button]) -> tuple[Block, ...]:
    """Lists to choose from."""
    options = [{"text": _plain_text(one.label, OPTION), "value": one.token} for one in given]
    lists = [options[at : at + OPTIONS] for at in range(0, len(options), OPTIONS)]
    return _rows(
        [
            {
                "type": "static_select",
                "action_id": f"c{n}",
                "placeholder": _plain_text(title, OPTION),
                "options": some,
            }
            for n, some in enumerate(lists)
        ]
    )


def writer(label: str, token: str, *, plain: bool = False) -> tuple[Block, ...]:
    """Make a button that opens a modal; a `plain` one is secondary."""
    style = {} if plain else {"style": "primary"}
    return _rows([_button(f"{WRITES}0", label, token) | style])


def stopper(language: str) -> tuple[Block, ...]:
    """Make a button that stops the turn, where Slack has none of its own."""
    return _rows([_button("stop", say("plan_stop", language), STOP) | {"style": "danger"}])


def modal(asked: ModalOrigin, language: str) -> dict[str, object]:
    """Make one field for words, which come back with the token of the button that opened it."""
    option = _option(asked.token)
    if option == "text":
        title = say("your_answer", language)
    else:
        title = say("reason" if option == "deny" else "wishes", language)
    field = {
        "type": "plain_text_input",
        "action_id": "words",
        "multiline": True,
        "max_length": ANSWER,
        "focus_on_load": True,
    }
    block = {
        "type": "input",
        "block_id": "words",
        "label": _plain_text(title, LABEL),
        "element": field,
        "optional": option == "deny",
    }
    return {
        "type": "modal",
        "callback_id": MODAL,
        "private_metadata": msgspec.json.encode(asked).decode(),
        "title": _plain_text(title, MODAL_TITLE),
        "submit": _plain_text(say("send_off", language), MODAL_TITLE),
        "close": _plain_text(say("back", language), MODAL_TITLE),
        "blocks": [block],
    }


def option(button: Button) -> str:
    """Return the answer that a button gives to its question, '' if it is no question's."""
    return _option(button.token)


def _option(token: str) -> str:
    press = read_press(token)
    return press.option if isinstance(press, QuestionPress) else ""


def texts(text: str, most: int = ROOM) -> list[str]:
    """`text`, harmless, in parts of a message each, or of at most so many characters."""
    parts = split(disarm(text.strip()), most)
    return [hush_pictures(part) for part in parts if part.strip()]


def _button(name: str, label: str, token: str, url: str = "") -> Block:
    """Make a button; one that opens `url` also reports a press, which means nothing without a
    token."""
    made: Block = {"type": "button", "action_id": name, "text": _plain_text(label, LABEL)}
    return made | ({"url": url} if url else {"value": token})


def _rows(made: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(
        {"type": "actions", "elements": list(made[at : at + ROW])}
        for at in range(0, len(made), ROW)
    )


def _plain_text(text: str, most: int) -> Block:
    return {"type": "plain_text", "text": clip(strip_markup(text), most) or "…", "emoji": False}
