"""Finds secrets by the names before them, in many languages, and however people write a value
behind a name: in prose, a table, markdown, on the next line, in the quotes of their language.

A value that stands directly behind the name of a password counts if it has letters and digits; any
other has to look drawn by a machine.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from agent_core.guardrails.named.secret_names import (
    MAX_NAME,
    PASSWORDS,
    SIGNS,
    TOKENS,
    spell_name,
)
from agent_core.guardrails.sign_search import find_sign, search_ranges

MAX_GAP = 128
"""Characters between a name and its value, at most."""
MIN_DRAWN = 10
"""Characters that a value which has to look drawn has at least."""
NAME_SIGNS = tuple(dict.fromkeys(SIGNS.values()))
"""One of these occurs in each text with such a name, in small letters."""
_BLANK = r"[ \t\u00a0\u202f\u3000]"
_CLOSE = r"(?:\\{0,2}[*_`\"'”»」』)）\]]){0,4}(?:</\w{1,8}>)?"
_OPEN = r"(?:<\w{1,8}>)?(?:[rbuf](?=[\"']))?(?:\\{0,2}[*_`\"'“„”«»「『]){0,4}"
_SIGN = r"(?:=>|:=|==|[-=]>|[→—–:=：＝>|,;\t])"
_VERB = (
    r"(?:is|was|are|ist|war|lautet|est|était|es|era|é|è|será|jest|to|är|er|on|это|будет"
    r"|(?:will|shall) be|(?:set|changed|reset) to|는|은|は|是|为|為)"
)
_BLOCK = r"(?:[|>][+-]?|<<[-~]?[\"']?\w{1,12}[\"']?)"
"""The beginning of a text of several lines, in YAML and in shells."""
_DIRECT = rf"{_CLOSE}{_BLANK}{{0,4}}(?:=>|:=|[:=：＝]){_BLANK}{{0,4}}{_OPEN}"
_ANY = (
    rf"{_CLOSE}(?:[ (（][^\n.!?,;:：=＝|\"'`<>。！？，；]{{0,24}}?)?{_CLOSE}"
    rf"(?:{_BLANK}{{0,4}}{_SIGN}{_CLOSE}{_BLANK}{{0,4}}(?:{_BLOCK}?\\?\r?\n{_BLANK}{{0,12}})?"
    rf"|(?<=>)\s{{0,12}}<td[^<>\n]{{0,40}}>"
    rf"|{_BLANK}{{0,4}}{_VERB}[:：]?{_BLANK}{{0,4}}|{_BLANK}{{1,4}}(?=[\"'`“„«「]))"
    rf"{_OPEN}"
)
_PAIR = (
    r"(?:[\"'],?\s{0,24}|,?\s{1,24})"
    r"(?:[\"']?[Tt]ype[\"']?\s?[:=]\s?[\"']?\w{1,24}[\"']?(?:,\s{0,24}|\s{1,24}))?"
    r"[\"']?[Vv]alue[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
)
"""The characters between a name and its value where both are values of fields."""
_SAID = rf"{_CLOSE}{_BLANK}{{1,4}}{_VERB}[:：]?{_BLANK}{{1,4}}{_OPEN}"
_HEX = r"(?=[a-f]{0,80}\d)(?=\d{0,80}[a-f])[0-9a-f]{32,128}(?![\w.-])"
_CASES = r"(?=[^\s\"'\\]{0,80}[a-z])(?=[^\s\"'\\]{0,80}[A-Z])"
_MORE = r"(?:[!@#^*~]{1,8}[\w+/=-]{1,200}){0,20}"
_WORD = (
    r"(?=[\w+/=-]{0,80}[A-Za-z])(?=[\w+/=-]{0,80}\d)"
    rf"[\w+/=-]{{10,}}(?![\w(\[:]|\.\S){_MORE}"
)
_QUOTED = (
    r"(?<=[\"'`“„«「『])(?=[^\s\"'\\]{0,80}[A-Za-z])(?=[^\s\"'\\]{0,80}\d)"
    r"[\w+/=.!@#%^*~?:,-]{8,200}(?=\\{0,2}[\"'`”“»」』])"
)
_VALUE = f"(?:{_QUOTED}|{_WORD})"
_SURE = ("direct", "pair", "said")
_PARTS = re.compile("[a-z]+|[A-Z]+|[0-9]+")


def find_named_secrets(text: str, small: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each value. `small`: the text in small letters."""
    names = tuple(name for name, sign in SIGNS.items() if sign in small)
    if not names:
        return
    signs = dict.fromkeys(SIGNS[name] for name in names)
    ranges = [(at - MAX_NAME, at) for sign in signs for at, _ in find_sign(sign, small)]
    for found in search_ranges(_compile(names), text, _join(ranges)):
        start, end = found.span(found.lastgroup or "any")
        if found.lastgroup in _SURE or _looks_drawn(text[start:end]):
            yield start, end


def _join(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, none of which overlaps with another."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((max(first, 0), last))
    return joined


@lru_cache(maxsize=64)
def _compile(names: tuple[str, ...]) -> re.Pattern[str]:
    loud = "|".join(spell_name(one) for one in names if one in PASSWORDS)
    each = [rf"(?:{loud}){_DIRECT}(?P<direct>{_VALUE})"] if loud else []
    every = "|".join(map(spell_name, names))
    each += (
        rf"(?:{every}){_PAIR}(?P<pair>{_VALUE})",
        rf"(?:{every}){_SAID}(?P<said>{_HEX}|{_CASES}[\w+/=-]{{20,}}(?![\w(.\[:]))",
    )
    if often := "|".join(spell_name(one) for one in names if one not in TOKENS):
        each.append(rf"(?:{often}){_ANY}(?P<any>{_CASES}{_VALUE})")
    return re.compile("|".join(each), re.ASCII)


def _looks_drawn(value: str) -> bool:
    """Return True if letters and digits alternate as in no word, name or date."""
    return len(value) >= MIN_DRAWN and len(_PARTS.findall(value)) * 4 > len(value)
