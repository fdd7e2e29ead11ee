"""What the agent does and means to do: tool lines and plans, in both forms of a message. Pure.

Each is one message that changes in place, so it is cut to one message's size: first outputs and
notes, then what is over gives way to its count.
"""

from collections.abc import Sequence

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
from adapters.telegram.entities import LIMIT, Marked, join_texts, one_markdown, style_text
from adapters.telegram.payloads import keyboard, messages, rich_message
from adapters.words import LINE_WORDS
from gateway.texts import say
from gateway.texts.call_lines import head_line
from gateway.views import (
    ENDED,
    LINE_MARKS,
    PLAN_MARKS,
    STEP_MARKS,
    Activity,
    PlanStep,
    PlanView,
    ToolLine,
)

SUMMARY, OUTPUT, WORDS = 200, 600, 1000
"""Most characters of a tool line's summary, of an output and of the words in a plain Activity."""
OUTPUTS = 3
FOLDED, FOLDED_ALL, RICH_WORDS = 2_000, 20_000, 4_000
"""The same in a rich one: of one output, of all outputs together, of the words."""
LINES = 100
TITLE, STEP, NOTE, OUTCOME = 300, 300, 200, 600
RICH_STEP = 120
"""A step of a rich plan counts for at least this much of RICH_PLAN: 200 steps at most."""
RICH_PLAN = 24_000


def activity(view: Activity, *, rich: bool) -> tuple[bytes, ...]:
    """One message, none if there is nothing to show. It rings nowhere: it is for who looks."""
    if rich:
        blocks = _activity_blocks(view)
        if fits(blocks):
            return (rich_message(blocks, keyboard(view.buttons), quiet=True),)
    return messages([_activity_text(view)], keyboard(view.buttons), quiet=True)


def plan(view: PlanView, *, rich: bool) -> tuple[bytes, ...]:
    """One message with its buttons; only one that waits for a yes rings."""
    quiet = view.state != "open"
    if rich:
        blocks = _plan_blocks(view)
        if fits(blocks):
            return (rich_message(blocks, keyboard(view.buttons), quiet=quiet),)
    return messages([_plan_text(view)], keyboard(view.buttons), quiet=quiet)


def clip(text: str, most: int, language: str) -> str:
    """`text`, or its beginning and how much is not shown."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({say('more_characters', language, n=len(text) - most)})"


# ---- tool lines ----------------------------------------------------------------------------


def _activity_text(view: Activity) -> Marked:
    """One text within the limit: the oldest lines give way to their count."""
    clipped = clip(view.words.strip(), WORDS, view.language)
    words = one_markdown(clipped)
    if words.size > 2 * WORDS:  # a table grows when its cells are padded
        words = Marked(clipped)
    speaking = {line.call_id for line in [line for line in view.lines if line.output][-OUTPUTS:]}
    lines = [_line(line, view.language, shown=line.call_id in speaking) for line in view.lines]
    note = Marked(clip(view.note, WORDS, view.language))
    room = LIMIT - words.size - note.size - 60
    first = len(lines)
    while first and room >= lines[first - 1].size + 1:
        first -= 1
        room -= lines[first].size + 1
    return join_texts([words, Marked(_count_earlier(first, view.language)), *lines[first:], note])


def _line(line: ToolLine, language: str, *, shown: bool) -> Marked:
    summary = style_text(clip(" ".join(line.summary.split()), SUMMARY, language), "code")
    head = head_line(line.tool, summary.text, language)
    marked = Marked(f"{LINE_MARKS[line.state]} {head[:SUMMARY]}")
    if summary.text:
        marked = marked + " " + summary
    if word := LINE_WORDS.get(line.state):
        marked = marked + f" ({say(word, language)})"
    output = clip(line.output.strip(), OUTPUT, language) if shown else ""
    return join_texts([marked, style_text(output, "expandable_blockquote")])


def _activity_blocks(view: Activity) -> tuple[Block, ...]:
    """Outputs folded, the newest first to be shown at all."""
    words = of_markdown(clip(view.words.strip(), RICH_WORDS, view.language))
    lines: list[Block] = []
    room = FOLDED_ALL
    for line in reversed(view.lines[-LINES:]):
        output = clip(line.output.strip(), FOLDED, view.language)
        output = output if len(output) <= room else ""
        room -= len(output)
        text = _line_text(line, view.language)
        folded = [Block(type="pre", text=output)] if output else []
        lines.append(details(text, folded) if folded else paragraph(text))
    earlier = _count_earlier(len(view.lines) - len(lines), view.language)
    note = clip(view.note, WORDS, view.language)
    return (
        *words,
        *([paragraph(earlier)] if earlier else []),
        *reversed(lines),
        *([paragraph(note)] if note else []),
    )


def _line_text(line: ToolLine, language: str) -> RichText:
    """As `_line`, with shorter words: a hundred of them fit into a message."""
    summary = clip(" ".join(line.summary.split()), SUMMARY // 2, language)
    word = LINE_WORDS.get(line.state)
    head = head_line(line.tool, summary, language)
    return (
        f"{LINE_MARKS[line.state]} {head[:SUMMARY]}",
        *((" ", code(summary)) if summary else ()),
        *((f" ({say(word, language)})",) if word else ()),
    )


def _count_earlier(count: int, language: str) -> str:
    if not count:
        return ""
    return say("earlier_steps", language, n=count)


# ---- plans ---------------------------------------------------------------------------------


def _plan_text(view: PlanView) -> Marked:
    steps = [_step(n, step, view.language) for n, step in enumerate(view.steps, 1)]
    title, outcome = style_text(_title(view), "bold") + _count(view), _outcome(view)
    room = LIMIT - title.size - outcome.size - 120
    first, last = _window([step.size + 1 for step in steps], _count_ended(view.steps), room)
    shown = [
        Marked(_count_earlier(first, view.language)),
        *steps[first:last],
        Marked(_count_later(len(steps) - last, view.language)),
    ]
    return join_texts([title, join_texts(shown), outcome], "\n\n")


def _step(number: int, step: PlanStep, language: str) -> Marked:
    words = one_markdown(clip(" ".join(step.text.split()), STEP, language))
    if step.state in ("running", "skipped"):
        words = style_text(words.text, "bold" if step.state == "running" else "strikethrough")
    note = clip(" ".join(step.note.split()), NOTE, language)
    marked = Marked(f"{STEP_MARKS[step.state]} {number}. ") + words
    return marked + " " + style_text(f"({note})", "italic") if note else marked


def _plan_blocks(view: PlanView) -> tuple[Block, ...]:
    items = [_item(n, step, view.language) for n, step in enumerate(view.steps, 1)]
    sizes = [max(RICH_STEP, characters(item.blocks[0].text)) for item in items]
    first, last = _window(sizes, _count_ended(view.steps), RICH_PLAN)
    shown = tuple(items[first:last])
    around = (_count_earlier(first, view.language), _count_later(len(items) - last, view.language))
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
    """A box that is ticked when the step is done; what a box cannot say stands in its place. The
    number is what its buttons and /todo call it."""
    words: RichText = inline(clip(" ".join(step.text.split()), STEP, language)) or step.id
    match step.state:
        case "running":
            words = (f"◐ {number}. ", bold(words))
        case "failed":
            words = (f"✕ {number}. ", words)
        case "skipped":
            words = (f"– {number}. ", Span(type="strikethrough", text=words))
        case _:
            words = (f"{number}. ", words)
    note = clip(" ".join(step.note.split()), NOTE, language)
    text = (words, " ", Span(type="italic", text=f"({note})")) if note else words
    done, boxed = step.state == "done", step.state not in ("running", "failed", "skipped")
    return ListItem(blocks=(paragraph(text),), has_checkbox=boxed, is_checked=done)


def _title(view: PlanView) -> str:
    title = clip(" ".join(view.title.split()), TITLE, view.language)
    return f"{PLAN_MARKS[view.state]} {title}".strip()


def _count(view: PlanView) -> str:
    done = sum(step.state == "done" for step in view.steps)
    return f" {done}/{len(view.steps)}" if view.steps else ""


def _outcome(view: PlanView) -> Marked:
    return style_text(clip(view.outcome.strip(), OUTCOME, view.language), "bold")


def _count_later(count: int, language: str) -> str:
    if not count:
        return ""
    return say("later_steps", language, n=count)


def _count_ended(steps: Sequence[PlanStep]) -> int:
    """How many steps at the beginning have ended."""
    open_steps = (n for n, step in enumerate(steps) if step.state not in ENDED)
    return next(open_steps, len(steps))


def _window(sizes: Sequence[int], ended: int, room: int) -> tuple[int, int]:
    """Which steps are shown: those that have ended give way first, then the last ones."""
    first, last, used = 0, len(sizes), sum(sizes)
    while first < ended and used > room:
        used -= sizes[first]
        first += 1
    while last > first and used > room:
        last -= 1
        used -= sizes[last]
    return first, last
