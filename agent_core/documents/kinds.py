"""Which files are documents that can be read as text: their beginning tells it, not their name."""

from typing import Literal, get_args

Kind = Literal["pdf", "docx", "xlsx", "pptx", "odt", "epub", "rtf", "eml"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Container = Literal["zip", "ole"]
"""What a file is whose kind is known by what it holds: a ZIP archive, as most documents are, or an
OLE container, as Office made them before 2007 and makes those with a password."""
MODULES: dict[Kind, str] = {
    "pdf": "pypdfium2",
    "docx": "docx",
    "xlsx": "openpyxl",
    "pptx": "pptx",
    "rtf": "striprtf",
}
"""What has to be installed for a kind; the others need nothing."""
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
    """What the file's name ends in, without the dot, if documents are called so; else ""."""
    ending = path.rpartition(".")[2].lower()
    return ending if ending in KINDS or ending in _OTHER_NAMES or ending in _OLD_NAMES else ""


def find_named_kind(ending: str) -> Kind | None:
    """The kind of documents whose name ends so."""
    return _OTHER_NAMES.get(ending) or next((kind for kind in KINDS if kind == ending), None)


def find_kind(path: str, head: bytes) -> Kind | Container | None:
    """What the file `path` that begins with `head` is, None if nothing of it is known here."""
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
