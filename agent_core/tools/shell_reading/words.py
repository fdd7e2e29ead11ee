"""A word of a command, and a command of a line, as a shell hands them to a program."""

from msgspec import Struct


class Word(Struct, frozen=True, kw_only=True):
    """A word as the program is given it. `plain`: written without quotes, escapes, expansions and
    wildcards; `glob`: it has a wildcard outside of quotes; `expands`: part of it is not known, and
    if `wild` could be a wildcard; `feeds`: it stands for a file that another command of the line
    prints into."""

    text: str
    plain: bool = True
    glob: bool = False
    expands: bool = False
    wild: bool = False
    feeds: bool = False


class PlainCommand(Struct, frozen=True, kw_only=True):
    """One program with its words. `source`: the file that it reads as its input; `targets`: those
    that its output goes to; `fed`: a text of the line is its input; `piped`: another command's
    output is; `nested`: it stands in a group, a substitution, a loop or behind `!`."""

    words: tuple[Word, ...]
    source: Word | None = None
    targets: tuple[Word, ...] = ()
    fed: bool = False
    piped: "PlainCommand | None" = None
    nested: bool = False
