"""Reads a command `find`: what it looks at, and what it runs on what it finds."""

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.arguments import check_place, check_text
from agent_core.tools.shell_reading.line import Strange
from agent_core.tools.shell_reading.words import Word

_VALUED = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-regextype", "-type"}
    | {"-maxdepth", "-mindepth", "-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin"}
    | {"-perm", "-user", "-group", "-links", "-printf", "-newermt"}
)
_PLACED = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_PLAIN = frozenset(
    {"-empty", "-print", "-print0", "-not", "-o", "-or", "-a", "-and", "-prune", "-ls", "(", ")"}
    | {"!", "-readable", "-writable", "-executable", "-true", "-false", "-depth", "-mount", "-xdev"}
    | {"-quit", "-daystart"}
)
_ENDS = ("+", ";")


class FoundCommands(tuple[tuple[Word, ...], ...]):
    """The commands that a `find` runs on files, with `{}` for their names."""


def read_find(words: tuple[Word, ...]) -> FoundCommands:
    """What the command runs on what it finds. Raises Strange where it does more than look."""
    waiting, inner = list(words), []
    while waiting and waiting[0].text[:1] not in ("-", "(", "!"):
        if waiting[0].glob or waiting[0].expands:
            raise Strange(phrase("odd_find_glob"))
        check_place(waiting.pop(0))
    while waiting:
        word = waiting.pop(0)
        check_text((word,) if word.text[:1] == "-" else ())
        if word.text in _VALUED and waiting:
            check_text((waiting.pop(0),))
        elif word.text in _PLACED and waiting:
            check_text(waiting[:1])
            check_place(waiting.pop(0))
        elif word.text == "-exec":
            inner.append(_read_inner(waiting))
        elif word.text not in _PLAIN:
            raise Strange(phrase("odd_find"))
    return FoundCommands(inner)


def names_each_apart(words: tuple[Word, ...]) -> bool:
    """It prints names alone, each ended by a zero: nothing of a name can be read as a word more."""
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
