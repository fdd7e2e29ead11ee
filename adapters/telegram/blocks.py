"""Rich messages: blocks of text with lists, tables and details, built from Markdown. Pure.

Bot API 10.2 and newer. Blocks and not markup, so nothing that a model writes can break a parser.
The Markdown reader is imported when the first table comes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from adapters.formulas import mark_formulas
from adapters.telegram.entities import MARKED, WEB

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

MAX_CHARACTERS, MAX_BLOCKS, MAX_DEPTH, MAX_COLUMNS = 32_768, 500, 16, 20
"""Telegram's limits; blocks count list items and table rows."""

TABLE = re.compile(
    r"^[ >]{0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE
)
"""The rule under a table's header; a line that only looks like one costs a look at the tree."""
ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+")
SPANS = {"strong": "bold", "em": "italic", "s": "strikethrough"}
CHECKS = {"[ ] ": False, "[x] ": True, "[X] ": True}


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A RichText of one style."""

    type: str
    text: "RichText"
    url: str = ""


RichText: TypeAlias = "str | Span | tuple[RichText, ...]"


class Cell(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A RichBlockTableCell; `align` and `valign` are required."""

    text: RichText = ""
    is_header: bool = False
    align: str
    valign: str


class ListItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An InputRichBlockListItem. `value` numbers it, 0 in a list without numbers."""

    blocks: "tuple[Block, ...]"
    has_checkbox: bool = False
    is_checked: bool = False
    value: int = 0
    type: str = ""


class Block(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An InputRichBlock; which fields belong to which `type` the builders below know."""

    type: str
    text: RichText = ""
    size: int = 0
    language: str = ""
    summary: RichText = ""
    blocks: "tuple[Block, ...]" = ()
    items: tuple[ListItem, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()
    is_bordered: bool = False


def paragraph(text: RichText) -> Block:
    """A paragraph; `text` must not be empty."""
    return Block(type="paragraph", text=text)


def details(summary: RichText, inside: Sequence[Block]) -> Block:
    """`inside` folded behind `summary`."""
    return Block(type="details", summary=summary, blocks=tuple(inside))


def bold(text: RichText) -> Span:
    """`text` in bold."""
    return Span(type="bold", text=text)


def code(text: str) -> Span:
    """`text` as it is, monospaced."""
    return Span(type="code", text=text)


def has_table(markdown: str) -> bool:
    """Perhaps there is a table in it: cheap, and right about all texts without one."""
    return "|" in markdown and TABLE.search(markdown) is not None


def fits(blocks: Sequence[Block]) -> bool:
    """Telegram takes `blocks` in one message."""
    characters, count, depth, columns = _size(blocks)
    return (
        0 < characters <= MAX_CHARACTERS
        and count <= MAX_BLOCKS
        and depth <= MAX_DEPTH
        and columns <= MAX_COLUMNS
    )


def characters(text: RichText) -> int:
    """Length of the bare text."""
    if isinstance(text, str):
        return len(text)
    return characters(text.text) if isinstance(text, Span) else sum(map(characters, text))


def of_markdown(markdown: str) -> tuple[Block, ...]:
    """`markdown` in blocks. HTML is shown as text, images as links, other links as their text."""
    from markdown_it.tree import SyntaxTreeNode

    tree = SyntaxTreeNode(_reader().parse(mark_formulas(markdown)))
    return tuple(_blocks(tree.children))


def inline(markdown: str) -> RichText:
    """Convert one line of `markdown`; "" if nothing would be visible."""
    if not MARKED.search(markdown):
        return markdown.strip()
    from markdown_it.tree import SyntaxTreeNode

    return _inline(SyntaxTreeNode(_reader().parseInline(markdown)).children) or markdown.strip()


def with_table(markdown: str) -> tuple[Block, ...]:
    """Convert like `of_markdown`; () if there is no table in it or Telegram would refuse it."""
    if not has_table(markdown):
        return ()
    blocks = of_markdown(markdown)
    return blocks if any(map(_holds_table, blocks)) and fits(blocks) else ()


def _holds_table(block: Block) -> bool:
    inside = (*block.blocks, *(one for item in block.items for one in item.blocks))
    return bool(block.cells) or any(map(_holds_table, inside))


def _size(blocks: Iterable[Block]) -> tuple[int, int, int, int]:
    """(characters, blocks, depth, columns)."""
    total, count, depth, columns = 0, 0, 0, 0
    for block in blocks:
        total += characters(block.text) + characters(block.summary)
        count += 1 + len(block.items) + len(block.cells)
        total += sum(characters(cell.text) for row in block.cells for cell in row)
        columns = max([columns, *map(len, block.cells)])
        for inside in (block.blocks, *(item.blocks for item in block.items)):
            more, others, deeper, wider = _size(inside)
            total, count = total + more, count + others
            depth, columns = max(depth, deeper + bool(block.items)), max(columns, wider)
        depth = max(depth, _depth(block.text), _depth(block.summary))
    return total, count, depth + 1, columns


def _depth(text: RichText) -> int:
    if isinstance(text, str):
        return 0
    if isinstance(text, Span):
        return 1 + _depth(text.text)
    return max(map(_depth, text), default=0)


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _blocks(nodes: "Iterable[SyntaxTreeNode]") -> Iterator[Block]:
    for node in nodes:
        block = _block(node)
        if block is not None:
            yield block


def _block(node: "SyntaxTreeNode") -> Block | None:
    """Convert one block, None for one that shows nothing (a list without words, an empty fence)."""
    match node.type:
        case "heading":
            text = _inline(node.children)
            return Block(type="heading", text=text, size=int(node.tag[1])) if text else None
        case "fence" | "code_block":
            text = node.content.rstrip("\n")
            language = "".join(node.info.split()[:1])[:32]
            return Block(type="pre", text=text, language=language) if text.strip() else None
        case "blockquote":
            inside = tuple(_blocks(node.children))
            return Block(type="blockquote", blocks=inside) if inside else None
        case "bullet_list" | "ordered_list":
            items = tuple(_items(node))
            return Block(type="list", items=items) if items else None
        case "table":
            return _table(node)
        case "hr":
            return Block(type="divider")
    text = _inline(node.children)
    return paragraph(text) if text else None


def _items(node: "SyntaxTreeNode") -> Iterator[ListItem]:
    ordered = node.type == "ordered_list"
    first = int(node.attrs.get("start", 1)) if ordered else 0
    for number, child in enumerate(node.children, first):
        blocks = tuple(_blocks(child.children)) or (paragraph("\u00a0"),)
        checked = CHECKS.get(_start(blocks[0].text))
        if checked is not None:
            blocks = (paragraph(_cut_start(blocks[0].text, 4) or "\u00a0"), *blocks[1:])
        yield ListItem(
            blocks=blocks,
            has_checkbox=checked is not None,
            is_checked=checked is True,
            value=number if ordered and 0 < number < 1 << 31 else 0,
            type="1" if ordered else "",
        )


def _start(text: RichText) -> str:
    first = text[0] if isinstance(text, tuple) else text
    return first[:4] if isinstance(first, str) else ""


def _cut_start(text: RichText, count: int) -> RichText:
    """`text` without its first characters, which are plain."""
    if isinstance(text, str):
        return text[count:]
    return (_cut_start(text[0], count), *text[1:]) if isinstance(text, tuple) else text


def _table(node: "SyntaxTreeNode") -> Block:
    rows = [row for part in node.children for row in part.children]
    cells = tuple(tuple(map(_cell, row.children)) for row in rows)
    return Block(type="table", cells=cells, is_bordered=True)


def _cell(node: "SyntaxTreeNode") -> Cell:
    align = str(node.attrs.get("style", "")).removeprefix("text-align:")
    return Cell(
        text=_inline(node.children) or "\u00a0",
        is_header=node.type == "th",
        align=align if align in {"center", "right"} else "left",
        valign="top",
    )


def _inline(nodes: "Iterable[SyntaxTreeNode]") -> RichText:
    """The text of inline nodes; "" if nothing would be seen."""
    pieces = [piece for node in nodes for piece in _pieces(node)]
    merged: list[RichText] = pieces[:1]
    for before, piece in pairwise(pieces):
        if isinstance(before, str) and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if not any(not isinstance(one, str) or one.strip() for one in merged):
        return ""
    return merged[0] if len(merged) == 1 else tuple(merged)


def _pieces(node: "SyntaxTreeNode") -> Iterator[RichText]:
    match node.type:
        case "inline":
            for child in node.children:
                yield from _pieces(child)
        case "text" | "html_inline":
            yield from _link_addresses(node.content)
        case "softbreak" | "hardbreak":
            yield "\n"
        case "code_inline":
            yield code(node.content) if node.content.strip() else node.content
        case "link" | "image":
            yield from _link(node)
        case _:
            text = _inline(node.children)
            kind = SPANS.get(node.type, "")
            if text:
                yield Span(type=kind, text=text) if kind else text


def _link(node: "SyntaxTreeNode") -> Iterator[RichText]:
    shown = _inline(node.children)
    url = str(node.attrs.get("src" if node.type == "image" else "href", ""))
    text: RichText = ("[image] ", shown) if node.type == "image" and shown else shown or url
    if not text:
        return
    yield Span(type="url", text=_strip_links(text), url=url) if WEB.fullmatch(url) else text


def _link_addresses(text: str) -> Iterator[RichText]:
    """Plain text; only web addresses in it become links, since nothing else is detected."""
    at = 0
    for found in ADDRESS.finditer(text) if "://" in text else ():
        if found.start() > at:
            yield text[at : found.start()]
        yield Span(type="url", text=found.group(), url=found.group())
        at = found.end()
    if text[at:]:
        yield text[at:]


def _strip_links(text: RichText) -> RichText:
    """Remove links: one must not contain another."""
    if isinstance(text, Span):
        inside = _strip_links(text.text)
        return inside if text.type == "url" else Span(type=text.type, text=inside)
    return tuple(map(_strip_links, text)) if isinstance(text, tuple) else text
