"""Renders views as Discord payloads: one JSON object a message. Pure: same view, same bytes.

Cards are containers with an edge in the colour of their state. Nothing is cut off: an answer of too
many messages comes as a file after its beginning.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import assert_never

from adapters.calls import (
    CALLS_FILE,
    CallDescription,
    describe_call,
    describe_scope,
    fold_decided,
    write_calls_file,
)
from adapters.discord.components import (
    Component,
    DiscordUpload,
    allow_pings,
    buttons,
    choices,
    file,
    gallery,
    message,
    messages,
    name_mentions,
    stopper,
    text,
    writer,
)
from adapters.discord.markdown import (
    LIMIT,
    escape_markup,
    exact_code,
    fence,
    is_visible,
    parts,
    write_command,
)
from adapters.discord.moments import write_in_payload
from adapters.discord.progress import activity, plan
from adapters.formulas import show_formulas
from adapters.links import show_targets
from adapters.text import cut_beginning, measure_utf16, split
from adapters.words import RISKS
from adapters.written import shorten_growing, show_signs
from gateway.command_texts import write_in_view
from gateway.moment_texts import map_words
from gateway.texts import say
from gateway.texts.signs import visible
from gateway.views import (
    CARD_MARKS,
    Activity,
    ApprovalCard,
    Button,
    CardState,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    Notice,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    View,
    show_doubt,
)

MAX_MESSAGES = 5
BEGINNING = 1
"""Messages in which an answer grows; one of more than MAX_MESSAGES is shortened to that many, and a
file."""
MAX_NOTE = 1_500
"""Characters of the note below an answer."""
MAX_FILE = 10 << 20
"""A bot's upload limit where nobody pays for more."""
MAX_FILES = 10
NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")

NO_COMMANDS: Mapping[str, str] = {}

LISTED = 0x80848E
"""The edge of a card that offers something and asks nothing."""
COLOURS: dict[CardState, int] = {
    "open": 0x5865F2,
    "approved": 0x248046,
    "answered": 0x248046,
    "denied": 0xDA373C,
    "expired": 0x80848E,
    "cancelled": 0x80848E,
}


def render(view: View, commands: Mapping[str, str] = NO_COMMANDS) -> tuple[bytes, ...]:
    """Render `view` as native payloads in order; () if there is nothing to show. `commands`: the
    ids of the bot's commands."""
    write = partial(write_command, ids=commands)
    view = shorten_growing(show_doubt(view), LIMIT)
    view = write_in_view(show_targets(show_formulas(view)), write, moments=True)
    view = show_signs(view)
    return tuple(map(write_in_payload, _payloads(view)))


def _payloads(view: View) -> tuple[bytes, ...]:
    match view:
        case ReplyView():
            return _reply(view)
        case Activity():
            return activity(view)
        case PlanView():
            return plan(view)
        case ApprovalCard():
            return _approval(view)
        case ChoiceCard():
            own = writer(say("something_else", view.language), view.token, plain=True)
            return _card(view, choices(view.buttons) + (own if view.token else ()))
        case FormCard():
            return _card(view, writer(say("your_answer", view.language), view.token))
        case Media():
            return _media(view)
        case ReportView():
            title = " ".join(view.title.split())
            heading = f"### {escape_markup(visible(title)[:500])}\n" if title else ""
            return _answer(heading + view.text, view.note, "report.md", view.language)
        case Notice():
            return _notice(view)
        case SaidView():
            return ()
    assert_never(view)


def _notice(view: Notice) -> tuple[bytes, ...]:
    mark, people = "✕ " if view.tone == "error" else "", name_mentions(view.mentions)
    shown = parts(f"{mark}{view.text}")
    if people and shown:
        shown[-1] = f"{shown[-1]}\n{people}"
    pings = allow_pings(view.mentions)
    return messages(shown, buttons(view.buttons), quiet=view.quiet, pings=pings)


def _reply(view: ReplyView) -> tuple[bytes, ...]:
    """Render a growing answer as far as it will certainly stay one message."""
    if view.state == "streaming":
        shown = parts(view.text)[:BEGINNING]
        return messages(shown, stopper(view.language) if shown else ())
    return _answer(view.text, view.note, "answer.md", view.language)


def _answer(whole: str, note: str, name: str, language: str) -> tuple[bytes, ...]:
    """Render its parts with the note below, or its beginning and all of it as a file."""
    shown = parts(whole)
    below = [_render_small(note)] if is_visible(note) else []
    if len(shown) > MAX_MESSAGES:
        attached = DiscordUpload(name=name, mime="text/markdown", text=whole)
        said = text(say("whole_in_file", language))
        document = message((*said, file(name)), (attached,))
        begun = parts(cut_beginning(whole))[:BEGINNING]
        return (*messages(begun), document, *messages(below))
    if below and shown and measure_utf16(shown[-1]) + measure_utf16(below[0]) < LIMIT:
        shown, below = [*shown[:-1], f"{shown[-1]}\n{below[0]}"], []
    return messages([*shown, *below])


def _render_small(note: str) -> str:
    line = map_words(" ".join(note.split()), visible)
    return f"-# {escape_markup(line[:MAX_NOTE])}"


# ---- cards ---------------------------------------------------------------------------------


def _approval(view: ApprovalCard) -> tuple[bytes, ...]:
    """Render an open question, over several messages if need be, with the buttons in the last one;
    a decided one in one line."""
    language, many = view.language, len(view.proposals) > 1
    calls = [(line, describe_call(line, language)) for line in view.proposals]
    full = write_calls_file(call for _, call in calls)
    attached = (_calls_file(full, language),) if full else ()
    if view.state != "open":
        decided = fold_decided(view)
        line = "\n".join(filter(is_visible, (_bold(decided.what), escape_markup(decided.outcome))))
        return (*attached, *messages(_split(line), accent=COLOURS[view.state]))
    asking = say("ask_many", language, n=len(view.proposals)) if many else say("ask_one", language)
    asker = escape_markup(say("asked_by", language, name=view.asker)) if view.asker else ""
    people = name_mentions(view.mentions)
    people = f"{say('to_decide', language)} {people}" if people else ""
    folded = () if attached else (_call_in_full(call, language) for _, call in calls)
    above = "\n\n".join(filter(is_visible, folded))
    whole = [
        "\n".join(filter(None, (f"**{CARD_MARKS[view.state]} {asking}**", asker, people))),
        *(_proposal(line, call, language) for line, call in calls),
        escape_markup(describe_scope(view)),
        _bold(view.outcome),
    ]
    shown = [*_split(above), *_split("\n\n".join(filter(is_visible, whole)))]
    last = _render_decision(view.buttons, language)
    pings = allow_pings(view.mentions)
    return (*attached, *messages(shown, last, accent=COLOURS[view.state], pings=pings))


def _calls_file(full: str, language: str) -> bytes:
    attached = DiscordUpload(name=CALLS_FILE, mime="text/plain", text=full)
    return message((*text(say("whole_call", language)), file(CALLS_FILE)), (attached,))


def _render_decision(given: Sequence[Button], language: str) -> tuple[Component, ...]:
    """The buttons, and one more for a refusal that says why."""
    denying = [one for one in given if one.token.endswith(":deny")]
    why = say("deny_reason", language)
    wordy = [Button(label=why, token=f"w:{one.token}") for one in denying]
    return buttons((*given, *wordy))


def _call_in_full(call: CallDescription, language: str) -> str:
    """Render a call in full above the card that it is too long for: Discord folds nothing."""
    return (
        f"{escape_markup(say('whole_call', language))}\n{fence(call.whole)}" if call.whole else ""
    )


def _proposal(line: ProposalLine, call: CallDescription, language: str) -> str:
    pieces = (
        f"**{escape_markup(call.title)}**, {say(RISKS[line.risk], language)}",
        escape_markup(line.reason),
        *(f"{escape_markup(name)}: {exact_code(value)}" for name, value in call.facts),
        fence(call.body, "diff" if call.kind == "diff" else ""),
        *(f"**⚠ {escape_markup(warning)}**" for warning in call.warnings),
        _detail(call.notes),
    )
    return "\n".join(filter(is_visible, pieces))


def _detail(words: str) -> str:
    """The policy's words on the call, which must not look like something that will run."""
    return "\n".join(f"> {escape_markup(one)}" for one in words.split("\n") if is_visible(one))


def _card(view: ChoiceCard | FormCard, asking: tuple[Component, ...]) -> tuple[bytes, ...]:
    """Render a question with its buttons, or with its answer."""
    decided = _bold(f"{CARD_MARKS[view.state]} {view.outcome}") if is_visible(view.outcome) else ""
    shown = [*parts(view.text), *_split(decided)]
    if len(shown) > 1 and measure_utf16("".join(shown[-2:])) < LIMIT:
        shown[-2:] = ["\n\n".join(shown[-2:])]
    last = asking if view.state == "open" else ()
    listed = view.state == "open" and not view.question  # informational only
    return messages(shown, last, accent=LISTED if listed else COLOURS[view.state])


def _bold(words: str) -> str:
    line = escape_markup(" ".join(words.split()))
    return f"**{line}**" if is_visible(line) else ""


def _split(whole: str) -> list[str]:
    return [part.strip("\n") for part in split(whole, LIMIT, measure_utf16) if is_visible(part)]


# ---- files ---------------------------------------------------------------------------------


def _media(view: Media) -> tuple[bytes, ...]:
    """The caption with the first files; pictures in galleries, others one below another."""
    caption = parts(view.caption)
    above, near = (caption[:-1], caption[-1:]) if view.files else (caption, [])
    made = list(messages(above))
    for group in _groups([one for one in view.files if one.size <= MAX_FILE]):
        names = list(_names(group))
        pictures = [name for name, one in zip(names, group, strict=True) if one.picture]
        others = [name for name, one in zip(names, group, strict=True) if not one.picture]
        within = [*(text(near[0]) if near else ()), *([gallery(pictures)] if pictures else [])]
        sources = [
            DiscordUpload(name=name, mime=one.mime, ref=one.ref)
            for name, one in zip(names, group, strict=True)
        ]
        made.append(message([*within, *map(file, others)], sources))
        near = []
    large = [one for one in view.files if one.size > MAX_FILE]
    notes = "\n".join(f"✕ {escape_markup(_too_large(one, view.language))}" for one in large)
    return (*made, *messages([*near, *_split(notes)]))


def _groups(files: Sequence[MediaFile]) -> Iterator[list[MediaFile]]:
    """Yield groups of at most ten files that one call can carry."""
    group: list[MediaFile] = []
    for one in files:
        if len(group) == MAX_FILES or sum(near.size for near in group) + one.size > MAX_FILE:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _names(group: Sequence[MediaFile]) -> Iterator[str]:
    """Names by which components can refer to the files: escape_markup, and each once."""
    taken: set[str] = set()
    for n, one in enumerate(group):
        name = NO_NAME.sub("_", one.name)[-80:].lstrip("._-") or "file"
        name = f"{n}_{name}" if name in taken else name
        taken.add(name)
        yield name


def _too_large(one: MediaFile, language: str) -> str:
    size, most = one.size >> 20, MAX_FILE >> 20
    return say("file_too_large", language, name=one.name[:100], size=size, most=most)
