"""Recognises documents that can be read as text, by their content, not their name."""

from typing import Literal, get_args

Kind = Literal["pdf", "docx", "xlsx", "pptx", "odt", "epub", "rtf", "eml"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Container = Literal["zip", "ole"]
"""A file whose kind depends on its members: a ZIP archive, as most documents are, or an OLE
container, as Office made before 2007 and makes for those with a password."""
MODULES: dict[Kind, str] = {
    "pdf": "pypdfium2",
    "docx": "docx",
    "xlsx": "openpyxl",
    "pptx": "pptx",
    "rtf": "striprtf",
}
"""Packages that a kind needs; the others need none."""
NAMES: dict[Kind, str] = {
    "pdf": "a PDF",
    "docx": "a Word document (DOCX)",
    "xlsx": "an Excel workbook (XLSX)",
    "pptx": "a PowerPoint presentation (PPTX)",
    "odt": "an OpenDocument file",
    "epub": "an EPUB",
    "rtf": "a document in RTF",
    "eml": "an e-mail",
}
_OTHER_NAMES: dict[str, Kind] = {"xlsm": "xlsx", "docm": "docx", "pptm": "pptx"}
_OTHER_NAMES |= dict.fromkeys(("ods", "odp"), "odt")
_OLD_NAMES = ("doc", "xls", "ppt")
_PDF, _MAX_BEFORE_PDF = b"%PDF-", 1024


def read_ending(path: str) -> str:
    """Return the extension of the file's name, without the dot, if it is one of documents;
    otherwise ""."""
    ending = path.rpartition(".")[2].lower()
    return ending if ending in KINDS or ending in _OTHER_NAMES or ending in _OLD_NAMES else ""


def find_named_kind(ending: str) -> Kind | None:
    """Return the kind of document with this extension."""
    return _OTHER_NAMES.get(ending) or next((kind for kind in KINDS if kind == ending), None)


def find_kind(path: str, head: bytes) -> Kind | Container | None:
    """Return the kind of the file `path` that begins with `head`, None if unknown."""
    kind = find_named_kind(read_ending(path))
    if head.startswith(_PDF) or (kind == "pdf" and _PDF in head[:_MAX_BEFORE_PDF]):
        return "pdf"
    if head.startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith(b"PK\3\4"):
        return "zip"
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return "ole"
    return "eml" if kind == "eml" and b"\0" not in head else None
