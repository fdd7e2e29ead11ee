"""Finds personal data in text: by check digits where there are any, otherwise by its shape and the
words around it. Every expression runs in linear time."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from msgspec import Struct

from agent_core.guardrails import checksums
from agent_core.guardrails.sign_search import has_any
from agent_core.text import LatePattern

PersonalKind = Literal["card", "iban", "email", "phone", "national_id"]
CHECKED: tuple[PersonalKind, ...] = ("card", "iban")
"""Kinds whose numbers all have check digits."""
_MIN_DIGITS, _MAX_DIGITS = 7, 15
_AROUND = 64
"""Characters before a number in which a word tells its kind."""
_LEFT, _RIGHT, _MAX_ZONE = 12, 24, 4_000
"""Characters around digits that may belong to them, such as letters of an account number, and the
maximum length."""


class PersonalSpan(Struct, frozen=True, kw_only=True):
    """The position of personal data in a text."""

    kind: PersonalKind
    start: int
    end: int


class _Shape(Struct, frozen=True, kw_only=True):
    """A kind of number: its pattern behind an `_EDGE`, its check, and the words of which one must
    precede it, "" if its pattern is enough."""

    pattern: str
    check: Callable[[str], bool]
    near: str = ""


def _match_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{words})", re.IGNORECASE)


_EDGE, _CLOSE = r"(?<![\w.,/+-])", r"(?![\w]|[-/,.]\d)"
_SIGN = re.compile(r"[\d@]")
_MAYBE = re.compile(
    r"[@\dA-Z](?:(?<=@)|(?<=\d)(?:[ ./()-]{0,3}\d){5,40}"
    r"|(?<=[A-Z])[A-Z](?:\d\d[ -]?[A-Z]{4}|[A-Z]{4}\d\d[A-Z]\d\d))"
)
"""Begins with all first characters, as the search for one of them is fast."""
_LOCAL = re.compile(r"[\w.+%'-]{1,64}\Z")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,62})\.){1,6}[^\W\d_]{2,24}(?![\w-])")
_CARD = (
    r"(?:\d{13,19}|\d{4}(?P<gap>[ -])\d{4}(?P=gap)\d{4}(?P=gap)(?:\d{4}(?:(?P=gap)\d{3})?|\d{2,3})"
    r"|\d{4}(?P<apart>[ -])\d{6}(?P=apart)\d{4,5})(?!\w|-\d)"
)
_IBAN_BEGINS = re.compile(r"(?<!\w)([A-Za-z]{2})\d\d(?=[ -]?[A-Za-z0-9])")
_DATE = re.compile(r"\d{4}([-./])\d\d?\1\d\d?|\d\d?([-./])\d\d?\2\d{4}")
_PHONES = (
    r"(?:\+|00)[1-9](?:[ ./()-]{0,2}\d){6,13}(?!\w|[-./]\d)",
    r"(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])[2-9]\d\d[-.]\d{4}(?![\w-])",
    r"(?:0\d{2,4} ?/ ?\d{5,8}|0[67](?:(?P<dot>[ .])\d\d)(?:(?P=dot)\d\d){3}|07\d{3} \d{6})"
    r"(?![\w]|[-/.]\d)",
)
"""Numbers that are written like no other: international, American, German with a slash, French and
British mobile phones."""
_LOCAL_PHONE = r"\(?\d(?:[ ./()-]{0,3}\d){5,13}(?!\w|[-./]\d)"
_CALLS = _match_words(
    r"\bphone|\bcall|\bt[eé]l\b|t[eé]l[eéè]f|telefon|t[eé]l[eé]phone|\bmobile?|handy|\bcell|"
    r"\bfax|\bring\b|\bsms\b|whatsapp|\banruf|\bruf|erreich|rufnummer|appel|joindre|portable|"
    r"m[oó]vil|"
    r"ll[aá]m|\btext me"
)
_CALL_SIGNS = (
    *("phon", "call", "tel", "tél", "mobil", "handy", "cell", "fax", "ring", "sms", "whatsapp"),
    *("ruf", "erreich", "appel", "joindre", "portable", "movil", "móvil", "llam", "llám", "text"),
)
"""One of these occurs in all that `_CALLS` matches."""

_IDS = (
    _Shape(pattern=rf"\d{{3}}-\d{{2}}-\d{{4}}{_CLOSE}", check=checksums.is_ssn),
    _Shape(
        pattern=rf"(?:\d{{11}}|\d\d \d{{3}} \d{{3}} \d{{3}}){_CLOSE}",
        check=checksums.is_tax_id,
        near=r"steuer|\bidnr|\btin\b|tax",
    ),
    _Shape(
        pattern=r"(?:\d{8}|[XYZ]\d{7})[- ]?[A-Z]\b",
        check=checksums.is_dni,
    ),
    _Shape(
        pattern=(
            r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d"
            rf"{_CLOSE}"
        ),
        check=checksums.is_nir,
    ),
    _Shape(
        pattern=r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]\b",
        check=checksums.is_fiscal_code,
    ),
    _Shape(
        pattern=rf"\d{{11}}{_CLOSE}",
        check=checksums.is_pesel,
        near="pesel",
    ),
    _Shape(
        pattern=rf"\d{{3}}\.\d{{3}}\.\d{{3}}-\d\d{_CLOSE}",
        check=checksums.is_cpf,
    ),
    _Shape(
        pattern=rf"756\.?\d{{4}}\.?\d{{4}}\.?\d\d{_CLOSE}",
        check=checksums.is_ahv,
    ),
    _Shape(
        pattern=rf"\d{{9}}{_CLOSE}",
        check=checksums.is_bsn,
        near=r"\bbsn\b|burgerservice",
    ),
    _Shape(
        pattern=rf"\d{{3}} ?\d{{3}} ?\d{{4}}{_CLOSE}",
        check=checksums.is_nhs,
        near=r"\bnhs\b",
    ),
    _Shape(
        pattern=(
            r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d"
            r" ?[A-D]\b"
        ),
        check=bool,
    ),
)
_RARE = LatePattern(f"{_EDGE}(?:{'|'.join((_CARD, *(shape.pattern for shape in _IDS), *_PHONES))})")
"""Matches all numbers but those that only the words before them tell."""


@cache
def _compile(text: str, before: str = _EDGE) -> re.Pattern[str]:
    """Compile at the first use, so that the start is not delayed."""
    return re.compile(f"{before}(?:{text})")


def find_personal_data(text: str) -> list[PersonalSpan]:
    """Personal data in `text`, from front to back; of two at one place the first kind counts."""
    found: list[PersonalSpan] = []
    for start, end in _list_zones(text):
        taken: list[PersonalSpan] = []
        for span in _look(text, start, end):
            if all(span.end <= one.start or one.end <= span.start for one in taken):
                taken.append(span)
        found += sorted(taken, key=lambda one: one.start)
    return found


def has_personal_sign(text: str) -> bool:
    """A character without which there is no personal data."""
    return _SIGN.search(text) is not None


def _list_zones(text: str) -> list[tuple[int, int]]:
    """Return zones where personal data is possible; most of most texts has none."""
    zones: list[tuple[int, int]] = []
    for found in _MAYBE.finditer(text):
        start, end = max(0, found.start() - _LEFT), min(len(text), found.end() + _RIGHT)
        if zones and start <= zones[-1][1] and end - zones[-1][0] < _MAX_ZONE:
            zones[-1] = (zones[-1][0], end)
        else:
            zones.append((max(start, zones[-1][1]) if zones else start, end))
    return zones


def _look(text: str, start: int, end: int) -> Iterator[PersonalSpan]:
    """Yield the candidates in a zone, the most certain first."""
    yield from _find_emails(text, start, end)
    yield from _find_ibans(text, start, end)
    if _RARE.search(text, start, end) is not None:
        yield from _find_rare(text, start, end)
    for found in _find_phones(_LOCAL_PHONE, text, start, end):
        before = _start_around(found), found.start()
        if has_any(_CALL_SIGNS, text[slice(*before)].lower()) and _CALLS.search(text, *before):
            yield PersonalSpan(kind="phone", start=found.start(), end=found.end())


def _find_rare(text: str, start: int, end: int) -> Iterator[PersonalSpan]:
    for found in _compile(_CARD).finditer(text, start, end):
        if checksums.is_card(_strip(found[0])):
            yield PersonalSpan(kind="card", start=found.start(), end=found.end())
    for shape in _IDS:
        for found in _compile(shape.pattern).finditer(text, start, end):
            near = _compile(shape.near, "(?i)") if shape.near else None
            said = near is None or near.search(text, _start_around(found), found.start())
            if said and shape.check(_strip(found[0])):
                yield PersonalSpan(kind="national_id", start=found.start(), end=found.end())
    for pattern in _PHONES:
        for found in _find_phones(pattern, text, start, end):
            yield PersonalSpan(kind="phone", start=found.start(), end=found.end())


def _find_phones(pattern: str, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    for found in _compile(pattern).finditer(text, start, end):
        digits = sum(map(str.isdecimal, found[0]))
        if _MIN_DIGITS <= digits <= _MAX_DIGITS and _DATE.fullmatch(found[0]) is None:
            yield found


def _find_emails(text: str, first: int, last: int) -> Iterator[PersonalSpan]:
    at = text.find("@", first, last)
    while at >= 0:
        local = _LOCAL.search(text, max(0, at - 64), at)
        domain = _DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            start = local.start() + len(local[0]) - len(local[0].lstrip(".'%-"))
            if start < at and text[start:at] != "git":  # a repository's address
                yield PersonalSpan(kind="email", start=start, end=domain.end())
        at = text.find("@", at + 1, last)


def _find_ibans(text: str, first: int, last: int) -> Iterator[PersonalSpan]:
    """Yield account numbers, whose end is told by their country, as text may follow directly."""
    for found in _IBAN_BEGINS.finditer(text, first, last):
        size = checksums.IBAN_LENGTHS.get(found[1].upper(), 0)
        end = _count_on(text, found.start(), size)
        if size and end and checksums.is_iban(_strip(text[found.start() : end]).upper()):
            yield PersonalSpan(kind="iban", start=found.start(), end=end)


def _count_on(text: str, start: int, size: int) -> int:
    """Return the end of `size` letters and digits, with single blanks between them; 0 if there are
    fewer."""
    end, count, apart = start, 0, False
    while count < size:
        if end == len(text):
            return 0
        if text[end].isascii() and text[end].isalnum():
            count, apart = count + 1, False
        elif apart or text[end] not in " -":
            return 0
        else:
            apart = True
        end += 1
    goes_on = end < len(text) and (text[end].isalnum() or text[end] == "_")
    return 0 if goes_on else end


def _strip(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _start_around(found: re.Match[str]) -> int:
    return max(0, found.start() - _AROUND)


def redact_personal_data(text: str) -> str:
    """`text` with the kind in brackets in place of each piece of personal data."""
    spans = find_personal_data(text)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += (text[at : span.start], f"[{span.kind}]")
        at = span.end
    return "".join((*parts, text[at:]))
