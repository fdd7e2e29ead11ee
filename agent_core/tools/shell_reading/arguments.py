"""Checks a program's arguments against what is known of the program."""

import re
from collections.abc import Iterable
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.tools import paths
from agent_core.tools.shell_reach import could_be_secret
from agent_core.tools.shell_reading.verbs import ALWAYS, ANY, Verb
from agent_core.tools.shell_reading.words import Strange, Word

_CHOOSING = frozenset({"--include", "--glob", "--iglob"})
"""Options whose value selects the files that are shown."""
_PUBLIC = frozenset(
    {"/etc/os-release", "/usr/lib/os-release", "/etc/debian_version", "/etc/lsb-release"}
    | {f"/proc/{name}" for name in ("cpuinfo", "meminfo", "loadavg", "uptime", "version")}
)
"""Files outside that tell about the machine, as `uname` and `free` do."""
_HIDDEN = re.compile(r"(?:[\w-][\w.-]{0,80}/)?\.[\w.-]{0,80}\*/?")


class GivenArguments(Struct, frozen=True, kw_only=True):
    """Options and operands of a command. `letters`: of its short options; `names`: its long ones
    as written; `scripts`: the values of `-e`."""

    operands: tuple[Word, ...]
    letters: frozenset[str]
    names: tuple[str, ...]
    scripts: tuple[Word, ...]


def read_arguments(verb: Verb, words: tuple[Word, ...]) -> GivenArguments:
    """The arguments, after every option and every path was checked. Raises Strange."""
    operands: list[tuple[Word, bool]] = []
    letters: set[str] = set()
    names: list[str] = []
    scripts: list[Word] = []
    waiting, options = list(words), not verb.prints
    while waiting:
        word = _place_expanded(verb, waiting.pop(0), options=options)
        if options and word.text == "--":
            options = False
        elif options and word.text.startswith("--"):
            for _ in range(_count_values(verb, word)):
                _take_value(word, waiting)
            names.append(word.text)
        elif options and word.text.startswith("-") and word.text != "-":
            read, value = _read_letters(verb, word, waiting)
            letters |= read
            scripts += [value] if value is not None else []
        else:
            options = options and not verb.ordered
            operands.append((word, options))
    free = verb.free if not scripts else 0
    for place, (word, early) in enumerate(operands):
        if verb.itself & letters and is_hidden(word):
            continue
        _check_operand(verb, word, early, free=place < free)
    if not verb.least <= len(operands) + len(scripts) <= max(verb.most, len(scripts)):
        raise Strange(phrase("odd_count"))
    return GivenArguments(
        operands=tuple(word for word, _ in operands),
        letters=frozenset(letters),
        names=tuple(names),
        scripts=tuple(scripts),
    )


def _place_expanded(verb: Verb, word: Word, *, options: bool) -> Word:
    """Return the word with its expansions known; the name of a file becomes the wildcard that
    matches it."""
    if not word.expands or verb.prints or (verb.revisions and word.fact):
        return word
    name, equals, _ = word.text.partition("=")
    is_value = options and name[:2] == "--" and name + equals in verb.names
    if is_value and name not in _CHOOSING and not word.loose:
        return word
    if not word.stands or word.loose:
        raise Strange(phrase("odd_substitution"))
    return replace(word, text=word.stands, glob=True, expands=False)


def check_place(word: Word) -> None:
    """Refuse an operand that may lead out of the workspace or to a secret."""
    text = word.text
    if text in ("-", "/dev/null") or text in _PUBLIC:
        return
    if paths.has_steps_up(text) or paths.why_refused(text):
        raise Strange(phrase("odd_place"))
    if word.glob and any(
        part[:1] == "." and part not in (".", "..") and set("*?[") & set(part)
        for part in text.split("/")
    ):
        raise Strange(phrase("odd_glob_dot"))


def check_glob(word: Word) -> None:
    """Refuse a wildcard that may match a file with secrets."""
    if word.glob and could_be_secret(word.text):
        raise Strange(phrase("odd_glob_secret"))


def is_hidden(word: Word) -> bool:
    """A wildcard for hidden files in one folder, which is also for the two with dots for names."""
    return bool(_HIDDEN.fullmatch(word.text))


def check_text(words: Iterable[Word]) -> None:
    """Refuse wildcards and unknown parts in words that must be literal."""
    for word in words:
        if word.glob:
            raise Strange(phrase("odd_glob_in_option"))
        if word.expands:
            raise Strange(phrase("odd_substitution"))


def _check_operand(verb: Verb, word: Word, early: bool, *, free: bool) -> None:
    if word.glob and word.text[:1] in ("*", "?") and early:
        lone = bool(word.stands) and not word.counts and could_be_secret(word.text)
        if not verb.wild or (verb.lists and lone):
            raise Strange(phrase("odd_glob_option"))
    if verb.responds and word.text[:1] == "@":
        _refuse_option(word.text)
    if verb.responds and word.glob and word.text[:1] in ("*", "?"):  # `--` does not end such words
        raise Strange(phrase("odd_glob_option"))
    if free and word.glob and not verb.prints and could_be_secret(word.text):
        raise Strange(phrase("odd_glob_secret"))
    if word.feeds and free:
        raise Strange(phrase("odd_syntax"))
    if free and verb.is_program and word.glob:  # a file name would be the program
        raise Strange(phrase("odd_glob_in_option"))
    if not free:
        check_place(word)
        if verb.shows:
            check_glob(word)
    if word.glob and verb.most < ANY:  # the shell may expand it to several words
        raise Strange(phrase("odd_count"))


def _count_values(verb: Verb, word: Word) -> int:
    """Count the following words that belong to the long option."""
    name, equals, _ = word.text.partition("=")
    known = dict(verb.takes)
    if not equals and name in known:
        return known[name]
    if not {name + equals, word.text} & {*verb.names, *ALWAYS}:
        _refuse_option(name)
    return 0


def _read_letters(verb: Verb, word: Word, waiting: list[Word]) -> tuple[set[str], Word | None]:
    """The letters of a group of short options, and the value of an `e` among them."""
    if word.glob:
        raise Strange(phrase("odd_glob_in_option"))
    letters: set[str] = set()
    for at, letter in enumerate(word.text[1:], 2):
        letters.add(letter)
        if letter in verb.valued:
            rest = word.text[at:]
            value = Word(text=rest, plain=False) if rest else _take_value(word, waiting)
            if letter in verb.placed:
                check_place(value)
                check_glob(value)
            if letter in verb.counted and not value.text.isdecimal():
                _refuse_option(word.text)
            return letters, value if letter == "e" else None
        if letter in verb.attached:
            return letters, None
        if letter not in verb.flags:
            _refuse_option(word.text)
    return letters, None


def _take_value(option: Word, waiting: list[Word]) -> Word:
    if not waiting:
        raise Strange(phrase("odd_valued", option=option.text[:40]))
    value = waiting.pop(0)
    check_text((value,))  # the first file of a wildcard would be the value, the others options
    return value


def _refuse_option(name: str) -> NoReturn:
    raise Strange(phrase("odd_option", option=name[:40]))
