"""Asks a person the questions of a server during its call, in the conversation.

A form's fields are asked one after the other, a link is shown whole. The server's words are bounded
and shown in a block of their own; a form that asks for a secret is declined without being shown.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from agent_core.mcp.form_fields import ElicitationRefused, FormField, read_form, read_value
from agent_core.mcp.secret_fields import demands_secret
from agent_core.phrases import Phrase, phrase
from agent_core.questions import Answer, Decision, Input, Question
from agent_core.text import clean, drop_hidden
from agent_core.tools.web.addresses import Unreachable, read_url

MAX_WORDS = 1_000
"""Characters of a server's message that are shown."""
MAX_URL = 2_000
MAX_VALUE = 100
"""Characters of a proposal that are shown."""
MAX_BUTTONS = 8
MAX_TRIES = 3
"""Attempts to get a valid answer for one field."""
ACCEPT, DECLINE, YES, NO, SKIP = "/accept", "/decline", "/yes", "/no", "/skip"
"""Options of ours; no server's begins like them."""
NONE = "-"
"""The word with which a person skips a field."""
_PLACE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_MARKUP = {ord(sign): f"%{ord(sign):02X}" for sign in "[]|$"}
Ask: TypeAlias = Callable[[str, Question], Awaitable[Answer]]
"""Puts a question, under a name that no other of the elicitation has. Raises Parked."""
Value: TypeAlias = str | int | float | bool | list[str]


class ServerForm(Struct, frozen=True, kw_only=True):
    """A form, by its flat JSON schema."""

    message: str
    schema: dict[str, object]


class ServerLink(Struct, frozen=True, kw_only=True):
    """A page that the person is to open."""

    message: str
    url: str


Elicitation: TypeAlias = ServerForm | ServerLink


class Reaction(Struct, frozen=True, kw_only=True):
    """The reply to the server. `note`: told to the model besides."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Value] | None = None
    note: str = ""


class _Over(Exception):
    """The person did not go on; the action says how."""

    def __init__(self, action: Literal["decline", "cancel"]) -> None:
        super().__init__(action)
        self.action = action


async def put_elicitation(server: str, wanted: Elicitation, ask: Ask) -> Reaction:
    """Ask the person what `server` asks. Questions are keyed by their content, so that none of them
    takes the answer to another one."""
    lead = (phrase("elicit_asks", server=server),)
    try:
        if isinstance(wanted, ServerLink):
            return await _put_link(lead, wanted, ask)
        fields, message = read_form(wanted.schema), _quote(wanted.message)
        is_written = any(one.kind in ("text", "number", "integer") for one in fields)
        if is_written and demands_secret(message):
            raise ElicitationRefused("its words ask for a secret, which no form may")
        return await _put_form(server, lead, message, fields, ask)
    except ElicitationRefused as why:
        return Reaction(action="decline", note=f"The server's form was not shown: {why}.")
    except _Over as over:
        return Reaction(action=over.action)


async def _put_link(lead: tuple[Phrase, ...], link: ServerLink, ask: Ask) -> Reaction:
    try:
        target = read_url(link.url)
    except Unreachable:
        raise ElicitationRefused("its link is none that can be opened") from None
    if not link.url.isascii() or len(link.url) > MAX_URL:
        raise ElicitationRefused("its link is none that can be opened")
    question = Decision(
        lead=lead,
        text=f"{_quote(link.message)}\n\n<{_write_url(link.url)}>",
        options=(ACCEPT, DECLINE),
        labels={ACCEPT: phrase("elicit_opened"), DECLINE: phrase("elicit_decline")},
        hints=(phrase("elicit_link", host=target.host),),
    )
    await _decide(question, ask, link.url)
    return Reaction(action="accept")


def _write_url(url: str) -> str:
    """`url` as the same one, in which no reader of Markdown finds another link or a formula."""
    place = _PLACE.match(url)
    end = place.end() if place is not None else 0
    return url[:end] + url[end:].translate(_MARKUP)


async def _put_form(
    server: str, lead: tuple[Phrase, ...], message: str, fields: tuple[FormField, ...], ask: Ask
) -> Reaction:
    content: dict[str, Value] = {}
    shown: list[str] = []
    for n, field in enumerate(fields):
        head = f"{message}\n\n" if not n else ""
        value = await _put_field(lead, f"{head}`{field.label}`{_describe_field(field)}", field, ask)
        if value is not None:
            content[field.name] = value
            shown.append(f"{field.label}: {_write_value(value)}")
    if len(fields) != 1:
        question = Decision(
            lead=lead if not fields else (phrase("elicit_send", server=server),),
            text=_quote("\n".join(shown)) if fields else message,
            options=(ACCEPT, DECLINE),
            labels={ACCEPT: phrase("elicit_accept"), DECLINE: phrase("elicit_decline")},
        )
        await _decide(question, ask)
    return Reaction(action="accept", content=content)


async def _put_field(
    lead: tuple[Phrase, ...], text: str, field: FormField, ask: Ask
) -> Value | None:
    """The value of a field; None where it is left out."""
    if field.kind == "yes_no" or (field.kind == "choice" and len(field.options) <= MAX_BUTTONS):
        return await _put_choice(lead, text, field, ask)
    leave = phrase("elicit_leave" if not field.required else "elicit_refuse")
    if field.default is not None and not field.required:
        leave = phrase("elicit_take", value=_show_value(field.default))
    hints = (field.expected, leave, phrase("elicit_no_secrets"))
    for n in range(MAX_TRIES):
        again = (phrase("elicit_again"),) if n else ()
        question = Input(lead=(*lead, *again), text=text, hints=hints)
        said = _take(await _ask(question, ask, f"{field.name}-{n}")).strip()
        if said == NONE:
            if field.required:
                raise _Over("decline")
            return field.default
        value = read_value(field, said)
        if value is not None:
            return value
    raise _Over("cancel")


async def _put_choice(
    lead: tuple[Phrase, ...], text: str, field: FormField, ask: Ask
) -> Value | None:
    values: dict[str, Value | None]
    labels = {DECLINE: phrase("elicit_decline")}
    if field.kind == "yes_no":
        values = {YES: True, NO: False}
        labels |= {YES: phrase("elicit_yes"), NO: phrase("elicit_no")}
    else:
        values = {title: value for value, title in field.options}
    if not field.required:
        values[SKIP] = field.default
        labels[SKIP] = phrase("elicit_skip")
    proposed: str | Phrase = _show_value(field.default)
    if isinstance(field.default, bool):  # like the label of its button
        proposed = phrase("elicit_yes" if field.default else "elicit_no")
    hints = (phrase("elicit_proposed", value=proposed),)
    question = Decision(
        lead=lead,
        text=text,
        options=(*values, DECLINE),
        labels=labels,
        hints=hints if field.default is not None else (),
    )
    return values.get(await _decide(question, ask, field.name))


async def _decide(question: Decision, ask: Ask, more: str = "") -> str:
    said = _take(await _ask(question, ask, more))
    if said == DECLINE:
        raise _Over("decline")
    return said


async def _ask(question: Question, ask: Ask, more: str) -> Answer:
    said = msgspec.json.encode([more, question])
    return await ask(hashlib.sha256(said).hexdigest()[:16], question)


def _take(answer: Answer) -> str:
    if answer.choice != "once":
        raise _Over("cancel")
    return answer.text


def _describe_field(field: FormField) -> str:
    words = f"\n{_quote(field.about)}" if field.about else ""
    if field.kind in ("choice", "choices") and len(field.options) > MAX_BUTTONS:
        words += "\n" + _quote("\n".join(title for _, title in field.options))
    return words


def _quote(words: str) -> str:
    """Quote a stranger's words in a block that none of them can end."""
    lines = [
        re.sub(r"\s+", " ", line) for line in drop_hidden(clean(words)).splitlines() if line.strip()
    ]
    text = "\n".join(lines).replace("`", "ˋ").replace("](", "] (")
    text = text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}…"
    return f"```\n{text or '—'}\n```"


def _write_value(value: Value | None) -> str:
    if isinstance(value, bool):  # as in a form, in any language
        return "☑" if value else "☐"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _show_value(value: Value | None) -> str:
    line = " ".join(drop_hidden(clean(_write_value(value))).replace("`", "ˋ").split())
    return f"`{line[:MAX_VALUE]}`" if line else "—"
