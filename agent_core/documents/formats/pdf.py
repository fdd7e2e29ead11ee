"""PDF."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, BinaryIO

from agent_core.documents.refusal import LOCKED, Refused

COMBINING = dict(
    zip(
        "\u00a8\u00b4\u02c6\u02dc\u02da\u02c7\u02d8\u00af\u02d9\u02dd\u00b8",
        "\u0308\u0301\u0302\u0303\u030a\u030c\u0306\u0304\u0307\u030b\u0327",
        strict=True,
    )
)
"""Spacing accents, and the combining ones for the preceding letter."""
SCANNED = (
    "(No page of this PDF has any text: it is a scan, or pictures. Its words can only be had by "
    "recognising them, as with ocrmypdf or tesseract, or from a copy that was not scanned.)"
)
_ACCENTED = re.compile(f"([{''.join(COMBINING)}])([^\\W\\d_])")


def read(file: BinaryIO) -> Iterator[str]:
    """The text of each page."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise Refused(LOCKED if locked else "it is damaged.") from None
    blank = True
    document.init_forms()
    for number in range(1, len(document) + 1):
        page = _open_page(document, number - 1)
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        yield f"[Page {number} of {len(document)}]"
        text = _ACCENTED.sub(_compose, text)
        blank = blank and not text
        yield text or "(no text on this page: a picture or a scan)"
        page.close()
    if blank:
        yield SCANNED


def _open_page(document: Any, index: int) -> Any:
    """Return the page with what was filled in, and with notes that stand on it, as text."""
    import pypdfium2.raw

    page = document[index]
    if not pypdfium2.raw.FPDFPage_GetAnnotCount(page):
        return page
    page.flatten()
    page.close()
    return document[index]


def _compose(found: re.Match[str]) -> str:
    """The letter with its accent: TeX's oldest fonts draw the two one over the other."""
    accent, letter = found.groups()
    whole = unicodedata.normalize("NFC", letter.replace("ı", "i") + COMBINING[accent])
    return whole if len(whole) == 1 else found[0]
