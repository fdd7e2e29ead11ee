"""Renders the agent's activity and plans: each one message that changes in place. Pure. Finished
parts give way to their count."""

from collections.abc import Sequence

from adapters.discord.components import buttons, message, messages, stopper, text
from adapters.discord.markdown import LIMIT, code, escape_markup, fence, is_visible, one_line, parts
from adapters.shortening import choose_steps, say_earlier, say_later, shorten_words
from adapters.text import measure_utf16
from adapters.words import LINE_WORDS
from gateway.moment_texts import map_words
from gateway.texts import say
from gateway.texts.call_lines import head_line
from gateway.texts.signs import visible
from gateway.views import (
    LINE_MARKS,
    PLAN_MARKS,
    STEP_MARKS,
    Activity,
    Button,
    PlanState,
    PlanStep,
    PlanView,
    ToolLine,
)

PLAN_COLOURS: dict[PlanState, int] = {
    "open": 0x5865F2,
    "running": 0xF0B232,
    "done": 0x248046,
    "failed": 0xDA373C,
    "stopped": 0x80848E,
}

SUMMARY, OUTPUT, WORDS, OUTPUTS = 160, 400, 900, 2
"""Most characters of a tool line's summary, of an output, of the words; outputs shown."""
TITLE, STEP, NOTE, OUTCOME = 300, 300, 200, 600


def activity(view: Activity) -> tuple[bytes, ...]:
    """Render small lines, the newest with their output, until the answer is complete: then only
    failed ones, as Discord cannot fold. They do not notify."""
    words = next(iter(parts(shorten_words(view.words.strip(), WORDS, view.language))), "")
    telling = [line for line in view.lines if line.output and not _is_settled(line, view)]
    speaking = {line.call_id for line in telling[-OUTPUTS:]}
    lines = [_line(line, view.language, shown=line.call_id in speaking) for line in view.lines]
    note = (
        f"-# {escape_markup(shorten_words(_line_of(view.note), WORDS, view.language))}"
        if view.note
        else ""
    )
    room = LIMIT - measure_utf16(words) - measure_utf16(note) - 100
    first = len(lines)
    while first and room >= measure_utf16(lines[first - 1]) + 1:
        first -= 1
        room -= measure_utf16(lines[first]) + 1
    before = f"-# {say_earlier(first, view.language)}" if first else ""
    shown = ["\n".join(filter(is_visible, (words, before, *lines[first:], note)))]
    live = any(line.state == "running" for line in view.lines)
    below = stopper(view.language) if live else buttons(view.buttons)
    return messages(shown, below, quiet=True)


def plan(view: PlanView) -> tuple[bytes, ...]:
    """Render one message: the steps with their states, the progress, and the buttons. Only one that
    waits for approval notifies."""
    language = view.language
    steps = [_step(n, step, language) for n, step in enumerate(view.steps, 1)]
    title = escape_markup(shorten_words(_line_of(view.title), TITLE, language))
    head = f"### {PLAN_MARKS[view.state]} {title}"
    done = sum(step.state == "done" for step in view.steps)
    head += f" {done}/{len(steps)}" if steps else ""
    outcome = escape_markup(shorten_words(_line_of(view.outcome), OUTCOME, language))
    room = LIMIT - measure_utf16(head) - measure_utf16(outcome) - 120
    first, last = choose_steps(view.steps, [measure_utf16(step) + 1 for step in steps], room)
    before = f"-# {say_earlier(first, language)}" if first else ""
    after = f"-# {say_later(len(steps) - last, language)}" if last < len(steps) else ""
    shown = "\n".join(filter(None, (before, *steps[first:last], after)))
    within = [
        *text(head),
        *text(shown),
        *text(f"**{outcome}**" if is_visible(outcome) else ""),
        *buttons(view.buttons, writing=_find_word_questions(view.buttons)),
    ]
    accent = PLAN_COLOURS[view.state]
    container = {"type": 17, "accent_color": accent, "components": within}
    return (message([container], quiet=view.state != "open"),)


def _find_word_questions(given: Sequence[Button]) -> list[str]:
    """Return the tokens of questions that take words: what to change about the plan."""
    return [one.token for one in given if one.token[:2] == "q:" and one.token.endswith(":edit")]


def _is_settled(line: ToolLine, view: Activity) -> bool:
    """Return True if the answer tells the outcome."""
    return view.over and line.state == "done"


def _line(line: ToolLine, language: str, *, shown: bool) -> str:
    summary = code(shorten_words(_line_of(line.summary), SUMMARY, language))
    head = head_line(line.tool, line.summary, language)
    pieces = [f"-# {LINE_MARKS[line.state]} {escape_markup(_line_of(head)[:SUMMARY])}", summary]
    if key := LINE_WORDS.get(line.state):
        pieces.append(f"({say(key, language)})")
    output = fence(shorten_words(line.output.strip(), OUTPUT, language)) if shown else ""
    return " ".join(filter(None, pieces)) + (f"\n{output}" if output else "")


def _step(number: int, step: PlanStep, language: str) -> str:
    """A line that bears the number by which buttons and /todo call the step."""
    words = one_line(step.text, STEP) or step.id
    if step.state == "running":
        words = f"**{escape_markup(words)}**"
    elif step.state == "skipped":
        words = f"~~{escape_markup(words)}~~"
    note = escape_markup(shorten_words(_line_of(step.note), NOTE, language))
    line = f"{STEP_MARKS[step.state]} {number}. {words}"
    return line + (f" *({note})*" if is_visible(note) else "")


def _line_of(words: str) -> str:
    """`words` in a line as they are shown, so that they can be cut: a sign as code is longer."""
    return map_words(" ".join(words.split()), visible)
