"""Views to Slack's messages: `text` and `blocks`, or `text` and `files`. Pure.

A payload is what chat.postMessage takes besides the channel; the adapter makes an edit or an upload
out of it.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from adapters.calls import laid_out, visible
from adapters.slack.blocks import (
    ROOM,
    TEXT,
    Block,
    Source,
    buttons,
    choices,
    footnote,
    header,
    markdown,
    message,
    packed,
    plan,
    preformatted,
    quoted,
    rich,
    run,
    section,
    task,
    upload,
    writer,
)
from adapters.slack.markup import bare, clip, harmless
from adapters.text import split
from adapters.words import LINE_WORDS, RISKS
from gateway.messages import read_token
from gateway.texts import say
from gateway.views import (
    CARD_MARKS,
    ENDED,
    LINE_MARKS,
    PLAN_MARKS,
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    Reply,
    Report,
    Said,
    StepState,
    ToolLine,
    View,
)

STATUS: dict[StepState, str] = {
    "pending": "pending",
    "running": "in_progress",
    "done": "complete",
    "failed": "error",
    "skipped": "complete",
}

MOST_MESSAGES, BEGINNING = 4, 1
"""An answer of more than this many messages comes as that many and a file."""
SUMMARY, OUTPUT, OUTPUTS, WORDS, LINES = 160, 500, 2, 2_000, 30
TITLE, STEP, NOTE, OUTCOME = 200, 250, 150, 600
STEPS, PLAN = 30, 8_000
"""Most steps of a plan that are shown, and characters of them."""
MOST_FILE = 1_000 << 20
FILES = 10
CAPTION = 3_000


def render(view: View) -> tuple[bytes, ...]:
    """`view` as native payloads in order; none if there is nothing to show."""
    match view:
        case Reply():
            return _reply(view)
        case Activity():
            return _activity(view)
        case PlanView():
            return _plan(view)
        case ApprovalCard():
            return _approval(view)
        case ChoiceCard():
            return _card(view, choices(view.buttons, view.language))
        case FormCard():
            return _card(view, writer(say("your_answer", view.language), view.token))
        case Media():
            return _media(view)
        case Report():
            return _report(view)
        case Notice():
            mark = "✕ " if view.tone == "error" else ""
            return _prose(mark + view.text) if view.text.strip() else ()
        case Said():
            return ()
    assert_never(view)


# ---- words ---------------------------------------------------------------------------------


def _texts(text: str) -> list[str]:
    parts = split(harmless(text.strip()), ROOM)
    return [part for part in parts if part.strip()]


def _prose(text: str) -> tuple[bytes, ...]:
    return tuple(message([markdown(part)], part) for part in _texts(text))


def _reply(view: Reply) -> tuple[bytes, ...]:
    """The answer in parts. While it grows no more is shown than will surely stay a message."""
    parts = _texts(view.text)
    note = [footnote(view.note)] if view.note.strip() else []
    if view.state == "streaming":
        return tuple(message([markdown(part)], part) for part in parts[:BEGINNING])
    return _whole(parts, note, view.text, "answer.md", view.language)


def _whole(
    parts: Sequence[str], note: Sequence[Block], text: str, name: str, language: str
) -> tuple[bytes, ...]:
    if len(parts) > MOST_MESSAGES:
        said = say("whole_in_file", language)
        document = upload([Source(name=name, mime="text/markdown", text=text)], said)
        shown = tuple(message([markdown(part)], part) for part in parts[:BEGINNING])
        return (*shown, document, *((message(note, note_text(note)),) if note else ()))
    if not parts:
        return (message(note, note_text(note)),) if note else ()
    last = [message([markdown(parts[-1]), *note], parts[-1])]
    return (*(message([markdown(part)], part) for part in parts[:-1]), *last)


def note_text(note: Sequence[Block]) -> str:
    """What a footnote says."""
    elements = note[0]["elements"] if note else ()
    first = elements[0] if isinstance(elements, list) and elements else {}
    return str(first.get("text", "")) if isinstance(first, dict) else ""


def _report(view: Report) -> tuple[bytes, ...]:
    title = " ".join(view.title.split())
    parts = _texts(view.text)
    note = [footnote(view.note)] if view.note.strip() else []
    first, *others = _whole(parts, note, view.text, "report.md", view.language) or (b"",)
    if not title:
        return (first, *others) if first else ()
    above = message([header(title)], title)
    return (above, first, *others) if first else (above,)


def _media(view: Media) -> tuple[bytes, ...]:
    """The caption with the first files; what is too large is named."""
    small = [file for file in view.files if file.size <= MOST_FILE]
    large = [file for file in view.files if file.size > MOST_FILE]
    caption = view.caption.strip()
    above: tuple[bytes, ...] = ()
    if len(caption) > CAPTION or not small:
        above, caption = _prose(caption), ""
    calls = []
    for at in range(0, len(small), FILES):
        calls.append(upload([_source(file) for file in small[at : at + FILES]], caption))
        caption = ""
    notes = "\n\n".join(f"✕ {_too_large(file, view.language)}" for file in large)
    return (*above, *calls, *_prose(notes))


def _source(file: MediaFile) -> Source:
    alt = clip(file.name, 1_000) if file.picture else ""
    return Source(name=file.name, mime=file.mime, ref=file.ref, alt=alt)


def _too_large(file: MediaFile, language: str) -> str:
    size, most = file.size >> 20, MOST_FILE >> 20
    return say("file_too_large", language, name=file.name[:100], size=size, most=most)


# ---- what is done and planned --------------------------------------------------------------


def _activity(view: Activity) -> tuple[bytes, ...]:
    """One message: words, then a line a call; the oldest lines give way to their count."""
    language = view.language
    words = _texts(_cut(view.words.strip(), WORDS, language))[:1]
    speaking = {line.call_id for line in [one for one in view.lines if one.output][-OUTPUTS:]}
    elements: list[Block] = []
    shown = view.lines[-LINES:]
    if earlier := _earlier(len(view.lines) - len(shown), language):
        elements.append(section([run(earlier, "italic")]))
    for line in shown:
        elements.append(section(_line(line, language)))
        output = _cut(line.output.strip(), OUTPUT, language) if line.call_id in speaking else ""
        if output and len(view.lines) - view.lines.index(line) <= LINES:
            elements.append(preformatted(output))
            speaking.discard(line.call_id)
    blocks = [*map(markdown, words), *([rich(elements)] if elements else [])]
    last = view.lines[-1] if view.lines else None
    summary = f"{LINE_MARKS[last.state]} {last.tool} {last.summary}" if last else "".join(words)
    return (message(blocks, clip(summary, SUMMARY)),) if blocks else ()


def _line(line: ToolLine, language: str) -> list[Block]:
    summary = clip(bare(line.summary), SUMMARY)
    word = LINE_WORDS.get(line.state)
    return [
        run(f"{LINE_MARKS[line.state]} {line.tool[:SUMMARY]}"),
        *([run(" "), run(summary, "code")] if summary else []),
        *([run(f" ({say(word, language)})")] if word else []),
    ]


def _plan(view: PlanView) -> tuple[bytes, ...]:
    """One message that ticks."""
    done = sum(step.state == "done" for step in view.steps)
    title = f"{PLAN_MARKS[view.state]} {clip(bare(view.title), TITLE)}".strip()
    title = f"{title} {done}/{len(view.steps)}" if view.steps else title
    tasks = [_task(n, step) for n, step in enumerate(view.steps, 1)]
    first, last = _window(view.steps)
    around = (_earlier(first, view.language), _later(len(tasks) - last, view.language))
    more = " · ".join(filter(None, around))
    outcome = _cut(view.outcome.strip(), OUTCOME, view.language)
    wishes = [one for one in view.buttons if _option(one) == "edit"]
    blocks = [
        plan(title, tasks[first:last]),
        *([footnote(more)] if more else []),
        *([rich([section([run(outcome, "bold")])])] if outcome else []),
        *buttons(view.buttons, wishes),
    ]
    return (message(blocks, title),)


def _task(number: int, step: PlanStep) -> Block:
    title = clip(bare(step.text), STEP) or "…"
    shown = f"– {title}" if step.state == "skipped" else title
    note = clip(" ".join(step.note.split()), NOTE)
    return task(clip(f"{number}-{step.id}", 200), shown, STATUS[step.state], note)


def _window(steps: Sequence[PlanStep]) -> tuple[int, int]:
    """Which steps are shown: those that have ended give way first, then the last ones."""
    sizes = [min(len(step.text), STEP) + min(len(step.note), NOTE) + 30 for step in steps]
    ended = next((n for n, step in enumerate(steps) if step.state not in ENDED), len(steps))
    first, last, used = 0, len(sizes), sum(sizes)
    while first < ended and (used > PLAN or last - first > STEPS):
        used -= sizes[first]
        first += 1
    while last > first and (used > PLAN or last - first > STEPS):
        last -= 1
        used -= sizes[last]
    return first, last


# ---- questions -----------------------------------------------------------------------------


def _approval(view: ApprovalCard) -> tuple[bytes, ...]:
    """All of every call's arguments, in as many messages as it takes; buttons in the last."""
    many, language, is_open = len(view.proposals) > 1, view.language, view.state == "open"
    asking = say("ask_many", language, n=len(view.proposals)) if many else say("ask_one", language)
    title = f"{CARD_MARKS[view.state]} {asking}"
    asker = f"\n{say('asked_by', language, name=bare(view.asker))}" if view.asker else ""
    rule = say("always_covers", language, rule=visible(view.rule)) if view.rule else ""
    blocks = [rich([section([run(title, "bold"), *([run(asker)] if asker else [])])])]
    for line in view.proposals:
        blocks += _proposal(line, language)
    for words in _slices(rule if is_open else ""):
        blocks.append(rich([section([run(words)])]))
    for words in _slices(visible(view.outcome.strip())):
        blocks.append(rich([section([run(words, "bold")])]))
    given, writing = _with_reason(view.buttons, language)
    last = buttons(given, writing, rule or asking, language) if is_open else ()
    tools = ", ".join(line.tool for line in view.proposals)
    return packed(blocks, last, f"{title} {tools} {view.outcome}")


def _with_reason(given: Sequence[Button], language: str) -> tuple[list[Button], list[Button]]:
    """The buttons with one more that denies with a reason; and that one."""
    deny = next((one for one in given if _option(one) == "deny"), None)
    if deny is None:
        return list(given), []
    more = Button(label=say("deny_reason", language), token=deny.token)
    return [*given, more], [more]


def _proposal(line: ProposalLine, language: str) -> Iterator[Block]:
    risk = say(RISKS[line.risk], language)
    yield rich([section([run(visible(line.tool) or "?", "code"), run(f", {risk}")])])
    for words in _slices(visible(line.reason.strip())):
        yield rich([section([run(words)])])
    for words in _slices(laid_out(line.arguments)):
        yield rich([preformatted(words)])
    for words in _slices(visible(line.detail.strip())):
        yield rich([quoted(words)])


def _card(view: ChoiceCard | FormCard, asking: tuple[Block, ...]) -> tuple[bytes, ...]:
    blocks = [markdown(part) for part in split(harmless(view.text.strip()), TEXT) if part.strip()]
    decided = _slices(
        f"{CARD_MARKS[view.state]} {view.outcome.strip()}" if view.outcome.strip() else ""
    )
    blocks += [rich([section([run(words, "bold")])]) for words in decided]
    return packed(blocks, asking if view.state == "open" else (), view.text)


def _option(button: Button) -> str:
    return (read_token(button.token) or ("", ""))[1]


def _slices(text: str) -> Iterator[str]:
    for at in range(0, len(text) if text.strip() else 0, TEXT):
        yield text[at : at + TEXT]


def _cut(text: str, most: int, language: str) -> str:
    """`text`, or its beginning and how much is not shown."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({say('more_characters', language, n=len(text) - most)})"


def _earlier(count: int, language: str) -> str:
    if not count:
        return ""
    return say("earlier_one" if count == 1 else "earlier_many", language, n=count)


def _later(count: int, language: str) -> str:
    if not count:
        return ""
    return say("later_one" if count == 1 else "later_many", language, n=count)
