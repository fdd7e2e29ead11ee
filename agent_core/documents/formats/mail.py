"""E-mail."""

import email
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.policy import EmailPolicy, Policy
from typing import Any, BinaryIO, cast

from agent_core.documents.formats.markup import read_html
from agent_core.text import escape_name

HEADERS = ("From", "To", "Cc", "Date", "Subject")
MAX_HEADER = 2_000
"""Maximum characters of a header: the library takes them apart in time that grows faster."""
MAX_PARTS = 300
"""Parts of a letter that are looked at: the library takes milliseconds for each."""
_FAULTS: tuple[type[Exception], ...] = (
    *(MessageError, ValueError, LookupError, AttributeError, TypeError),
    *(AssertionError, ArithmeticError, RuntimeError),
)
"""Errors of the library's parser at broken headers."""
_LETTER = "message/rfc822"


class LenientPolicy(EmailPolicy):
    """The library's way to read a header, for any header: its parser fails on many a broken one."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """The header; of one that cannot be taken apart the words, if it is for people."""
        shown = value[:MAX_HEADER]
        try:
            return super().header_fetch_parse(name, shown)
        except _FAULTS:
            plain = "" if name.lower().startswith("content-") else " ".join(shown.split())
            return super().header_fetch_parse(name if not plain else "Subject", plain)


def read(file: BinaryIO) -> Iterator[str]:
    """Yield the usual headers, the text, and the names of attachments; attached letters in full."""
    policy = cast("Policy[EmailMessage]", LenientPolicy())
    yield from _read_letter(email.message_from_binary_file(file, policy=policy))


def _read_letter(message: MIMEPart) -> Iterator[str]:
    for name in HEADERS:
        if message[name]:
            yield f"{name}: {message[name]}"
    yield ""
    parts, left = message.get_payload() if message.is_multipart() else "", 0
    if isinstance(parts, list) and len(parts) > MAX_PARTS:
        left = len(parts) - MAX_PARTS
        message.set_payload(parts[:MAX_PARTS])
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = _decode(body)
        if body.get_content_subtype() == "html":
            yield from read_html(text.encode("utf-8", "replace"))
        else:
            yield from text.splitlines()
    whole = body is None and message.get_content_maintype() != "multipart"
    for part in (message,) if whole else message.iter_attachments():
        yield from _tell_attachment(part)
    if left:
        yield f"[{left:,} more parts are not listed.]"


def _tell_attachment(part: MIMEPart) -> Iterator[str]:
    name = escape_name(part.get_filename() or part.get_content_type())
    inner = part.get_payload() if part.get_content_type() == _LETTER else None
    if isinstance(inner, list):
        yield f"[Attached: {name}, an e-mail:]"
        for letter in inner:
            yield from _read_letter(cast(MIMEPart, letter))
        yield f"[End of {name}]"
        return
    size = len(part.get_payload(decode=True) or b"") if not part.is_multipart() else 0
    yield f"[Attached: {name}, {size:,} bytes]"


def _decode(part: MIMEPart) -> str:
    """The text of a part, also where it names a character set that there is not."""
    raw = part.get_payload(decode=True)
    data = raw if isinstance(raw, bytes) else b""
    try:
        return data.decode(part.get_content_charset() or "utf-8", errors="replace")
    except (LookupError, ValueError):  # ValueError: one for other things than texts of mails
        return data.decode("latin-1")
