"""PDF."""

from collections.abc import Iterator
from typing import BinaryIO

from agent_core.documents.refusal import Refused


def read(file: BinaryIO) -> Iterator[str]:
    """The text of each page."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise Refused("it needs a password." if locked else "it is damaged.") from None
    for number, page in enumerate(document, 1):
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        yield f"[Page {number} of {len(document)}]"
        yield text or "(no text on this page: a picture or a scan)"
        page.close()
