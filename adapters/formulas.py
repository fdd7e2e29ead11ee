"""Formulas of an answer as code: no platform sets them, and markdown takes their backslashes away.

LaTeX between dollar signs or backslashed brackets: what stands on lines of its own becomes a block,
the rest code within its line. Sums of money, and what stands in code already, are left alone.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from adapters.text import FENCE
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
    View,
)

MarkWords: TypeAlias = Callable[[str], str]
MAX_LINES = 60
"""Of a block; what is not closed within them is none."""
CLOSES = {"$$": "$$", "\\[": "\\]"}
_HAS = re.compile(r"\$|\\[(\[]")
_RUN = re.compile(r"(`+)")
_SURE = re.compile(r"\$\$([^$`]{1,300}?)\$\$")
_MAYBE = re.compile(
    r"\\[(\[]([^`]{1,300}?)\\[)\]]|(?<![\w$\\])\$(?=[^\s$])([^$`]{1,200})(?<![\s\\])\$(?![\w$])"
)
_BRACKETED = re.compile(r"\\\(([^`$]{1,300}?)\\\)")
_MATHS = re.compile(r"[\\^_={}<>+*/|]|^[A-Za-z]'?$")
"""A sign of a formula, or a single letter: not words, nor a number that is a price."""


def show_formulas(view: View) -> View:
    """`view` with the formulas in what a model wrote as code."""
    match view:
        case ReplyView() | ReportView() | ChoiceCard() | FormCard():
            return replace(view, text=mark_formulas(view.text))
        case Media():
            return replace(view, caption=mark_formulas(view.caption))
        case Activity():
            return replace(view, words=mark_formulas(view.words))
        case ApprovalCard() | Notice() | PlanView() | SaidView():
            return view
    assert_never(view)


def mark_formulas(markdown: str) -> str:
    """`markdown` with its formulas as code."""
    if not _HAS.search(markdown):
        return markdown
    return "\n".join(_mark_lines(markdown.split("\n"), _mark_words, blocks=True))


def write_dollars(markdown: str) -> str:
    """`markdown` with the formulas that stand in brackets between dollar signs."""
    if "\\(" not in markdown:
        return markdown
    return "\n".join(_mark_lines(markdown.split("\n"), _write_dollars, blocks=False))


def _mark_lines(lines: list[str], mark: MarkWords, *, blocks: bool) -> Iterator[str]:
    fence, at = "", 0
    while at < len(lines):
        line = lines[at]
        bare = line.strip()
        if fence:
            if set(bare) == {fence[0]} and len(bare) >= len(fence):
                fence = ""
            yield line
        elif found := FENCE.match(line):
            fence = found[1]
            yield line
        elif blocks and (end := _find_end(lines, at)):
            yield from _make_block(lines[at:end])
            at = end
            continue
        else:
            yield _mark_line(line, mark)
        at += 1


def _find_end(lines: list[str], at: int) -> int:
    """Behind the last line of the block that begins at `at`; 0 if none does."""
    bare = lines[at].strip()
    closing = CLOSES.get(bare[:2])
    if closing is None:
        return 0
    if closing in bare[2:]:
        alone = bare.find(closing, 2) == len(bare) - 2 and _MATHS.search(bare[2:-2].strip())
        return at + 1 if alone else 0
    for n, line in enumerate(lines[at + 1 : at + MAX_LINES], at + 1):
        if closing in line:
            return n + 1 if line.rstrip().endswith(closing) else 0
        if FENCE.match(line):
            return 0
    return 0


def _make_block(lines: list[str]) -> Iterator[str]:
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    first, *rest = [line.strip() for line in lines]
    inside = "\n".join([first[2:], *rest])[:-2].strip().split("\n")
    yield f"{indent}```latex"
    yield from (f"{indent}{line.replace('```', '')}" for line in inside)
    yield f"{indent}```"


def _mark_line(line: str, mark: MarkWords) -> str:
    if not _HAS.search(line):
        return line
    parts = _RUN.split(line)
    after: dict[str, int] = {}
    closes = [0] * len(parts)
    for n in range(len(parts) - 2, 0, -2):
        closes[n], after[parts[n]] = after.get(parts[n], 0), n
    shown, at = [], 0
    while at < len(parts):
        end = closes[at]
        shown.append("".join(parts[at : end + 1]) if end else mark(parts[at]))
        at = end + 1 if end else at + 1
    return "".join(shown)


def _mark_words(text: str) -> str:
    text = _SURE.sub(lambda found: _make_code(found[1]), text)
    return _MAYBE.sub(_mark_doubtful, text)


def _mark_doubtful(found: re.Match[str]) -> str:
    inside = found[1] or found[2]
    return _make_code(inside) if _MATHS.search(inside.strip()) else found[0]


def _write_dollars(text: str) -> str:
    return _BRACKETED.sub(
        lambda found: f"${found[1].strip()}$" if _MATHS.search(found[1].strip()) else found[0], text
    )


def _make_code(formula: str) -> str:
    return f"`{formula.strip()}`" if formula.strip() else formula
