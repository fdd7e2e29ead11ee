"""E-mail."""

import email
from collections.abc import Iterator
from email import policy
from email.message import MIMEPart
from typing import BinaryIO

from agent_core.documents.formats.markup import read_html

HEADERS = ("From", "To", "Cc", "Date", "Subject")


def read(file: BinaryIO) -> Iterator[str]:
    """Yield the usual headers, the text, and the names of attachments."""
    message = email.message_from_binary_file(file, policy=policy.default)
    for name in HEADERS:
        if message[name]:
            yield f"{name}: {message[name]}"
    yield ""
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = _decode(body)
        if body.get_content_subtype() == "html":
            yield from read_html(text.encode())
        else:
            yield from text.splitlines()
    for part in message.iter_attachments():
        size = len(part.get_payload(decode=True) or b"") if not part.is_multipart() else 0
        yield f"[Attached: {part.get_filename() or part.get_content_type()}, {size:,} bytes]"


def _decode(part: MIMEPart) -> str:
    """The text of a part, also where it names a character set that there is not."""
    raw = part.get_payload(decode=True)
    data = raw if isinstance(raw, bytes) else b""
    try:
        return data.decode(part.get_content_charset() or "utf-8", errors="replace")
    except LookupError:
        return data.decode("latin-1")
