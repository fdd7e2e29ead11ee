"""The text of XML and HTML pages, by lxml."""

from collections.abc import Iterator

from lxml import etree, html

_BLOCKS = frozenset(
    ["p", "h", "h1", "h2", "h3", "h4", "h5", "h6", "li", "tr", "div", "table-row", "br", "title"]
)
_SILENT = frozenset(["script", "style", "head", "annotation", "tracked-changes"])


def read_xml(data: bytes) -> Iterator[str]:
    """The lines of an XML page. Raises ValueError."""
    return _read(parse_xml(data))


def read_html(data: bytes) -> Iterator[str]:
    """The lines of an HTML page in UTF-8, also one that is strict XML, however broken. Raises
    ValueError."""
    try:
        return _read(parse_xml(data))
    except ValueError:
        pass
    try:
        return _read(html.document_fromstring(data, html.HTMLParser(encoding="utf-8")))
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise ValueError(str(error)) from None


def parse_xml(data: bytes) -> etree._Element:
    """The root of an XML page; no entity is resolved, nothing is fetched. Raises ValueError."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None


def _read(root: etree._Element) -> Iterator[str]:
    """The text between the beginnings and ends of blocks."""
    line: list[str] = []
    silent = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
        silent += (event == "start") - (event == "end") if name in _SILENT else 0
        if name in _BLOCKS and line:
            if text := " ".join("".join(line).split()):
                yield text
            line = []
        if silent and event == "start":
            continue
        said = element.text if event == "start" and name else element.tail
        if said and not (silent and event == "start"):
            line.append(said)
        if event == "start" and name in ("tab", "s", "td", "th", "table-cell"):
            line.append(" ")
    if text := " ".join("".join(line).split()):
        yield text
