"""Writes formulas of an answer as code: no platform typesets them, and Markdown removes their
backslashes.

LaTeX between dollar signs or backslashed brackets: on lines of its own it becomes a block,
otherwise code within its line. Sums of money, and code, are left alone. In a growing answer a
formula is held back until it is complete, so that what is shown only grows.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from adapters.text import FENCE
from adapters.written import rewrite_written
from gateway.views import ReplyView, View

MarkWords: TypeAlias = Callable[[str], str]
MAX_LINES = 60
"""Maximum lines of a block; one not closed within them is none."""
CLOSES = {"$$": "$$", "\\[": "\\]"}
_HAS = re.compile(r"\$|\\[(\[]")
_RUN = re.compile(r"(`+)")
_SURE = re.compile(r"\$\$([^$`]{1,300}?)\$\$")
_SUM = r"\d[^$`\\]{0,200}?[^\W\d_]{3}"
"""Matches a number and a word where a formula might begin: a price, and what it is for."""
_MAYBE = re.compile(
    rf"\\[(\[]([^`]{{1,300}}?)\\[)\]]|(?<![\w$\\])\$(?=[^\s$])(?!{_SUM})([^$`]{{1,200}})"
    r"(?<![\s\\])\$(?![\w$])"
)
_BRACKETED = re.compile(r"\\\(([^`$]{1,300}?)\\\)")
_WHOLE = re.compile(f"{_SURE.pattern}|{_MAYBE.pattern}")
_BEGUN = re.compile(rf"\\(?:[(\[]|\Z)|\$\$|\$\Z|(?<![\w$\\])\$(?=\S)(?!{_SUM})")
"""Matches the start of a formula. A sum of money is shown once a word follows, or the line ends."""
MAX_HELD = 300
"""Maximum characters of a line that are held back: the longest formula in it."""
_MATHS = re.compile(r"[\\^_={}<>+*/|]|^[A-Za-z]'?$")
"""Matches a sign of a formula, or a single letter: no words, and no number that is a price."""


def show_formulas(view: View) -> View:
    """Write the formulas in a model's words in `view` as code."""
    if isinstance(view, ReplyView) and view.state == "streaming":
        return replace(view, text=mark_formulas(hold_begun(view.text)))
    return rewrite_written(view, mark_formulas)


def mark_formulas(markdown: str) -> str:
    """`markdown` with its formulas as code."""
    if not _HAS.search(markdown):
        return markdown
    return "\n".join(_mark_lines(markdown.split("\n"), _mark_words, blocks=True))


def hold_begun(markdown: str) -> str:
    """Cut the unfinished formula at the end of a growing `markdown`."""
    if not _HAS.search(markdown) and markdown[-1:] != "\\":
        return markdown
    *lines, last = markdown.split("\n")
    fence, at = "", 0
    while at < len(lines):
        bare = lines[at].strip()
        if fence:
            if set(bare) == {fence[0]} and len(bare) >= len(fence):
                fence = ""
        elif found := FENCE.match(lines[at]):
            fence = found[1]
        elif end := _find_end(lines, at):
            at = end - 1
        elif _is_block_begun(lines, at):
            return "".join(f"{line}\n" for line in lines[:at])
        at += 1
    return "\n".join((*lines, last if fence else _hold_begun_line(last)))


def _is_block_begun(lines: list[str], at: int) -> bool:
    """Return True if it begins a block that no further line ends or rules out."""
    bare = lines[at].strip()
    closing = CLOSES.get(bare[:2])
    if closing is None or closing in bare[2:] or len(lines) - at >= MAX_LINES:
        return False
    return not any(closing in line or FENCE.match(line) for line in lines[at + 1 :])


def _hold_begun_line(line: str) -> str:
    if line.lstrip()[:2] in CLOSES and len(line) <= MAX_HELD:  # a block, if nothing follows in it
        return ""
    parts, at, n = _RUN.split(line), 0, 0
    closes, least = _pair_runs(parts), max(0, len(line) - MAX_HELD)
    while n < len(parts) - 1:
        end = closes[n] or n
        if n % 2 and (end == n or (end == len(parts) - 2 and not parts[-1])):
            first = _BEGUN.search(line, max(at, least))  # the line's end decides if it is code
            if first is not None:
                return line[: first.start()]
        at += sum(map(len, parts[n : end + 1]))
        n = end + 1
    return line[: at + _find_begun(parts[-1], max(0, least - at))]


def _find_begun(text: str, least: int) -> int:
    """Return where in `text`, from `least` on, an unfinished formula begins; otherwise its end."""
    at = 0
    for whole in _WHOLE.finditer(text):
        begun = _BEGUN.search(text, max(at, least))
        if begun is not None and begun.start() < whole.start():
            return begun.start()
        if whole.end() == len(text):
            return whole.start() if _BEGUN.match(text, whole.start()) else len(text) - 1
        at = whole.end()
    begun = _BEGUN.search(text, max(at, least))
    return len(text) if begun is None else begun.start()


def write_dollars(markdown: str) -> str:
    """Convert formulas in brackets to dollar signs."""
    if "\\(" not in markdown:
        return markdown
    return "\n".join(_mark_lines(markdown.split("\n"), _write_dollars, blocks=False))


def rewrite_prose(markdown: str, rewrite: MarkWords) -> str:
    """Apply `rewrite` to everything in `markdown` that is no code."""
    return "\n".join(_mark_lines(markdown.split("\n"), rewrite, blocks=False))


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
    """Return the position after the block that begins at `at`; 0 for none."""
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
    if "`" not in line:
        return mark(line)
    parts = _RUN.split(line)
    closes = _pair_runs(parts)
    shown, at = [], 0
    while at < len(parts):
        end = closes[at]
        shown.append("".join(parts[at : end + 1]) if end else mark(parts[at]))
        at = end + 1 if end else at + 1
    return "".join(shown)


def _pair_runs(parts: list[str]) -> list[int]:
    """Return, for each run of backticks among `parts`, the one that closes its code; otherwise
    0."""
    after: dict[str, int] = {}
    closes = [0] * len(parts)
    for n in range(len(parts) - 2, 0, -2):
        closes[n], after[parts[n]] = after.get(parts[n], 0), n
    return closes


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
