"""Renders views as Slack's messages: `text` and `blocks`, or `text` and `files`. Pure.

A payload has what chat.postMessage takes besides the channel; the adapter makes an edit or an
upload out of it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import assert_never

import msgspec

from adapters.calls import (
    CALLS_FILE,
    CallDescription,
    describe_call,
    describe_scope,
    fold_decided,
    write_calls_file,
)
from adapters.formulas import show_formulas
from adapters.links import has_address, show_targets
from adapters.slack.blocks import (
    ROOM,
    TEXT,
    Block,
    SlackUpload,
    buttons,
    choices,
    footnote,
    header,
    make_preformatted,
    make_quote,
    markdown,
    mentions,
    message,
    option,
    pack_blocks,
    rich,
    run,
    section,
    stopper,
    texts,
    upload,
    writer,
)
from adapters.slack.live.chunks import StreamChunks, make_text_chunk
from adapters.slack.live.sessions import Status
from adapters.slack.markup import clip, strip_markup, write_command
from adapters.slack.moments import write_in_payload
from adapters.slack.progress import activity, plan
from adapters.text import cut_beginning
from adapters.words import RISKS
from adapters.written import shorten_growing, show_signs
from gateway.command_texts import write_in_view
from gateway.texts import say
from gateway.texts.signs import visible
from gateway.views import (
    CARD_MARKS,
    Activity,
    ApprovalCard,
    Button,
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

MAX_MESSAGES, BEGINNING = 2, 1
"""An answer of more than this many messages is shortened to its beginning in that many, and a
file."""
MAX_FILE = 1_000 << 20
FILES = 10
CAPTION = 3_000
NAME = 200


def render(view: View, *, thread: bool = False) -> tuple[bytes, ...]:
    """Render `view` as native payloads in order; () if there is nothing to show. The last one has
    the thread's session status, if it changes. `thread`: it is shown in one."""
    plain = partial(write_command, thread=thread)
    view = shorten_growing(show_doubt(view), ROOM)
    view = show_targets(show_formulas(view))
    view = write_in_view(view, lambda command: f"`{plain(command)}`", plain, moments=True)
    view = show_signs(view)
    payloads, status = tuple(map(write_in_payload, _payloads(view))), _session(view)
    if not payloads or status is None:
        return payloads
    last: dict[str, object] = msgspec.json.decode(payloads[-1])
    return (*payloads[:-1], msgspec.json.encode(last | {"session": status}))


def _session(view: View) -> Status | None:
    match view:
        case ReplyView():
            return "processing" if view.state == "streaming" else "active"
        case PlanView(state="running"):
            return "processing"
        case Activity() if any(line.state == "running" for line in view.lines):
            return "processing"
        case PlanView(state="open"):
            return "suspended"
        case ApprovalCard() | ChoiceCard() | FormCard():
            if view.state == "open":
                return "suspended"
            return "active" if view.state in ("cancelled", "expired") else None
        case Notice() | ReportView():
            return "active"
    return None


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
            return _card(view, choices(view.buttons, view.language) + (own if view.token else ()))
        case FormCard():
            return _card(view, writer(say("your_answer", view.language), view.token))
        case Media():
            return _media(view)
        case ReportView():
            return _report(view)
        case Notice():
            mark = "✕ " if view.tone == "error" else ""
            return _notice(mark + view.text, view) if view.text.strip() else ()
        case SaidView():
            return ()
    assert_never(view)


# ---- words ---------------------------------------------------------------------------------


def _prose(text: str) -> tuple[bytes, ...]:
    return tuple(message([markdown(part)], part) for part in texts(text))


def _notice(text: str, view: Notice) -> tuple[bytes, ...]:
    people = mentions(view.mentions)
    if not view.buttons and not people:
        return _prose(text)
    named = [rich([section(people)])] if people else []
    return pack_blocks(
        [*(markdown(part) for part in texts(text)), *named], buttons(view.buttons), text
    )


def _reply(view: ReplyView) -> tuple[bytes, ...]:
    """Render the answer in parts. A growing one is shown as far as it will certainly stay one
    message."""
    parts = texts(view.text)
    note = [footnote(view.note)] if view.note.strip() else []
    if view.state == "streaming":
        stop = stopper(view.language)
        return tuple(
            message(
                [markdown(part), *stop],
                part,
                StreamChunks(chunks=(make_text_chunk(part),), live=True),
            )
            for part in parts[:BEGINNING]
        )
    return _render_whole(parts, note, view.text, "answer.md", view.language)


def _render_whole(
    parts: Sequence[str], note: Sequence[Block], text: str, name: str, language: str
) -> tuple[bytes, ...]:
    if len(parts) > MAX_MESSAGES:
        said = say("whole_in_file", language)
        document = upload([SlackUpload(name=name, mime="text/markdown", text=text)], said)
        begun = texts(cut_beginning(text))[:BEGINNING]
        shown = tuple(message([markdown(part)], part) for part in begun)
        return (*shown, document, *((message(note, note_text(note)),) if note else ()))
    if not parts:
        return (message(note, note_text(note)),) if note else ()
    tails = [*([()] * (len(parts) - 1)), tuple(note)]
    return tuple(
        message(
            [markdown(part), *tail],
            part,
            StreamChunks(chunks=(make_text_chunk(part),), last=True, tail=tail)
            if part is parts[0]
            else None,
        )
        for part, tail in zip(parts, tails, strict=True)
    )


def note_text(note: Sequence[Block]) -> str:
    """Return the text of a footnote."""
    elements = note[0]["elements"] if note else ()
    first = elements[0] if isinstance(elements, list) and elements else {}
    return str(first.get("text", "")) if isinstance(first, dict) else ""


def _report(view: ReportView) -> tuple[bytes, ...]:
    """Render a report like a reply, under its title."""
    title = " ".join(view.title.split())
    parts = texts(view.text)
    note = [footnote(view.note)] if view.note.strip() else []
    shown = _render_whole(parts, note, view.text, "report.md", view.language)
    if not title:
        return shown
    return (
        (_add_title(title, shown[0]), *shown[1:]) if shown else (message([header(title)], title),)
    )


def _add_title(title: str, payload: bytes) -> bytes:
    """Put the title on a message, which notifies once, and names its subject in the
    notification."""
    made = msgspec.json.decode(payload, type=dict[str, object])
    blocks, words = made["blocks"], made["text"]
    assert isinstance(blocks, list)
    above: dict[str, object] = msgspec.json.decode(message([header(title)], title))
    return msgspec.json.encode(
        {"text": f"{above['text']}: {words}", "blocks": [header(title), *blocks]}
    )


def _media(view: Media) -> tuple[bytes, ...]:
    """Render the caption with the first files; too large ones are named. One with an address goes
    before them: Slack loads previews of a comment's links, and no argument prevents it."""
    small = [file for file in view.files if file.size <= MAX_FILE]
    large = [file for file in view.files if file.size > MAX_FILE]
    caption = view.caption.strip()
    above: tuple[bytes, ...] = ()
    if len(caption) > CAPTION or has_address(caption) or not small:
        above, caption = _prose(caption), ""
    calls = []
    for at in range(0, len(small), FILES):
        calls.append(upload([_source(file) for file in small[at : at + FILES]], caption))
        caption = ""
    notes = "\n\n".join(f"✕ {_too_large(file, view.language)}" for file in large)
    return (*above, *calls, *_prose(notes))


def _source(file: MediaFile) -> SlackUpload:
    alt = clip(file.name, 1_000) if file.picture else ""
    return SlackUpload(name=file.name, mime=file.mime, ref=file.ref, alt=alt)


def _too_large(file: MediaFile, language: str) -> str:
    size, most = file.size >> 20, MAX_FILE >> 20
    return say("file_too_large", language, name=file.name[:100], size=size, most=most)


# ---- questions -----------------------------------------------------------------------------


def _approval(view: ApprovalCard) -> tuple[bytes, ...]:
    """Render an open question in as many messages as needed, with the buttons in the last; a
    decided one in one line."""
    many, language = len(view.proposals) > 1, view.language
    calls = [(line, describe_call(line, language)) for line in view.proposals]
    full = write_calls_file(call for _, call in calls)
    attached = (_calls_file(full, language),) if full else ()
    if view.state != "open":
        decided = fold_decided(view)
        folded = [rich([section([run(decided.what, "bold")])])]
        folded += [rich([section([run(words)])]) for words in _slices(decided.outcome)]
        return (*attached, *pack_blocks(folded, (), f"{decided.what} {decided.outcome}"))
    asking = say("ask_many", language, n=len(view.proposals)) if many else say("ask_one", language)
    title = f"{CARD_MARKS[view.state]} {asking}"
    name = clip(visible(strip_markup(view.asker)), NAME)
    asker = f"\n{say('asked_by', language, name=name)}" if name else ""
    rule = visible(describe_scope(view))
    above = [block for _, call in calls for block in _call_in_full(call, language)]
    people = mentions(view.mentions)
    heading = [run(title, "bold"), *([run(asker)] if asker else [])]
    heading += [run(f"\n{say('to_decide', language)} "), *people] if people else []
    blocks = [rich([section(heading)])]
    for line, call in calls:
        blocks += _proposal(line, call, language)
    for words in _slices(rule):
        blocks.append(rich([section([run(words)])]))
    for words in _slices(visible(view.outcome.strip())):
        blocks.append(rich([section([run(words, "bold")])]))
    given, writing = _split_reason(view.buttons, language)
    last = buttons(given, writing, rule or asking, language)
    tools = ", ".join(call.title for _, call in calls)
    summary = f"{title} {tools} {view.outcome}"
    shown = attached or pack_blocks(above, (), summary)
    return (*shown, *pack_blocks(blocks, last, summary))


def _calls_file(full: str, language: str) -> bytes:
    source = SlackUpload(name=CALLS_FILE, mime="text/plain", text=full)
    return upload([source], say("whole_call", language))


def _split_reason(given: Sequence[Button], language: str) -> tuple[list[Button], list[Button]]:
    """The buttons with one more that denies with a reason; and that one."""
    deny = next((one for one in given if option(one) == "deny"), None)
    if deny is None:
        return list(given), []
    more = Button(label=say("deny_reason", language), token=deny.token)
    return [*given, more], [more]


def _call_in_full(call: CallDescription, language: str) -> Iterator[Block]:
    """Render a call in full above the card that it is too long for."""
    if call.whole:
        yield rich([section([run(say("whole_call", language), "bold")])])
    for words in _slices(call.whole):
        yield rich([make_preformatted(words)])


def _proposal(line: ProposalLine, call: CallDescription, language: str) -> Iterator[Block]:
    risk = say(RISKS[line.risk], language)
    yield rich([section([run(call.title or "?", "bold"), run(f", {risk}")])])
    for words in _slices(visible(line.reason.strip())):
        yield rich([section([run(words)])])
    for name, value in call.facts:
        yield rich([section([run(f"{name}: "), run(value, "code")])])
    for words in _slices(call.body):
        yield rich([make_preformatted(words)])
    for warning in call.warnings:
        yield rich([section([run(f"⚠ {warning}", "bold")])])
    for words in _slices(call.notes):
        yield rich([make_quote(words)])


def _card(view: ChoiceCard | FormCard, asking: tuple[Block, ...]) -> tuple[bytes, ...]:
    blocks = [markdown(part) for part in texts(view.text, TEXT)]
    decided = _slices(
        f"{CARD_MARKS[view.state]} {view.outcome.strip()}" if view.outcome.strip() else ""
    )
    blocks += [rich([section([run(words, "bold")])]) for words in decided]
    return pack_blocks(blocks, asking if view.state == "open" else (), view.text)


def _slices(text: str) -> Iterator[str]:
    for at in range(0, len(text) if text.strip() else 0, TEXT):
        yield text[at : at + TEXT]
