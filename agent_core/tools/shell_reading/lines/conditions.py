"""The tests of `[[ … ]]`, `[ … ]` and `case`: their parts, and those that evaluate nothing.

`[[` evaluates numbers as expressions, in which an index may run a command. A shell without it takes
it for a program, `&&` and `||` for its own: the words behind them would be a command there.
"""

import re

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.arguments import check_place
from agent_core.tools.shell_reading.words import Strange, Word

BEGIN = re.compile(r"\[\[(?=[ \t])")
END = re.compile(r"\]\](?=$|[\s;|&)])")
JOINT = re.compile(r"&&|\|\|")
_SIGN = r"[\w^.*+?:,/@%=\[\]{}-]|\\[^\s\w]|\\[.bBdDsSwW]|\$(?=[ \t)|])"
_GROUP = rf"\((?:{_SIGN}|\||\((?:{_SIGN}|\|){{0,80}}\)[*+?]?){{0,80}}\)[*+?]?"
REGEX = re.compile(rf"(?:{_SIGN}|{_GROUP}){{1,100}}+(?=[ \t])")
"""An expression: a bar stands in brackets, where a shell without `[[` ends with an error."""
EMPTINESS = re.compile(
    r"\$(?:[A-Za-z_]\w{0,60}|\{[A-Za-z_]\w{0,60}(?::?-)?\})(?=$|[\s;])"
    r"|\"\$(?:[A-Za-z_]\w{0,60}|\{[A-Za-z_]\w{0,60}(?::?-)?\})\"(?=$|[\s;])"
)
"""Any variable, of which only its being empty is asked."""
_PATTERN = (
    r"(?:[\w./*?:@%+,=-]|\[[A-Za-z0-9-]{1,20}\]|\"[\w ./:@+-]{0,40}\"|'[\w ./:@+*-]{0,40}')"
    r"{1,80}+"
)
CASE = re.compile(
    rf"\(?[ \t]{{0,9}}{_PATTERN}(?:[ \t]{{0,9}}\|[ \t]{{0,9}}{_PATTERN}){{0,20}}[ \t]{{0,9}}\)"
)
"""The patterns of one branch of a `case`."""
_NUMBER = re.compile(r"-?\d{1,18}")
_MEASURES = frozenset({"-z", "-n"})
_OF_FILES = re.compile(r"-[abcdefghkLprsuwxGNOS]")
_COMPARES = frozenset({"=", "==", "!=", "=~"})
COUNTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_AGES = frozenset({"-nt", "-ot", "-ef"})
_PROGRAM = re.compile(r"/(?:usr/)?(?:local/)?s?bin/[\w+-][\w.+-]{0,40}")
_NAME_INSIDE = re.compile(r"(?:\./)?[\w.][\w.-]{0,80}")


def check_condition(words: tuple[Word, ...]) -> None:
    """Check one test of `[[`, without its brackets."""
    while words and words[0].plain and words[0].text == "!":
        words = words[1:]
    if len(words) == 3 and words[1].plain:
        first, sign, last = words[0], words[1].text, words[2]
        if sign in _COMPARES or (sign in COUNTS and is_number(first) and is_number(last)):
            return
        if sign in _AGES:
            check_file(first)
            check_file(last)
            return
    elif len(words) == 2 and words[0].plain:
        if words[0].text in _MEASURES:
            return
        if _OF_FILES.fullmatch(words[0].text):
            check_file(words[1])
            return
    elif len(words) == 1:
        return
    raise Strange(phrase("odd_option", option=" ".join(word.text for word in words)[:40]))


def is_number(word: Word) -> bool:
    """Return True if its value consists of digits, whatever it is."""
    return word.number or (not word.expands and bool(_NUMBER.fullmatch(word.text)))


def check_file(word: Word) -> None:
    """Refuse to look for a file that may be elsewhere; the existence of a secret one is none."""
    if word.expands and not word.stands:
        raise Strange(phrase("odd_substitution"))
    if not word.expands and not names_inside(word):
        check_place(word)


def names_inside(word: Word) -> bool:
    """A plain name of a file in the workspace's own folder, or a program's."""
    if _PROGRAM.fullmatch(word.text):
        return True
    return bool(_NAME_INSIDE.fullmatch(word.text)) and word.text.strip(".") != ""


def begins_safely(words: list[Word]) -> bool:
    """Return True if no shell takes the test for a command that exists."""
    texts = [word.text for word in words if word.plain]
    first = texts[1:2] if texts[:1] == ["!"] else texts[:1]
    return bool(first) and first[0][:1] == "-" and len(first[0]) == 2
