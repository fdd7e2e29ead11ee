r"""Shows signs that hide, reorder or imitate text as codes, and names them; quotes words of others.
Pure.

A sign is written as JSON writes it (`\u202e`). Letters of people's languages stay: a letter of
another alphabet counts only within a word of Latin letters, or if the whole word looks Latin and no
other word of the text shows its alphabet.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from gateway.command_texts import drop_marks
from gateway.texts import say
from gateway.texts.isolation import find_isolates, write_code

SignKind = Literal["hidden", "alike"]

MAX_NAMED = 12
"""Maximum signs of one kind that are named; the rest is counted."""
MAX_QUOTED = 1_000
"""Characters of others' words in a line; more could be parted for two messages."""
MAX_MARKS = 3
"""Marks above or below one letter; more of them would cover the lines around it."""
WORD_JOINER = "\u2060"
"""Put between two signs that a platform would read as one mark; it shows nothing."""

_MARKUP = re.compile(r"[\\`*~<>&\[\]!|#$^]|\b_|_\b|__|://|[@\u200b]|^\W")
_FOREIGN = re.compile(r"[^\n\t -\[\]-~]")
_ASIAN = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")
_WORD = re.compile(r"[^\W\d_]+")
_TURNED = frozenset({"R", "AL"})
_OPEN, _CLOSE = "\u27e8", "\u27e9"
"""Marks around the count of omitted text, which nobody else may write."""
_BLANK_LETTERS = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164))
) | frozenset(
    map(chr, (0xFFA0, 0xFFFC, 0x16FE4, 0x1D159, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Letters, marks and symbols in which nothing is seen."""
_JOINERS = frozenset("\u200c\u200d")
_EMOJI = "\ufe0f"
_LATIN_LOOKS = frozenset(
    "аеорсухіјѕԁһӏкмтвнгпԛԝьАВЕКМНОРСТУХІЈЅԌҮүԚԜ"
    "ορνυικτχεωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹ"
    "օսոցհյքզԼՏՍԱ"
    "ɑɡɩɪɢɴʀʏʙʜʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞌѵⵏ"
    "ᎠᎡᎢᎥᎦᎩᎪᎫᎬᎳᎷᎻᎽᎾᏀᏃᏆᏎᏔᏚᏞᏟᏢᏦᏧᏒᏙ"
)
"""Letters that look like those of ASCII: Cyrillic, Greek, Armenian, Cherokee, phonetic ones."""
_PUNCTUATION = frozenset(
    "\u02f8\u037e\u05c0\u01c0\u01c3\u2024\u2044\u2215\u2223\u2236\u23aa\u2758\u29f5\u29f8\ua4f8\ua789\ufe63"
    "\ufe68"
)
"""Look-alikes of ; | ! . / : and the backslash."""

_STYLED = (
    ("\u2100", "\u218f"),
    ("\u24b6", "\u24e9"),
    ("\U0001d400", "\U0001d7ff"),
    ("\U0001f110", "\U0001f149"),
)
"""Blocks of letters in other styles: letterlike, in circles, of mathematics, in squares."""


class Sign(Struct, frozen=True):
    """One sign and how it deceives."""

    sign: str
    kind: SignKind


def visible(text: str, *, exact: bool = False) -> str:
    """Return `text` with its signs shown as codes. Isolates around right-to-left text stay, unless
    the text is `exact`, i.e. what will run."""
    found = dict(_find_signs(text))
    if not found:
        return text
    kept = frozenset() if exact else frozenset(find_isolates(text))
    pieces, at = [], 0
    for place in (one for one in found if one not in kept):
        pieces += [text[at:place], write_code(text[place])]
        at = place + 1
    return "".join((*pieces, text[at:]))


def quote_verbatim(words: str, most: int = MAX_QUOTED) -> str:
    """Quote `words` in one line of Markdown, literally: nothing in them can look like another line,
    a link or emphasis. Two backticks are written as JSON would; not every platform takes three.
    `most`: characters, also of a line in which signs are shown as codes."""
    line = visible(" ".join(drop_marks(words)[:most].split()))
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    if not _MARKUP.search(line):
        return line
    if "`" not in line:
        return f"`{line}`"
    line = line.replace("``", "`\\u0060")
    before, behind = (" " if at == "`" else "" for at in (line[0], line[-1]))
    return f"``{before}{line}{behind}``"


def name_signs(text: str, language: str = "") -> tuple[str, ...]:
    """Return the names of deceptive signs in `text`, a line for each kind; () if there are none."""
    found = Counter(Sign(text[place], kind) for place, kind in _find_signs(text))
    hidden = [_name(one.sign, n) for one, n in found.items() if one.kind == "hidden"]
    alike = [_name(one.sign, n) for one, n in found.items() if one.kind == "alike"]
    turned = any(unicodedata.bidirectional(one) in _TURNED for one in _iterate_foreign(text))
    return tuple(
        filter(
            None,
            (
                say("signs_hidden", language, signs=_list(hidden)) if hidden else "",
                say("signs_alike", language, signs=_list(alike)) if alike else "",
                say("signs_turned", language) if turned else "",
            ),
        )
    )


def _iterate_foreign(text: str) -> Iterator[str]:
    return (found.group() for found in _FOREIGN.finditer(text))


def _list(names: list[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join([*names[:MAX_NAMED], *([f"… (+{more})"] if more > 0 else [])])


def _name(sign: str, count: int) -> str:
    code = f"U+{ord(sign):04X}"
    name = unicodedata.name(sign, "") or f"({unicodedata.category(sign)})"
    return f"{code} {name}" + (f" ({count}x)" if count > 1 else "")


def _find_signs(text: str) -> Iterator[tuple[int, SignKind]]:
    """(place, kind) of each sign, in order."""
    if text.isascii() and text.isprintable():
        return
    imitating = _find_imitations(text)
    asian = _ASIAN.search(text) is not None
    marks, marked = 0, -1
    for found in _FOREIGN.finditer(text):
        at, sign = found.start(), found.group()
        if _is_plain(sign):
            if at in imitating:
                yield at, "alike"
            continue
        if unicodedata.combining(sign):
            marks, marked = (marks + 1 if at == marked + 1 else 1), at
        if _hides(text, at, sign) or (at == marked and marks > MAX_MARKS):
            yield at, "hidden"
        elif at in imitating or _imitates(sign, asian=asian):
            yield at, "alike"


@lru_cache(4096)
def _is_plain(sign: str) -> bool:
    """Return True of most letters: they deceive by the word that they stand in alone."""
    joins = unicodedata.combining(sign) or sign in _JOINERS or sign == _EMOJI
    return not (joins or _is_hidden(sign) or _imitates(sign, asian=False))


def _hides(text: str, at: int, sign: str) -> bool:
    if sign in _JOINERS or sign == _EMOJI:
        before = text[at - 1] if at else ""
        return not _joins(before, sign, text[at + 1 : at + 2])
    return _is_hidden(sign)


def _joins(before: str, sign: str, after: str) -> bool:
    """Return True if a joiner is required there by a language, or by a composed emoji."""
    if sign == _EMOJI:
        return bool(before) and unicodedata.category(before) == "So"
    picture = before == _EMOJI or (bool(before) and unicodedata.category(before) in ("So", "Sk"))
    if picture:
        return sign == "\u200d" and bool(after) and unicodedata.category(after) == "So"
    return bool(before and after) and _takes_joiners(before) and _takes_joiners(after)


@lru_cache(4096)
def _takes_joiners(sign: str) -> bool:
    """A letter, or a mark, of a script that joins: Arabic to Khmer."""
    return "\u0600" <= sign <= "\u17b3" and unicodedata.category(sign)[0] in "LM"


@lru_cache(4096)
def _is_hidden(sign: str) -> bool:
    category = unicodedata.category(sign)
    if category == "Zs":
        return sign not in (" ", "\u3000")
    return category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or sign in _BLANK_LETTERS


@lru_cache(4096)
def _plain_twin(sign: str) -> bool:
    plain = unicodedata.normalize("NFKC", sign)
    return len(plain) == 1 and plain.isascii() and plain != sign


@lru_cache(4096)
def _imitates(sign: str, *, asian: bool) -> bool:
    if sign in _PUNCTUATION or sign in (_OPEN, _CLOSE):
        return True
    if "\uff01" <= sign <= "\uff5e":
        return not asian
    styled = any(first <= sign <= last for first, last in _STYLED)
    return styled and _plain_twin(sign)


def _find_imitations(text: str) -> frozenset[int]:
    """Places of letters that look Latin and are not."""
    if not any(sign in _LATIN_LOOKS for sign in _iterate_foreign(text)):
        return frozenset()
    words = [(one.start(), one.group(), _is_mixed(one.group())) for one in _WORD.finditer(text)]
    native = {
        _script(letter)
        for _, word, mixed in words
        for letter in word
        if not (mixed or letter.isascii() or letter in _LATIN_LOOKS)
    }
    return frozenset(
        start + at
        for start, word, mixed in words
        for at, letter in enumerate(word)
        if letter in _LATIN_LOOKS and (mixed or _script(letter) not in native)
    )


def _is_mixed(word: str) -> bool:
    return any(map(_is_latin, word)) and any(letter in _LATIN_LOOKS for letter in word)


def _is_latin(letter: str) -> bool:
    return letter.isascii() or _script(letter) == "LATIN"


@lru_cache(4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]
