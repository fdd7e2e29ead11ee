"""Removes pictures from what is code to us and may be none to Slack's Markdown parser. Pure.

Parsers differ on fences in a list, a table, a tag or an indented line. So code counts as code only
where no parser can see it otherwise; elsewhere the mark of a picture is replaced.
"""

import re
from collections.abc import Iterator

WIDE_MARK = "\uff01"
"""Replaces an exclamation mark that would make a picture."""
_MARK = re.compile(r"(?<!\\)((?:\\\\)*)!\[")
_ENDS = ("](", "][", "]:")
"""Matches what follows a picture's words, or its name where its address is told."""
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+.#/-]{0,40}[ \t]*$")
_LIKE_FENCE = re.compile(r"[\s>*+:()\d.-]{0,40}(?:```|~~~)|[\s>*+:()\d.-]{41}")
"""Matches what some parser may take for a fence; with more such signs before it nobody can tell."""
_TAG = re.compile(r" {0,3}<[A-Za-z!/?]")
_TICKS = re.compile(r"`+")


def hush_pictures(markdown: str) -> str:
    """Disable the pictures that the code of `markdown` may contain; its prose has none any more."""
    if "![" not in markdown or not any(end in markdown for end in _ENDS):
        return markdown
    made, at = "", 0
    for begin, end in _find_code(markdown):
        made += _hush(markdown[at:begin]) + markdown[begin:end]
        at = end
    return made + _hush(markdown[at:])


def _hush(text: str) -> str:
    return _MARK.sub(rf"\1{WIDE_MARK}[", text)


def _find_code(markdown: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges that are code to every parser, up to the first line on which they may
    differ."""
    fence, begun, at, before = "", 0, 0, ""
    spans: list[tuple[int, int]] | None = []
    for line in markdown.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            if _closes(line, fence):
                yield begun, at
                fence = ""
        elif opened is not None and "|" not in before:
            yield from spans or ()
            fence, begun, spans = opened[1], at, []
        elif _LIKE_FENCE.match(line) or _TAG.match(line):
            return
        elif line.strip():
            found = _find_spans(line, at)
            spans = None if spans is None or found is None else [*spans, *found]
        else:
            yield from spans or ()
            spans = []
        before, at = line, at + len(line) + 1
    if fence:
        yield begun, len(markdown)
    yield from spans or ()


def _find_spans(line: str, at: int) -> list[tuple[int, int]] | None:
    """The code within a line of a paragraph, None where its marks could pair in another way."""
    ticks = list(_TICKS.finditer(line))
    alike = len({len(one[0]) for one in ticks}) <= 1 and len(ticks) % 2 == 0
    if ticks and (not alike or set("|<$\\") & set(line)):
        return None
    pairs = zip(ticks[::2], ticks[1::2], strict=True)
    return [(at + first.start(), at + last.end()) for first, last in pairs]


def _closes(line: str, fence: str) -> bool:
    bare = line.rstrip(" \t")
    indent = len(bare) - len(bare.lstrip(" "))
    return indent < 4 and len(bare) - indent >= len(fence) and set(bare[indent:]) == {fence[0]}
