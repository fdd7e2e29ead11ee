"""Text files in other encodings than UTF-8, as spreadsheets and older programs write them:
detected, read, and written back in the same one."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder

UTF8, WESTERN, CENTRAL = "utf-8", "cp1252", "cp1250"
SAMPLE = 16_384
"""Bytes that an encoding is found from."""
LATIN = 0.3
"""Part of the bytes that letters with signs make at most in a text of Latin letters."""
FOREIGN = ["cp1251", "koi8_r", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "cp949"]
"""Encodings of texts in other alphabets."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_IN_WORD = re.compile(r"[^\W\d_][\u00a1-\u00bf][^\W\d_]|(?<!\w)[\u00a3\u00a5\u00af][^\W\d_]{2}")
"""A sign where only a letter can be, or that begins a word."""


def find_encoding(data: bytes) -> str:
    """Return the encoding of a text that begins with `data`, "" if it is no text. Without a byte
    order mark or long runs of text it is a guess: Western European among those of Latin letters."""
    head = data[:SAMPLE]
    if head.startswith(BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(BOM_UTF16_BE):
        return "utf-16-be"
    if b"\0" in head:
        return ""
    text = getincrementaldecoder(UTF8)("replace").decode(head)
    wrong = text.count("\ufffd")
    if not wrong or 2 * wrong < sum(map("\x7f".__lt__, text)) - wrong:  # a few bytes are damaged
        return UTF8
    if _CONTROLS.search(head):
        return "" if 10 * wrong > len(head) else UTF8
    return _guess(head)


def _guess(head: bytes) -> str:
    if sum(byte > 127 for byte in head) <= LATIN * len(head):
        western = head.decode(WESTERN, "replace")
        if _IN_WORD.search(western) and not _IN_WORD.search(head.decode(CENTRAL, "replace")):
            return CENTRAL
        return WESTERN
    from charset_normalizer import from_bytes  # a tenth of a second, for few files

    whole = head[: head.rfind(b"\n") + 1] or head  # without splitting a character
    best = from_bytes(whole, cp_isolation=FOREIGN).best()
    return best.encoding if best is not None else ""


def decode_text(data: bytes) -> str:
    """Decode the text without a byte order mark; undecodable bytes are replaced."""
    return data.decode(find_encoding(data) or UTF8, "replace").removeprefix("\ufeff")
