"""Which files are documents that can be read as text, known by name and beginning."""

from typing import Literal, get_args

Kind = Literal["pdf", "docx", "xlsx", "pptx", "odt", "epub", "rtf", "eml"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ZIP = b"PK\3\4"
_BEGINS: dict[Kind, tuple[bytes, ...]] = {
    "pdf": (b"%PDF",),
    "rtf": (b"{\\rtf",),
    **dict.fromkeys(("docx", "xlsx", "pptx", "odt", "epub"), (_ZIP,)),
}
MODULES: dict[Kind, str] = {
    "pdf": "pypdfium2",
    "docx": "docx",
    "xlsx": "openpyxl",
    "pptx": "pptx",
    "rtf": "striprtf",
}
"""What has to be installed for a kind; the others need nothing."""
_OTHER_NAMES: dict[str, Kind] = {"xlsm": "xlsx", "docm": "docx", "pptm": "pptx"}


def find_kind(path: str, head: bytes) -> Kind | None:
    """The kind of the file `path` that begins with `head`, None: it is none of them."""
    ending = path.rpartition(".")[2].lower()
    kind = _OTHER_NAMES.get(ending) or next((kind for kind in KINDS if kind == ending), None)
    if kind is None:
        return "pdf" if head.startswith(b"%PDF") else None
    return kind if head.startswith(_BEGINS.get(kind, (b"",))) else None
