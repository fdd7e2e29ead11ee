"""Reads the command `find`: what it looks at, and the commands it runs on the results."""

import re

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.arguments import check_place, check_text
from agent_core.tools.shell_reading.words import Strange, Word

_VALUED = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-regextype", "-type"}
    | {"-maxdepth", "-mindepth", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin"}
    | {"-perm", "-user", "-group", "-links", "-printf", "-newermt", "-newerct", "-inum"}
    | {"-xtype", "-uid", "-gid", "-used", "-fstype", "-lname", "-ilname"}
)
_PLACED = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_PLAIN = frozenset(
    {"-empty", "-print", "-print0", "-not", "-o", "-or", "-a", "-and", "-prune", "-ls", "(", ")"}
    | {"!", "-readable", "-writable", "-executable", "-true", "-false", "-depth", "-mount", "-xdev"}
    | {"-quit", "-daystart", "-nouser", "-nogroup", "-noleaf", "-ignore_readdir_race"}
    | {"-noignore_readdir_race", "-warn", "-nowarn"}
)
_ACTS = frozenset({"-exec", "-print", "-print0", "-printf", "-ls"})
_NAMED = ("-name", "-iname")
_ENDS = ("+", ";")
_MEANT = re.compile(r"\*\.[A-Za-z0-9]{1,10}|[A-Za-z0-9_][\w.-]{0,80}\*(?:\.[A-Za-z0-9]{1,10})?")
"""A wildcard without quotes that people mean for `find` itself: where a shell finds files for it,
no name of theirs is an expression of `find`."""


class FoundCommands(tuple[tuple[Word, ...], ...]):
    """The commands that a `find` runs on files, with `{}` for their names."""


def read_find(words: tuple[Word, ...]) -> FoundCommands:
    """Return the commands that it runs on what it finds. Raises Strange if it does more than
    look."""
    waiting, inner = list(words), []
    while waiting and waiting[0].text[:1] not in ("-", "(", "!"):
        if waiting[0].glob or waiting[0].expands:
            raise Strange(phrase("odd_find_glob"))
        if waiting[0].text[:1] == "@":  # for some programs its names are lists of more words
            raise Strange(phrase("odd_find"))
        check_place(waiting.pop(0))
    while waiting:
        word = waiting.pop(0)
        check_text((word,) if word.text[:1] == "-" else ())
        if word.text in _VALUED and waiting:
            value = waiting.pop(0)
            if not (word.text in _NAMED and value.glob and _MEANT.fullmatch(value.text)):
                check_text((value,))
        elif word.text in _PLACED and waiting:
            check_text(waiting[:1])
            check_place(waiting.pop(0))
        elif word.text == "-exec":
            inner.append(_read_inner(waiting))
        elif word.text not in _PLAIN:
            raise Strange(phrase("odd_find"))
    return FoundCommands(inner)


def list_kinds(words: tuple[Word, ...]) -> tuple[str, ...]:
    """Return the patterns of which each found name matches one; () if nothing is known of them.
    Only tests of all names count: one `-name`, or several with `-o` in brackets."""
    tests = _list_tests([word.text for word in words])
    names = [at for at, (test, _) in enumerate(tests) if test in _NAMED]
    if not names:
        return ()
    begin, end = names[0], names[0] + 1
    if [test for test, _ in tests[begin - 1 : begin]] == ["("]:
        while [test for test, _ in tests[end : end + 1]] == ["-o"] and end + 1 in names:
            end += 2
        begin, end = begin - 1, end + 1
        if [test for test, _ in tests[end - 1 : end]] != [")"]:
            return ()
    left = {test for test, _ in (*tests[:begin], *tests[end:])}
    negated = [test for test, _ in tests[begin - 1 : begin]] in (["!"], ["-not"])
    acts = _ACTS & {test for test, _ in tests[:begin]}  # for names that were not checked yet
    if negated or acts or left & {"-o", "-or", ",", "("}:
        return ()
    return tuple(tests[at][1] for at in names if begin <= at < end)


def _list_tests(texts: list[str]) -> list[tuple[str, str]]:
    """Return its tests with their values."""
    tests, at = [], 0
    while at < len(texts):
        takes = texts[at] in _VALUED | _PLACED
        tests.append((texts[at], texts[at + 1] if takes and at + 1 < len(texts) else ""))
        at += 1 + takes
        if tests[-1][0] == "-exec":
            at = next((n for n in range(at, len(texts)) if texts[n] in _ENDS), len(texts)) + 1
    return tests


def names_each_apart(words: tuple[Word, ...]) -> bool:
    """Return True if it prints names alone, each ended by a zero: no name can be read as several
    words."""
    texts = [word.text for word in words]
    written = {"-print", "-printf", "-ls", "-exec"} & set(texts)
    return "-print0" in texts and not written


def _read_inner(waiting: list[Word]) -> tuple[Word, ...]:
    ends = [at for at, word in enumerate(waiting) if word.text in _ENDS]
    if not ends:
        raise Strange(phrase("odd_find"))
    found = tuple(waiting[: ends[0]])
    del waiting[: ends[0] + 1]
    check_text(found)
    return found
