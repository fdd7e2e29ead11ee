"""Renders the agent's activity and plans: each one message that changes in place. Pure. Finished
parts give way to their count."""

from collections.abc import Sequence
from functools import partial

from adapters.shortening import choose_steps, say_earlier, say_later, shorten_words
from adapters.slack.blocks import (
    Block,
    buttons,
    chooser,
    footnote,
    markdown,
    message,
    option,
    rich,
    run,
    section,
    stopper,
    task,
    texts,
)
from adapters.slack.blocks import plan as planned
from adapters.slack.live.chunks import (
    Chunk,
    StreamChunks,
    controls,
    make_text_chunk,
    make_title_chunk,
    step,
)
from adapters.slack.markup import clip, strip_markup
from adapters.words import LINE_WORDS
from gateway.texts import say
from gateway.texts.call_lines import head_line
from gateway.views import (
    LINE_MARKS,
    PLAN_MARKS,
    Activity,
    Button,
    LineState,
    PlanStep,
    PlanView,
    StepState,
    ToolLine,
)

STATUS: dict[StepState, str] = {
    "pending": "pending",
    "running": "in_progress",
    "done": "complete",
    "failed": "error",
    "skipped": "pending",  # not done: a tick would mean that it ran
}
LINES: dict[LineState, str] = {
    "waiting": "pending",
    "running": "in_progress",
    "done": "complete",
    "failed": "error",
    "denied": "error",
    "stopped": "error",
    "unknown": "error",
}

SUMMARY, OUTPUT, OUTPUTS, WORDS, MAX_LINES = 160, 500, 4_000, 2_000, 30
"""Most characters of a tool line's summary, of an output, of all outputs, of words; lines shown."""
LINE = 250
"""Most characters of a task's title in a chat stream, about."""
TITLE, STEP, NOTE, OUTCOME = 200, 250, 150, 600
STEPS, PLAN = 30, 8_000
"""Most steps of a plan that are shown, and characters of them."""


def activity(view: Activity) -> tuple[bytes, ...]:
    """Render one message: words, then a task for each call, whose output unfolds; the oldest give
    way to their count."""
    language, shown = view.language, view.lines[-MAX_LINES:]
    said = texts(shorten_words(view.words.strip(), WORDS, language))[:1]
    earlier = say_earlier(len(view.lines) - len(shown), language)
    blocks, chunks = list(map(markdown, said)), list(map(make_text_chunk, said))
    blocks += [footnote(earlier)] if earlier else []
    summary = "".join(said)
    first = len(view.lines) - len(shown)
    for n, (line, output) in enumerate(zip(shown, _outputs(shown, language), strict=True), first):
        name, title, status = f"{n}-{line.call_id[:100]}", _title(line, language), LINES[line.state]
        blocks.append(task(name, title, status, output=output))
        chunks.append(step(name, title, status, output))
        summary = f"{LINE_MARKS[line.state]} {title}"
    live = any(line.state == "running" for line in shown)
    blocks += [footnote(shorten_words(view.note, WORDS, language))] if view.note else []
    streamed = bool(shown) and not earlier and not view.note
    stream = StreamChunks(chunks=tuple(chunks), live=live) if streamed else None
    below = stopper(language) if live else buttons(view.buttons)
    return (message([*blocks, *below], clip(summary, SUMMARY), stream),) if blocks else ()


def _outputs(lines: Sequence[ToolLine], language: str) -> list[str]:
    """Return the calls' outputs as far as there is room, the newest first."""
    left, found = OUTPUTS, []
    for line in reversed(lines):
        output = shorten_words(line.output.strip(), OUTPUT, language)
        left -= len(output)
        found.append(output if left >= 0 else "")
    return found[::-1]


def _title(line: ToolLine, language: str) -> str:
    head = head_line(line.tool, line.summary, language)
    word = LINE_WORDS.get(line.state)
    end = f" ({say(word, language)})" if word else ""
    words = f"{strip_markup(head)} {clip(strip_markup(line.summary), SUMMARY)}".strip()
    return clip(words, LINE - len(end)) + end


def plan(view: PlanView) -> tuple[bytes, ...]:
    """Render a checklist."""
    done = sum(step.state == "done" for step in view.steps)
    title = f"{PLAN_MARKS[view.state]} {clip(strip_markup(view.title), TITLE)}".strip()
    title = f"{title} {done}/{len(view.steps)}" if view.steps else title
    tasks = [_task(n, step) for n, step in enumerate(view.steps, 1)]
    first, last = _choose_shown(view.steps)
    around = (say_earlier(first, view.language), say_later(len(tasks) - last, view.language))
    more = " · ".join(filter(None, around))
    outcome = shorten_words(view.outcome.strip(), OUTCOME, view.language)
    rows = _controls(view)
    blocks = [
        planned(title, tasks[first:last]),
        *([footnote(more)] if more else []),
        *([rich([section([run(outcome, "bold")])])] if outcome else []),
        *rows,
    ]
    if view.state != "running" or more:
        return (message(blocks, title),)
    below = (
        *map(make_text_chunk, (outcome,) if outcome else ()),
        *map(controls, (rows,) if rows else ()),
    )
    stream = StreamChunks(
        chunks=(make_title_chunk(title), *_steps(view), *below), live=True, display="plan"
    )
    return (message(blocks, title, stream),)


def _controls(view: PlanView) -> tuple[Block, ...]:
    """Return the plan's controls. All open steps can be skipped in one list: a chat stream keeps
    its first blocks."""
    wishes = [one for one in view.buttons if option(one) == "edit"]
    words = partial(say, "plan_skip", view.language)
    skips = tuple(
        Button(label=f"{words(n=n)}: {one.text}", token=one.skip)
        for n, one in enumerate(view.steps, 1)
        if one.skip
    )
    listed = {one.token for one in skips}
    others = tuple(one for one in view.buttons if one.token not in listed)
    return (
        *chooser(say("plan_skip_which", view.language), skips),
        *buttons(others, wishes),
    )


def _steps(view: PlanView) -> tuple[Chunk, ...]:
    """The steps as tasks of a chat stream."""
    return tuple(
        step(name, shown, STATUS[one.state], details=note)
        for n, one in enumerate(view.steps, 1)
        for name, shown, note in (_words(n, one),)
    )


def _task(number: int, step: PlanStep) -> Block:
    name, shown, note = _words(number, step)
    return task(name, shown, STATUS[step.state], note)


def _words(number: int, step: PlanStep) -> tuple[str, str, str]:
    """A step's name, its title with the number by which people call it, and its note."""
    title = f"{number}. {clip(strip_markup(step.text), STEP) or '…'}"
    shown = f"– {title}" if step.state == "skipped" else title
    return clip(f"{number}-{step.id}", 200), shown, clip(" ".join(step.note.split()), NOTE)


def _choose_shown(steps: Sequence[PlanStep]) -> tuple[int, int]:
    sizes = [min(len(step.text), STEP) + min(len(step.note), NOTE) + 30 for step in steps]
    return choose_steps(steps, sizes, PLAN, STEPS)
