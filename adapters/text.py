"""Splits Markdown into parts that each read well, for platforms with short messages.

Preferred borders in order: paragraph, line, sentence, word. A code fence that is cut is closed and
opened again with its language, a table that is cut repeats its header. Nothing else is added and
nothing is lost: the joined bodies of all pieces are the text.
"""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate

from msgspec import Struct

Measure = Callable[[str], int]
"""Length as the platform counts it; adds up over a text's parts, each character is one or more."""

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.MULTILINE)
RULE = re.compile(r"\|?:?-+:?(\|:?-+:?)*\|?")
"""The line under a table's header, without its blanks."""
SENTENCE = re.compile(r"[.!?…。！？][\"')\]»”’]*\s+|[。！？]")
SPACE = re.compile(r"\s+")

AHEAD = 4
"""Times the limit that is read to find a border: of a longer line the end is not looked for."""
PARAGRAPH, LINE, WITHIN = 3, 2, 1
MAX_BEGINNING = 1_500
"""Maximum characters shown of an answer that comes as a file: less than a phone's screen."""


class Piece(Struct, frozen=True, kw_only=True):
    """One part: `body` is of the text, `opening` and `closing` were added around it."""

    body: str
    opening: str = ""
    closing: str = ""

    @property
    def text(self) -> str:
        return self.opening + self.body + self.closing


class _Border(Struct, frozen=True):
    """A line start where the text may be cut, and the cost of a cut there."""

    at: int
    rank: int
    opening: str = ""
    closing: str = ""


def measure_utf16(text: str) -> int:
    """Return the length in UTF-16 code units, as platforms count it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) >> 1


def split(markdown: str, limit: int, measure: Measure = len) -> list[str]:
    """`markdown` in parts of at most `limit` by `measure`; no part for an empty text."""
    return [piece.text for piece in pieces(markdown, limit, measure)]


def split_end(markdown: str, limit: int, measure: Measure = len) -> list[str]:
    """Split the end of a text: from its beginning, or from a line well before its last part."""
    room = 2 * limit
    begins = (len(markdown) // room - 1) * room
    if begins <= 0:
        return split(markdown, limit, measure)
    begins = markdown.find("\n", begins, begins + limit) + 1 or begins
    fence = _find_open_fence(markdown[:begins])
    return [piece.text for piece in pieces(markdown[begins:], limit, measure, fence)]


def cut_beginning(markdown: str) -> str:
    """Return the visible beginning of a text that comes as a file, with a sign that it
    continues."""
    first = next(pieces(markdown.strip(), MAX_BEGINNING), None)
    return f"{first.text.rstrip()}\n\n…" if first is not None else ""


def pieces(markdown: str, limit: int, measure: Measure = len, opening: str = "") -> Iterator[Piece]:
    """Split like `split`, with the additions separate. `opening`: of the fence that the text begins
    in. ValueError if `limit` is under 2."""
    if limit < 2:
        raise ValueError("a part holds at least two units")
    rest = markdown
    while len(rest) > limit or measure(opening) + measure(rest) > limit:
        cut = _cut(rest[: AHEAD * limit], opening, limit, measure)
        yield Piece(opening=opening, body=rest[: cut.at], closing=cut.closing)
        rest, opening = rest[cut.at :], cut.opening
    if rest:
        yield Piece(opening=opening, body=rest)


def _cut(rest: str, opening: str, limit: int, measure: Measure) -> _Border:
    """The best border at which the text before it fits."""
    room = limit - measure(opening)
    fitting, before = [], _Border(0, 0, opening, _closing_fence(opening))
    for border in _borders(rest, opening, limit // 2, measure):
        if measure(rest[before.at : border.at]) > room:
            break
        room -= measure(rest[before.at : border.at])
        before = border
        if measure(border.closing) <= room and border.rank:
            fitting.append((limit - room, border))
    roomy = [border for used, border in fitting if 2 * used >= limit]
    if roomy:
        return max(roomy, key=lambda border: (border.rank, border.at))
    if fitting and (before.opening or _is_row(rest, before.at)):
        return fitting[-1][1]  # code and rows are split only as a last resort
    closing = f"\n{before.closing}" if before.closing else ""
    at = before.at + _find_cut(rest[before.at :], room - measure(closing), measure)
    if at == 0 or (before.closing and at == before.at):
        return fitting[-1][1] if fitting else _Border(max(at, 1), 0)
    reopened = before.opening if before.closing else ""
    return _Border(at, 0, reopened, closing)


def _borders(text: str, opening: str, most: int, measure: Measure) -> Iterator[_Border]:
    """Yield all line starts after the first, in order. At most `most` is added around a cut."""
    fence = opening if _closing_fence(opening) else ""
    header = "" if fence else opening
    at, lines = 0, text.split("\n")
    for index, line in enumerate(lines[:-1]):
        fence, header, fresh = _follow_line(line, lines[index + 1], fence, header)
        at += len(line) + 1
        if fence:
            cost = measure(fence) + measure(_closing_fence(fence))
            around = (fence, _closing_fence(fence)) if cost <= most else ("", "")
            yield _Border(at, 0 if fresh else WITHIN, *around)
        elif header or fresh:
            around = (header, "") if measure(header) <= most else ("", "")
            yield _Border(at, 0 if fresh else WITHIN, *around)
        else:
            blank = not line.strip() and lines[index + 1].strip()
            yield _Border(at, PARAGRAPH if blank and not _follows_heading(lines, index) else LINE)


def _follow_line(line: str, following: str, fence: str, header: str) -> tuple[str, str, bool]:
    """(open fence, table header, whether this line began it) once `line` is read."""
    if fence:
        return ("" if _closes(line, fence) else fence), "", False
    if opened := FENCE.match(line):
        return f"{opened.group()}\n", "", True
    if header.count("\n") == 1:
        return "", f"{header}{line}\n", True
    if header and "|" in following:
        return "", header, False
    if "|" in line and "|" in following and RULE.fullmatch("".join(following.split())):
        return "", f"{line}\n", True
    return "", "", False


def _closing_fence(opening: str) -> str:
    """Return the line that closes the fence `opening`, "" if it opens none."""
    found = FENCE.match(opening)
    return found.group(1) if found else ""


def _closes(line: str, fence: str) -> bool:
    marker, words = _closing_fence(fence), line.strip()
    return marker in words and not words.strip(marker[0])


def _find_open_fence(text: str) -> str:
    """Return the line that opened the fence in which `text` ends, "" if it ends in none."""
    fence = ""
    marks = (re.finditer(mark, text) for mark in ("```", "~~~") if mark in text)
    for at in sorted(found.start() for several in marks for found in several):
        found = FENCE.match(text, text.rfind("\n", 0, at) + 1)
        if found is None or found.start(1) != at:
            continue
        if not fence:
            fence = f"{found.group()}\n"
        elif _closes(found.group(), fence):
            fence = ""
    return fence


def _follows_heading(lines: list[str], index: int) -> bool:
    """The last words before the blank line `index` are a heading, which stays with its text."""
    return index > 0 and lines[index - 1].lstrip().startswith("#")


def _is_row(text: str, at: int) -> bool:
    return text[at : at + 1] == "|"


def _find_cut(text: str, room: int, measure: Measure) -> int:
    """Return how many characters of `text` to take: to a sentence's end, a word's end, or all that
    fit. A character stays with the backslash that escapes it."""
    sizes = accumulate(map(measure, text[: max(room, 0)]))
    fit = sum(1 for size in sizes if size <= room)
    for border in (SENTENCE, SPACE):
        ends = [found.end() for found in border.finditer(text, 0, fit)]
        if ends and 2 * ends[-1] >= fit:
            return ends[-1]
    escapes = len(text[:fit]) - len(text[:fit].rstrip("\\"))
    return fit - escapes % 2 if fit > 1 else fit
