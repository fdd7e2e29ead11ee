"""Spellings of a known secret: as encodings write it, and as URLs, JSON, HTML, shells and markdown
quote it.

Programs differ in the characters that they escape, and in the case of the digits. Where escapes are
mixed, `Redactions` reads them instead; these are for values with blanks and quotes, too.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from math import ceil
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Minimum characters of an encoding: shorter ones occur in texts by chance."""
_ESCAPED_BYTE = re.compile(r"%[0-9A-F]{2}")
_ESCAPED_CHAR = re.compile(r"\\u[0-9a-f]{4}")
_SHELL_SIGN = re.compile(r"[ \t!\"$&'()*,;<>?\[\\\]^`{|}]")
_WORD_BEGIN = re.compile(r"(\A|(?<=[:=]))([#~])")
_CONTROLS = (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\x1b", "\\E"))
_QUOTED_SIGNS = (
    re.compile(r"[!-/:-@\[-`{-~]"),
    re.compile(r"[\\`*_\[\]~]"),
    re.compile(r"[\\`*_]"),
    re.compile(r"[_*\[\]()~`>#+\-=|{}.!\\]"),
    re.compile(r"\W", re.ASCII),
)
"""CommonMark and two kinds that escape less, Telegram's markdown, Perl."""


def spell_secret(value: str) -> Iterator[str]:
    """Yield the encodings of `value`: plain, reversed, base64 and base32 at any alignment, hex, and
    as URLs, JSON, HTML, shells and markdown quote it."""
    raw = value.encode(errors="replace")
    forms = [value, value[::-1], raw.decode("latin-1"), raw.hex(), raw.hex().upper()]
    for dumped in (raw.hex(":"), raw.hex(" "), raw.hex("-"), raw.hex(" ", -2)):
        forms += (dumped, dumped.upper())
    wide, quoted = value.encode("utf-16-le", errors="replace"), json.dumps(value)[1:-1].encode()
    for data in dict.fromkeys((raw, wide, quoted, base64.b64encode(raw).rstrip(b"="))):
        forms += _spell_base64(data)
    often = _quote_often(value)  # quotations may be nested: JSON in a page in a URL
    forms += (*often, *_quote_seldom(value), *_quote_in_shells(value), *_quote_signs(value))
    forms += (*_spell_base32(raw), *_spell_bytes(raw))
    forms += (one for known in often for one in _quote_often(known))
    for char in ("\\u{:04x}", "\\u{:04X}", "&#{};", "&#x{:x};", "&#x{:X};"):
        forms.append("".join(char.format(ord(one)) for one in value if ord(one) < 65_536))
    for byte in ("%{:02X}", "%{:02x}", "\\x{:02x}", "\\x{:02X}"):
        forms.append("".join(map(byte.format, raw)))
    yield from (one for one in dict.fromkeys(forms) if len(one) >= SHORTEST)


def _spell_base64(data: bytes) -> Iterator[str]:
    """Yield the characters of each alignment that no neighbour changes."""
    for before in range(3):
        coded = base64.b64encode(bytes(before) + data).decode()
        sure = coded[ceil(before * 8 / 6) : (before + len(data)) * 8 // 6]
        yield from (sure, sure.replace("+", "-").replace("/", "_"))


def _spell_base32(data: bytes) -> Iterator[str]:
    """Yield the characters of each alignment that no neighbour changes."""
    for before in range(5):
        coded = base64.b32encode(bytes(before) + data).decode()
        sure = coded[ceil(before * 8 / 5) : (before + len(data)) * 8 // 5]
        yield from (sure, sure.lower())


def _spell_bytes(raw: bytes) -> Iterator[str]:
    """Write the bytes beyond ASCII as `cat -v`, and as git, sed and ls do."""
    yield "".join(_write_visibly(one) for one in raw)
    yield "".join(chr(one) if 32 <= one < 127 else f"\\{one:03o}" for one in raw)


def _write_visibly(byte: int) -> str:
    if byte >= 128:
        return f"M-{_write_visibly(byte - 128)}"
    if byte in b"\t\n":
        return chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"^{chr(byte ^ 64)}"


def _quote_in_shells(value: str) -> Iterator[str]:
    """Quote as `set -x`, `export -p`, `declare -p` and `printf %q` do."""
    yield from (value.replace("'", one) for one in ("'\\''", "'\"'\"'", "\\'"))
    parts = (f'"{one}"' if one[0] == "'" else f"'{one}'" for one in re.findall("'+|[^']+", value))
    yield "".join(parts).strip("'")  # as dash does
    yield (words := _SHELL_SIGN.sub(r"\\\g<0>", value))
    yield _WORD_BEGIN.sub(r"\1\\\2", words)
    yield re.sub(r"[\\\"$`]", r"\\\g<0>", value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for plain, sign in _CONTROLS:
        escaped = escaped.replace(plain, sign)
    yield escaped


def _quote_signs(value: str) -> Iterator[str]:
    """Quote as SQL, CSV, regular expressions and the kinds of markdown do."""
    yield from (value.replace("'", "''"), value.replace('"', '""'), re.escape(value))
    for signs in _QUOTED_SIGNS:
        yield signs.sub(r"\\\g<0>", value)


def _quote_often(value: str) -> tuple[str, ...]:
    plain, whole = json.dumps(value)[1:-1], html.escape(value)
    url = (quote(value, safe=""), quote(value), quote_plus(value))
    by_json = (plain, json.dumps(value, ensure_ascii=False)[1:-1], plain.replace("/", "\\/"))
    by_html = (whole, html.escape(value, quote=False), whole.replace("&#x27;", "&#39;"))
    return tuple(dict.fromkeys((*url, *by_json, *by_html)))


def _quote_seldom(value: str) -> Iterator[str]:
    """Quote as JavaScript, Go, PHP, .NET, Gson, XML in ASCII and Python's `repr` do."""
    for safe in ("", "/", "!'()*~"):
        yield (url := quote(value, safe=safe))
        yield _ESCAPED_BYTE.sub(lambda found: found[0].lower(), url)
    yield _ESCAPED_BYTE.sub(lambda found: found[0].lower(), quote_plus(value))
    plain, raw = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    yield from (_escape_signs(one, "<>&") for one in (plain, raw))
    yield from (raw.replace("/", "\\/"), _escape_signs(raw, "<>&='"))
    wary = _escape_signs(plain.replace('\\"', "\\u0022"), "<>&+`'")
    yield _ESCAPED_CHAR.sub(lambda found: found[0][:2] + found[0][2:].upper(), wary)
    yield from (repr(value)[1:-1], ascii(value)[1:-1])
    yield repr(value.encode(errors="replace"))[2:-1]
    for single, double in (("&#39;", "&quot;"), ("&#39;", "&#34;"), ("&apos;", "&quot;")):
        page = html.escape(value).replace("&#x27;", single).replace("&quot;", double)
        yield from (page, page.encode("ascii", "xmlcharrefreplace").decode())
        yield page.replace("`", "&#x60;").replace("=", "&#x3D;")


def _escape_signs(text: str, signs: str) -> str:
    return "".join(f"\\u{ord(char):04x}" if char in signs else char for char in text)
