"""Renders the agent's activity and plans, in both forms of a message. Pure.

Each is one message that changes in place, so it is cut to one message's size: first outputs and
notes, then finished parts give way to their count.
"""

from adapters.shortening import choose_steps, say_earlier, say_later, shorten_words
from adapters.telegram.blocks import (
    Block,
    ListItem,
    RichText,
    Span,
    bold,
    characters,
    code,
    details,
    fits,
    inline,
    of_markdown,
    paragraph,
)
from adapters.telegram.entities import (
    LIMIT,
    Marked,
    convert_line,
    convert_whole,
    join_texts,
    style_text,
)
from adapters.telegram.payloads import keyboard, messages, rich_message
from adapters.words import LINE_WORDS
from gateway.texts import say
from gateway.texts.call_lines import head_line
from gateway.views import (
    LINE_MARKS,
    PLAN_MARKS,
    STEP_MARKS,
    Activity,
    PlanStep,
    PlanView,
    ToolLine,
)

SUMMARY, OUTPUT, WORDS = 200, 600, 1000
"""Maximum characters of a tool line's summary, of an output and of the words in a plain
Activity."""
OUTPUTS = 3
FOLDED, FOLDED_ALL, RICH_WORDS = 2_000, 20_000, 4_000
"""The same in a rich one: of one output, of all outputs together, of the words."""
LINES = 100
TITLE, STEP, NOTE, OUTCOME = 300, 300, 200, 600
RICH_STEP = 120
"""A step of a rich plan counts for at least this much of RICH_PLAN: 200 steps at most."""
RICH_PLAN = 24_000


def activity(view: Activity, *, rich: bool) -> tuple[bytes, ...]:
    """Render one message, () if there is nothing to show. It does not notify."""
    if rich:
        blocks = _activity_blocks(view)
        if fits(blocks):
            return (rich_message(blocks, keyboard(view.buttons), quiet=True),)
    return messages([_activity_text(view)], keyboard(view.buttons), quiet=True)


def plan(view: PlanView, *, rich: bool) -> tuple[bytes, ...]:
    """Render one message with its buttons; only one that waits for approval notifies."""
    quiet = view.state != "open"
    if rich:
        blocks = _plan_blocks(view)
        if fits(blocks):
            return (rich_message(blocks, keyboard(view.buttons), quiet=quiet),)
    return messages([_plan_text(view)], keyboard(view.buttons), quiet=quiet)


# ---- tool lines ----------------------------------------------------------------------------


def _activity_text(view: Activity) -> Marked:
    """Render one text within the limit: the oldest lines give way to their count."""
    clipped = shorten_words(view.words.strip(), WORDS, view.language)
    words = convert_whole(clipped)
    if words.size > 2 * WORDS:  # padding the cells enlarges a table
        words = Marked(clipped)
    speaking = {line.call_id for line in [line for line in view.lines if line.output][-OUTPUTS:]}
    lines = [_line(line, view.language, shown=line.call_id in speaking) for line in view.lines]
    note = Marked(shorten_words(view.note, WORDS, view.language))
    room = LIMIT - words.size - note.size - 60
    first = len(lines)
    while first and room >= lines[first - 1].size + 1:
        first -= 1
        room -= lines[first].size + 1
    return join_texts([words, Marked(say_earlier(first, view.language)), *lines[first:], note])


def _line(line: ToolLine, language: str, *, shown: bool) -> Marked:
    summary = style_text(shorten_words(" ".join(line.summary.split()), SUMMARY, language), "code")
    head = head_line(line.tool, summary.text, language)
    marked = Marked(f"{LINE_MARKS[line.state]} {head[:SUMMARY]}")
    if summary.text:
        marked = marked + " " + summary
    if word := LINE_WORDS.get(line.state):
        marked = marked + f" ({say(word, language)})"
    output = shorten_words(line.output.strip(), OUTPUT, language) if shown else ""
    return join_texts([marked, style_text(output, "expandable_blockquote")])


def _activity_blocks(view: Activity) -> tuple[Block, ...]:
    """Outputs folded, the newest first to be shown at all."""
    words = of_markdown(shorten_words(view.words.strip(), RICH_WORDS, view.language))
    lines: list[Block] = []
    room = FOLDED_ALL
    for line in reversed(view.lines[-LINES:]):
        output = shorten_words(line.output.strip(), FOLDED, view.language)
        output = output if len(output) <= room else ""
        room -= len(output)
        text = _line_text(line, view.language)
        folded = [Block(type="pre", text=output)] if output else []
        lines.append(details(text, folded) if folded else paragraph(text))
    earlier = say_earlier(len(view.lines) - len(lines), view.language)
    note = shorten_words(view.note, WORDS, view.language)
    return (
        *words,
        *([paragraph(earlier)] if earlier else []),
        *reversed(lines),
        *([paragraph(note)] if note else []),
    )


def _line_text(line: ToolLine, language: str) -> RichText:
    """Render a line like `_line`, with a shorter text: a hundred of them fit into a message."""
    summary = shorten_words(" ".join(line.summary.split()), SUMMARY // 2, language)
    word = LINE_WORDS.get(line.state)
    head = head_line(line.tool, summary, language)
    return (
        f"{LINE_MARKS[line.state]} {head[:SUMMARY]}",
        *((" ", code(summary)) if summary else ()),
        *((f" ({say(word, language)})",) if word else ()),
    )


# ---- plans ---------------------------------------------------------------------------------


def _plan_text(view: PlanView) -> Marked:
    steps = [_step(n, step, view.language) for n, step in enumerate(view.steps, 1)]
    title, outcome = style_text(_title(view), "bold") + _count(view), _outcome(view)
    room = LIMIT - title.size - outcome.size - 120
    first, last = choose_steps(view.steps, [step.size + 1 for step in steps], room)
    shown = [
        Marked(say_earlier(first, view.language)),
        *steps[first:last],
        Marked(say_later(len(steps) - last, view.language)),
    ]
    return join_texts([title, join_texts(shown), outcome], "\n\n")


def _step(number: int, step: PlanStep, language: str) -> Marked:
    words = convert_line(shorten_words(" ".join(step.text.split()), STEP, language))
    if step.state in ("running", "skipped"):
        words = style_text(words.text, "bold" if step.state == "running" else "strikethrough")
    note = shorten_words(" ".join(step.note.split()), NOTE, language)
    marked = Marked(f"{STEP_MARKS[step.state]} {number}. ") + words
    return marked + " " + style_text(f"({note})", "italic") if note else marked


def _plan_blocks(view: PlanView) -> tuple[Block, ...]:
    items = [_item(n, step, view.language) for n, step in enumerate(view.steps, 1)]
    sizes = [max(RICH_STEP, characters(item.blocks[0].text)) for item in items]
    first, last = choose_steps(view.steps, sizes, RICH_PLAN)
    shown = tuple(items[first:last])
    around = (say_earlier(first, view.language), say_later(len(items) - last, view.language))
    before, after = ((paragraph(text),) if text else () for text in around)
    outcome = _outcome(view).text
    return (
        paragraph((bold(_title(view)), _count(view))),
        *before,
        *((Block(type="list", items=shown),) if shown else ()),
        *after,
        *((paragraph(bold(outcome)),) if outcome else ()),
    )


def _item(number: int, step: PlanStep, language: str) -> ListItem:
    """Render a check box that is ticked when the step is done; other states have a mark in its
    place. The number is that of its buttons and of /todo."""
    words: RichText = inline(shorten_words(" ".join(step.text.split()), STEP, language)) or step.id
    match step.state:
        case "running":
            words = (f"◐ {number}. ", bold(words))
        case "failed":
            words = (f"✕ {number}. ", words)
        case "skipped":
            words = (f"– {number}. ", Span(type="strikethrough", text=words))
        case _:
            words = (f"{number}. ", words)
    note = shorten_words(" ".join(step.note.split()), NOTE, language)
    text = (words, " ", Span(type="italic", text=f"({note})")) if note else words
    done, boxed = step.state == "done", step.state not in ("running", "failed", "skipped")
    return ListItem(blocks=(paragraph(text),), has_checkbox=boxed, is_checked=done)


def _title(view: PlanView) -> str:
    title = shorten_words(" ".join(view.title.split()), TITLE, view.language)
    return f"{PLAN_MARKS[view.state]} {title}".strip()


def _count(view: PlanView) -> str:
    done = sum(step.state == "done" for step in view.steps)
    return f" {done}/{len(view.steps)}" if view.steps else ""


def _outcome(view: PlanView) -> Marked:
    return style_text(shorten_words(view.outcome.strip(), OUTCOME, view.language), "bold")
