"""Parts that Word's and PowerPoint's documents share: content in several forms, and diagrams."""

from typing import Any

from agent_core.documents.formats.markup import parse_xml

_FORMS = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_MATH = "{http://schemas.microsoft.com/office/drawing/2010/main}m"


def choose_forms(root: Any) -> None:
    """Put in place of content in several forms the first one that has words, else the first."""
    for place in list(root.iter(f"{_FORMS}AlternateContent")):
        parent, forms = place.getparent(), list(place.iterchildren("*"))
        if parent is None or not forms:
            continue
        chosen = next((form for form in forms if _has_words(form)), forms[0])
        for child in list(chosen):
            place.addprevious(child)
        parent.remove(place)


def _has_words(form: Any) -> bool:
    """The form has text, or a diagram that has."""
    for one in form.iter("*"):
        name = one.tag.rpartition("}")[2] if isinstance(one.tag, str) else ""
        if name == "relIds" or (name == "t" and one.text and one.text.strip()):
            return True
    return False


def write_formulas(root: Any) -> None:
    """Put the letters of a slide's formulas in their place as a run of text."""
    for formula in list(root.iter(_MATH)):
        words = "".join(one.text or "" for one in formula.iter("*") if one.tag.endswith("}t"))
        run = formula.makeelement(f"{_DRAWING}r")
        text = run.makeelement(f"{_DRAWING}t")
        text.text = words
        run.append(text)
        formula.addprevious(run)
        formula.getparent().remove(formula)


def find_diagrams(root: Any) -> list[Any]:
    """The places of diagrams (SmartArt) in it."""
    return list(root.iter(f"{_DIAGRAM}relIds"))


def read_diagram(part: Any, place: Any) -> list[str]:
    """The texts of a diagram, one for each of its shapes; none if its part is missing or damaged.
    `part`: the document's one that it stands in."""
    try:
        root = parse_xml(part.rels[place.get(_DATA, "")].target_part.blob)
    except (KeyError, ValueError, AttributeError):
        return []
    texts = []
    for shape in root.iter(f"{_DIAGRAM}t"):
        lines = ("".join(one.text or "" for one in p.iter(f"{_DRAWING}t")) for p in shape)
        texts.append(" ".join(filter(str.strip, lines)))
    return [text for text in texts if text.strip()]
