"""The text of XML and HTML pages, by lxml."""

from collections.abc import Iterator

from lxml import etree, html

from agent_core.documents.formats.tables import render_row

_BLOCKS = frozenset(["p", "h", "h1", "h2", "h3", "h4", "h5", "h6", "li", "div", "br", "title"])
_ROWS, _CELLS = frozenset(["tr", "table-row"]), frozenset(["td", "th", "table-cell", "tc"])
_SILENT = frozenset(["script", "style", "head", "annotation", "tracked-changes"])
_OFFICE = frozenset(["instrText", "delText", "Fallback", "tableStyleId"])
"""Elements of Office's XML that are not shown."""


def read_xml(data: bytes) -> Iterator[str]:
    """The lines of an XML page. Raises ValueError."""
    return read_tree(parse_xml(data))


def read_html(data: bytes) -> Iterator[str]:
    """Yield the lines of an HTML page in UTF-8, also of strict XML, however broken. Raises
    ValueError."""
    if not data.strip():
        return iter(())
    try:
        return read_tree(parse_xml(data))
    except ValueError:
        pass
    try:
        return read_tree(html.document_fromstring(data, html.HTMLParser(encoding="utf-8")))
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise ValueError(str(error)) from None


def parse_xml(data: bytes, *, recover: bool = False) -> etree._Element:
    """The root of an XML page; no entity is resolved, nothing is fetched. `recover`: of a damaged
    one the tree as far as it can be read. Raises ValueError."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=False, recover=recover
    )
    try:
        root: etree._Element | None = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
    if root is None:
        raise ValueError("there is nothing in it")
    return root


class _Lines:
    """The current line, or table row: its cells form one line, whatever blocks they have."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._cells: list[list[str]] = []
        self._depth = 0

    def add(self, words: str) -> None:
        """Add words to the line or cell."""
        if self._depth and self._cells:
            self._cells[-1].append(words)
        elif not self._depth:
            self._words.append(words)

    def begin_cell(self) -> None:
        """A cell of a table begins; one of a table within a cell is part of that."""
        if self._depth == 1:
            self._cells.append([])
        else:
            self.add(" ")

    def meet_row(self, *, begins: bool) -> Iterator[str]:
        """Begin or end a row; yield the text before it."""
        if begins:
            yield from self.end_block()
            self._depth += 1
            return
        self._depth -= 1
        if not self._depth:
            text = render_row("".join(cell) for cell in self._cells)
            self._cells = []
            if text:
                yield text

    def end_block(self) -> Iterator[str]:
        """A block begins or ends: the line is whole, but for that of a row."""
        if self._depth:
            self.add(" ")
            return
        if text := " ".join("".join(self._words).split()):
            yield text
        self._words = []


def read_tree(root: etree._Element) -> Iterator[str]:
    """Yield the text between the beginnings and ends of blocks."""
    lines = _Lines()
    silent = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
        begins = event == "start"
        silent += begins - (not begins) if name in _SILENT | _OFFICE else 0
        if name in _ROWS:
            yield from lines.meet_row(begins=begins)
        elif name in _BLOCKS:
            yield from lines.end_block()
        if silent and begins:
            continue
        if begins and name in _CELLS:
            lines.begin_cell()
        elif begins and name in ("tab", "s"):
            lines.add(" ")
        said = element.text if begins and name else element.tail
        if said:
            lines.add(said)
    yield from lines.end_block()
