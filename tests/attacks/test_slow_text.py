"""Text that a model, a page or a person repeats: no card takes more than linear time for it."""

import time
from collections.abc import Callable, Iterator

import pytest

from adapters.discord.render import render as render_discord
from adapters.slack.render import render as render_slack
from adapters.telegram.render import render as render_telegram
from adapters.web.render import draw
from gateway.ports import Shown
from gateway.texts.signs import name_signs, visible
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    ToolLine,
    View,
)
from tests.sampling import dice

ATOMS = (
    *("*", "**", "_", "__", "`", "```", "~", "~~", "[", "](", "]", "!", "![", "(", ")", "<", "</"),
    *(
        "<a ",
        "&",
        "&amp;",
        "|",
        "||",
        "|-|",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "# ",
        "\\",
        "$",
        "$$",
    ),
    *(
        "http://a.b/",
        "www.",
        "@",
        "@a",
        "#",
        "<@1>",
        "<!",
        "-->",
        "\t",
        "    ",
        "a",
        "é",
        "😀",
        "ﷺ",
    ),
    *("---\n", "===\n", ":", "{", "}", "/cmd ", "[x]", "- [ ] ", "\r", "\0", "<https://a|b>", " "),
    *("\u202e", "\u200b", "\u0430", "\u0301", '"', "'", '{"a":', "sk-", "=", "+", ",", ".", "%41"),
)
SMALL, LARGE = 6_000, 24_000
MAX_SECONDS = 0.6
"""Of this process, for LARGE characters; what is quadratic takes longer."""
MOST_TIMES = 9
"""Times as long as for SMALL: linear would be four."""

Draw = Callable[[View], object]
DRAWN: dict[str, Draw] = {
    "telegram": render_telegram,
    "telegram, rich": lambda view: render_telegram(view, rich=True),
    "discord": render_discord,
    "slack": render_slack,
    "web": lambda view: draw(Shown(turn="t", name="n", rev=1, position=1, at=0.0, view=view)),
    "signs": lambda view: name_signs(visible(str(view))),
}


def make_views(text: str) -> Iterator[View]:
    """What may hold words of others, each full of `text`."""
    line = ProposalLine(tool="run_command", arguments=f'{{"command": {text!r}}}', reason=text,
                        risk="high", preview=text)  # fmt: skip
    yield ReplyView(text=text)
    yield Notice(text=text)
    yield ReportView(title=text[:200], text=text)
    yield ChoiceCard(question="q", text=text)
    yield Activity(
        lines=(ToolLine(call_id="1", tool="x", summary=text, state="done", output=text),),
        words=text,
    )
    yield PlanView(title=text, steps=(PlanStep(id="1", text=text, note=text),))
    yield ApprovalCard(question="q", asker=text, proposals=(line,), rule=text, here=text)


def measure(drawn: Draw, view: View) -> float:
    began = time.process_time()
    drawn(view)
    return time.process_time() - began


def find_slow(units: list[str]) -> list[str]:
    """Each surface and kind of view for which a repeated unit takes more than linear time."""
    slow = []
    for unit in units:
        small, large = (make_views(unit * (size // len(unit))) for size in (SMALL, LARGE))
        for one, other in zip(small, large, strict=True):
            for name, drawn in DRAWN.items():
                first = measure(drawn, one)
                took = measure(drawn, other) if first > MAX_SECONDS / 20 else 0.0
                if took > max(MAX_SECONDS, MOST_TIMES * first):
                    slow.append(f"{name}, {type(one).__name__}, {unit!r}: {first:.2f} {took:.2f} s")
    return slow


def make_units(count: int, *seeds: object) -> list[str]:
    chance = dice("units", *seeds)
    return ["".join(chance.choices(ATOMS, k=chance.randint(1, 5))) for _ in range(count)]


def test_a_few_repeated_texts() -> None:
    assert not find_slow(make_units(6))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_sign_and_hundreds_of_units(part: int) -> None:
    assert not find_slow([*ATOMS[part::8], *make_units(25, part)])
